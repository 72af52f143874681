//! LogGPS from exchanges. Of the repetitions of a size a low quantile counts, as whatever disturbs makes them longer; over the
//! sizes of a segment parameters are straight lines.
//!
//! PRTT is the time of the parametrised round trip (`interposer/calibrate/round_trips.c`), and o_s = (PRTT(n, d, s) -
//! PRTT(1, 0, s)) / (n - 1) - d. The delay d is what lay between two posts in the records, the time of lapscope between
//! calls included, so that it falls out where a benchmark would have to believe its own delay.
//!
//! - o_r is the time in the call that receives an answer which has long been there.
//! - Above S a delay moves no data, and the formula would charge the transfer to the overhead: there o_s is that of the
//!   posts, and what both sides need to find each other is a measured value of its own.
//! - Intervals are from resamplings of repetitions and sizes and from other quantiles, one below all repetitions among
//!   them: disturbances only ever add, so the truth is rather there.
//! - Where both processors work on one message at the same time, as over TCP on one node, o_s + o_r is more than a
//!   transfer takes. L is 0 then, and what overlaps is kept beside it, so that the time of a transfer stays right.

use std::collections::BTreeMap;

use super::line::{Line, WeightedPoint};
use super::read::{Exchange, ExchangeKind, Exchanges, Late};
use super::segments::{self, SizePoint};
use super::{LogGps, Overhead, Residual, Segment};
use lapscope_trace::stats::{quantile, Interval};
use lapscope_trace::Locality;

/// Which quantile of the repetitions counts, and the others whose results the intervals include.
const QUANTILE: f64 = 0.1;
const OTHER_QUANTILES: [f64; 3] = [0.0, 0.25, 0.5];
/// Resampled fits for the intervals, and the share of them beyond either end.
const RESAMPLED: u64 = 100;
const BEYOND: f64 = 0.025;
/// This share of a transfer is as good as nothing beside it.
const LITTLE: f64 = 0.05;
/// Fewest repetitions that tell.
const FEWEST: usize = 3;
/// Messages follow each other as fast as their sender can post them when they take no more than this longer.
const SENDER_BOUND: f64 = 1.15;

/// The parameters of a locality. `None` where too few exchanges tell.
pub fn fit(locality: Locality, exchanges: &Exchanges) -> Option<LogGps> {
    let eager_limit_bytes = eager_limit(&exchanges.late);
    let sizes = Sizes::collect(&exchanges.round_trips, eager_limit_bytes);
    let points = sizes.points(&mut Pick::of_share(Share::Quantile(QUANTILE)));
    let bounds = segments::bounds(&points, eager_limit_bytes);
    let solutions = Solutions::solve(&sizes, &points, &bounds)?;
    let segments = (0..bounds.len()).map(|number| solutions.segment(number, &points, &bounds));
    let mut found = LogGps {
        locality,
        latency_ns: solutions.around(|solution| solution.latency),
        eager_limit_bytes,
        segments: segments.collect(),
        residual: Residual { median: 0.0, worst: 0.0, worst_bytes: 0 },
        exchanges: exchanges.round_trips.len() as u64,
    };
    found.residual = residual(&found, &points)?;
    Some(found)
}

/// S: the largest size of which a send was complete without its receive, which is proof; others may have come late because
/// their sender did. `None` where no larger one waited.
fn eager_limit(late: &[Late]) -> Option<u64> {
    let kept = late.iter().filter(|late| late.is_kept).map(|late| late.bytes).max().unwrap_or(0);
    late.iter().any(|late| late.bytes > kept).then_some(kept)
}

/// Repetitions by size.
struct Sizes {
    by_size: BTreeMap<u64, [Vec<Exchange>; 4]>,
    eager_limit: Option<u64>,
}

impl Sizes {
    fn collect(exchanges: &[Exchange], eager_limit: Option<u64>) -> Sizes {
        let mut by_size: BTreeMap<u64, [Vec<Exchange>; 4]> = BTreeMap::new();
        for exchange in exchanges {
            by_size.entry(exchange.bytes).or_default()[exchange.kind as usize].push(*exchange);
        }
        Sizes { by_size, eager_limit }
    }

    fn points(&self, pick: &mut Pick) -> Vec<SizePoint> {
        let is_eager = |bytes: u64| self.eager_limit.map_or(true, |limit| bytes <= limit);
        self.by_size
            .iter()
            .filter_map(|(&bytes, kinds)| point(bytes, kinds, is_eager(bytes), pick))
            .collect()
    }
}

