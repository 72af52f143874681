//! Samples put together by size: a bounded, evenly drawn part of each bin is kept, so that memory and the time of the
//! sorting behind it do not grow with the run.

use serde::{Deserialize, Serialize};

use lapscope_trace::stats::{self, scramble};

/// Bins to an octave of sizes.
const PER_OCTAVE: u32 = 8;
/// Samples kept of a bin. The median of so many stands within a few percent of ranks of the true one.
const KEPT: usize = 512;
/// Fewer samples than this tell nothing of the spread.
const FEWEST: usize = 3;
/// Disturbances only add time, so the undisturbed transfers are the quickest. One in a hundred may be quicker than a
/// transfer is, as clocks err; one in twenty is what a transfer takes.
const QUICKEST: f64 = 0.01;
const LOW_END: f64 = 0.05;

/// What was measured around one size.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ReferencePoint {
    /// Mean size of the samples.
    pub bytes: f64,
    /// What a transfer takes undisturbed: the low end of the samples, below which one in twenty is.
    pub ns: f64,
    /// The quickest, but for one in a hundred.
    pub low_ns: f64,
    /// Median: what a transfer takes usually, with the disturbances that there were.
    pub high_ns: f64,
    pub samples: u64,
    /// From transfers of the run that it is applied to, not from a calibration.
    #[serde(skip)]
    pub of_run: bool,
}

/// A uniform sample of what was added: those that a hash of their keys puts first (bottom-k sampling). So it depends neither
/// on the order in which they come nor on how they are spread over what is merged.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Kept {
    count: u64,
    bytes: u128,
    /// By the hash of their keys; up to twice as many as are kept in the end.
    kept: Vec<(u64, i64)>,
}

impl Kept {
    fn add(&mut self, bytes: u64, ns: i64, key: u64) {
        self.count += 1;
        self.bytes += u128::from(bytes);
        self.keep((scramble(key), ns));
    }

    fn keep(&mut self, sample: (u64, i64)) {
        self.kept.push(sample);
        if self.kept.len() >= 2 * KEPT {
            self.prune();
        }
    }

    fn prune(&mut self) {
        if self.kept.len() > KEPT {
            self.kept.select_nth_unstable(KEPT);
            self.kept.truncate(KEPT);
        }
    }

    fn merge(&mut self, other: Kept) {
        self.count += other.count;
        self.bytes += other.bytes;
        other.kept.into_iter().for_each(|sample| self.keep(sample));
    }

    fn point(&mut self) -> Option<ReferencePoint> {
        self.prune();
        if self.kept.len() < FEWEST {
            return None;
        }
        let mut sorted: Vec<f64> = self.kept.iter().map(|&(_, ns)| ns as f64).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        // a time is at least 1 ns
        let quantile = |share| stats::quantile(&sorted, share).map(|ns| ns.max(1.0));
        Some(ReferencePoint {
            bytes: self.bytes as f64 / self.count as f64,
            ns: quantile(LOW_END)?,
            low_ns: quantile(QUICKEST)?,
            high_ns: quantile(0.5)?,
            samples: self.count,
            of_run: false,
        })
    }
}

/// What was measured around one size, by whether its ranks had processors meanwhile.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct SizeBin {
    undisturbed: Kept,
    disturbed: Kept,
}

impl SizeBin {
    fn merge(&mut self, other: SizeBin) {
        self.undisturbed.merge(other.undisturbed);
        self.disturbed.merge(other.disturbed);
    }

    /// Of undisturbed samples, where there are enough. The others say how long a transfer takes at most: it may take much
    /// less.
    fn point(&mut self) -> Option<ReferencePoint> {
        let bounded = |point: ReferencePoint| ReferencePoint { low_ns: 1.0, ..point };
        self.undisturbed.point().or_else(|| self.disturbed.point().map(bounded))
    }

    /// Whether nothing better is known than disturbed samples.
    fn is_disturbed(&self) -> bool {
        self.undisturbed.kept.len() < FEWEST && self.disturbed.kept.len() >= FEWEST
    }
}

