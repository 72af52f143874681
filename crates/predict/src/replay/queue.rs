//! What happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lapscope_trace::Half;

/// An endpoint of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EndpointRef {
    pub rank: u32,
    pub endpoint: u32,
}

impl EndpointRef {
    pub(super) fn from_half(half: &Half<'_>) -> EndpointRef {
        EndpointRef { rank: half.rank as u32, endpoint: half.index as u32 }
    }
}

/// Something that arrives at a rank and that MPI handles there: of a flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Notice {
    /// Ready to send, at the receiver.
    Rts(u32),
    /// Clear to send, at the sender.
    Cts(u32),
    /// Ready to receive, at the sender.
    Rtr(u32),
    /// Data whose send is complete when the receiver has them.
    Data(u32),
    /// A one-sided call needs its target.
    Ask(EndpointRef),
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueuedEvent {
    /// A thread goes on: its number among all threads.
    Resume(u32),
    /// A notice arrives for a rank.
    Notice(Notice),
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
