//! What being on or off changes, and how sure that is.
//!
//! Random is which slot of a pair is on, not the request: requests of a slot, on whatever rank, have their fate in common. So
//! a pair of slots is one observation. What is compared are ratios of sums, exposed time per request as an example, and each
//! pair has its part in their difference (linearization of a ratio estimator, Cochran, Sampling Techniques, 1977, section
//! 6.4). As chance has tossed every pair for itself, these parts are independent under either arm even where slots in a row
//! are alike, and what drifts slowly falls out of a pair.

use lapscope_trace::stats::{median, student_975, weighted_median, Interval};

/// What a slot has: so many units, and what they took together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slot {
    pub units: f64,
    pub amount: f64,
}

/// Two slots in a row, of which chance has switched one on. A slot without units is not there.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SlotPair {
    pub off: Slot,
    pub on: Slot,
}

/// How amounts per unit are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonScale {
    /// Off minus on.
    Difference,
    /// Natural logarithm of off over on.
    Logarithm,
}

/// What amounts per unit are more without injection than with it. `None`: an arm is empty, or there is a single pair.
pub fn compare(pairs: &[SlotPair], scale: ComparisonScale) -> Option<Interval> {
    let mut pairs = pairs.to_vec();
    let arms = Arms::sum(&pairs)?;
    let kept = draw_in_outliers(&mut pairs, &arms, scale);
    let ratios = arms.means(&pairs);
    let parts = parts_of_pairs(&pairs, &arms.slopes(ratios, scale)?, ratios);
    let estimate = match scale {
        ComparisonScale::Difference => ratios.off - ratios.on,
        ComparisonScale::Logarithm => (ratios.off / ratios.on).ln(),
    };
    let count = parts.len() as f64;
    let squares: f64 = parts.iter().map(|part| part.powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt() / kept;
    let reach = error * student_975(count - 1.0);
    Some(Interval { estimate, low: estimate - reach, high: estimate + reach })
}

/// A number for each arm.
#[derive(Debug, Clone, Copy)]
struct Both {
    off: f64,
    on: f64,
}

/// How many units the arms have, in so many pairs.
struct Arms {
    count: f64,
    units: Both,
}

impl Arms {
    fn sum(pairs: &[SlotPair]) -> Option<Arms> {
        let sum =
            |arm: fn(&SlotPair) -> Slot| pairs.iter().map(|pair| arm(pair).units).sum::<f64>();
        let units = Both { off: sum(|pair| pair.off), on: sum(|pair| pair.on) };
        let count = pairs.len() as f64;
        (pairs.len() > 1 && units.off > 0.0 && units.on > 0.0).then_some(Arms { count, units })
    }

    /// Amounts per unit.
    fn means(&self, pairs: &[SlotPair]) -> Both {
        let sum =
            |arm: fn(&SlotPair) -> Slot| pairs.iter().map(|pair| arm(pair).amount).sum::<f64>();
        Both { off: sum(|pair| pair.off) / self.units.off, on: sum(|pair| pair.on) / self.units.on }
    }

    /// By how much a pair's part grows with the amount of its slot that is off, and falls with that of the other.
    fn slopes(&self, ratios: Both, scale: ComparisonScale) -> Option<Both> {
        let (off, on) = (self.count / self.units.off, self.count / self.units.on);
        match scale {
            ComparisonScale::Difference => Some(Both { off, on }),
            ComparisonScale::Logarithm => (ratios.off > 0.0 && ratios.on > 0.0)
                .then(|| Both { off: off / ratios.off, on: on / ratios.on }),
        }
    }
}

/// By how much the difference between the arms would be more if all pairs were like this one; 0 in the mean when `ratios`
/// are the arms' means.
fn parts_of_pairs(pairs: &[SlotPair], slopes: &Both, ratios: Both) -> Vec<f64> {
    let part = |pair: &SlotPair| {
        slopes.off * (pair.off.amount - ratios.off * pair.off.units)
            - slopes.on * (pair.on.amount - ratios.on * pair.on.units)
    };
    pairs.iter().map(part).collect()
}

/// Robust standard deviations from the median beyond which a pair is an outlier.
const FAR: f64 = 4.0;

/// Moves the parts of outliers to the limit of what is none (winsorizing), and returns the fraction of the others, by which
/// the standard error of what is left is too small (Tukey and McLaughlin 1963).
///
/// A slot in which somebody else had the processor is on or off by chance, so outliers fall on both sides alike, and
/// drawing them in moves the estimate to neither. Where they do not, they are the effect itself, and are left.
fn draw_in_outliers(pairs: &mut [SlotPair], arms: &Arms, scale: ComparisonScale) -> f64 {
    let ratios = Both { off: usual(pairs, |pair| pair.off), on: usual(pairs, |pair| pair.on) };
    // A logarithm needs something to be a logarithm of.
    let Some(slopes) = arms.slopes(ratios, scale) else { return 1.0 };
    let parts = parts_of_pairs(pairs, &slopes, ratios);
    let Some(center) = median(parts.clone()) else { return 1.0 };
    let deviations = parts.iter().map(|part| (part - center).abs()).collect();
    let Some(deviation) = median(deviations) else { return 1.0 };
    let spread = 1.4826 * deviation;
    let (low, high) = (center - FAR * spread, center + FAR * spread);
    let below = parts.iter().filter(|part| **part < low).count() as f64;
    let above = parts.iter().filter(|part| **part > high).count() as f64;
    let is_lopsided = (above - below).abs() > 2.0 * (above + below).sqrt();
    if spread == 0.0 || is_lopsided {
        return 1.0;
    }
    for (pair, part) in pairs.iter_mut().zip(&parts) {
        let excess = part - part.clamp(low, high);
        // What is too much took time from the slot on whose side it is, where there is that slot.
        if pair.on.units == 0.0 || (excess > 0.0 && pair.off.units > 0.0) {
            pair.off.amount -= excess / slopes.off;
        } else {
            pair.on.amount += excess / slopes.on;
        }
    }
    1.0 - (below + above) / parts.len() as f64
}

/// The amount per unit that as many units exceed as do not.
fn usual(pairs: &[SlotPair], arm: fn(&SlotPair) -> Slot) -> f64 {
    let slots = pairs.iter().map(arm).filter(|slot| slot.units > 0.0);
    let mut slots: Vec<(f64, f64)> =
        slots.map(|slot| (slot.amount / slot.units, slot.units)).collect();
    weighted_median(&mut slots).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(off: f64, on: f64) -> SlotPair {
        SlotPair { off: Slot { units: 1.0, amount: off }, on: Slot { units: 1.0, amount: on } }
    }

    /// Differences of 1, 3, 3 and 5: their mean is 3, its standard error sqrt(8/3/4).
    #[test]
    fn the_interval_of_a_mean_difference() {
        let pairs = [pair(11.0, 10.0), pair(23.0, 20.0), pair(8.0, 5.0), pair(12.0, 7.0)];
        let found = compare(&pairs, ComparisonScale::Difference).unwrap();
        assert!((found.estimate - 3.0).abs() < 1e-12);
        let reach = (8.0_f64 / 12.0).sqrt() * student_975(3.0);
        assert!((found.high - found.estimate - reach).abs() < 1e-12, "{found:?}");
        assert!((found.estimate - found.low - reach).abs() < 1e-12, "{found:?}");
    }

    /// Ratios of sums, not means of ratios: 30 in 5 units against 10 in 4.
    #[test]
    fn units_weigh() {
        let slot = |units, amount| Slot { units, amount };
        let pairs = [
            SlotPair { off: slot(4.0, 20.0), on: slot(1.0, 4.0) },
            SlotPair { off: slot(1.0, 10.0), on: slot(3.0, 6.0) },
        ];
        let difference = compare(&pairs, ComparisonScale::Difference).unwrap();
        assert!((difference.estimate - 3.5).abs() < 1e-12);
        let logarithm = compare(&pairs, ComparisonScale::Logarithm).unwrap();
        assert!((logarithm.estimate - (6.0_f64 / 2.5).ln()).abs() < 1e-12);
    }

    /// Differences of 2 and 4, and one of 1000: its part counts as far out as four times the spread, 1.4826.
    #[test]
    fn a_single_outlier_is_drawn_in() {
        let mut pairs = [pair(12.0, 10.0), pair(14.0, 10.0)].repeat(10);
        pairs.push(pair(1010.0, 10.0));
        let found = compare(&pairs, ComparisonScale::Difference).unwrap();
        // The usual difference is 4, and half of the others are 2 away from that.
        let drawn_in = 4.0 + FAR * 1.4826 * 2.0;
        assert!((found.estimate - (20.0 * 3.0 + drawn_in) / 21.0).abs() < 1e-9, "{found:?}");
        assert!(found.low > 2.0 && found.high < 5.1, "{found:?}");
    }

    /// However long the slot, it does not move the others.
    #[test]
    fn an_outlier_among_slots_of_many_lengths() {
        let slot =
            |units: usize, each: f64| Slot { units: units as f64, amount: units as f64 * each };
        let mut pairs: Vec<SlotPair> = (0..40)
            .map(|at| SlotPair {
                off: slot(at % 5, 20.0 + (at % 3) as f64),
                on: slot((at + 2) % 5, 10.0 + (at % 2) as f64),
            })
            .collect();
        let undisturbed = compare(&pairs, ComparisonScale::Difference).unwrap();
        pairs[4].on.amount += 1e6;
        let found = compare(&pairs, ComparisonScale::Difference).unwrap();
        assert!((found.estimate - undisturbed.estimate).abs() < 0.5, "{undisturbed:?} {found:?}");
        assert!(found.high - found.low < 4.0, "{found:?}");
    }

    #[test]
    fn an_empty_arm_tells_nothing() {
        assert_eq!(compare(&[], ComparisonScale::Difference), None);
        assert_eq!(compare(&[pair(1.0, 1.0)], ComparisonScale::Difference), None);
        let only_off = SlotPair { off: Slot { units: 1.0, amount: 1.0 }, on: Slot::default() };
        assert_eq!(compare(&[only_off; 9], ComparisonScale::Difference), None);
        assert_eq!(compare(&[pair(0.0, 1.0); 9], ComparisonScale::Logarithm), None);
    }
}
