//! Whether steps become longer or shorter over the run: the slope that is the median of those of all pairs (Theil 1950; Sen
//! 1968), and Sen's interval of it, which no single long step moves.

use serde::Serialize;

use lapscope_trace::stats::median;

/// With fewer steps nothing is said.
const FEWEST: usize = 8;
/// Steps are put into at most so many groups: all pairs are looked at.
const MOST: usize = 512;
/// A smaller drift is not worth saying, as a fraction of a step.
const WORTH_SAYING: f64 = 0.05;
/// Half the width of an interval that holds 95 % of what is normal, in standard deviations.
const WIDTH: f64 = 1.96;

/// By how much the last step is longer than the first, as a fraction of the first, by the line through all, with an interval of 95 %.
/// Never less than -1. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Drift {
    pub change: f64,
    pub low: f64,
    pub high: f64,
}

impl Drift {
    /// `None` where the durations do not show one: there are too few, or the interval holds 0, or it is small.
    pub fn fit(durations: &[f64]) -> Option<Drift> {
        if durations.len() < FEWEST {
            return None;
        }
        let group = durations.len().div_ceil(MOST);
        let grouped: Vec<f64> =
            durations.chunks(group).filter_map(|chunk| median(chunk.to_vec())).collect();
        let n = grouped.len();
        let typical = median(grouped.clone()).filter(|typical| *typical > 0.0)?;
        let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
        for (at, first) in grouped.iter().enumerate() {
            let later = grouped.iter().enumerate().skip(at + 1);
            slopes.extend(later.map(|(other, last)| (last - first) / (other - at) as f64));
        }
        slopes.sort_unstable_by(f64::total_cmp);
        let pairs = slopes.len() as f64;
        let variance = (n * (n - 1) * (2 * n + 5)) as f64 / 18.0;
        let half = WIDTH * variance.sqrt();
        let at = |place: f64| slopes[(place.round().max(0.0) as usize).min(slopes.len() - 1)];
        let span = (n - 1) as f64;
        let slope = at((pairs - 1.0) / 2.0);
        let first = first_step(&grouped, typical - slope * span / 2.0, typical).max(-slope * span);
        let fraction = |slope: f64| (slope * span / first).max(-1.0);
        let drift = Drift {
            change: fraction(slope),
            low: fraction(at((pairs - half) / 2.0 - 1.0)),
            high: fraction(at((pairs + half) / 2.0)),
        };
        let is_sure = drift.low > 0.0 || drift.high < 0.0;
        (is_sure && drift.change.abs() >= WORTH_SAYING).then_some(drift)
    }
}

/// What the line says of the first step; where that is nothing, as of steps that grow ever faster, what the first ones took.
fn first_step(grouped: &[f64], fitted: f64, typical: f64) -> f64 {
    if fitted > 0.0 {
        return fitted;
    }
    let begin = median(grouped[..grouped.len().div_ceil(8)].to_vec());
    begin.filter(|begin| *begin > 0.0).unwrap_or(typical)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_trace::stats::scramble;

    /// Durations of about 1000 with noise of a tenth, and `trend` more at the end.
    fn durations(steps: usize, trend: f64) -> Vec<f64> {
        let noise = |step: usize| (scramble(step as u64) % 200) as f64 - 100.0;
        let of = |step: usize| 1000.0 + noise(step) + trend * step as f64 / (steps - 1) as f64;
        (0..steps).map(of).collect()
    }

    #[test]
    fn a_trend_is_found_with_its_size() {
        for steps in [40, 400, 3_000] {
            let drift = Drift::fit(&durations(steps, 300.0)).unwrap();
            let about = 300.0 / 1000.0;
            assert!((drift.change - about).abs() < 0.06, "{steps}: {drift:?}");
            assert!(drift.low < about && about < drift.high + 0.01, "{steps}: {drift:?}");
            assert!(Drift::fit(&durations(steps, -300.0)).unwrap().high < 0.0);
        }
    }

    #[test]
    fn no_step_is_shorter_by_more_than_the_first_one_took() {
        let linear: Vec<f64> = (2..=41).rev().map(f64::from).collect();
        let drift = Drift::fit(&linear).unwrap();
        assert!((drift.change + 39.0 / 41.0).abs() < 1e-9, "{drift:?}");
        let falling: Vec<f64> = (1..40).map(|step| 1e6 / f64::from(step * step)).collect();
        let growing: Vec<f64> = falling.iter().rev().copied().collect();
        for (durations, is_less) in [(falling, true), (growing, false)] {
            let Drift { change, low, high } = Drift::fit(&durations).unwrap();
            assert_eq!(change < 0.0, is_less);
            assert!(low >= -1.0 && low <= change && change <= high, "{low} {change} {high}");
        }
    }

    #[test]
    fn noise_and_single_long_steps_are_no_trend() {
        for steps in [8, 40, 400, 3_000] {
            let mut noisy = durations(steps, 0.0);
            assert_eq!(Drift::fit(&noisy), None, "{steps}");
            noisy[steps - 1] = 50_000.0;
            assert_eq!(Drift::fit(&noisy), None, "{steps}");
        }
        assert_eq!(Drift::fit(&durations(7, 900.0)), None, "too few");
        assert_eq!(Drift::fit(&durations(4_000, 20.0)), None, "too little");
        assert_eq!(Drift::fit(&[0.0; 20]), None);
    }
}
