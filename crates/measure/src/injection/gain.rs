//! What injection gained: for the requests of a call site, and for the whole program.

use std::collections::BTreeMap;
use std::hash::Hash;

use serde::Serialize;

use super::estimate::{compare, ComparisonScale, Slot, SlotPair};
use lapscope_data::model::Nanos;
use lapscope_trace::injected::arms::{ArmCell, Arms, CellPair};
use lapscope_trace::stats::Interval;

/// Slots with requests that each arm needs before anything is said.
pub const LEAST_SLOTS: u64 = 8;
/// A slot should hold so many iterations, or requests of one arm are under way in slots of the other.
const ITERATIONS_A_SLOT: i64 = 4;

/// What the numbers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GainVerdict {
    /// The whole interval is above zero.
    Gain,
    /// The interval contains zero.
    NoMeasurableGain,
    /// The whole interval is below zero.
    Loss,
    /// Fewer than [`LEAST_SLOTS`] of an arm.
    NotEnoughSlots,
    /// Only for the whole program: an iteration has parts of both arms.
    IterationsTooLong,
    /// Only for a call site: the policy leaves it out.
    SwitchedOff,
}

impl GainVerdict {
    fn judge(interval: Option<Interval>) -> GainVerdict {
        match interval {
            None => GainVerdict::NotEnoughSlots,
            Some(interval) if interval.low > 0.0 => GainVerdict::Gain,
            Some(interval) if interval.high < 0.0 => GainVerdict::Loss,
            Some(_) => GainVerdict::NoMeasurableGain,
        }
    }
}

/// What the requests of a call site gained. Positive is time saved; the interval is that of 95 % confidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gain {
    pub verdict: GainVerdict,
    pub requests_on: u64,
    pub requests_off: u64,
    /// Slots that have such requests.
    pub slots_on: u64,
    pub slots_off: u64,
    /// Exposed time of a request, a mean: its share of the call that completed it, and its post.
    pub exposed_on_ns: Option<Nanos>,
    pub exposed_off_ns: Option<Nanos>,
    /// Tests and interrupts for a request that is injected for, a mean. 0 where they are on a thread of their own.
    pub cost_ns: Nanos,
    /// Per request: exposed time without injection minus that with it, minus its cost.
    pub estimate_ns: Option<Nanos>,
    pub low_ns: Option<Nanos>,
    pub high_ns: Option<Nanos>,
    /// For all eligible requests of the run, had injection been on for them throughout.
    pub run_estimate_ns: Option<Nanos>,
    pub run_low_ns: Option<Nanos>,
    pub run_high_ns: Option<Nanos>,
}

/// What the program gained: time from post to post, so with the cost of all interrupts and with waits that moved elsewhere. Fractions of
/// the time that it takes without injection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WholeGain {
    pub verdict: GainVerdict,
    pub slots_on: u64,
    pub slots_off: u64,
    pub estimate: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// How long an iteration usually is: from one post of a site to its next.
    pub iteration_ns: Option<Nanos>,
    /// `LAPSCOPE_INJECT_AB_MS` that would tell more, where there is one.
    pub suggested_ab_ms: Option<i64>,
}

/// `cost` is that of a request that was injected for, `policy` whether any may be.
pub fn of_site(pairs: &BTreeMap<i64, CellPair>, cost: Nanos, policy: bool) -> Gain {
    let sum = |arm: usize| pairs.values().map(|pair| pair[arm].requests).sum::<u64>();
    let exposed = |arm: usize| {
        let ns: f64 = pairs.values().map(|pair| pair[arm].exposed_ns).sum();
        (sum(arm) > 0).then(|| Nanos((ns / sum(arm) as f64).round() as i64))
    };
    let slot = |cell: &ArmCell| Slot { units: cell.requests as f64, amount: cell.exposed_ns };
    let slots: Vec<SlotPair> =
        pairs.values().map(|[off, on]| SlotPair { off: slot(off), on: slot(on) }).collect();
    let (slots_off, slots_on) = count(&slots);
    let interval = enough(slots_off, slots_on)
        .then(|| compare(&slots, ComparisonScale::Difference))
        .flatten()
        .map(|interval| interval.map(|ns| ns - cost.0 as f64));
    let (requests_off, requests_on) = (sum(0), sum(1));
    let requests = (requests_off + requests_on) as f64;
    let each = interval.map(nanos);
    let all = interval.map(|interval| nanos(interval.map(|ns| ns * requests)));
    Gain {
        verdict: if policy { GainVerdict::judge(interval) } else { GainVerdict::SwitchedOff },
        requests_on,
        requests_off,
        slots_on,
        slots_off,
        exposed_on_ns: exposed(1),
        exposed_off_ns: exposed(0),
        cost_ns: cost,
        estimate_ns: each.map(|[estimate, _, _]| estimate),
        low_ns: each.map(|[_, low, _]| low),
        high_ns: each.map(|[_, _, high]| high),
        run_estimate_ns: all.map(|[estimate, _, _]| estimate),
        run_low_ns: all.map(|[_, low, _]| low),
        run_high_ns: all.map(|[_, _, high]| high),
    }
}

