//! Reference transfer times: how long a transfer of a given size takes on a given locality with nothing in between.
//!
//! A sample is the time from the post of a send to the completion of its receive, both sides being there (l0 of Rashti
//! and Afsahi 2007). Samples of near sizes are put together. Whatever disturbs a transfer makes it longer, so what it takes
//! undisturbed is the low end of what is seen, however many of the others ran into ranks without a processor. Larger
//! transfers take no less; in between time is linear in bytes.
//!
//! - Of an exchange of two ranks (one send and one receive that one call completes) both messages are samples.
//! - A collective is one when all ranks entered it together, and waited for it at once if it is non-blocking: what half
//!   of the ranks took from the entry of the last one. Non-blocking collectives have times of their own, since MPIs
//!   have other algorithms for them; where there are none, those of the blocking call count.
//! - The spread goes from the quickest hundredth to the median, and achieved overlap is an interval over all of it.
//!   Between nodes the low end would choose the direction in which the clocks err: each direction has its own curve,
//!   and the mean of both counts.
//! - Samples while a rank lacked a processor count only where there are no others. They bound from above.

mod bins;
mod curve;
mod quicker;
mod samples;
pub mod sharing;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use bins::Bins;
pub use bins::ReferencePoint;
pub use curve::Curve;
pub use quicker::{Disagreement, Which};
pub use samples::Samples;
use sharing::{AtOnce, Sharing};

use lapscope_data::model::nonblocking_name;
use lapscope_trace::stats::upper_median;
use lapscope_trace::Locality;

/// What the ends of a locality are, in a sentence: "between ranks of one node".
pub fn ends(locality: Locality) -> &'static str {
    match locality {
        Locality::SelfRank => "a rank and itself",
        Locality::Node => "ranks of one node",
        Locality::Network => "ranks of different nodes",
    }
}

/// A transfer with nothing in between.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub locality: Locality,
    pub bytes: u64,
    /// From the post of the send to the completion of its receive.
    pub ns: i64,
    /// From a rank to one with a higher number.
    pub is_upwards: bool,
    /// One of the ranks lacked a processor meanwhile.
    pub is_disturbed: bool,
}

/// A collective that all ranks had entered, and that they did nothing but wait for.
#[derive(Debug, Clone, Copy)]
pub struct CollectiveSample<'a> {
    /// Name of the blocking call, `MPI_Allreduce`.
    pub call: &'a str,
    /// It was the non-blocking call that does the same, `MPI_Iallreduce`: MPIs have algorithms of their own for these.
    pub is_request: bool,
    /// Size of the communicator.
    pub ranks: u32,
    pub bytes: u64,
    /// From the last rank's entry to the end.
    pub ns: i64,
    /// One of the ranks lacked a processor meanwhile.
    pub is_disturbed: bool,
}

/// Where reference times come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReferenceSource {
    /// `lapscope calibrate`.
    Calibration {
        file: PathBuf,
        /// UTC, as `2026-05-04T12:30:00Z`.
        created: String,
    },
    /// Transfers of the run itself that had nothing in between.
    Run,
    /// There are none.
    #[default]
    None,
}

/// A calibration that fits and is not used, as its ranks lacked processors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RefusedCalibration {
    pub file: PathBuf,
    /// UTC, as `2026-05-04T12:30:00Z`.
    pub created: String,
    /// The share of the time in which its ranks could have run and had a processor.
    pub processor_share: f64,
}

/// A time and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// What a transfer takes undisturbed.
    pub ns: i64,
    /// It hardly takes less; less where the size lies outside of what was measured.
    pub low_ns: i64,
    /// What it takes usually, disturbances included.
    pub high_ns: i64,
}

impl Estimate {
    /// A time without spread, nanoseconds.
    pub const fn exactly(ns: i64) -> Estimate {
        Estimate { ns, low_ns: ns, high_ns: ns }
    }

    fn new(ns: f64, low_ns: f64, high_ns: f64) -> Estimate {
        let whole = |ns: f64| (ns.round() as i64).max(1);
        let ns = whole(ns);
        Estimate { ns, low_ns: whole(low_ns).min(ns), high_ns: whole(high_ns).max(ns) }
    }

