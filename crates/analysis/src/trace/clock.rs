//! Brings the clocks of different nodes together, from the run's own messages.
//!
//! No message is received before it is sent, and nobody leaves a barrier before all have entered it. Between two clocks
//! every message from A to B bounds B's lead over A from above, every one from B to A from below, and the quickest ones
//! leave little room between. Through that room goes a straight line, an offset and a drift, where it keeps clear of all
//! bounds by the widest margin. Nothing is measured during the run, and nothing has to be exchanged for it.
//!
//! Ranks of one node share a clock. Where their messages contradict that (containers with time name spaces, virtual
//! machines under one name), each of these ranks counts as a node of its own here.

use std::collections::BTreeMap;

use serde::Serialize;

use super::collective::Group;
use super::operation::Direction;
use super::{RankTrace, NONE};
use lapscope_data::model::{CallName, Needs};

/// Messages of one node that contradict its clock by more than this are no accident of measuring, nanoseconds.
const TOLERANCE: i64 = 10_000;
/// Parts of the run of which the tightest bound each is kept.
const BINS: usize = 256;
/// Largest drift that is looked for: 1000 parts per million.
const MOST_DRIFT: f64 = 1e-3;

/// How clocks were brought together.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Clocks {
    /// Clocks that were told apart: nodes, and ranks that contradict their node.
    pub clocks: usize,
    /// Nodes whose ranks do not share a clock.
    pub split_nodes: Vec<String>,
    pub corrections: Vec<Correction>,
    /// Clocks that no messages connect with the first: only the nodes' time of day is known of them.
    pub unconnected: usize,
}

/// What was taken off the moments of some ranks.
#[derive(Debug, Clone, Serialize)]
pub struct Correction {
    pub host: String,
    /// Ranks in the order of the run.
    pub ranks: Vec<usize>,
    /// Lead over the first clock at the begin of the run, nanoseconds, and how much it grows.
    pub offset_ns: i64,
    pub drift_ppm: f64,
    /// How far the offset may be off: half the room that the messages leave. Negative: no line satisfies all of them.
    pub margin_ns: i64,
}

/// A lead of one clock over another: nanoseconds at moment 0, and per nanosecond.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Line {
    pub offset: f64,
    pub drift: f64,
}

impl Line {
    fn at(self, moment: f64) -> f64 {
        self.offset + self.drift * moment
    }

    /// Turns a moment of the leading clock into one of the other.
    fn correct(self, moment: i64) -> i64 {
        ((moment as f64 - self.offset) / (1.0 + self.drift)).round() as i64
    }

    /// The lead of C over A, given this one of B over A and that of C over B.
    fn then(self, next: Line) -> Line {
        // c = b + next(b), b = a + self(a)
        Line {
            offset: self.offset + next.at(self.offset),
            drift: self.drift + next.drift * (1.0 + self.drift),
        }
    }

    fn reversed(self) -> Line {
        // a = (b - offset) / (1 + drift)
        let scale = 1.0 / (1.0 + self.drift);
        Line { offset: -self.offset * scale, drift: scale - 1.0 }
    }
}

/// Bounds of the lead of clock B over clock A, as (moment, nanoseconds).
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    upper: Vec<(f64, f64)>,
    lower: Vec<(f64, f64)>,
}

impl Bounds {
    fn is_two_sided(&self) -> bool {
        !self.upper.is_empty() && !self.lower.is_empty()
    }

    /// For this drift, the room on either side of the best offset (negative where bounds contradict each other), and it.
    fn room(&self, drift: f64) -> (f64, f64) {
        let rest = |&(moment, bound): &(f64, f64)| bound - drift * moment;
        let upper = self.upper.iter().map(rest).fold(f64::INFINITY, f64::min);
        let lower = self.lower.iter().map(rest).fold(f64::NEG_INFINITY, f64::max);
        ((upper - lower) / 2.0, (upper + lower) / 2.0)
    }

