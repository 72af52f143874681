//! Finds the other end of each message: within one communicator, source, destination and tag, messages do not overtake
//! each other (MPI-4.1 3.5), so the k-th send is received by the k-th receive. Receives from any source or with any tag
//! stand where their message came from. Where the two ends contradict each other nothing is guessed: the rest of that
//! lane stays unmatched. What was left out of a long run counts, too ([`super::left_out`]).

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::endpoint::NONE;
use super::lane::LaneKey;
use super::left_out::Gaps;
use super::operation::{Direction, RequestEnd};
use super::{RankTrace, Trace};
use lapscope_data::model::Rank;

/// A receive that ends earlier than its send begins is a contradiction, beyond what clocks of one node may differ by.
const CLOCK_TOLERANCE: i64 = 10_000;
/// Lanes with unmatched messages that are named.
const EXAMPLES: usize = 20;

/// How much of a lane belongs together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Matched {
    /// Sends and receives from the front.
    pub count: u32,
    pub contradiction: Option<Contradiction>,
}

/// Why a lane could not be matched to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contradiction {
    /// Sizes differ.
    Bytes,
    /// It was received before it was sent.
    Time,
}

/// How much was matched.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Matching {
    pub messages: u64,
    /// Sends without a receive: never received, or received by a rank that was not recorded.
    pub unmatched_sends: u64,
    pub unmatched_receives: u64,
    /// Sends and receives behind a contradiction.
    pub doubtful: u64,
    /// Sends and receives whose peer or tag is not known, or is in another world.
    pub not_followed: u64,
    /// Sends and receives of lanes of which a part was only summed up: their other end may have been.
    pub other_end_left_out: u64,
    /// The lanes with most that is unmatched.
    pub examples: Vec<Unmatched>,
}

/// A lane with messages that were not matched.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unmatched {
    pub source: Rank,
    pub destination: Rank,
    pub tag: i64,
    pub sends: u64,
    pub receives: u64,
    pub matched: u64,
    pub contradiction: Option<Contradiction>,
}

/// The endpoints of a rank that have a lane, lane by lane, each in the order of their posts.
#[derive(Debug, Default)]
pub struct LaneOrder {
    pub endpoints: Vec<u32>,
    /// By lane and whether they send.
    ranges: FxHashMap<(u32, bool), Range<u32>>,
    /// How many there were before each of `endpoints` in its lane, with those that were left out; [`NONE`]: not
    /// known. Empty where nothing was left out.
    ordinals: Vec<u32>,
}

/// One side of a lane of messages: endpoints in the order of their posts, and their numbers where these are not 0, 1, 2 ...
#[derive(Clone, Copy, Default)]
struct LaneSide<'a> {
    endpoints: &'a [u32],
    ordinals: &'a [u32],
}

/// The two sides: sends at the source, receives at the destination.
#[derive(Clone, Copy, Default)]
struct Sides<'a> {
    sends: LaneSide<'a>,
    receives: LaneSide<'a>,
}

impl<'a> LaneSide<'a> {
    fn numbered(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let number = move |place: usize| match self.ordinals {
            [] => place as u32,
            known => known[place],
        };
        let numbered = self.endpoints.iter().enumerate();
        numbered.map(move |(place, &it)| (number(place), it)).filter(|&(number, _)| number != NONE)
    }
}

impl<'a> Sides<'a> {
    /// Sends and receives of the same number, in order.
    fn pairs(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let is_whole = self.sends.ordinals.is_empty() && self.receives.ordinals.is_empty();
        let whole = if is_whole { self } else { Sides::default() };
        let pairs = whole.sends.endpoints.iter().zip(whole.receives.endpoints);
        let in_part = (!is_whole).then(|| self.numbered_pairs());
        pairs.map(|(&send, &receive)| (send, receive)).chain(in_part.into_iter().flatten())
    }

    /// As [`Sides::pairs`], where some were left out.
    fn numbered_pairs(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let mut sends = self.sends.numbered().peekable();
        let mut receives = self.receives.numbered().peekable();
        std::iter::from_fn(move || loop {
            let (send, receive) = (*sends.peek()?, *receives.peek()?);
            if send.0 <= receive.0 {
                sends.next();
            }
            if receive.0 <= send.0 {
                receives.next();
            }
            if send.0 == receive.0 {
                return Some((send.1, receive.1));
            }
        })
    }
}

/// Puts the endpoints of every rank in order.
pub(super) fn orders(ranks: &[RankTrace], lanes: &[LaneKey]) -> Vec<LaneOrder> {
    let all = ranks.par_iter().map(|rank| {
        let mut order = order(rank);
        order.number(rank, lanes);
        order
    });
    all.collect()
}