/// Samples of one curve.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Bins(Vec<SizeBin>);

impl Bins {
    /// `key` tells the sample from all others, wherever it is looked at.
    pub(super) fn add(&mut self, bytes: u64, ns: i64, is_disturbed: bool, key: u64) {
        let index = bin_of(bytes);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, SizeBin::default);
        }
        let bin = &mut self.0[index];
        let kept = if is_disturbed { &mut bin.disturbed } else { &mut bin.undisturbed };
        kept.add(bytes, ns, key);
    }

    /// Whether points of it are of disturbed samples alone.
    pub(super) fn is_disturbed(&self) -> bool {
        self.0.iter().any(SizeBin::is_disturbed)
    }

    pub(super) fn merge(&mut self, other: Bins) {
        if self.0.len() < other.0.len() {
            self.0.resize_with(other.0.len(), SizeBin::default);
        }
        for (bin, more) in self.0.iter_mut().zip(other.0) {
            bin.merge(more);
        }
    }

    /// One point for each bin with enough samples, smallest sizes first.
    pub(super) fn points(&mut self) -> Vec<ReferencePoint> {
        self.by_size().into_iter().flatten().collect()
    }

    /// As [`Bins::points`], of messages there and of messages back: the mean of both. An error in the correction of clocks
    /// makes one of them as much quicker as it makes the other slower.
    pub(super) fn points_with(&mut self, back: &mut Bins) -> Vec<ReferencePoint> {
        let (mut there, mut back) = (self.by_size(), back.by_size());
        let sizes = there.len().max(back.len());
        there.resize(sizes, None);
        back.resize(sizes, None);
        let both = there.into_iter().zip(back);
        both.filter_map(|(there, back)| match (there, back) {
            (Some(there), Some(back)) => Some(there.mean(&back)),
            (there, back) => there.or(back),
        })
        .collect()
    }

    fn by_size(&mut self) -> Vec<Option<ReferencePoint>> {
        self.0.iter_mut().map(SizeBin::point).collect()
    }
}

impl ReferencePoint {
    fn mean(&self, other: &ReferencePoint) -> ReferencePoint {
        let mean = |a: f64, b: f64| (a + b) / 2.0;
        let samples = self.samples + other.samples;
        let bytes = self.bytes * self.samples as f64 + other.bytes * other.samples as f64;
        ReferencePoint {
            bytes: bytes / samples as f64,
            ns: mean(self.ns, other.ns),
            low_ns: mean(self.low_ns, other.low_ns),
            high_ns: mean(self.high_ns, other.high_ns),
            samples,
            of_run: self.of_run,
        }
    }
}

