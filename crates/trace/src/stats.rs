//! Medians, quantiles, intervals and proportions, each defined once. Values are of any unit, and results are of the same.

use std::cmp::Ordering;
use std::ops::Neg;

use serde::{Deserialize, Serialize};

/// What stands to a time as `part` to `whole`, which is not 0: exact, whatever their product, and rounded towards 0.
#[inline]
pub fn in_proportion(time: i64, part: i64, whole: i64) -> i64 {
    (i128::from(time) * i128::from(part) / i128::from(whole)) as i64
}

/// An estimate with its 95 % confidence interval, or a median between the least and the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub estimate: f64,
    pub high: f64,
}

impl Interval {
    pub fn map(self, change: impl Fn(f64) -> f64) -> Interval {
        Interval { low: change(self.low), estimate: change(self.estimate), high: change(self.high) }
    }
}

impl Neg for Interval {
    type Output = Interval;

    fn neg(self) -> Interval {
        Interval { low: -self.high, estimate: -self.estimate, high: -self.low }
    }
}

/// The value that `share` of all, between 0 and 1, lie below: linear between the two values around the place
/// `share * (n - 1)` (definition 7 of Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996; what R and NumPy
/// compute unless told otherwise). `None` of nothing. `sorted` must rise.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

/// The middle value, or the mean of the two in the middle: what [`quantile`] gives for a half. `None` of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    Some((values[(values.len() - 1) / 2] + upper) / 2.0)
}

/// The middle one, or the upper of the two in the middle: always one of those given, for what has no mean. `None` of
/// nothing. Changes their order.
pub fn upper_median<T: Copy>(values: &mut [T], order: impl FnMut(&T, &T) -> Ordering) -> Option<T> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, order).1)
}

/// The least of values with weights that reaches half of all weight together with those below it (the lower weighted
/// median). `None` of nothing. Changes their order.
pub fn weighted_median(values: &mut [(f64, f64)]) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let reaches_half = |&&(_, weight): &&(f64, f64)| {
        sum += weight;
        sum >= half
    };
    values.iter().find(reaches_half).map(|&(value, _)| value)
}

/// The 97.5 % quantile of Student's distribution (Abramowitz and Stegun 26.7.5), to 0.1 % from 5 degrees of freedom on:
/// how many standard errors a 95 % confidence interval reaches to either side.
pub fn student_975(freedom: f64) -> f64 {
    let z = 1.959_964_f64;
    let terms = [
        z,
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| sum / freedom + term)
}

/// All bits of `n` mixed: a pseudo-random number for each count (the finalizer of splitmix64).
#[inline]
pub fn scramble(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!([0.0, 0.5, 1.0].map(|share| quantile(&[3.0], share)), [Some(3.0); 3]);
        let of_four = |share| quantile(&[1.0, 2.0, 3.0, 4.0], share).unwrap();
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(of_four), [1.0, 1.75, 2.5, 3.25, 4.0]);
    }

    #[test]
    fn medians_of_odd_and_of_even_numbers() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(upper_median(&mut [0i64; 0], Ord::cmp), None);
        assert_eq!(upper_median(&mut [9, 1, 2], Ord::cmp), Some(2));
        assert_eq!(upper_median(&mut [9, 1, 2, 3], Ord::cmp), Some(3));
        assert_eq!(upper_median(&mut [0.5, -0.5], f64::total_cmp), Some(0.5));
    }

    #[test]
    fn half_of_the_weight_is_reached() {
        assert_eq!(weighted_median(&mut []), None);
        assert_eq!(weighted_median(&mut [(2.0, 1.0), (1.0, 1.0)]), Some(1.0));
        assert_eq!(weighted_median(&mut [(1.0, 1.0), (5.0, 3.0), (2.0, 1.0)]), Some(5.0));
    }

    #[test]
    fn quantiles_of_student() {
        for (freedom, quantile) in [(5.0, 2.5706), (7.0, 2.3646), (15.0, 2.1314), (60.0, 2.0003)] {
            assert!((student_975(freedom) - quantile).abs() < 0.003, "{freedom}");
        }
    }
}
