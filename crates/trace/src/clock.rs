//! Brings the clocks of different nodes together, from the run's own messages.
//!
//! No message is received before it is sent, and nobody leaves a barrier before all have entered it. Between two clocks
//! every message from A to B bounds B's lead over A from above, every one from B to A from below, and the quickest ones
//! leave little room between. Through that room goes a straight line, an offset and a drift, where it keeps clear of all
//! bounds by the widest margin. Nothing is measured during the run, and nothing has to be exchanged for it.
//!
//! Ranks of one node share a clock. Where their messages contradict that (containers with time name spaces, virtual
//! machines under one name), each of these ranks counts as a node of its own here.
//!
//! A ping-pong at MPI_Init would be communication that the application did not ask for, and ranks that are not profiled
//! would not answer. The result is as exact as the quickest message is short, and needs traffic both ways or a barrier
//! now and then. The margin is in the output.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::collective::CommunicatorCollectives;
use super::line::Line;
use super::operation::Direction;
use super::{RankTrace, Trace, NONE};
use lapscope_data::model::Needs;

/// Messages of one node that contradict its clock by more than this are no accident of measuring, nanoseconds.
const TOLERANCE: i64 = 10_000;
/// Parts of the run of which the tightest bound each is kept.
const BINS: usize = 256;
/// Largest drift that is looked for: 1000 parts per million.
const MOST_DRIFT: f64 = 1e-3;

/// How clocks were brought together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Serialize, Deserialize)]
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

/// Bounds of the lead of clock B over clock A, as (moment, nanoseconds).
#[derive(Debug, Clone, Default)]
pub struct LeadBounds {
    upper: Vec<(f64, f64)>,
    lower: Vec<(f64, f64)>,
}

impl LeadBounds {
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

/// The tightest bound of each part of the run. Equally tight ones are told apart by their moments, so that what is put together
/// in any order comes to the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
        keep_upper(&mut self.upper, begin / self.length, (begin as f64, (end - begin) as f64));
    }

    /// Something began at `begin` on clock B and ended at `end` on clock A.
    fn backward(&mut self, begin: i64, end: i64) {
        keep_lower(&mut self.lower, end / self.length, (end as f64, (begin - end) as f64));
    }

    fn merge(&mut self, other: Binned) {
        for (bin, bound) in other.upper {
            keep_upper(&mut self.upper, bin, bound);
        }
        for (bin, bound) in other.lower {
            keep_lower(&mut self.lower, bin, bound);
        }
    }

    fn bounds(self) -> LeadBounds {
        LeadBounds {
            upper: self.upper.into_values().collect(),
            lower: self.lower.into_values().collect(),
        }
    }
}

fn keep_upper(bounds: &mut BTreeMap<i64, (f64, f64)>, bin: i64, bound: (f64, f64)) {
    let best = bounds.entry(bin).or_insert(bound);
    if (bound.1, bound.0) < (best.1, best.0) {
        *best = bound;
    }
}

fn keep_lower(bounds: &mut BTreeMap<i64, (f64, f64)>, bin: i64, bound: (f64, f64)) {
    let best = bounds.entry(bin).or_insert(bound);
    if (-bound.1, bound.0) < (-best.1, best.0) {
        *best = bound;
    }
}

/// What messages and collectives of some ranks say of clocks; what is merged in any order comes to the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ClockEvidence {
    /// Nodes on which something ended before it began.
    contradicted: BTreeSet<u32>,
    pairs: BTreeMap<(usize, usize), Binned>,
}

impl ClockEvidence {
    #[must_use]
    pub fn merge(mut self, other: ClockEvidence) -> ClockEvidence {
        self.contradicted.extend(other.contradicted);
        for (pair, binned) in other.pairs {
            match self.pairs.entry(pair) {
                Entry::Occupied(mut known) => known.get_mut().merge(binned),
                Entry::Vacant(free) => {
                    free.insert(binned);
                }
            }
        }
        self
    }
}

/// The clocks of a run, brought together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Settled {
    pub clocks: Clocks,
    /// By rank, where its moments are to be corrected.
    lines: Vec<Option<Line>>,
}