    fn from_point(point: &ReferencePoint) -> Estimate {
        Estimate::new(point.ns, point.low_ns, point.high_ns)
    }

    /// Whether the quickest is known; where ranks lacked processors it is not, and stands for as little as there is.
    pub fn is_low_known(self) -> bool {
        self.low_ns > 1
    }

    /// Between two estimates, `share` of the way from `a` to `b`.
    fn mix(a: Estimate, b: Estimate, share: f64) -> Estimate {
        let mix = |a: i64, b: i64| a as f64 + (b - a) as f64 * share;
        Estimate::new(mix(a.ns, b.ns), mix(a.low_ns, b.low_ns), mix(a.high_ns, b.high_ns))
    }
}

/// Time by size for each locality and for collectives by their number of ranks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    #[serde(skip)]
    pub source: ReferenceSource,
    /// Newer than the source.
    #[serde(skip)]
    pub refused: Option<RefusedCalibration>,
    /// Of the time in which the ranks that were measured could have run, the share in which they had a processor, where times
    /// are of transfers that this disturbed; `None`: none is, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_share: Option<f64>,
    localities: BTreeMap<Locality, Curve>,
    /// By call, blocking ones apart from non-blocking ones, then by ranks.
    collectives: BTreeMap<String, BTreeMap<u32, Curve>>,
    /// What several messages at once take; only `lapscope calibrate` knows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_once: BTreeMap<Locality, Vec<AtOnce>>,
}

impl Reference {
    /// What messages share, where that was measured.
    pub fn sharing(&self, locality: Locality) -> Option<Sharing> {
        Sharing::fit(self.at_once.get(&locality)?)
    }

