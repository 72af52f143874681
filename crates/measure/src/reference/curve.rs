//! Time as a function of size, from the points that were measured.

use super::bins::ReferencePoint;
use super::Estimate;
use lapscope_trace::stats::weighted_median;

/// Up to this size transfers take as long as those of nothing at all.
const SMALL_BYTES: f64 = 64.0;
/// How far below the smallest measured size a curve still answers.
const DOWNWARDS: f64 = 2.0;
/// How far above the largest, and over which part of the curve its slope is taken.
const UPWARDS: f64 = 4.0;
/// Sizes that differ by no more than this factor take as long, but for the limits of protocols.
const NEAR: f64 = 1.09;

/// What says of itself that it took longer, or was larger, was not measured: a file may have been changed.
const LONGEST_NS: f64 = 1e15;
const LARGEST_BYTES: f64 = 1e18;

/// Points with rising sizes and times that do not fall.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(from = "Vec<ReferencePoint>", into = "Vec<ReferencePoint>")]
pub struct Curve {
    points: Vec<ReferencePoint>,
}

impl ReferencePoint {
    fn bounded(self, by: &ReferencePoint, bound: fn(f64, f64) -> f64) -> ReferencePoint {
        let (ns, low_ns) = (bound(self.ns, by.ns), bound(self.low_ns, by.low_ns));
        ReferencePoint { ns, low_ns, high_ns: bound(self.high_ns, by.high_ns), ..self }
    }
}

impl From<Vec<ReferencePoint>> for Curve {
    /// Larger transfers do not take less: where noise says so, neighbours are brought to their median (isotonic regression,
    /// by pooling adjacent violators). It keeps order between curves, so quartiles stay on their side of the median.
    fn from(mut points: Vec<ReferencePoint>) -> Curve {
        points.retain(|point| {
            let times = [point.ns, point.low_ns, point.high_ns];
            let are_sound = times.iter().all(|ns| (0.0..LONGEST_NS).contains(ns));
            are_sound && (0.0..LARGEST_BYTES).contains(&point.bytes)
        });
        points.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
        points.dedup_by(|b, a| a.bytes == b.bytes);
        let weights: Vec<f64> =
            points.iter().map(|point| point.samples.clamp(1, 512) as f64).collect();
        let fields: [fn(&mut ReferencePoint) -> &mut f64; 3] =
            [|point| &mut point.ns, |point| &mut point.low_ns, |point| &mut point.high_ns];
        for field in fields {
            let values: Vec<f64> = points.iter_mut().map(|point| *field(point)).collect();
            for (point, value) in points.iter_mut().zip(isotonic(&values, &weights)) {
                *field(point) = value;
            }
        }
        Curve { points }
    }
}

impl From<Curve> for Vec<ReferencePoint> {
    fn from(curve: Curve) -> Vec<ReferencePoint> {
        curve.points
    }
}

/// The values that never fall and differ least from `values`, the sum of the weighted differences counted: a block of
/// violators gets its median, so that one size measured at a bad moment does not spoil its neighbours.
fn isotonic(values: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, Vec<(f64, f64)>)> = Vec::new(); // median, members with weights
    for (&value, &weight) in values.iter().zip(weights) {
        let mut members = vec![(value, weight)];
        let mut middle = value;
        while blocks.last().is_some_and(|last| last.0 > middle) {
            members.extend(blocks.pop().into_iter().flat_map(|last| last.1));
            middle = weighted_median(&mut members).unwrap_or(middle);
        }
        blocks.push((middle, members));
    }
    let level = |(middle, members): (f64, Vec<_>)| std::iter::repeat(middle).take(members.len());
    blocks.into_iter().flat_map(level).collect()
}

impl Curve {
    pub fn points(&self) -> &[ReferencePoint] {
        &self.points
    }

    /// Says of all points whether they are the run's own.
    pub(super) fn mark(&mut self, of_run: bool) {
        self.points.iter_mut().for_each(|point| point.of_run = of_run);
    }

    /// Puts a point in place of those of nearly its size. Smaller transfers then take no more than it.
    pub(super) fn replace(&mut self, point: &ReferencePoint) {
        let is_near = |other: &ReferencePoint| {
            other.bytes <= point.bytes * NEAR && point.bytes <= other.bytes * NEAR
        };
        self.points.retain(|other| !is_near(other));
        for smaller in self.points.iter_mut().filter(|other| other.bytes < point.bytes) {
            *smaller = smaller.bounded(point, f64::min);
        }
        self.points.push(*point);
        self.points.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    }