    /// The line with the most room to its bounds, and that room. The room is concave in the drift; of drifts that leave
    /// nearly the same the smallest is taken, so that a short run is not given one that nothing shows.
    pub fn fit(&self) -> Option<(Line, f64)> {
        if !self.is_two_sided() {
            return None;
        }
        let moments = self.upper.iter().chain(&self.lower).map(|bound| bound.0);
        let span = moments.clone().fold(f64::NEG_INFINITY, f64::max)
            - moments.fold(f64::INFINITY, f64::min);
        let merit = |drift: f64| self.room(drift).0 - 0.02 * (drift * span).abs();
        let (mut low, mut high) = (-MOST_DRIFT, MOST_DRIFT);
        for _ in 0..80 {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if merit(a) < merit(b) {
                low = a;
            } else {
                high = b;
            }
        }
        let drift = (low + high) / 2.0;
        let drift = if merit(0.0) >= merit(drift) { 0.0 } else { drift };
        let (room, offset) = self.room(drift);
        Some((Line { offset, drift }, room))
    }
}

/// The tightest bound of each part of the run.
struct Binned {
    length: i64,
    upper: BTreeMap<i64, (f64, f64)>,
    lower: BTreeMap<i64, (f64, f64)>,
}

impl Binned {
    fn new(length: i64) -> Binned {
        Binned {
            length: (length / BINS as i64).max(1),
            upper: BTreeMap::new(),
            lower: BTreeMap::new(),
        }
    }

    /// Something began at `begin` on clock A and ended at `end` on clock B.
    fn forward(&mut self, begin: i64, end: i64) {
        let bound = (begin as f64, (end - begin) as f64);
        let best = self.upper.entry(begin / self.length).or_insert(bound);
        if bound.1 < best.1 {
            *best = bound;
        }
    }

    /// Something began at `begin` on clock B and ended at `end` on clock A.
    fn backward(&mut self, begin: i64, end: i64) {
        let bound = (end as f64, (begin - end) as f64);
        let best = self.lower.entry(end / self.length).or_insert(bound);
        if bound.1 > best.1 {
            *best = bound;
        }
    }

    fn bounds(self) -> Bounds {
        Bounds {
            upper: self.upper.into_values().collect(),
            lower: self.lower.into_values().collect(),
        }
    }
}

/// Corrects all moments of `ranks`; the first clock stays.
pub(super) fn correct(
    ranks: &mut [RankTrace],
    blocking_calls: &[CallName],
    groups: &[Group],
) -> Clocks {
    let split_nodes = contradicted_nodes(ranks, blocking_calls, groups);
    let clock_of = assign_clocks(ranks, &split_nodes);
    let count = clock_of.iter().max().map_or(0, |&clock| clock + 1);
    let mut clocks = Clocks { clocks: count, ..Clocks::default() };
    let host = |node: &u32| {
        ranks.iter().find(|rank| rank.node == *node).map(|rank| rank.info().host.clone())
    };
    clocks.split_nodes = split_nodes.iter().filter_map(host).collect();
    if count < 2 {
        return clocks;
    }
    let pairs = collect_bounds(ranks, blocking_calls, groups, &clock_of);
    let lines = connect(count, &pairs);
    for (clock, line) in lines.iter().enumerate().skip(1) {
        let members: Vec<usize> =
            (0..ranks.len()).filter(|&rank| clock_of[rank] == clock).collect();
        let Some((line, margin)) = line else {
            clocks.unconnected += 1;
            continue;
        };
        clocks.corrections.push(Correction {
            host: ranks[members[0]].info().host.clone(),
            offset_ns: line.offset.round() as i64,
            drift_ppm: line.drift * 1e6,
            margin_ns: margin.round() as i64,
            ranks: members.clone(),
        });
        for rank in members {
            ranks[rank].map_moments(|moment| line.correct(moment));
        }
    }
    clocks
}

/// Ranks of a node share a clock, unless their node is one of `split`.
fn assign_clocks(ranks: &[RankTrace], split: &[u32]) -> Vec<usize> {
    let mut known: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    ranks
        .iter()
        .enumerate()
        .map(|(place, rank)| {
            let own = if split.contains(&rank.node) { place } else { usize::MAX };
            let next = known.len();
            *known.entry((rank.node, own)).or_insert(next)
        })
        .collect()
}

