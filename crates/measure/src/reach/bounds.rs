//! Medians of times of which some are known as bounds only.

use serde::Serialize;

use lapscope_trace::stats::student_975;
use lapscope_trace::watched::bounds::TimeBounds;

/// Fewer values give no 95 % interval of a median: the least and the greatest of five leave out 6 % (both tails of a
/// binomial distribution).
pub const LEAST_REQUESTS: usize = 6;

/// A time, nanoseconds, between bounds that hold it with 95 % confidence, whatever the times were of which only bounds are
/// known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ConfidenceBounds {
    pub low: f64,
    /// `None`: only the bounds are known.
    pub estimate: Option<f64>,
    /// `None`: nothing limits it.
    pub high: Option<f64>,
}

impl ConfidenceBounds {
    /// The high bound may be infinite; the estimate is kept between the bounds.
    pub fn new(low: f64, estimate: Option<f64>, high: f64) -> ConfidenceBounds {
        let low = low.max(0.0);
        let high = high.max(low);
        ConfidenceBounds {
            low,
            estimate: estimate.filter(|it| it.is_finite()).map(|it| it.clamp(low, high)),
            high: high.is_finite().then_some(high),
        }
    }

    pub fn map(self, change: impl Fn(f64) -> f64) -> ConfidenceBounds {
        let ConfidenceBounds { low, estimate, high } = self;
        ConfidenceBounds {
            low: change(low),
            estimate: estimate.map(&change),
            high: high.map(&change),
        }
    }

    /// The lesser of two times.
    pub fn min(self, other: ConfidenceBounds) -> ConfidenceBounds {
        let high = |it: ConfidenceBounds| it.high.unwrap_or(f64::INFINITY);
        let estimate = match (self.estimate, other.estimate) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (Some(one), None) if one <= other.low => Some(one),
            (None, Some(one)) if one <= self.low => Some(one),
            _ => None,
        };
        ConfidenceBounds::new(self.low.min(other.low), estimate, high(self).min(high(other)))
    }

    /// What it is said to be where one number is wanted: the estimate, else the low bound.
    pub fn likely(self) -> f64 {
        self.estimate.unwrap_or(self.low)
    }
}

/// Sorted bounds of times.
struct Sorted {
    least: Vec<f64>,
    most: Vec<f64>,
}

impl Sorted {
    fn sort(seen: impl Iterator<Item = TimeBounds>) -> Sorted {
        let (mut least, mut most): (Vec<f64>, Vec<f64>) =
            seen.map(|seen| (seen.least, seen.most)).unzip();
        least.sort_unstable_by(f64::total_cmp);
        most.sort_unstable_by(f64::total_cmp);
        Sorted { least, most }
    }

    /// The median where it is nearly the same whatever the times were within their bounds.
    fn median(&self) -> Option<f64> {
        const NEARLY: f64 = 0.25;
        let middle = |sorted: &[f64]| {
            let upper = *sorted.get(sorted.len() / 2)?;
            Some((sorted[(sorted.len() - 1) / 2] + upper) / 2.0)
        };
        let (least, most) = (middle(&self.least)?, middle(&self.most)?);
        (most - least <= NEARLY * most && most.is_finite()).then_some((least + most) / 2.0)
    }
}

/// The median of independent times by order statistics: the interval between two of them that holds the median with at
/// least 95 % confidence whatever the distribution (David and Nagaraja, Order Statistics, 7.1). The lower is taken of
/// what the times are at least, the upper of what they are at most. `None` of fewer than [`LEAST_REQUESTS`].
pub fn median(times: &[TimeBounds]) -> Option<ConfidenceBounds> {
    if times.len() < LEAST_REQUESTS {
        return None;
    }
    let sorted = Sorted::sort(times.iter().copied());
    let below = below_median(times.len());
    let high = sorted.most[times.len() - 1 - below];
    Some(ConfidenceBounds::new(sorted.least[below], sorted.median(), high))
}

/// How many of the least of `count` values may be left out so that the next is above the median with at most 2.5 %.
fn below_median(count: usize) -> usize {
    /// Beyond that 2^-count is zero, and the normal distribution near enough.
    const EXACT: usize = 1000;
    if count > EXACT {
        let spread = 0.98 * (count as f64).sqrt();
        return (count as f64 / 2.0 - spread) as usize - 1;
    }
    let mut term = 0.5f64.powi(count as i32);
    let mut sum = term;
    let mut left_out = 0;
    while sum <= 0.025 {
        term *= (count - left_out) as f64 / (left_out + 1) as f64;
        sum += term;
        left_out += 1;
    }
    left_out.saturating_sub(1)
}