    /// Whether this size lies within what was measured.
    pub(super) fn covers(&self, bytes: f64) -> bool {
        let small = |a: f64| a <= SMALL_BYTES;
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return false;
        };
        let is_above = bytes >= first.bytes || small(first.bytes);
        is_above && (bytes <= last.bytes || (small(bytes) && small(last.bytes)))
    }

    /// Takes from `other` the points of sizes below and above its own; the smallest and the largest of their sizes. What was
    /// measured here stands: no larger transfer takes less, no smaller one more.
    pub(super) fn extend(&mut self, other: &Curve) -> Option<[f64; 2]> {
        let beyond = other.points.iter().filter(|point| !self.covers(point.bytes));
        let beyond: Vec<ReferencePoint> = beyond.copied().collect();
        let sizes = [beyond.first()?.bytes, beyond.last()?.bytes];
        let ends = self.points.first().copied().zip(self.points.last().copied());
        self.points.extend(beyond.into_iter().map(|point| match ends {
            Some((first, _)) if point.bytes < first.bytes => point.bounded(&first, f64::min),
            Some((_, last)) => point.bounded(&last, f64::max),
            None => point,
        }));
        self.points.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
        Some(sizes)
    }

    /// The time of a transfer of this size; `None` too far from what was measured.
    #[inline]
    pub fn at(&self, bytes: u64) -> Option<Estimate> {
        let bytes = bytes as f64;
        let (first, last) = (self.points.first()?, self.points.last()?);
        if bytes <= first.bytes {
            return self.below(first, bytes);
        }
        if bytes >= last.bytes {
            return self.above(last, bytes);
        }
        let next = self.points.partition_point(|point| point.bytes < bytes);
        let (a, b) = (&self.points[next - 1], &self.points[next]);
        let share = (bytes - a.bytes) / (b.bytes - a.bytes);
        let mix = |a: f64, b: f64| a + (b - a) * share;
        Some(Estimate::new(mix(a.ns, b.ns), mix(a.low_ns, b.low_ns), mix(a.high_ns, b.high_ns)))
    }

    /// Less time than the smallest measured size takes, but no less than its bytes' share of it.
    fn below(&self, first: &ReferencePoint, bytes: f64) -> Option<Estimate> {
        if bytes == first.bytes || first.bytes <= SMALL_BYTES {
            return Some(Estimate::from_point(first));
        }
        if bytes * DOWNWARDS < first.bytes {
            return None;
        }
        let share = bytes / first.bytes;
        let end = self.points.partition_point(|point| point.bytes <= first.bytes * UPWARDS);
        let slope = slope(&self.points[..end]).unwrap_or(first.ns / first.bytes / 2.0);
        let ns = (first.ns - slope * (first.bytes - bytes)).max(first.ns * share);
        Some(Estimate::new(ns, (first.low_ns * share).min(ns), first.high_ns))
    }

    /// On along the slope of the last two octaves.
    fn above(&self, last: &ReferencePoint, bytes: f64) -> Option<Estimate> {
        if bytes == last.bytes || (bytes <= SMALL_BYTES && last.bytes <= SMALL_BYTES) {
            return Some(Estimate::from_point(last));
        }
        let begin = self.points.partition_point(|point| point.bytes * UPWARDS < last.bytes);
        let (slope, reach) = match slope(&self.points[begin..]) {
            Some(slope) => (slope, UPWARDS),
            None => (last.ns / last.bytes, DOWNWARDS),
        };
        if bytes > last.bytes * reach {
            return None;
        }
        let factor = 1.0 + slope * (bytes - last.bytes) / last.ns;
        Some(Estimate::new(last.ns * factor, last.low_ns * factor, last.high_ns * factor))
    }
}