/// Powers of two are the largest of their bin, because limits of protocols are: 4096 bytes may go another way than 4097.
fn bin_of(bytes: u64) -> usize {
    let Some(below) = bytes.checked_sub(1) else { return 0 };
    let octave = below.checked_ilog2().unwrap_or(0);
    let within = if octave >= 3 {
        (below >> (octave - 3)) - 8
    } else {
        below - (u64::from(below > 0) << octave)
    };
    1 + (octave * PER_OCTAVE) as usize + within as usize + usize::from(below > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_rise_with_size_and_are_narrow() {
        let mut last = (0, 0u64);
        for bytes in 1..100_000u64 {
            let bin = bin_of(bytes);
            assert!(bin >= last.0, "{bytes}");
            if bin > last.0 {
                last = (bin, bytes);
            }
            assert!(bytes as f64 / last.1 as f64 <= 1.13, "{bytes} with {}", last.1);
        }
        for exponent in 5..63 {
            let limit = 1u64 << exponent;
            assert!(bin_of(limit) < bin_of(limit + 1), "{limit}");
            assert_eq!(bin_of(limit), bin_of(limit - 1), "{limit}");
        }
        assert!(bin_of(0) < bin_of(1) && bin_of(u64::MAX) < 600);
    }

    #[test]
    fn a_bin_keeps_an_even_part() {
        let mut bins = Bins::default();
        for n in 0..100_000 {
            bins.add(1000, n, false, n as u64);
        }
        let [point] = bins.points()[..] else { panic!("one bin") };
        assert_eq!((point.bytes, point.samples), (1000.0, 100_000));
        assert!((point.low_ns - 1_000.0).abs() < 1_000.0, "{point:?}");
        assert!((point.ns - 5_000.0).abs() < 2_500.0, "{point:?}");
        assert!((point.high_ns - 50_000.0).abs() < 8_000.0, "{point:?}");
    }

    #[test]
    fn an_error_of_clocks_cancels_between_both_directions() {
        let filled = |ns: i64| {
            let mut bins = Bins::default();
            (0..100).for_each(|key| bins.add(1000, ns, false, key));
            bins
        };
        let [point] = filled(30_000).points_with(&mut filled(50_000))[..] else { panic!() };
        assert_eq!((point.ns, point.samples), (40_000.0, 200));
        let [point] = filled(30_000).points_with(&mut Bins::default())[..] else { panic!() };
        assert_eq!((point.ns, point.samples), (30_000.0, 100));
    }

    #[test]
    fn merged_bins_hold_as_much_of_each_as_there_was() {
        for (first, second) in [(100u64, 200u64), (100, 10_000), (90_000, 10_000), (1000, 1000)] {
            let filled = |count: u64, ns: i64| {
                let mut bins = Bins::default();
                let key = |number: u64| number + ((ns as u64) << 32);
                (0..count).for_each(|number| bins.add(1000, ns, false, key(number)));
                bins
            };
            let mut bins = filled(first, 1);
            bins.merge(filled(second, 2));
            let bin = &mut bins.0[bin_of(1000)].undisturbed;
            bin.prune();
            let share =
                bin.kept.iter().filter(|(_, ns)| *ns == 2).count() as f64 / bin.kept.len() as f64;
            let expected = second as f64 / (first + second) as f64;
            assert!((share - expected).abs() < 0.08, "{first} and {second}: {share}");
            assert_eq!(bin.count, first + second);
        }
    }

    #[test]
    fn disturbed_samples_count_where_there_are_no_others() {
        let mut bins = Bins::default();
        (0..100).for_each(|key| bins.add(1000, 90_000, true, key));
        let [point] = bins.points()[..] else { panic!("one bin") };
        assert_eq!((point.low_ns, point.ns, bins.is_disturbed()), (1.0, 90_000.0, true));
        (0..3).for_each(|key| bins.add(1000, 20_000, false, key));
        let [point] = bins.points()[..] else { panic!("one bin") };
        assert_eq!((point.low_ns, point.ns), (20_000.0, 20_000.0));
        assert_eq!((point.samples, bins.is_disturbed()), (3, false));
    }

    #[test]
    fn the_sample_does_not_depend_on_order_or_parts() {
        let add =
            |bins: &mut Bins, key: u64| bins.add(1000, (key * 7_919 % 10_007) as i64, false, key);
        let (mut whole, mut backwards) = (Bins::default(), Bins::default());
        (0..20_000).for_each(|key| add(&mut whole, key));
        (0..20_000).rev().for_each(|key| add(&mut backwards, key));
        let mut parts = Bins::default();
        for part in 0..7 {
            let mut bins = Bins::default();
            (0..20_000).filter(|key| key % 7 == part).for_each(|key| add(&mut bins, key));
            parts.merge(bins);
        }
        assert_eq!(whole.points(), backwards.points());
        assert_eq!(whole.points(), parts.points());
    }

    #[test]
    fn two_samples_are_too_few() {
        let mut bins = Bins::default();
        bins.add(8, 100, false, 1);
        bins.add(8, 100, false, 2);
        assert!(bins.points().is_empty());
        bins.add(8, 300, false, 3);
        assert_eq!((bins.points()[0].ns, bins.points()[0].high_ns), (100.0, 100.0));
    }
}
