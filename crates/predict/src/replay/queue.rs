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
///
/// A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, J. ACM 37, 1990), as the present never goes back: an event stands in the bucket of the
/// highest bit in which its time differs from the present, and moves towards the first one while that goes on.
#[derive(Debug)]
pub(super) struct Queue {
    present: i64,
    buckets: [Vec<(i64, QueuedEvent)>; u64::BITS as usize],
    /// A bit for each bucket behind the first that has events.
    filled: u64,
    /// Events of the first bucket that happened.
    gone: usize,
    /// What should have happened already comes next.
    late: BinaryHeap<Reverse<(i64, u64, QueuedEvent)>>,
    made: u64,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            present: 0,
            buckets: std::array::from_fn(|_| Vec::new()),
            filled: 0,
            gone: 0,
            late: BinaryHeap::new(),
            made: 0,
        }
    }
}

impl Queue {
    #[inline]
    pub fn push(&mut self, time: i64, what: QueuedEvent) {
        self.made += 1;
        if time < self.present {
            self.late.push(Reverse((time, self.made, what)));
        } else {
            self.place(time, what);
        }
    }

    #[inline]
    fn place(&mut self, time: i64, what: QueuedEvent) {
        let differs = (time ^ self.present) as u64;
        let bucket = u64::BITS - differs.leading_zeros();
        self.filled |= 1 << bucket & !1;
        self.buckets[bucket as usize].push((time, what));
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(i64, QueuedEvent)> {
        if let Some(Reverse((time, _, what))) = self.late.pop() {
            return Some((time, what));
        }
        if self.gone == self.buckets[0].len() {
            self.go_on()?;
        }
        self.gone += 1;
        Some(self.buckets[0][self.gone - 1])
    }

    /// To the next time at which something happens.
    fn go_on(&mut self) -> Option<()> {
        self.buckets[0].clear();
        self.gone = 0;
        let next = self.filled.trailing_zeros() as usize;
        let mut events = std::mem::take(self.buckets.get_mut(next)?);
        self.filled &= self.filled - 1;
        self.present = events.iter().map(|&(time, _)| time).min()?;
        for (time, what) in events.drain(..) {
            self.place(time, what);
        }
        self.buckets[next] = events; // with the room that it has
        Some(())
    }

    /// Events made so far.
    pub fn made(&self) -> u64 {
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_trace::stats::scramble;

    #[test]
    fn events_come_in_the_order_of_their_times_and_then_of_their_making() {
        let mut queue = Queue::default();
        let mut wanted: BinaryHeap<Reverse<(i64, u64, QueuedEvent)>> = BinaryHeap::new();
        let mut present = -5;
        for round in 0..200_000_u64 {
            let random = scramble(round);
            let is_pushed = random % 5 < 3 && round < 150_000;
            if is_pushed {
                // often the same, seldom far away, and now and then too late
                let ahead = (random >> 8) % (1 << ((random >> 40) % 30));
                let time = present + ahead as i64 - i64::from(random % 97 == 0) * 50;
                let what = QueuedEvent::Resume(round as u32);
                queue.push(time, what);
                wanted.push(Reverse((time, queue.made(), what)));
                continue;
            }
            let next = wanted.pop().map(|Reverse((time, _, what))| (time, what));
            assert_eq!(queue.pop(), next);
            present = next.map_or(present, |(time, _)| time);
        }
        assert!(wanted.is_empty());
    }
}