/// Nanoseconds a byte from the first point to the last; `None` of a single one.
fn slope(points: &[ReferencePoint]) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    (last.bytes > first.bytes).then(|| (last.ns - first.ns) / (last.bytes - first.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(bytes: f64, ns: f64) -> ReferencePoint {
        ReferencePoint {
            bytes,
            ns,
            low_ns: ns * 0.9,
            high_ns: ns * 1.2,
            samples: 10,
            of_run: false,
        }
    }

    #[test]
    fn violators_are_pooled() {
        assert_eq!(isotonic(&[1.0, 4.0, 2.0, 6.0], &[1.0; 4]), [1.0, 2.0, 2.0, 6.0]);
        assert_eq!(isotonic(&[5.0, 1.0], &[3.0, 1.0]), [5.0, 5.0]);
        assert_eq!(isotonic(&[3.0, 2.0, 1.0], &[1.0; 3]), [2.0; 3]);
        assert_eq!(isotonic(&[1.0, 900.0, 2.0, 3.0], &[1.0; 4]), [1.0, 2.0, 2.0, 3.0]);
    }

    #[test]
    fn between_measured_sizes_time_is_linear_in_bytes() {
        let curve = Curve::from(vec![point(1000.0, 100.0), point(3000.0, 300.0)]);
        assert_eq!(curve.at(2000).unwrap(), Estimate { ns: 200, low_ns: 180, high_ns: 240 });
        assert_eq!(curve.at(1000).unwrap().ns, 100);
        assert_eq!(curve.at(3000).unwrap().ns, 300);
    }

    #[test]
    fn beyond_them_it_answers_near_by_only() {
        let curve = Curve::from(vec![point(1000.0, 200.0), point(2000.0, 300.0)]);
        assert_eq!(curve.at(500).unwrap().ns, 150);
        assert_eq!(curve.at(499), None);
        assert_eq!(curve.at(8000).unwrap().ns, 900);
        assert_eq!(curve.at(8001), None);
        assert_eq!(Curve::default().at(1), None);
    }

    #[test]
    fn one_size_reaches_less_far() {
        let curve = Curve::from(vec![point(1000.0, 100.0)]);
        assert_eq!(curve.at(2000).unwrap().ns, 200);
        assert_eq!(curve.at(2001), None);
        let half = curve.at(500).unwrap();
        assert!(half.low_ns <= 50 && half.high_ns >= 100, "{half:?}");
    }

    fn times(curve: &Curve) -> Vec<(f64, f64)> {
        curve.points().iter().map(|point| (point.bytes, point.ns)).collect()
    }

    #[test]
    fn another_curve_goes_on_where_one_ends() {
        let mut curve = Curve::from(vec![point(1000.0, 100.0), point(4000.0, 400.0)]);
        let own =
            [(500.0, 70.0), (2000.0, 9.0), (4000.0, 9.0), (16_000.0, 1600.0), (32_000.0, 3200.0)];
        let own = Curve::from(own.map(|(bytes, ns)| point(bytes, ns)).to_vec());
        assert_eq!(curve.extend(&own), Some([500.0, 32_000.0]));
        let expected = [
            (500.0, own.points()[0].ns),
            (1000.0, 100.0),
            (4000.0, 400.0),
            (16_000.0, 1600.0),
            (32_000.0, 3200.0),
        ];
        assert_eq!(times(&curve), expected);
        // in between as between any two sizes, and on from the last of all
        assert_eq!(curve.at(10_000).unwrap().ns, 1000);
        assert_eq!(curve.at(64_000).unwrap().ns, 6400);
        assert_eq!(curve.extend(&own), None);
    }

    #[test]
    fn what_was_measured_stands_and_times_do_not_fall() {
        let mut curve = Curve::from(vec![point(1000.0, 100.0), point(4000.0, 400.0)]);
        let own =
            Curve::from(vec![point(500.0, 150.0), point(8000.0, 300.0), point(9000.0, 500.0)]);
        curve.extend(&own);
        assert_eq!(
            times(&curve),
            [(500.0, 100.0), (1000.0, 100.0), (4000.0, 400.0), (8000.0, 400.0), (9000.0, 500.0)]
        );
        let quartiles = |points: &[ReferencePoint]| {
            points
                .windows(2)
                .all(|two| two[0].low_ns <= two[1].low_ns && two[0].high_ns <= two[1].high_ns)
        };
        assert!(quartiles(curve.points()), "{curve:?}");
        let mut small = Curve::from(vec![point(1.0, 50.0), point(64.0, 60.0)]);
        assert_eq!(small.extend(&Curve::from(vec![point(0.0, 900.0), point(32.0, 900.0)])), None);
        let mut nothing = Curve::default();
        assert_eq!(nothing.extend(&own), Some([500.0, 9000.0]));
    }

    #[test]
    fn small_sizes_are_alike() {
        let curve = Curve::from(vec![point(8.0, 400.0), point(16.0, 410.0), point(100.0, 500.0)]);
        assert_eq!(curve.at(0).unwrap().ns, 400);
        let barrier = Curve::from(vec![point(0.0, 700.0)]);
        assert_eq!(barrier.at(0).unwrap().ns, 700);
        assert_eq!(barrier.at(1000), None);
    }
}