/// What half of all words have at least: the median of words of several requests. Words of one request are alike, so that the
/// interval is that of clusters (Woodruff, Confidence intervals for medians and other position measures, 1952, with the
/// variance between requests). `None` of fewer than [`LEAST_REQUESTS`] requests.
pub fn median_of_words(requests: &[Vec<TimeBounds>]) -> Option<ConfidenceBounds> {
    let requests: Vec<&Vec<TimeBounds>> =
        requests.iter().filter(|words| !words.is_empty()).collect();
    if requests.len() < LEAST_REQUESTS {
        return None;
    }
    let sorted = Sorted::sort(requests.iter().flat_map(|words| words.iter().copied()));
    let words = sorted.least.len();
    let middle = |values: &[f64]| values[(words - 1) / 2];
    let reach = |at: f64, of: fn(&TimeBounds) -> f64| {
        let shares = requests.iter().map(|words| {
            let below = words.iter().filter(|seen| of(seen) <= at).count() as f64;
            below - words.len() as f64 / 2.0
        });
        let squares: f64 = shares.map(|share| share * share).sum();
        let clusters = requests.len() as f64;
        let between = (squares * clusters / (clusters - 1.0)).sqrt() / words as f64;
        let alone = 0.5 / (words as f64).sqrt();
        student_975(clusters - 1.0) * between.max(alone)
    };
    let down = 0.5 - reach(middle(&sorted.least), |seen| seen.least);
    let up = 0.5 + reach(middle(&sorted.most), |seen| seen.most);
    let low = sorted.least[(down * words as f64).floor().max(1.0) as usize - 1];
    let high = sorted.most[((up * words as f64).ceil() as usize).min(words - 1)];
    Some(ConfidenceBounds::new(low, sorted.median(), high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(times: impl IntoIterator<Item = i32>) -> Vec<TimeBounds> {
        times.into_iter().map(|ns| TimeBounds::exactly(ns.into())).collect()
    }

    #[test]
    fn order_statistics_hold_the_median() {
        assert_eq!(median(&exactly(0..5)), None);
        // 2 * 0.5^6 = 3.1 %; of ten the second to the ninth leave out 2.1 %; of 20 the 6th to the 15th 4.1 %.
        let all = |low, estimate, high| {
            Some(ConfidenceBounds { low, estimate: Some(estimate), high: Some(high) })
        };
        assert_eq!(median(&exactly(1..=6)), all(1.0, 3.5, 6.0));
        assert_eq!(median(&exactly(1..=10)), all(2.0, 5.5, 9.0));
        assert_eq!(median(&exactly(1..=20)), all(6.0, 10.5, 15.0));
        let Some(ConfidenceBounds { low, high: Some(high), .. }) = median(&exactly(1..=10_000))
        else {
            panic!()
        };
        assert!(
            (4898.0..=4902.0).contains(&low) && (5098.0..=5103.0).contains(&high),
            "{low} {high}"
        );
    }

    #[test]
    fn bounds_stay_bounds() {
        let mut times = exactly([1, 2, 3, 4, 5, 6]);
        times.extend([TimeBounds::at_least(3.0); 4]);
        // least: 1 2 3 3 3 3 3 4 5 6; most: 1 to 6, then infinite
        assert_eq!(median(&times), Some(ConfidenceBounds { low: 2.0, estimate: None, high: None }));
        let times: Vec<TimeBounds> =
            exactly([1, 2, 3, 4, 5, 6]).into_iter().chain([TimeBounds::at_least(9.0)]).collect();
        assert_eq!(
            median(&times),
            Some(ConfidenceBounds { low: 1.0, estimate: Some(4.0), high: None })
        );
        let often = [TimeBounds::at_most(7.0); 6];
        assert_eq!(
            median(&often),
            Some(ConfidenceBounds { low: 0.0, estimate: None, high: Some(7.0) })
        );
    }

    #[test]
    fn words_of_one_request_are_no_more_than_one() {
        let alike: Vec<Vec<TimeBounds>> =
            (0..20).map(|at| vec![TimeBounds::exactly(at.into()); 50]).collect();
        let apart: Vec<Vec<TimeBounds>> = (0..20).map(|_| exactly(0..50)).collect();
        let width = |requests: &[Vec<TimeBounds>]| {
            let ConfidenceBounds { low, high, .. } = median_of_words(requests).unwrap();
            high.unwrap() - low
        };
        assert!(width(&alike) >= 8.0, "{}", width(&alike));
        assert!(width(&apart) <= 6.0, "{}", width(&apart));
        assert_eq!(median_of_words(&alike[..5]), None);
    }

    #[test]
    fn the_lesser_of_two_is_known_where_it_is_the_same_for_all() {
        let known = ConfidenceBounds { low: 1.0, estimate: Some(2.0), high: Some(3.0) };
        let open = ConfidenceBounds { low: 5.0, estimate: None, high: None };
        assert_eq!(known.min(open), known);
        let near = ConfidenceBounds { low: 1.5, estimate: None, high: Some(9.0) };
        assert_eq!(near.min(known), ConfidenceBounds { low: 1.0, estimate: None, high: Some(3.0) });
    }
}