fn order(rank: &RankTrace) -> LaneOrder {
    let mut slots: FxHashMap<(u32, bool), u32> = FxHashMap::default();
    let mut keys: Vec<(u32, bool)> = Vec::new();
    let slot_of: Vec<u32> = rank
        .operations
        .iter()
        .map(|operation| {
            if operation.lane == NONE {
                return NONE;
            }
            let key = (operation.lane, operation.direction == Direction::Send);
            *slots.entry(key).or_insert_with(|| {
                keys.push(key);
                (keys.len() - 1) as u32
            })
        })
        .collect();
    let slot = |endpoint: &super::Endpoint| slot_of[endpoint.operation as usize];
    let mut starts = vec![0u32; keys.len() + 1];
    for slot in rank.endpoints.iter().map(slot).filter(|&slot| slot != NONE) {
        starts[slot as usize + 1] += 1;
    }
    for index in 1..starts.len() {
        starts[index] += starts[index - 1];
    }
    let mut endpoints = vec![0u32; starts.last().copied().unwrap_or(0) as usize];
    let mut next = starts.clone();
    for (index, endpoint) in rank.endpoints.iter().enumerate() {
        let slot = slot(endpoint);
        if slot != NONE {
            endpoints[next[slot as usize] as usize] = index as u32;
            next[slot as usize] += 1;
        }
    }
    let mut ranges = FxHashMap::default();
    for (slot, key) in keys.into_iter().enumerate() {
        let range = starts[slot]..starts[slot + 1];
        let part = &mut endpoints[range.start as usize..range.end as usize];
        // stable: equal begins stay as they ended
        part.sort_by_key(|&index| rank.endpoints[index as usize].begin);
        ranges.insert(key, range);
    }
    LaneOrder { endpoints, ranges, ordinals: Vec::new() }
}

impl LaneOrder {
    /// Lanes that it has endpoints of which do not send.
    pub(super) fn lanes(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.keys().filter(|(_, is_send)| !is_send).map(|&(lane, _)| lane)
    }

    /// The endpoints of a lane, in the order of their posts. Of collectives those up to the first that was left out.
    pub fn endpoints_in(&self, lane: u32, is_send: bool) -> &[u32] {
        let range = self.ranges.get(&(lane, is_send)).cloned().unwrap_or(0..0);
        &self.endpoints[range.start as usize..range.end as usize]
    }

    fn side(&self, lane: u32, is_send: bool) -> LaneSide<'_> {
        let range = self.ranges.get(&(lane, is_send)).cloned().unwrap_or(0..0);
        let ordinals = self.ordinals.get(range.start as usize..range.end as usize);
        LaneSide { endpoints: self.endpoints_in(lane, is_send), ordinals: ordinals.unwrap_or(&[]) }
    }

    /// Numbers endpoints where some were left out.
    fn number(&mut self, rank: &RankTrace, lanes: &[LaneKey]) {
        if rank.left_out.is_empty() {
            return;
        }
        let gaps = Gaps::find(rank);
        self.ordinals = vec![NONE; self.endpoints.len()];
        for (&(lane, is_send), range) in &mut self.ranges {
            let key = &lanes[lane as usize];
            let places = range.start as usize..range.end as usize;
            let begins =
                self.endpoints[places.clone()].iter().map(|&at| rank.endpoints[at as usize].begin);
            let ordinals = &mut self.ordinals[places];
            gaps.number(lane, key, is_send, begins, ordinals);
            if key.is_collective {
                let known = (0..).zip(ordinals.iter()).take_while(|(place, it)| place == *it);
                range.end = range.start + known.count() as u32;
            }
        }
    }
}

fn sides<'a>(orders: &'a [LaneOrder], lane: u32, key: &LaneKey) -> Sides<'a> {
    let side = |rank: u32, is_send| orders[rank as usize].side(lane, is_send);
    Sides { sends: side(key.source, true), receives: side(key.destination, false) }
}

/// Tells each end of a message of the other, by order and sizes alone.
pub(super) fn pair(
    ranks: &mut [RankTrace],
    lanes: &[LaneKey],
    orders: &[LaneOrder],
) -> Vec<Matched> {
    let view: &[RankTrace] = ranks;
    let matched: Vec<Matched> = lanes
        .par_iter()
        .enumerate()
        .map(|(lane, key)| match key.is_collective {
            true => Matched::default(),
            false => by_size(view, key, sides(orders, lane as u32, key)),
        })
        .collect();
    ranks.par_iter_mut().zip(orders).for_each(|(rank, order)| {
        for &(lane, is_send) in order.ranges.keys() {
            let key = &lanes[lane as usize];
            if key.is_collective {
                continue;
            }
            let count = matched[lane as usize].count as usize;
            for (send, receive) in sides(orders, lane, key).pairs().take(count) {
                let (own, other) = if is_send { (send, receive) } else { (receive, send) };
                rank.endpoints[own as usize].partner = other;
            }
        }
    });
    matched
}

fn by_size(ranks: &[RankTrace], key: &LaneKey, sides: Sides<'_>) -> Matched {
    let operation = |rank: u32, index: u32| {
        let rank = &ranks[rank as usize];
        &rank.operations[rank.endpoints[index as usize].operation as usize]
    };
    let agrees = |(send, receive): (u32, u32)| {
        let (send, receive) = (operation(key.source, send), operation(key.destination, receive));
        // what a failed receive got is not known
        send.bytes == receive.bytes || [send.ended, receive.ended].contains(&RequestEnd::Failed)
    };
    let mut is_whole = true;
    let count = sides.pairs().take_while(|&pair| {
        is_whole = agrees(pair);
        is_whole
    });
    let count = count.count() as u32;
    Matched { count, contradiction: (!is_whole).then_some(Contradiction::Bytes) }
}