/// A message or collective that began on one rank and cannot have ended earlier on another.
struct Constraint {
    from: usize,
    begin: i64,
    to: usize,
    end: i64,
}

/// Nodes on which something ended before it began.
fn contradicted_nodes(
    ranks: &[RankTrace],
    blocking_calls: &[CallName],
    groups: &[Group],
) -> Vec<u32> {
    let mut contradicted = vec![false; ranks.len()];
    each_constraint(ranks, blocking_calls, groups, &mut |constraint| {
        let node = ranks[constraint.from].node;
        if node == ranks[constraint.to].node && constraint.end + TOLERANCE < constraint.begin {
            contradicted[node as usize] = true;
        }
    });
    (0..).zip(contradicted).filter(|(_, is)| *is).map(|(node, _)| node).collect()
}

fn collect_bounds(
    ranks: &[RankTrace],
    blocking_calls: &[CallName],
    groups: &[Group],
    clock_of: &[usize],
) -> BTreeMap<(usize, usize), Bounds> {
    let length = ranks.iter().map(|rank| rank.end).max().unwrap_or(0);
    let mut pairs: BTreeMap<(usize, usize), Binned> = BTreeMap::new();
    each_constraint(ranks, blocking_calls, groups, &mut |constraint| {
        let (from, to) = (clock_of[constraint.from], clock_of[constraint.to]);
        let (begin, end) = (constraint.begin, constraint.end);
        if from == to {
            return;
        }
        let pair = (from.min(to), from.max(to));
        let binned = pairs.entry(pair).or_insert_with(|| Binned::new(length));
        if from < to {
            binned.forward(begin, end);
        } else {
            binned.backward(begin, end);
        }
    });
    pairs.into_iter().map(|(key, binned)| (key, binned.bounds())).collect()
}

/// Messages, and of synchronising collectives each member with the next ones.
fn each_constraint(
    ranks: &[RankTrace],
    blocking_calls: &[CallName],
    groups: &[Group],
    take: &mut dyn FnMut(Constraint),
) {
    for (to, rank) in ranks.iter().enumerate() {
        for endpoint in &rank.endpoints {
            let operation = &rank.operations[endpoint.operation as usize];
            let is_matched = operation.direction == Direction::Receive && endpoint.partner != NONE;
            let ended = rank.calls.get(endpoint.call as usize).filter(|call| call.returned);
            if let (true, Some(from), Some(call)) = (is_matched, operation.peer, ended) {
                let from = from as usize;
                let begin = ranks[from].endpoints[endpoint.partner as usize].begin;
                take(Constraint { from, begin, to, end: call.begin + call.duration });
            }
        }
    }
    for group in groups {
        for pair in 0..group.members.len() {
            let next = (pair + 1) % group.members.len();
            collective_constraints(
                ranks,
                blocking_calls,
                &group.members[pair],
                &group.members[next],
                take,
            );
        }
    }
}

fn collective_constraints(
    ranks: &[RankTrace],
    blocking_calls: &[CallName],
    (a, of_a): &(u32, Vec<u32>),
    (b, of_b): &(u32, Vec<u32>),
    take: &mut dyn FnMut(Constraint),
) {
    let (a, b) = (*a as usize, *b as usize);
    if a == b {
        return;
    }
    let times = |rank: usize, index: u32| {
        let endpoint = &ranks[rank].endpoints[index as usize];
        let call = ranks[rank].calls.get(endpoint.call as usize).filter(|call| call.returned)?;
        Some((endpoint.begin, call.begin + call.duration))
    };
    for (&of_a, &of_b) in of_a.iter().zip(of_b) {
        let operation = ranks[a].endpoints[of_a as usize].operation;
        let blocking = ranks[a].operations[operation as usize].blocking_call;
        if blocking_calls[blocking as usize].needs != Some(Needs::All) {
            continue;
        }
        if let Some(((begin_a, end_a), (begin_b, end_b))) = times(a, of_a).zip(times(b, of_b)) {
            take(Constraint { from: a, begin: begin_a, to: b, end: end_b });
            take(Constraint { from: b, begin: begin_b, to: a, end: end_a });
        }
    }
}

