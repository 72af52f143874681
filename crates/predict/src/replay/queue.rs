//! What happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueuedEvent {
    /// A thread goes on: its number among all threads.
    Resume(u32),
    /// A notice arrives for a rank; see [`super::message::Notice`].
    Notice(super::message::Notice),
    /// A pipelined message would be complete, if it is still its `version`.
    Finish { flight: u32, version: u32 },
    /// A rank that computes tests, if it is still its `visit`.
    Tick { rank: u32, visit: u32 },
}

/// Events in the order of their times, those of one time in the order in which they were made: a replay is deterministic.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(i64, u64, QueuedEvent)>>,
    made: u64,
}

impl Queue {
    #[inline]
    pub fn push(&mut self, time: i64, what: QueuedEvent) {
        self.made += 1;
        self.heap.push(Reverse((time, self.made, what)));
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(i64, QueuedEvent)> {
        self.heap.pop().map(|Reverse((time, _, what))| (time, what))
    }

    /// Events made so far.
    pub fn made(&self) -> u64 {
        self.made
    }
}
