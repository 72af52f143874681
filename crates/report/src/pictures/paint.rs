//! Sees every call of a rank once, and sums up what pictures need; sums of ranks come together in any order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bins::Bins;
use lapscope_measure::overlap::exposure::Exposure;
use lapscope_measure::overlap::witness::{Waited, Witness};
use lapscope_measure::overlap::Slices;
use lapscope_trace::stats::in_proportion;
use lapscope_trace::{Direction, Trace};

/// Parts of the run along the time axis.
pub const SLICES: usize = 160;

/// Messages in one direction; nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lane {
    pub messages: u64,
    pub bytes: u64,
    pub exposed: i64,
}

/// What was seen of some ranks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Drawn {
    /// By bin: exposed time in each of [`SLICES`].
    pub(super) rows: BTreeMap<u32, Vec<Exposure>>,
    /// By the bins of sender and receiver.
    pub(super) lanes: BTreeMap<(u32, u32), Lane>,
    pub(super) unknown_messages: u64,
}

/// Sees the calls of one rank.
pub struct Painter<'a> {
    trace: &'a Trace,
    rank: usize,
    bins: Bins,
    slices: Slices,
    row: Vec<Exposure>,
    lanes: BTreeMap<(u32, u32), Lane>,
}

impl<'a> Painter<'a> {
    /// `rank` is a place in [`Trace::ranks`].
    pub fn new(trace: &'a Trace, rank: usize) -> Painter<'a> {
        Painter {
            trace,
            rank,
            bins: Bins::for_ranks(trace),
            slices: Slices::cut(trace, SLICES),
            row: vec![Exposure::default(); SLICES],
            lanes: BTreeMap::new(),
        }
    }

    pub fn finish(mut self) -> Drawn {
        let unknown_messages = self.add_sends();
        let bin = self.bins.of_place(self.rank) as u32;
        Drawn { rows: BTreeMap::from([(bin, self.row)]), lanes: self.lanes, unknown_messages }
    }

    fn lane(&mut self, from: usize, to: usize) -> &mut Lane {
        let bins = (self.bins.of_place(from) as u32, self.bins.of_place(to) as u32);
        self.lanes.entry(bins).or_default()
    }

    /// What an operation sends is always as large, so operations are counted. Returns those without a known receiver.
    fn add_sends(&mut self) -> u64 {
        let rank = &self.trace.ranks[self.rank];
        let mut counts = vec![0u64; rank.operations.len()];
        for (index, endpoint) in rank.endpoints.iter().enumerate() {
            let is_counted = self.trace.is_endpoint_counted(self.rank, index);
            counts[endpoint.operation as usize] += u64::from(is_counted);
        }
        let mut unknown = 0;
        for (operation, &count) in rank.operations.iter().zip(&counts) {
            if operation.direction != Direction::Send || count == 0 {
                continue;
            }
            let Some(peer) = operation.peer else {
                unknown += count;
                continue;
            };
            let lane = self.lane(self.rank, peer as usize);
            lane.messages += count;
            lane.bytes = lane.bytes.saturating_add(operation.bytes.0.saturating_mul(count));
        }
        unknown
    }
}

impl Witness for Painter<'_> {
    fn call(&mut self, waited: &Waited<'_>) {
        let half = &waited.half;
        let total = waited.exposed.total();
        if total <= 0 {
            return;
        }
        let begin = half.completion_begin.unwrap_or(half.post_begin);
        let end = half.completion_end.unwrap_or(begin).max(begin);
        let row = &mut self.row;
        self.slices.spread(begin, end, |slice, ns| {
            let part = |of: i64| in_proportion(of, ns, end - begin);
            row[slice] += waited.exposed.map(part);
        });
        let Some(peer) = half.operation.peer.map(|peer| peer as usize) else { return };
        match half.operation.direction {
            Direction::Send => self.lane(self.rank, peer).exposed += total,
            Direction::Receive => self.lane(peer, self.rank).exposed += total,
            Direction::Collective | Direction::None => {}
        }
    }
}

impl Drawn {
    /// The one of [`SLICES`] equal parts of the run with most exposed time: its begin and end on the run's clock. `None`: there
    /// was no exposed time.
    pub fn costliest_slice(&self, trace: &Trace) -> Option<(i64, i64)> {
        let exposed = |slice: usize| {
            self.rows.values().map(|row| row[slice].total()).fold(0, i64::saturating_add)
        };
        let costliest = (0..SLICES).rev().max_by_key(|&slice| exposed(slice))?;
        let Slices { begin, length, .. } = Slices::cut(trace, SLICES);
        let from = begin + costliest as i64 * length;
        (exposed(costliest) > 0).then_some((from, from + length))
    }

    pub fn merge(&mut self, other: Drawn) {
        for (bin, row) in other.rows {
            match self.rows.entry(bin) {
                std::collections::btree_map::Entry::Vacant(vacant) => {
                    vacant.insert(row);
                }
                std::collections::btree_map::Entry::Occupied(mut occupied) => {
                    occupied.get_mut().iter_mut().zip(row).for_each(|(sum, more)| *sum += more);
                }
            }
        }
        for (bins, more) in other.lanes {
            let lane = self.lanes.entry(bins).or_default();
            lane.messages += more.messages;
            lane.bytes = lane.bytes.saturating_add(more.bytes);
            lane.exposed = lane.exposed.saturating_add(more.exposed);
        }
        self.unknown_messages += other.unknown_messages;
    }
}
