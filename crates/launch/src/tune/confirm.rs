//! Whether whole runs confirm what slots promise: the program without lapscope and with the chosen setting, in turn. Slots hold
//! the computation of one run against itself, and do not see what goes before and behind them: only a whole run says what its
//! user waits for.
//!
//! A slot ends with requests under way that the next one pays for. lapscope's own cost counts; turning spools into
//! databases is left out, as it can be done later.

use std::time::Duration;

use serde::Serialize;

use super::trial::nanos;
use lapscope_data::model::Nanos;
use lapscope_trace::stats::{median, Interval};

/// Two runs, one right behind the other: of the whole launch, from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunPair {
    /// Without lapscope.
    pub bare_ns: Nanos,
    /// With tests all the time.
    pub injected_ns: Nanos,
    /// What injection saved, as a fraction of the run without lapscope.
    pub gain: f64,
}

impl RunPair {
    pub fn new(bare: Duration, injected: Duration) -> RunPair {
        let gain = 1.0 - injected.as_secs_f64() / bare.as_secs_f64().max(1e-9);
        RunPair { bare_ns: nanos(bare), injected_ns: nanos(injected), gain }
    }
}

/// What whole runs gained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confirmation {
    pub pairs: Vec<RunPair>,
    /// The median of the pairs, and the least and the greatest of them.
    pub gain: Interval,
    /// Every pair gained.
    pub is_certain: bool,
}

impl Confirmation {
    /// `None` without a pair.
    pub fn from_pairs(pairs: Vec<RunPair>) -> Option<Confirmation> {
        let gains: Vec<f64> = pairs.iter().map(|pair| pair.gain).collect();
        let low = gains.iter().copied().min_by(f64::total_cmp)?;
        let high = gains.iter().copied().max_by(f64::total_cmp)?;
        let estimate = median(gains)?;
        Some(Confirmation { pairs, gain: Interval { low, estimate, high }, is_certain: low > 0.0 })
    }
}

/// What a pair of runs consists of, in the order in which they are made: the other one comes first in every second pair, so that
/// what drifts over the pairs does not look like a gain.
pub fn order(pair: usize) -> [bool; 2] {
    match pair % 2 {
        0 => [false, true],
        _ => [true, false],
    }
}

/// How many more runs of `usual` length may be begun, with `left` until the end of all.
pub fn that_fit(left: Option<Duration>, usual: Duration) -> u32 {
    let Some(left) = left else { return u32::MAX };
    let fitting = left.as_nanos() / usual.as_nanos().max(1);
    u32::try_from(fitting).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(bare_ms: u64, injected_ms: u64) -> RunPair {
        RunPair::new(Duration::from_millis(bare_ms), Duration::from_millis(injected_ms))
    }

    #[test]
    fn the_gain_is_the_median_of_pairs_between_the_least_and_the_greatest() {
        let confirmation = |pairs: &[RunPair]| Confirmation::from_pairs(pairs.to_vec()).unwrap();
        let found = confirmation(&[pair(100, 60), pair(200, 160), pair(100, 70)]);
        let Interval { low, estimate, high } = found.gain;
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(low, 0.2) && near(estimate, 0.3) && near(high, 0.4), "{found:?}");
        assert!(found.is_certain);
        let two = confirmation(&[pair(100, 60), pair(100, 110)]);
        assert!(near(two.gain.estimate, 0.15) && !two.is_certain, "{two:?}");
        assert_eq!(Confirmation::from_pairs(Vec::new()), None);
    }

    #[test]
    fn runs_are_made_in_turn_as_long_as_they_fit() {
        assert_eq!([0, 1, 2].map(order), [[false, true], [true, false], [false, true]]);
        let seconds = Duration::from_secs;
        assert_eq!(that_fit(Some(seconds(10)), seconds(4)), 2);
        assert_eq!(that_fit(Some(seconds(3)), seconds(4)), 0);
        assert_eq!(that_fit(None, seconds(4)), u32::MAX);
    }
}
