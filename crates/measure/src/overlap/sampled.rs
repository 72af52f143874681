//! What a run that was recorded in part tells of the whole.
//!
//! All of its beginning has rows, and behind that slots of time that chance has drawn, each with a probability that is known. So
//! a sum over the run is estimated by weighing what a slot has with the inverse of its probability (Horvitz and Thompson 1952), and
//! a share as the ratio of two such sums. The interval comes from how much slots differ (Poisson sampling, ratio linearised:
//! Särndal, Swensson and Wretman 1992, 5.7).
//!
//! What was recorded wholly, before the first slot was drawn, adds nothing to the width. Ranks draw the same slots, so
//! a slot of all ranks together is the unit. Of a few slots nothing is claimed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells::OverlapCell;
use super::sums::Cause;

/// Half the width of an interval that holds 95 % of what is normal, in standard deviations.
const WIDTH: f64 = 1.96;
/// With fewer slots nothing is known of how they differ.
pub const FEWEST_SLOTS: usize = 5;

/// A slot of the wall clock and the stage in which a rank recorded it: with probability 4^-stage.
pub(super) type SlotKey = (i64, u32);

/// A share of the whole run, and what holds it with 95 % confidence. Fractions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// Shares of the whole run, estimated from the part of it that has rows. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Serialize)]
pub struct Sampled {
    /// Slots that were drawn, behind the part in which everything was recorded.
    pub slots: usize,
    /// Shares of exposed and of blocked time, by cause.
    pub exposed: BTreeMap<Cause, Share>,
    pub blocked: BTreeMap<Cause, Share>,
    /// Achieved overlap, of the reference time.
    pub achieved_low: Option<Share>,
    pub achieved_high: Option<Share>,
}

impl Sampled {
    /// `None` where nothing was drawn.
    pub(super) fn estimate(slots: &BTreeMap<SlotKey, OverlapCell>) -> Option<Sampled> {
        let drawn = slots.keys().filter(|(_, stage)| *stage > 0).map(|(slot, _)| *slot);
        let mut drawn: Vec<i64> = drawn.collect();
        drawn.dedup();
        if drawn.is_empty() {
            return None;
        }
        let share = |part: &dyn Fn(&OverlapCell) -> i64, whole: &dyn Fn(&OverlapCell) -> i64| {
            share(slots.iter().map(|(&key, cell)| (key, part(cell) as f64, whole(cell) as f64)))
        };
        let by_cause = |exposure: fn(&OverlapCell) -> super::exposure::Exposure| {
            let of = |cause: Cause| {
                let part = move |cell: &OverlapCell| exposure(cell).by_cause(cause).0;
                Some((cause, share(&part, &move |cell| exposure(cell).total())?))
            };
            Cause::ALL.into_iter().filter_map(of).collect()
        };
        let reference: &dyn Fn(&OverlapCell) -> i64 = &|cell| cell.requests.transfer;
        Some(Sampled {
            slots: drawn.len(),
            exposed: by_cause(|cell| cell.requests.exposed),
            blocked: by_cause(|cell| cell.blocking.exposed),
            achieved_low: share(&|cell| cell.requests.achieved_low, reference),
            achieved_high: share(&|cell| cell.requests.achieved_high, reference),
        })
    }
}

/// One unit of the sample: what its ranks' rows weigh together.
#[derive(Debug, Clone, Copy, Default)]
struct SampledUnit {
    part: f64,
    whole: f64,
    /// The least with which a rank recorded the slot.
    probability: f64,
}

/// The share of `part` in `whole` over the run; `None` of nothing.
fn share(cells: impl Iterator<Item = (SlotKey, f64, f64)>) -> Option<Share> {
    let mut units: BTreeMap<i64, SampledUnit> = BTreeMap::new();
    let (mut all_part, mut all_whole) = (0.0, 0.0);
    for ((slot, stage), part, whole) in cells {
        let weight = 4f64.powi(stage.min(30) as i32);
        all_part += weight * part;
        all_whole += weight * whole;
        if stage > 0 {
            let unit = units
                .entry(slot)
                .or_insert(SampledUnit { probability: 1.0, ..SampledUnit::default() });
            unit.part += weight * part;
            unit.whole += weight * whole;
            unit.probability = unit.probability.min(1.0 / weight);
        }
    }
    if all_whole <= 0.0 {
        return None;
    }
    let estimate = all_part / all_whole;
    if units.len() < FEWEST_SLOTS {
        return Some(Share { estimate, low: 0.0, high: 1.0 });
    }
    let of_unit = |unit: &SampledUnit| {
        let residual = unit.part - estimate * unit.whole;
        (1.0 - unit.probability) * residual * residual
    };
    let variance: f64 = units.values().map(of_unit).sum();
    let half = WIDTH * variance.sqrt() / all_whole;
    Some(Share { estimate, low: (estimate - half).max(0.0), high: (estimate + half).min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_trace::stats::scramble;

    /// Slots of a made run whose share differs from slot to slot and falls towards its end.
    fn slot(number: i64) -> (f64, f64) {
        let noise = (scramble(number as u64) % 1_000) as f64 / 1_000.0;
        let whole = 50.0 + 100.0 * noise;
        let part = whole * (0.5 - number as f64 / 10_000.0 + 0.3 * (noise - 0.5));
        (part, whole)
    }

    fn stage(number: i64) -> u32 {
        match number {
            0..=199 => 0,
            200..=999 => 1,
            _ => 2,
        }
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        const SLOTS: i64 = 3_000;
        let sum = (0..SLOTS).map(slot).fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let truth = sum.0 / sum.1;
        let mut held = 0;
        for seed in 0..400u64 {
            let is_drawn = |number: &i64| {
                let hash = scramble(scramble(seed) ^ *number as u64) % (1 << 20);
                hash < (1 << 20) >> (2 * stage(*number))
            };
            let drawn = (0..SLOTS).filter(is_drawn).map(|number| {
                let (part, whole) = slot(number);
                ((number, stage(number)), part, whole)
            });
            let found = share(drawn).unwrap();
            assert!((found.estimate - truth).abs() < 0.05, "{found:?}, is {truth}");
            assert!(found.high - found.low < 0.1, "{found:?}");
            held += u32::from(found.low <= truth && truth <= found.high);
        }
        assert!((368..=394).contains(&held), "{held} of 400 hold it");
    }

    #[test]
    fn what_was_recorded_wholly_is_exact() {
        let whole = (0..200).map(|number| {
            let (part, all) = slot(number);
            ((number, 0), part, all)
        });
        let mut cells: Vec<(SlotKey, f64, f64)> = whole.collect();
        let few = share(cells.iter().copied()).unwrap();
        assert_eq!((few.low, few.high), (0.0, 1.0), "nothing was drawn");
        // slots behind it in which nothing happened
        cells.extend((200..220).map(|number| ((number, 1), 0.0, 0.0)));
        let found = share(cells.into_iter()).unwrap();
        assert_eq!((found.low, found.high), (found.estimate, found.estimate));
        assert_eq!(share([((1, 1), 0.0, 0.0)].into_iter()), None);
    }
}
