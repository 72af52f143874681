//! What being on or off changes, and how sure that is.
//!
//! Random is which slot of a pair is on, not the request: requests of a slot, on whatever rank, have their fate in common. So
//! a pair of slots is one observation. What is compared are ratios of sums, exposed time per request as an example, and each
//! pair has its part in their difference (linearization of a ratio estimator, Cochran, Sampling Techniques, 1977, section
//! 6.4). As chance has tossed every pair for itself, these parts are independent under either arm even where slots in a row
//! are alike, and what drifts slowly falls out of a pair.

/// What a slot has: so many units, and what they took together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slot {
    pub units: f64,
    pub amount: f64,
}

/// Two slots in a row, of which chance has switched one on. A slot without units is not there.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pair {
    pub off: Slot,
    pub on: Slot,
}

/// How amounts per unit are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Off minus on.
    Difference,
    /// Natural logarithm of off over on.
    Logarithm,
}

/// An estimate with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn map(self, change: impl Fn(f64) -> f64) -> Interval {
        Interval { estimate: change(self.estimate), low: change(self.low), high: change(self.high) }
    }
}

/// What amounts per unit are more without injection than with it. `None`: an arm is empty, or there is a single pair.
pub fn compare(pairs: &[Pair], scale: Scale) -> Option<Interval> {
    let (plain, mut parts) = parts_of_pairs(pairs, scale)?;
    let kept = draw_in_outliers(&mut parts);
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt() / kept;
    let estimate = plain + mean;
    let reach = error * student_975(count - 1.0);
    Some(Interval { estimate, low: estimate - reach, high: estimate + reach })
}

/// The difference between the arms, and by how much it would be more if all pairs were like this one: parts with a mean of 0.
fn parts_of_pairs(pairs: &[Pair], scale: Scale) -> Option<(f64, Vec<f64>)> {
    let sum = |arm: fn(&Pair) -> Slot| {
        pairs.iter().map(arm).fold(Slot::default(), |sum, slot| Slot {
            units: sum.units + slot.units,
            amount: sum.amount + slot.amount,
        })
    };
    let (off, on) = (sum(|pair| pair.off), sum(|pair| pair.on));
    if pairs.len() < 2 || off.units <= 0.0 || on.units <= 0.0 {
        return None;
    }
    let (off_ratio, on_ratio) = (off.amount / off.units, on.amount / on.units);
    let (plain, off_slope, on_slope) = match scale {
        Scale::Difference => (off_ratio - on_ratio, 1.0, 1.0),
        Scale::Logarithm if off_ratio <= 0.0 || on_ratio <= 0.0 => return None,
        Scale::Logarithm => ((off_ratio / on_ratio).ln(), 1.0 / off_ratio, 1.0 / on_ratio),
    };
    let count = pairs.len() as f64;
    let parts = pairs.iter().map(|pair| {
        let off_part = off_slope * (pair.off.amount - off_ratio * pair.off.units) / off.units;
        let on_part = on_slope * (pair.on.amount - on_ratio * pair.on.units) / on.units;
        count * (off_part - on_part)
    });
    Some((plain, parts.collect()))
}

/// Robust standard deviations from the median beyond which a part is an outlier.
const FAR: f64 = 4.0;

/// Moves outliers to the limit of what is none (winsorizing), and returns the fraction of the others, by which the
/// standard error of what is left is too small (Tukey and McLaughlin 1963).
///
/// A slot in which somebody else had the processor is on or off by chance, so outliers fall on both sides alike, and
/// drawing them in moves the estimate to neither. Where they do not, they are the effect itself, and are left.
fn draw_in_outliers(parts: &mut [f64]) -> f64 {
    let center = median(parts.to_vec());
    let spread = 1.4826 * median(parts.iter().map(|part| (part - center).abs()).collect());
    let (low, high) = (center - FAR * spread, center + FAR * spread);
    let below = parts.iter().filter(|part| **part < low).count() as f64;
    let above = parts.iter().filter(|part| **part > high).count() as f64;
    let is_lopsided = (above - below).abs() > 2.0 * (above + below).sqrt();
    if spread == 0.0 || is_lopsided {
        return 1.0;
    }
    parts.iter_mut().for_each(|part| *part = part.clamp(low, high));
    1.0 - (below + above) / parts.len() as f64
}

/// 0 of nothing.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// The 97.5 % quantile of Student's distribution (Abramowitz and Stegun 26.7.5): to 0.1 % from 5 degrees of freedom on.
fn student_975(freedom: f64) -> f64 {
    let z = 1.959_964_f64;
    let terms = [
        z,
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| sum / freedom + term)
}
