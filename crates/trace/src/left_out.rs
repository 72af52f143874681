//! Messages of a long run that were only summed up: how many of them stand between those that have rows.
//!
//! A rank says of each operation how often it was left out between two moments (table `left_out`). The number of a row in its
//! lane is then that of the rows and of those left out before it. A row between these moments has no number that could be
//! known; nor have those behind a message of which the recorder, out of room for definitions, no longer told which tag it had.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::endpoint::NONE;
use super::lane::LaneKey;
use super::operation::Direction;
use super::RankTrace;

/// Posts without a row, of one operation.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct LeftOut {
    /// Index into [`RankTrace::operations`].
    pub operation: u32,
    pub count: u64,
    /// The first and the last of these posts: moments as those of endpoints.
    pub begin: i64,
    pub end: i64,
    /// The communicator, as [`LaneKey::comm`] has it, of those that have no lane; `None`: not known.
    pub(super) comm: Option<u32>,
}

/// What a rank left out, by lane.
#[derive(Default)]
pub(super) struct Gaps {
    lanes: FxHashMap<(u32, bool), Vec<Gap>>,
    /// Blocks in no lane that is known.
    blocks: Vec<Block>,
}

#[derive(Clone, Copy)]
struct Gap {
    begin: i64,
    end: i64,
    count: u64,
}

/// From that moment on lanes of that peer cannot be counted. `None`: of whatever peer, or communicator.
struct Block {
    comm: Option<u32>,
    peer: Option<u32>,
    is_send: bool,
    from: i64,
}

impl Gaps {
    pub fn find(rank: &RankTrace) -> Gaps {
        let mut gaps = Gaps::default();
        for left_out in &rank.left_out {
            let operation = &rank.operations[left_out.operation as usize];
            let is_send = operation.direction == Direction::Send;
            let LeftOut { begin, end, count, comm, .. } = *left_out;
            if operation.lane != NONE {
                let lane = gaps.lanes.entry((operation.lane, is_send)).or_default();
                lane.push(Gap { begin, end, count });
            } else if operation.is_untraceable {
                gaps.blocks.push(Block { comm, peer: operation.peer, is_send, from: begin });
            }
        }
        for lane in gaps.lanes.values_mut() {
            lane.sort_by_key(|gap| (gap.begin, gap.end));
        }
        gaps
    }

    /// When counting ends.
    fn blocked_from(&self, key: &LaneKey, is_send: bool) -> i64 {
        let peer = if is_send { key.destination } else { key.source };
        let is_meant = |block: &&Block| {
            !key.is_collective
                && block.is_send == is_send
                && block.comm.map_or(true, |comm| comm == key.comm)
                && block.peer.map_or(true, |it| it == peer)
        };
        self.blocks.iter().filter(is_meant).map(|block| block.from).min().unwrap_or(i64::MAX)
    }

    /// Numbers the rows of a lane, which begin at these moments, in order.
    pub fn number(
        &self,
        lane: u32,
        key: &LaneKey,
        is_send: bool,
        begins: impl Iterator<Item = i64>,
        ordinals: &mut [u32],
    ) {
        let gaps = self.lanes.get(&(lane, is_send)).map_or(&[][..], Vec::as_slice);
        let blocked_from = self.blocked_from(key, is_send);
        let (mut next, mut before, mut busy_until) = (0, 0u64, i64::MIN);
        for (place, (begin, ordinal)) in begins.zip(ordinals).enumerate() {
            while let Some(gap) = gaps.get(next).filter(|gap| gap.begin <= begin) {
                before = before.saturating_add(gap.count);
                busy_until = busy_until.max(gap.end);
                next += 1;
            }
            let is_known = begin > busy_until && begin < blocked_from;
            let number = before.saturating_add(place as u64);
            *ordinal = if is_known { u32::try_from(number).unwrap_or(NONE) } else { NONE };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> LaneKey {
        LaneKey {
            comm: 0,
            source: 0,
            destination: 1,
            tag: 3,
            is_partitioned: false,
            is_collective: false,
        }
    }

    fn numbers(gaps: &[(i64, i64, u64)], blocks: Vec<Block>, begins: &[i64]) -> Vec<u32> {
        let gap = |&(begin, end, count): &(i64, i64, u64)| Gap { begin, end, count };
        let lanes = [((0, true), gaps.iter().map(gap).collect())].into_iter().collect();
        let mut ordinals = vec![7; begins.len()];
        Gaps { lanes, blocks }.number(0, &key(), true, begins.iter().copied(), &mut ordinals);
        ordinals
    }

    #[test]
    fn what_was_left_out_counts() {
        let gaps = [(30, 50, 1_000), (35, 35, 1), (90, 95, 10)];
        assert_eq!(numbers(&gaps, Vec::new(), &[10, 20, 60, 70, 100]), [0, 1, 1_003, 1_004, 1_015]);
    }

    #[test]
    fn among_those_left_out_no_number_is_known() {
        assert_eq!(numbers(&[(30, 50, 5)], Vec::new(), &[10, 40, 60]), [0, NONE, 7]);
    }

    #[test]
    fn nothing_is_counted_behind_an_unknown_tag() {
        let block = |comm, peer, is_send| Block { comm, peer, is_send, from: 15 };
        let all = |block| numbers(&[], vec![block], &[10, 20]);
        assert_eq!(all(block(Some(0), Some(1), true)), [0, NONE]);
        assert_eq!(all(block(None, None, true)), [0, NONE]);
        assert_eq!(all(block(Some(0), Some(2), true)), [0, 1], "another peer");
        assert_eq!(all(block(Some(4), None, true)), [0, 1], "another communicator");
        assert_eq!(all(block(None, None, false)), [0, 1], "receives");
    }
}