/// Takes apart what the corrected clocks contradict.
pub(super) fn verify(
    ranks: &mut [RankTrace],
    lanes: &[LaneKey],
    orders: &[LaneOrder],
    matched: &mut [Matched],
) {
    let view: &[RankTrace] = ranks;
    matched.par_iter_mut().enumerate().for_each(|(lane, matched)| {
        let key = &lanes[lane];
        if !key.is_collective {
            let count = possible_in_time(view, key, sides(orders, lane as u32, key), matched.count);
            if count < matched.count {
                *matched = Matched { count, contradiction: Some(Contradiction::Time) };
            }
        }
    });
    for (lane, key) in lanes.iter().enumerate() {
        if matched[lane].contradiction == Some(Contradiction::Time) {
            let pairs = sides(orders, lane as u32, key).pairs();
            for (send, receive) in pairs.skip(matched[lane].count as usize) {
                for (rank, index) in [(key.source, send), (key.destination, receive)] {
                    ranks[rank as usize].endpoints[index as usize].partner = NONE;
                }
            }
        }
    }
}

fn possible_in_time(ranks: &[RankTrace], key: &LaneKey, sides: Sides<'_>, matched: u32) -> u32 {
    let is_possible = |&(send, receive): &(u32, u32)| {
        let (source, destination) = (&ranks[key.source as usize], &ranks[key.destination as usize]);
        let sent = source.endpoints[send as usize].begin;
        let call = destination.endpoints[receive as usize].call;
        let received = destination.calls.get(call as usize).filter(|call| call.returned());
        received.map_or(true, |call| call.begin + call.duration + CLOCK_TOLERANCE >= sent)
    };
    sides.pairs().take(matched as usize).take_while(is_possible).count() as u32
}

/// Counts the messages that the ranks in the trace's focus sent, and what of theirs cannot be followed.
pub(super) fn count(
    trace: &Trace,
    lanes: &[LaneKey],
    orders: &[LaneOrder],
    matched: &[Matched],
) -> Matching {
    let ranks = &trace.ranks;
    let mut total = Matching { not_followed: not_followed(trace), ..Matching::default() };
    for (lane, key) in lanes.iter().enumerate() {
        if key.is_collective || !trace.is_in_focus(key.source as usize) {
            continue;
        }
        let Sides { sends, receives } = sides(orders, lane as u32, key);
        let (sends, receives) = (sends.endpoints.len() as u64, receives.endpoints.len() as u64);
        let Matched { count, contradiction } = matched[lane];
        let count = u64::from(count);
        total.messages += count;
        let is_partial = |place: u32| ranks[place as usize].info().summarized.is_some();
        if contradiction.is_none() && (is_partial(key.source) || is_partial(key.destination)) {
            total.other_end_left_out += sends + receives - 2 * count;
            continue;
        }
        if contradiction.is_some() {
            total.doubtful += sends + receives - 2 * count;
        } else {
            total.unmatched_sends += sends - count;
            total.unmatched_receives += receives - count;
        }
        if sends + receives > 2 * count {
            let rank = |place: u32| ranks[place as usize].info().rank;
            total.examples.push(Unmatched {
                source: rank(key.source),
                destination: rank(key.destination),
                tag: key.tag,
                sends,
                receives,
                matched: count,
                contradiction,
            });
            if total.examples.len() > 4 * EXAMPLES {
                keep_worst(&mut total.examples);
            }
        }
    }
    keep_worst(&mut total.examples);
    total
}

impl Matching {
    /// Adds what was counted of messages that other ranks sent.
    #[must_use]
    pub fn merge(mut self, other: Matching) -> Matching {
        self.messages += other.messages;
        self.unmatched_sends += other.unmatched_sends;
        self.unmatched_receives += other.unmatched_receives;
        self.doubtful += other.doubtful;
        self.not_followed += other.not_followed;
        self.other_end_left_out += other.other_end_left_out;
        self.examples.extend(other.examples);
        keep_worst(&mut self.examples);
        self
    }
}

fn keep_worst(examples: &mut Vec<Unmatched>) {
    let missing = |lane: &Unmatched| lane.sends + lane.receives - 2 * lane.matched;
    let lane = |it: &Unmatched| (it.source, it.destination, it.tag, it.sends, it.receives);
    examples.sort_by_key(|it| (std::cmp::Reverse(missing(it)), lane(it)));
    examples.truncate(EXAMPLES);
}

/// Messages, MPI_PROC_NULL and cancelled ones aside, that have no lane.
fn not_followed(trace: &Trace) -> u64 {
    let of_rank = |place: usize| {
        let rank = &trace.ranks[place];
        let is_lost = |endpoint: &&super::Endpoint| {
            rank.operations[endpoint.operation as usize].is_untraceable
        };
        rank.endpoints.iter().filter(is_lost).count() as u64
    };
    trace.focus().collect::<Vec<usize>>().into_par_iter().map(of_rank).sum()
}