    /// Time and memory hardly depend on the number of samples.
    pub fn fit<'a>(
        samples: impl IntoIterator<Item = Sample>,
        collectives: impl IntoIterator<Item = CollectiveSample<'a>>,
        source: ReferenceSource,
    ) -> Reference {
        let mut fit = Fit::default();
        for (key, sample) in (0..).zip(samples) {
            fit.add(sample, key);
        }
        for (key, sample) in (0..).zip(collectives) {
            fit.add_collective(sample, key);
        }
        fit.finish(source)
    }

    /// Takes from the run itself what it does not cover: localities, collectives, numbers of ranks, and sizes below and above
    /// those that it has. Says what it took.
    pub fn complete_with(&mut self, run: Reference) -> Completed {
        let mut taken = Completed::default();
        for (locality, curve) in run.localities {
            let known = self.localities.entry(locality).or_default();
            let whole = known.points().is_empty();
            let bytes = known.extend(&curve);
            taken.localities.extend(bytes.map(|bytes| TakenLocality {
                locality,
                whole,
                bytes: bytes.map(|n| n.round() as u64),
            }));
        }
        for (call, curves) in run.collectives {
            let known = self.collectives.entry(call.clone()).or_default();
            let extended =
                |(ranks, curve)| known.entry(ranks).or_default().extend(&curve).is_some();
            if curves.into_iter().map(extended).fold(false, |any, one| any | one) {
                taken.collectives.push(call);
            }
        }
        taken
    }

    /// The same with all transfers of a locality and size taking so many times as long.
    #[must_use]
    pub fn scaled(&self, times: impl Fn(Locality, f64) -> f64) -> Reference {
        let mut scaled = self.clone();
        for (locality, curve) in &mut scaled.localities {
            let points = curve.points().iter().map(|point| {
                let times = times(*locality, point.bytes);
                let [ns, low_ns, high_ns] =
                    [point.ns, point.low_ns, point.high_ns].map(|ns| ns * times);
                ReferencePoint { ns, low_ns, high_ns, ..*point }
            });
            *curve = Curve::from(points.collect::<Vec<ReferencePoint>>());
        }
        scaled
    }

    /// Whether it knows anything at all.
    pub fn is_empty(&self) -> bool {
        self.localities.is_empty() && self.collectives.is_empty()
    }

    /// How long a transfer takes; `None` where nothing near this size was measured on this locality.
    pub fn transfer(&self, locality: Locality, bytes: u64) -> Option<Estimate> {
        self.localities.get(&locality)?.at(bytes)
    }

    /// How long a non-blocking collective takes, by the name of the blocking call that does the same (`MPI_Allreduce`): what
    /// was measured of it, else what that call takes.
    pub fn nonblocking_collective(&self, call: &str, ranks: u32, bytes: u64) -> Option<Estimate> {
        let own = self.collective(&nonblocking_name(call), ranks, bytes);
        own.or_else(|| self.collective(call, ranks, bytes))
    }

    /// How long a collective takes, by its name (`MPI_Allreduce`); between measured numbers of ranks linear in their
    /// logarithm, as the rounds of a tree are.
    pub fn collective(&self, call: &str, ranks: u32, bytes: u64) -> Option<Estimate> {
        let curves = self.collectives.get(call)?;
        if let Some(curve) = curves.get(&ranks) {
            return curve.at(bytes);
        }
        let (fewer, below) = curves.range(..ranks).next_back()?;
        let (more, above) = curves.range(ranks..).next()?;
        let share = (f64::from(ranks) / f64::from(*fewer)).ln()
            / (f64::from(*more) / f64::from((*fewer).max(1))).ln();
        Some(Estimate::mix(below.at(bytes)?, above.at(bytes)?, share))
    }

    /// The measured points of a locality.
    pub fn points(&self, locality: Locality) -> &[ReferencePoint] {
        self.localities.get(&locality).map_or(&[], Curve::points)
    }

    /// Every collective that was measured: its call, its ranks, its points.
    pub fn collective_points(&self) -> impl Iterator<Item = (&str, u32, &[ReferencePoint])> {
        self.collectives.iter().flat_map(|(call, curves)| {
            curves.iter().map(|(ranks, curve)| (call.as_str(), *ranks, curve.points()))
        })
    }

    /// What a report says of it.
    pub fn describe(&self) -> Description {
        let localities: Vec<LocalityDescription> = self
            .localities
            .iter()
            .map(|(locality, curve)| LocalityDescription {
                locality: *locality,
                coverage: Coverage::measure(curve.points().iter()),
            })
            .collect();
        let all = self.collective_points().flat_map(|(_, _, points)| points);
        Description {
            source: self.source.clone(),
            refused: self.refused.clone(),
            processor_share: self.processor_share,
            samples: localities.iter().map(|locality| locality.coverage.samples).sum(),
            localities,
            collectives: Coverage::measure(all),
        }
    }
}

/// What a reference has taken from a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Completed {
    pub localities: Vec<TakenLocality>,
    /// Calls.
    pub collectives: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct TakenLocality {
    pub locality: Locality,
    /// All of the locality, or sizes that were missing.
    pub whole: bool,
    /// The smallest and the largest size that was taken.
    pub bytes: [u64; 2],
}

/// Samples on their way to a [`Reference`]: of some ranks or of all. What is merged in any order comes to the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Fit {
    /// Messages to ranks with higher numbers, and to others.
    localities: [[Bins; 2]; 3],
    /// By blocking call, whether it was the non-blocking one, and ranks.
    collectives: BTreeMap<(String, bool, u32), Bins>,
}

impl Fit {
    /// `key` tells the sample from all others.
    fn add(&mut self, sample: Sample, key: u64) {
        // ranks of one node have one clock, so their directions differ in nothing that a mean would mend
        let is_back = sample.locality == Locality::Network && !sample.is_upwards;
        self.localities[sample.locality as usize][usize::from(is_back)].add(
            sample.bytes,
            sample.ns,
            sample.is_disturbed,
            key,
        );
    }

    fn add_collective(&mut self, sample: CollectiveSample<'_>, key: u64) {
        let of = (sample.call.to_owned(), sample.is_request, sample.ranks);
        let bins = self.collectives.entry(of).or_default();
        bins.add(sample.bytes, sample.ns, sample.is_disturbed, key);
    }

