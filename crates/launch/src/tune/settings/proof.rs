//! Whether pairs of whole runs prove a gain, asked anew after every pair.
//!
//! The test is a wager against "no gain". It begins with 1, and each pair multiplies it by `1 + BET · tanh(x / scale)`, where x
//! is the logarithm of the run time without the setting over that with it. Where the setting changes nothing, the two runs of a
//! pair could as well be the other one's, so x is as likely as -x, whatever their noise: the wager is expected to stay what it
//! is. Then it ever reaches 1 / [`ERROR`] with a probability of at most [`ERROR`] (Ville's inequality; de la Peña 1999 for
//! variables that are symmetric), however often one looks. So false gains are at most 5 % over all looks. The scale has to be
//! known before the first pair that counts: it is the difference of pairs that chose the setting, which do not count.
//!
//! The same wager against "a gain of d", asked for every d, bounds the gain: each end of the interval is wrong with a
//! probability of at most [`ERROR`].

use lapscope_trace::stats::{median, Interval};

/// Of a search: a gain that there is none of.
pub const ERROR: f64 = 0.05;
/// What a pair can add to the wager, as a share of it: less than all, so that one pair does not end it.
const BET: f64 = 0.9;
/// More pairs are not made of one setting.
pub const MOST_PAIRS: usize = 12;
/// Of logarithms of run times; runs are not known to differ by less.
const LEAST_SCALE: f64 = 0.002;
const USUAL_SCALE: f64 = 0.01;

/// Pairs that chose a setting, and so do not prove it, tell how much runs differ: half the middle difference of two pairs of the
/// same setting.
pub fn scale(differences: Vec<f64>) -> f64 {
    let halves = differences.into_iter().map(|difference| difference.abs() / 2.0).collect();
    median(halves).unwrap_or(USUAL_SCALE).max(LEAST_SCALE)
}

/// Pairs under way to an answer: logarithms of run times, without the setting over with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    scale: f64,
    logs: Vec<f64>,
}

impl Proof {
    pub fn new(scale: f64) -> Proof {
        Proof { scale, logs: Vec::new() }
    }

    pub fn add(&mut self, log: f64) {
        self.logs.push(log);
    }

    pub fn pairs(&self) -> usize {
        self.logs.len()
    }

    /// The wager against a gain of at most that.
    fn against(&self, log: f64, sign: f64) -> f64 {
        let factor = |it: &f64| 1.0 + BET * (sign * (it - log) / self.scale).tanh();
        self.logs.iter().map(factor).product()
    }

    /// It gains.
    pub fn is_certain(&self) -> bool {
        self.against(0.0, 1.0) >= 1.0 / ERROR
    }

    /// No further pair can change the answer: it is certain, cannot become so, or the gain is none to speak of.
    pub fn is_over(&self, negligible: f64) -> bool {
        let left = MOST_PAIRS.saturating_sub(self.pairs()) as i32;
        let is_futile = self.against(0.0, 1.0) * (1.0 + BET).powi(left) < 1.0 / ERROR;
        let is_small = self.against(negligible, -1.0) >= 1.0 / ERROR;
        self.is_certain() || is_futile || is_small
    }

    /// The gain in the middle, as a fraction of the run time without the setting. `None`: no pair.
    pub fn estimate(&self) -> Option<f64> {
        median(self.logs.clone()).map(gain)
    }

    /// Its bounds. `None`: there are too few pairs for any.
    pub fn gain(&self) -> Option<Interval> {
        let estimate = median(self.logs.clone())?;
        let (low, high) = (self.end(estimate, 1.0)?, self.end(estimate, -1.0)?);
        Some(Interval { low, estimate, high }.map(gain))
    }

    /// The least, or with a sign of -1 the greatest, gain that the pairs do not refute. `None`: they refute none.
    fn end(&self, from: f64, sign: f64) -> Option<f64> {
        const FAR: f64 = 10.0; // run times do not differ by more
        let is_refuted = |log: f64| self.against(log, sign) >= 1.0 / ERROR;
        let (mut refuted, mut kept) = (from - sign * FAR, from);
        if !is_refuted(refuted) {
            return None;
        }
        for _ in 0..60 {
            let middle = 0.5 * (refuted + kept);
            *(if is_refuted(middle) { &mut refuted } else { &mut kept }) = middle;
        }
        Some(refuted)
    }
}

/// Of the logarithm of two run times.
fn gain(log: f64) -> f64 {
    1.0 - (-log).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(scale: f64, logs: &[f64]) -> Proof {
        Proof { scale, logs: logs.to_vec() }
    }

    #[test]
    fn five_pairs_that_clearly_gain_prove_it_and_four_do_not() {
        let logs = [0.2, 0.21, 0.19, 0.2, 0.22];
        let four = proof(0.01, &logs[..4]);
        assert!(!four.is_certain() && !four.is_over(0.005));
        assert!(four.gain().is_none() && four.estimate().is_some());
        let five = proof(0.01, &logs);
        assert!(five.is_certain() && five.is_over(0.005));
        let gain = five.gain().unwrap();
        assert!(0.16 < gain.low && gain.low < gain.estimate && gain.high < 0.21, "{gain:?}");
        assert!((gain.estimate - (1.0 - (-0.2_f64).exp())).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_proved_any_more_ends_early() {
        let lost = proof(0.01, &[-0.1, -0.1]);
        assert!(lost.is_over(0.005) && !lost.is_certain());
        let small = proof(0.002, &[0.001, -0.001, 0.0, 0.001, -0.001, 0.0, 0.0, 0.001]);
        assert!(small.is_over(0.005) && !small.is_certain(), "{:?}", small.gain());
        assert_eq!(proof(0.01, &[]).estimate(), None);
    }

    #[test]
    fn runs_differ_by_what_pairs_of_one_setting_do() {
        assert_eq!(scale(Vec::new()), USUAL_SCALE);
        assert_eq!(scale(vec![0.0001]), LEAST_SCALE);
        assert!((scale(vec![0.04, -0.02, 0.2]) - 0.02).abs() < 1e-12);
    }
}
