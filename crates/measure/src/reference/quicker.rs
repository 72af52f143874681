//! Where a calibration and the run itself disagree. A transfer with nothing in between cannot be quicker than it is
//! undisturbed, so the quicker of two times is the better evidence.

use std::collections::BTreeMap;

use super::{Curve, Reference, ReferencePoint};
use lapscope_data::model::Nanos;
use lapscope_trace::Locality;

/// Fewer transfers of a run tell nothing against a calibration.
const ENOUGH: u64 = 8;
/// A run's transfers are slower when they take so many times what is calibrated.
const SLOWER: f64 = 1.5;

/// What two times are of.
#[derive(Debug, Clone, PartialEq)]
pub enum Which {
    Locality(Locality),
    /// A call and its number of ranks.
    Collective(String, u32),
}

/// Sizes of which a run says something else than the calibration.
#[derive(Debug, Clone, PartialEq)]
pub struct Disagreement {
    pub which: Which,
    /// The run's transfers were quicker, and are believed.
    pub is_quicker: bool,
    /// How many sizes.
    pub sizes: usize,
    /// The size at which they differ most, in bytes, what was calibrated for it and what the run says, nanoseconds.
    pub bytes: u64,
    pub calibrated_ns: Nanos,
    pub run_ns: Nanos,
    /// Transfers of the run of that size.
    pub samples: u64,
}

impl Reference {
    /// Takes from the run the times of sizes at which its transfers were quicker than what was calibrated, and says so; also
    /// where they were much slower, which changes nothing.
    pub fn correct_by(&mut self, run: &Reference) -> Vec<Disagreement> {
        let mut found = Vec::new();
        for (&locality, curve) in &run.localities {
            if let Some(own) = self.localities.get_mut(&locality) {
                found.extend(correct(own, curve, &Which::Locality(locality)));
            }
        }
        for (call, curves) in &run.collectives {
            let Some(known) = self.collectives.get_mut(call) else { continue };
            for (&ranks, curve) in curves {
                if let Some(own) = known.get_mut(&ranks) {
                    found.extend(correct(own, curve, &Which::Collective(call.clone(), ranks)));
                }
            }
        }
        found
    }
}

/// A size at which times differ: what was calibrated, and the run's point.
struct Differing {
    calibrated_ns: f64,
    point: ReferencePoint,
}

fn correct(own: &mut Curve, run: &Curve, which: &Which) -> Vec<Disagreement> {
    let mut differing: BTreeMap<bool, Vec<Differing>> = BTreeMap::new();
    for point in run.points().iter().filter(|point| point.samples >= ENOUGH) {
        let covered = own.covers(point.bytes).then(|| own.at(point.bytes.round() as u64));
        let Some(calibrated) = covered.flatten() else { continue };
        let is_quicker = point.ns < calibrated.low_ns as f64;
        if is_quicker || point.ns > SLOWER * calibrated.high_ns as f64 {
            let calibrated_ns = calibrated.ns as f64;
            differing
                .entry(is_quicker)
                .or_default()
                .push(Differing { calibrated_ns, point: *point });
        }
    }
    for Differing { point, .. } in differing.get(&true).into_iter().flatten() {
        own.replace(point);
    }
    let said = differing.into_iter().filter_map(|(is_quicker, all)| {
        let factor = |it: &Differing| (it.point.ns / it.calibrated_ns).ln().abs();
        let most = all.iter().max_by(|a, b| factor(a).total_cmp(&factor(b)))?;
        Some(Disagreement {
            which: which.clone(),
            is_quicker,
            sizes: all.len(),
            bytes: most.point.bytes.round() as u64,
            calibrated_ns: Nanos(most.calibrated_ns.round() as i64),
            run_ns: Nanos(most.point.ns.round() as i64),
            samples: most.point.samples,
        })
    });
    said.collect()
}
