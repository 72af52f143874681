//! Which sizes are transferred in the same way: those up to S, those above it, and of both what one straight line is far from.

use super::line::{Line, WeightedPoint};

/// Fewest sizes of a segment that is split off, and most segments.
const FEWEST: usize = 5;
const MOST: usize = 6;
/// A line may be off by this share of the times; two lines have to be closer by this factor.
const CLOSE: f64 = 0.05;
const CLOSER: f64 = 0.5;

/// What one size says, nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct SizePoint {
    pub bytes: u64,
    /// PRTT(1, 0, s) / 2.
    pub transfer: f64,
    pub send: f64,
    pub receive: f64,
    /// g + (s - 1) G, and how many messages it is from.
    pub gap: Option<(f64, f64)>,
    /// The weight of this size among the others; 1 unless resampled.
    pub weight: f64,
}

/// The largest size of each segment, rising; the last one has no end.
pub fn bounds(points: &[SizePoint], eager_limit: Option<u64>) -> Vec<u64> {
    let sizes_up_to = |limit| points.iter().filter(|point| point.bytes <= limit).count();
    let limit = eager_limit.filter(|&limit| {
        let eager = sizes_up_to(limit);
        eager >= 2 && points.len() - eager >= 2
    });
    let mut bounds: Vec<u64> = limit.into_iter().chain([u64::MAX]).collect();
    while bounds.len() < MOST {
        let all = parts(points, &bounds);
        let splits = all.into_iter().filter_map(split);
        let Some((_, bytes)) = splits.max_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        bounds.push(bytes);
        bounds.sort_unstable();
    }
    bounds
}

/// The points of each segment.
pub fn parts<'a>(points: &'a [SizePoint], bounds: &[u64]) -> Vec<&'a [SizePoint]> {
    let mut rest = points;
    let mut parts = Vec::new();
    for &bound in bounds {
        let (part, behind) = rest.split_at(rest.partition_point(|point| point.bytes <= bound));
        parts.push(part);
        rest = behind;
    }
    parts
}

/// By how much two lines are closer than one, and the last size of the first of them.
fn split(points: &[SizePoint]) -> Option<(f64, u64)> {
    let whole = distance(points).filter(|&whole| whole > CLOSE)?;
    let last = points.len().checked_sub(FEWEST)?;
    let both = |place: usize| {
        let (left, right) = points.split_at(place);
        let (l, r) = (distance(left)?, distance(right)?);
        let share = left.len() as f64 / points.len() as f64;
        Some(((l * l * share + r * r * (1.0 - share)).sqrt(), left.last()?.bytes))
    };
    let candidates = (FEWEST..=last).filter_map(both);
    let (two, bytes) = candidates.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (two < CLOSER * whole).then_some((whole - two, bytes))
}

/// Root of the mean square of the distances from the line through them, as shares of the times.
fn distance(points: &[SizePoint]) -> Option<f64> {
    let measured = |point: &SizePoint| WeightedPoint {
        x: point.bytes as f64,
        y: point.transfer,
        sigma: point.transfer,
    };
    let line = Line::through(&points.iter().map(measured).collect::<Vec<_>>())?;
    let off = |point: &SizePoint| (line.at(point.bytes as f64) / point.transfer - 1.0).powi(2);
    Some((points.iter().map(off).sum::<f64>() / points.len() as f64).sqrt())
}