/// Hoefler and others 2007, section 3: g + (s - 1) G = (PRTT(n, 0, s) - PRTT(1, 0, s)) / (n - 1), and
/// o = (PRTT(n, d, s) - PRTT(1, 0, s)) / (n - 1) - d where d is longer than all the rest. Above S, where a message would move
/// within that time, the overheads are those of the posts.
fn point(
    bytes: u64,
    kinds: &[Vec<Exchange>; 4],
    is_eager: bool,
    pick: &mut Pick,
) -> Option<SizePoint> {
    let of = |kind: ExchangeKind| kinds[kind as usize].as_slice();
    let (ones, bursts, delayed, away) = (
        of(ExchangeKind::One),
        of(ExchangeKind::Burst),
        of(ExchangeKind::Delayed),
        of(ExchangeKind::Away),
    );
    // sizes of the search for S have nothing else
    let is_whole = ones.len() >= FEWEST && !bursts.is_empty();
    if !is_whole || is_eager && (delayed.is_empty() || away.is_empty()) {
        return None;
    }
    let round_trip = pick.pick(ones, |one| one.total)?;
    let others = |all: &[Exchange]| all.first().map(|one| f64::from(one.messages) - 1.0);
    let by_delays = others(delayed).filter(|&n| is_eager && n > 0.0).and_then(|n| {
        let without_delays = pick.pick(delayed, |one| one.total - one.delays)?;
        Some((without_delays - round_trip) / n).filter(|&send| send > 0.0)
    });
    let send = match by_delays {
        Some(send) => send,
        None => pick.pick(ones, |one| one.posts)?,
    };
    let receive = match pick.pick(away, |one| one.answer).filter(|_| is_eager) {
        Some(receive) => receive,
        None => pick.pick(ones, |one| one.receive_post)?,
    };
    let gap = others(bursts).filter(|&n| n > 0.0).and_then(|n| {
        let each = (pick.pick(bursts, |one| one.total)? - round_trip) / n;
        let spacing = pick.pick(bursts, |one| one.delays)? / n;
        let post = pick.pick(bursts, |one| one.posts)? / (n + 1.0);
        // the recorder's own time between two posts is hidden only where something else takes longer
        let is_sender_bound = each <= SENDER_BOUND * (post + spacing);
        Some((if is_sender_bound { each - spacing } else { each }, n))
    });
    let weight = pick.weight();
    Some(SizePoint { bytes, transfer: round_trip / 2.0, send, receive, gap, weight })
}

/// Which value stands for repetitions.
#[derive(Debug, Clone, Copy)]
enum Share {
    Quantile(f64),
    /// What none of them has reached: by exponential disturbances the least of n is above it by the n-th part of their mean,
    /// which is four times what lies between the least and the first quartile; and half as much again.
    BelowAll,
}

impl Share {
    /// `sorted` rises.
    fn quantile(self, sorted: &[f64]) -> Option<f64> {
        match self {
            Share::Quantile(share) => quantile(sorted, share),
            Share::BelowAll => {
                let (least, quartile) = (sorted.first()?, quantile(sorted, 0.25)?);
                Some(least - (quartile - least) * (6.0 / sorted.len() as f64).min(1.0))
            }
        }
    }
}

/// How repetitions become one value.
struct Pick {
    share: Share,
    /// Draws repetitions with replacement, and sizes by random weights (Rubin 1981).
    random: Option<Random>,
}

impl Pick {
    fn of_share(share: Share) -> Pick {
        Pick { share, random: None }
    }

    fn pick(&mut self, all: &[Exchange], value: impl Fn(&Exchange) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = match &mut self.random {
            None => all.iter().map(value).collect(),
            Some(random) => all.iter().map(|_| value(&all[random.below(all.len())])).collect(),
        };
        values.sort_unstable_by(f64::total_cmp);
        self.share.quantile(&values)
    }

    fn weight(&mut self) -> f64 {
        self.random.as_mut().map_or(1.0, |random| -(1.0 - random.share()).ln().min(-1e-3))
    }
}

/// Splitmix64: the same intervals each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, count: usize) -> usize {
        ((self.share() * count as f64) as usize).min(count - 1)
    }
}

/// Plain values of all parameters.
struct Solution {
    latency: f64,
    segments: Vec<SegmentLines>,
}

/// The lines of one segment, nanoseconds and nanoseconds a byte.
#[derive(Default)]
struct SegmentLines {
    send: Line,
    receive: Line,
    gap: Line,
    /// Beyond L and the overheads.
    network: Line,
}

impl Solution {
    fn solve(points: &[SizePoint], bounds: &[u64]) -> Option<Solution> {
        let mut solution = Solution { latency: 0.0, segments: Vec::new() };
        for (number, part) in segments::parts(points, bounds).into_iter().enumerate() {
            let mut lines = SegmentLines::fit(part, solution.latency)?;
            if number == 0 {
                solution.latency = lines.network.base.max(0.0);
                lines.network.base -= solution.latency;
            }
            solution.segments.push(lines);
        }
        Some(solution).filter(|solution| !solution.segments.is_empty())
    }
}