/// What evidence came to.
pub enum ClockFit {
    Settled(Settled),
    /// These nodes are several clocks: their ranks have to be looked at once more.
    Split(Vec<u32>),
}

impl Settled {
    /// From the evidence of all ranks, which was gathered with the ranks of the nodes `split` as clocks of their own.
    pub fn fit(ranks: &[RankTrace], split: &[u32], evidence: ClockEvidence) -> ClockFit {
        let found: Vec<u32> = evidence.contradicted.into_iter().collect();
        if found.iter().any(|node| !split.contains(node)) {
            return ClockFit::Split(found);
        }
        let clock_of = assign_clocks(ranks, split);
        let count = clock_of.iter().max().map_or(0, |&clock| clock + 1);
        let mut settled = Settled {
            clocks: Clocks { clocks: count, ..Clocks::default() },
            lines: vec![None; ranks.len()],
        };
        let host = |node: &u32| {
            ranks.iter().find(|rank| rank.node == *node).map(|rank| rank.info().host.clone())
        };
        settled.clocks.split_nodes = split.iter().filter_map(host).collect();
        if count >= 2 {
            let pairs = evidence.pairs.into_iter().map(|(key, binned)| (key, binned.bounds()));
            settled.correct(ranks, &clock_of, &connect(count, &pairs.collect()));
        }
        ClockFit::Settled(settled)
    }

    fn correct(&mut self, ranks: &[RankTrace], clock_of: &[usize], lines: &[Option<(Line, f64)>]) {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); lines.len()];
        for (rank, &clock) in clock_of.iter().enumerate() {
            members[clock].push(rank);
        }
        for (line, members) in lines.iter().zip(members).skip(1) {
            let Some((line, margin)) = line else {
                self.clocks.unconnected += 1;
                continue;
            };
            for &rank in &members {
                self.lines[rank] = Some(*line);
            }
            self.clocks.corrections.push(Correction {
                host: ranks[members[0]].info().host.clone(),
                offset_ns: line.offset.round() as i64,
                drift_ppm: line.drift * 1e6,
                margin_ns: margin.round() as i64,
                ranks: members,
            });
        }
    }

    /// Corrections, for who has to tell these clocks from others.
    pub(super) fn hash(&self, hasher: &mut impl Hasher) {
        let lines = (0u64..).zip(&self.lines);
        for (rank, line) in lines.filter_map(|(rank, line)| Some(rank).zip(*line)) {
            let of_line = [line.offset, line.drift].map(f64::to_bits);
            [rank].iter().chain(&of_line).for_each(|&word| hasher.write_u64(word));
        }
    }

    /// Whether no moment is to be corrected.
    pub fn is_as_recorded(&self) -> bool {
        self.lines.iter().all(Option::is_none)
    }

    /// Corrects the moments of ranks; those of the first clock stay.
    pub fn apply(&self, ranks: &mut [RankTrace]) {
        ranks.par_iter_mut().zip(&self.lines).for_each(|(rank, line)| {
            rank.line = *line;
            if let Some(line) = line {
                rank.map_moments(|moment| line.correct(moment));
            }
        });
    }
}