fn nanos(interval: Interval) -> [Nanos; 3] {
    [interval.estimate, interval.low, interval.high].map(|ns| Nanos(ns.round() as i64))
}

fn count(pairs: &[SlotPair]) -> (u64, u64) {
    let slots =
        |arm: fn(&SlotPair) -> Slot| pairs.iter().filter(|pair| arm(pair).units > 0.0).count();
    (slots(|pair| pair.off) as u64, slots(|pair| pair.on) as u64)
}

fn enough(off: u64, on: u64) -> bool {
    off.min(on) >= LEAST_SLOTS
}

/// What the program gained: the time from a post to the rank's next, compared with what it takes in the mean of both arms
/// behind a post of that site. So slots with another mix of sites have another expectation.
pub fn of_program<S: Copy + Eq + Hash>(arms: &Arms<S>) -> WholeGain {
    let pairs = steps_by_pair(arms);
    let (slots_off, slots_on) = count(&pairs);
    let iteration_ns = arms.iteration();
    let slot = arms.slot();
    let is_too_long = iteration_ns.is_some_and(|iteration| iteration > slot);
    let interval = (enough(slots_off, slots_on) && !is_too_long)
        .then(|| compare(&pairs, ComparisonScale::Logarithm))
        .flatten()
        // A logarithm of off over on; 1 - on / off is what is saved.
        .map(|interval| interval.map(|log| 1.0 - (-log).exp()));
    let verdict =
        if is_too_long { GainVerdict::IterationsTooLong } else { GainVerdict::judge(interval) };
    WholeGain {
        verdict,
        slots_on,
        slots_off,
        estimate: interval.map(|interval| interval.estimate),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        iteration_ns,
        suggested_ab_ms: suggest(verdict, slot, iteration_ns),
    }
}

fn steps_by_pair<S: Copy + Eq + Hash>(arms: &Arms<S>) -> Vec<SlotPair> {
    let mut pairs: BTreeMap<i64, SlotPair> = BTreeMap::new();
    for site in arms.sites() {
        let cells = arms.of_site(*site);
        let steps: u64 = cells.values().flatten().map(|cell| cell.steps).sum();
        let step_ns: f64 = cells.values().flatten().map(|cell| cell.step_ns).sum();
        let expected = step_ns / steps.max(1) as f64;
        for (pair, [off, on]) in &cells {
            let pair = pairs.entry(*pair).or_default();
            for (slot, cell) in [(&mut pair.off, off), (&mut pair.on, on)] {
                slot.units += expected * cell.steps as f64;
                slot.amount += cell.step_ns;
            }
        }
    }
    pairs.into_values().collect()
}

/// A length of slots that would tell more: longer where iterations do not fit in, shorter where there were too few and
/// several iterations still fit in.
fn suggest(verdict: GainVerdict, slot: Nanos, iteration: Option<Nanos>) -> Option<i64> {
    let wanted = round_up_ms(Nanos(iteration?.0.saturating_mul(ITERATIONS_A_SLOT)));
    match verdict {
        GainVerdict::IterationsTooLong => Some(wanted),
        GainVerdict::NotEnoughSlots if wanted * 1_000_000 < slot.0 => Some(wanted),
        _ => None,
    }
}

/// To 1, 2 or 5 times a power of ten.
fn round_up_ms(time: Nanos) -> i64 {
    let least = time.0.saturating_add(999_999) / 1_000_000;
    let mut power = 1;
    loop {
        if let Some(found) =
            [1, 2, 5].map(|digit| digit * power).into_iter().find(|ms| *ms >= least)
        {
            return found;
        }
        power *= 10;
    }
}