impl SegmentLines {
    /// `latency`: as far as it is known already.
    fn fit(part: &[SizePoint], latency: f64) -> Option<SegmentLines> {
        let (send, receive) =
            (overhead(part, |point| point.send)?, overhead(part, |point| point.receive)?);
        let network = |point: &SizePoint| {
            let bytes = point.bytes as f64;
            WeightedPoint {
                x: super::behind_first(point.bytes),
                y: point.transfer - send.at(bytes) - receive.at(bytes) - latency,
                sigma: point.transfer / point.weight.sqrt(),
            }
        };
        let network = Line::of_differences(&part.iter().map(network).collect::<Vec<_>>())?;
        let gaps: Vec<WeightedPoint> = part.iter().filter_map(gap).collect();
        Some(SegmentLines { send, receive, gap: Line::through(&gaps).unwrap_or_default(), network })
    }
}

fn overhead(part: &[SizePoint], of: fn(&SizePoint) -> f64) -> Option<Line> {
    let measured = |point: &SizePoint| WeightedPoint {
        x: point.bytes as f64,
        y: of(point),
        sigma: (of(point) + point.transfer * LITTLE) / point.weight.sqrt(),
    };
    Line::through(&part.iter().map(measured).collect::<Vec<_>>())
}

/// The difference of two times, which may be off as they may.
fn gap(point: &SizePoint) -> Option<WeightedPoint> {
    let (y, messages) = point.gap?;
    let sigma = (y.max(0.0) + 2.0 * point.transfer / messages) / point.weight.sqrt();
    Some(WeightedPoint { x: super::behind_first(point.bytes), y, sigma })
}

/// The parameters, and what else they could be.
struct Solutions {
    best: Solution,
    /// By other quantiles.
    extremes: Vec<Solution>,
    resampled: Vec<Solution>,
}

impl Solutions {
    fn solve(sizes: &Sizes, points: &[SizePoint], bounds: &[u64]) -> Option<Solutions> {
        let by = |mut pick: Pick| Solution::solve(&sizes.points(&mut pick), bounds);
        let shares = OTHER_QUANTILES.map(Share::Quantile).into_iter().chain([Share::BelowAll]);
        let drawn =
            |seed| Pick { random: Some(Random(seed)), ..Pick::of_share(Share::Quantile(QUANTILE)) };
        Some(Solutions {
            best: Solution::solve(points, bounds)?,
            extremes: shares.filter_map(|share| by(Pick::of_share(share))).collect(),
            resampled: (1..=RESAMPLED).filter_map(|seed| by(drawn(seed))).collect(),
        })
    }

    /// A value with what the others say of it.
    fn around(&self, of: impl Fn(&Solution) -> f64) -> Interval {
        let estimate = of(&self.best);
        let mut drawn: Vec<f64> = self.resampled.iter().map(&of).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let ends = [quantile(&drawn, BEYOND), quantile(&drawn, 1.0 - BEYOND)];
        let values = || self.extremes.iter().map(&of).chain(ends.into_iter().flatten());
        Interval {
            low: values().fold(estimate, f64::min),
            estimate,
            high: values().fold(estimate, f64::max),
        }
    }

    fn segment(&self, number: usize, points: &[SizePoint], bounds: &[u64]) -> Segment {
        let line = |of: fn(&SegmentLines) -> Line| {
            let base = self.around(|solution| of(&solution.segments[number]).base);
            (base, self.around(|solution| of(&solution.segments[number]).slope))
        };
        let overhead = |of| {
            let (base_ns, ns_per_byte) = line(of);
            Overhead { base_ns, ns_per_byte }
        };
        let (gap_ns, gap_ns_per_byte) = line(|lines| lines.gap);
        let (beyond_ns, wire_ns_per_byte) = line(|lines| lines.network);
        let largest = points.last().filter(|_| number + 1 == bounds.len());
        Segment {
            min_bytes: number.checked_sub(1).map_or(0, |before| bounds[before] + 1),
            max_bytes: largest.map_or(bounds[number], |point| point.bytes),
            send: overhead(|lines| lines.send),
            receive: overhead(|lines| lines.receive),
            gap_ns,
            gap_ns_per_byte,
            beyond_ns,
            wire_ns_per_byte,
        }
    }
}

fn residual(found: &LogGps, points: &[SizePoint]) -> Option<Residual> {
    let off = |point: &SizePoint| {
        let off = (found.transfer(point.bytes) - point.transfer).abs() / point.transfer;
        (off, point.bytes)
    };
    let all: Vec<(f64, u64)> = points.iter().map(off).collect();
    let (worst, worst_bytes) = all.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let median = lapscope_trace::stats::median(all.iter().map(|(off, _)| *off).collect())?;
    Some(Residual { median, worst, worst_bytes })
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