impl RankTrace {
    /// The first moment since its epoch, as its own rows have it, that is not before `moment` of the run's clock.
    pub fn recorded(&self, moment: i64) -> i64 {
        /// Beyond these are no moments of a run.
        const FAR: i64 = 1 << 60;
        if !(-FAR..FAR).contains(&moment) {
            return moment;
        }
        self.line.map_or(moment, |line| line.first_from(moment)) - self.epoch
    }
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

/// What the messages that the ranks of the trace's focus received, and the collectives that they and the next in the communicator
/// took part in, say of clocks.
pub(super) fn evidence(
    trace: &Trace,
    groups: &[CommunicatorCollectives],
    split: &[u32],
) -> ClockEvidence {
    let ranks = &trace.ranks;
    let clock_of = assign_clocks(ranks, split);
    let length = ranks.iter().map(|rank| rank.end).max().unwrap_or(0);
    let mut found = ClockEvidence::default();
    each_constraint(trace, groups, &mut |Constraint { from, begin, to, end }| {
        let node = ranks[from].node;
        if node == ranks[to].node && end + TOLERANCE < begin {
            found.contradicted.insert(node);
        }
        let (a, b) = (clock_of[from], clock_of[to]);
        if a == b {
            return;
        }
        let pair = (a.min(b), a.max(b));
        let binned = found.pairs.entry(pair).or_insert_with(|| Binned::new(length));
        if a < b {
            binned.forward(begin, end);
        } else {
            binned.backward(begin, end);
        }
    });
    found
}

/// Messages, and of synchronising collectives each member with the next one.
fn each_constraint(
    trace: &Trace,
    groups: &[CommunicatorCollectives],
    take: &mut dyn FnMut(Constraint),
) {
    let ranks = &trace.ranks;
    for to in trace.focus() {
        let rank = &ranks[to];
        for endpoint in &rank.endpoints {
            let operation = &rank.operations[endpoint.operation as usize];
            let is_matched = operation.direction == Direction::Receive && endpoint.partner != NONE;
            let ended = rank.calls.get(endpoint.call as usize).filter(|call| call.returned());
            if let (true, Some(from), Some(call)) = (is_matched, operation.peer, ended) {
                let from = from as usize;
                let begin = ranks[from].endpoints[endpoint.partner as usize].begin;
                take(Constraint { from, begin, to, end: call.begin + call.duration });
            }
        }
    }
    for group in groups {
        for member in group.members.iter().filter(|(rank, _)| trace.is_in_focus(*rank as usize)) {
            let next = trace.roster.next_member(group.key, member.0);
            let next = next
                .and_then(|next| group.members.binary_search_by_key(&next, |(rank, _)| *rank).ok());
            if let Some(next) = next {
                collective_constraints(trace, member, &group.members[next], take);
            }
        }
    }
}

fn collective_constraints(
    trace: &Trace,
    (a, of_a): &(u32, Vec<u32>),
    (b, of_b): &(u32, Vec<u32>),
    take: &mut dyn FnMut(Constraint),
) {
    let (ranks, a, b) = (&trace.ranks, *a as usize, *b as usize);
    if a == b {
        return;
    }
    let times = |rank: usize, index: u32| {
        let endpoint = &ranks[rank].endpoints[index as usize];
        let call = ranks[rank].calls.get(endpoint.call as usize).filter(|call| call.returned())?;
        Some((endpoint.begin, call.begin + call.duration))
    };
    for (&of_a, &of_b) in of_a.iter().zip(of_b) {
        let operation = ranks[a].endpoints[of_a as usize].operation;
        let blocking = ranks[a].operations[operation as usize].blocking_call;
        if trace.blocking_calls[blocking as usize].needs != Some(Needs::All) {
            continue;
        }
        if let Some(((begin_a, end_a), (begin_b, end_b))) = times(a, of_a).zip(times(b, of_b)) {
            take(Constraint { from: a, begin: begin_a, to: b, end: end_b });
            take(Constraint { from: b, begin: begin_b, to: a, end: end_a });
        }
    }
}

/// The lead of every clock over the first and its margin, along the pairs with the least room.
fn connect(count: usize, pairs: &BTreeMap<(usize, usize), LeadBounds>) -> Vec<Option<(Line, f64)>> {
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
    fn bounds(offset: f64, drift: f64, messages: i64) -> LeadBounds {
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
    fn clocks_are_reached_over_others() {
        let edge = |offset: f64| LeadBounds {
            upper: vec![(0.0, offset + 10.0)],
            lower: vec![(0.0, offset - 10.0)],
        };
        let pairs = BTreeMap::from([((0, 2), edge(50.0)), ((1, 2), edge(30.0))]);
        let lines = connect(4, &pairs);
        let offsets: Vec<_> = lines.iter().map(|line| line.map(|(line, _)| line.offset)).collect();
        assert_eq!(offsets, [Some(0.0), Some(20.0), Some(50.0), None]);
    }
}