/// The lead of every clock over the first and its margin, along the pairs with the least room.
fn connect(count: usize, pairs: &BTreeMap<(usize, usize), Bounds>) -> Vec<Option<(Line, f64)>> {
    let mut edges: Vec<(usize, usize, Line, f64)> = pairs
        .iter()
        .filter_map(|(&(a, b), bounds)| bounds.fit().map(|(line, room)| (a, b, line, room)))
        .collect();
    edges.sort_by(|a, b| a.3.abs().total_cmp(&b.3.abs()));
    let mut lines: Vec<Option<(Line, f64)>> = vec![None; count];
    lines[0] = Some((Line::default(), 0.0));
    while let Some((known, new, line, room)) = edges.iter().find_map(|&(a, b, line, room)| {
        match (lines[a].is_some(), lines[b].is_some()) {
            (true, false) => Some((a, b, line, room)),
            (false, true) => Some((b, a, line.reversed(), room)),
            _ => None,
        }
    }) {
        let (base, _) = lines[known].expect("just found");
        lines[new] = Some((base.then(line), room));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages there and back once a millisecond, 2 to 12 us long, with a clock B that leads.
    fn bounds(offset: f64, drift: f64, messages: i64) -> Bounds {
        let mut binned = Binned::new(messages * 1_000_000);
        let lead = |moment: i64| (offset + drift * moment as f64) as i64;
        for number in 0..messages {
            let moment = number * 1_000_000;
            let delay = 2_000 + number * 7_919 % 10_000;
            binned.forward(moment, moment + delay + lead(moment + delay));
            binned.backward(moment + lead(moment), moment + delay);
        }
        binned.bounds()
    }

    #[test]
    fn offsets_and_drifts_are_found() {
        for (offset, drift) in [(0.0, 0.0), (5e6, 0.0), (-3e7, 1e-4), (1e9, -2e-4), (123.0, 5e-5)] {
            let (line, room) = bounds(offset, drift, 4_000).fit().unwrap();
            assert!(room > 0.0, "{offset} {drift}: no room, {room}");
            for moment in [0.0, 2e9, 4e9] {
                let error = line.at(moment) - (offset + drift * moment);
                assert!(error.abs() < 5_000.0, "{offset} {drift} at {moment}: off by {error} ns");
            }
        }
    }

    #[test]
    fn a_short_run_gets_no_drift() {
        let (line, _) = bounds(1e6, 0.0, 3).fit().unwrap();
        assert_eq!(line.drift, 0.0);
    }

    #[test]
    fn one_direction_is_not_enough() {
        let mut binned = Binned::new(100);
        binned.forward(1, 5);
        assert_eq!(binned.bounds().fit(), None);
    }

    #[test]
    fn lines_compose_and_reverse() {
        let (b, c) = (Line { offset: 1000.0, drift: 1e-4 }, Line { offset: -300.0, drift: -2e-4 });
        let a = 5_000_000i64;
        let on_b = a as f64 + b.at(a as f64);
        let on_c = on_b + c.at(on_b);
        assert!((b.then(c).at(a as f64) - (on_c - a as f64)).abs() < 1e-6);
        assert!((on_b + b.reversed().at(on_b) - a as f64).abs() < 1e-6);
        assert_eq!(b.correct(on_b.round() as i64), a);
    }

    #[test]
    fn clocks_are_reached_over_others() {
        let edge = |offset: f64| Bounds {
            upper: vec![(0.0, offset + 10.0)],
            lower: vec![(0.0, offset - 10.0)],
        };
        let pairs = BTreeMap::from([((0, 2), edge(50.0)), ((1, 2), edge(30.0))]);
        let lines = connect(4, &pairs);
        let offsets: Vec<_> = lines.iter().map(|line| line.map(|(line, _)| line.offset)).collect();
        assert_eq!(offsets, [Some(0.0), Some(20.0), Some(50.0), None]);
    }
}