    /// Whether times are of ranks that lacked processors, as there are no others.
    fn is_disturbed(&self) -> bool {
        let localities = self.localities.iter().flatten();
        localities.chain(self.collectives.values()).any(Bins::is_disturbed)
    }

    /// What both have seen.
    #[must_use]
    fn merge(mut self, other: Fit) -> Fit {
        for (bins, more) in
            self.localities.iter_mut().flatten().zip(other.localities.into_iter().flatten())
        {
            bins.merge(more);
        }
        for (key, more) in other.collectives {
            self.collectives.entry(key).or_default().merge(more);
        }
        self
    }

    fn finish(self, source: ReferenceSource) -> Reference {
        let is_run = source == ReferenceSource::Run;
        let curve_of = |points: Vec<ReferencePoint>| {
            let mut curve = Curve::from(points);
            curve.mark(is_run);
            curve
        };
        let mut reference = Reference { source, ..Reference::default() };
        for (locality, [mut there, mut back]) in Locality::ALL.into_iter().zip(self.localities) {
            let points = there.points_with(&mut back);
            if !points.is_empty() {
                reference.localities.insert(locality, curve_of(points));
            }
        }
        for ((call, is_request, ranks), mut bins) in self.collectives {
            let points = bins.points();
            if !points.is_empty() {
                let name = if is_request { nonblocking_name(&call) } else { call };
                let curves = reference.collectives.entry(name).or_default();
                curves.insert(ranks, curve_of(points));
            }
        }
        if reference.is_empty() {
            reference.source = ReferenceSource::None;
        }
        reference
    }
}

/// Where a [`Reference`] comes from and what it covers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    pub source: ReferenceSource,
    pub refused: Option<RefusedCalibration>,
    /// As [`Reference::processor_share`].
    pub processor_share: Option<f64>,
    /// Transfers measured, on all localities.
    pub samples: u64,
    pub localities: Vec<LocalityDescription>,
    pub collectives: Coverage,
}

/// What a [`Reference`] covers of one locality.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LocalityDescription {
    pub locality: Locality,
    #[serde(flatten)]
    pub coverage: Coverage,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Coverage {
    pub samples: u64,
    /// Distinct sizes, near ones counted once.
    pub sizes: u64,
    pub min_bytes: u64,
    pub max_bytes: u64,
    /// Upper median over the sizes of the distance from the quickest to the median, as a share of the median; `None` without samples.
    pub spread: Option<f64>,
    /// What of that is from the run itself; `None`: nothing.
    pub of_run: Option<RunSizes>,
}

/// The sizes of a [`Coverage`] that were measured in the run itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RunSizes {
    pub sizes: u64,
    pub min_bytes: u64,
    pub max_bytes: u64,
}

impl Coverage {
    fn measure<'a>(points: impl Iterator<Item = &'a ReferencePoint>) -> Coverage {
        let points: Vec<&ReferencePoint> = points.collect();
        let mut spreads: Vec<f64> = points
            .iter()
            .filter(|point| Estimate::from_point(point).is_low_known())
            .map(|point| (point.high_ns - point.low_ns) / point.high_ns.max(point.ns))
            .collect();
        let bytes = |point: &&ReferencePoint| point.bytes.round() as u64;
        let own = || points.iter().copied().filter(|point| point.of_run);
        let of_run = own().map(|point| bytes(&point)).min().map(|min_bytes| RunSizes {
            sizes: own().count() as u64,
            min_bytes,
            max_bytes: own().map(|point| bytes(&point)).max().unwrap_or(min_bytes),
        });
        Coverage {
            samples: points.iter().map(|point| point.samples).sum(),
            sizes: points.len() as u64,
            min_bytes: points.iter().map(bytes).min().unwrap_or(0),
            max_bytes: points.iter().map(bytes).max().unwrap_or(0),
            spread: upper_median(&mut spreads, f64::total_cmp),
            of_run,
        }
    }
}

#[cfg(test)]
mod tests;
