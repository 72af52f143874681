//! What one message tells of whether its send waited for the receiver.
//!
//! A send can wait for two things. For its receive: MPI does not keep the message and wants to know where to put it
//! (rendezvous). Or only for the receiver to be inside MPI, whatever it does there: MPI has put the message into a place
//! that the receiver must clear before the send counts as complete.
//!
//! Open MPI 4.1 on shared memory, as an example, keeps messages up to its eager limit, but those above 256 bytes are
//! complete only when the receiver has cleared the place where they lie: a send of 1000 bytes waits for a receiver that
//! computes, and not for its receive. So each matched message in standard mode is evidence by itself:
//!
//! - Complete before its receive was posted: eager, certainly, when it was complete at once, or after a while in which
//!   the sender was inside MPI for it alone. In the second case the receiver was inside MPI for a moment, also where no
//!   record says so, since unsuccessful probes and tests are kept as sums.
//! - Not complete before the receive was posted, or the receiver was inside MPI again, although the sender was inside
//!   MPI for it much longer than a transfer takes: it waited. A receiver that came and posted at once does not tell for
//!   which of the two. A processor that is taken away makes a wrong piece of evidence, which a limit has to stand.
//! - Complete before the receive was posted, but not at once, while no record says that the receiver was inside MPI: it
//!   needed no receive, and says nothing of who else was needed.

use lapscope_trace::{Half, Trace};

/// Moments of ranks that share a clock are compared to this, nanoseconds: processors' counters differ by less.
const SAME_CLOCK: i64 = 1_000;

/// How a send's completion and its receiver's presence relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// Done before the receiver was inside MPI, without a receive posted.
    Early,
    /// Done before the receiver was inside MPI again; its receive stood. Kept, or moved by hardware or another thread.
    WithoutReceiverProgress,
    /// Done before its receive was posted; the receiver was inside MPI meanwhile.
    Eager,
    /// Done before its receive was posted, but not at once, though the sender gave it the time: the receiver was inside MPI
    /// for a moment, of which there is no record when it was a test or a probe that said no.
    AfterReceiverProgress,
    /// Done before its receive was posted, but not at once, and long before the receiver was seen inside MPI: a slow network,
    /// or a look that left no record of when it was. It needed no receive; what else it needed is not known.
    Unseen,
    /// Not done before the receiver was there, by which time the receive was posted too.
    WaitedForReceiver,
    /// Not done before the receive was posted, though both sides were inside MPI before, and had the time.
    WaitedForReceive,
}

/// How a posting call and its receiver's presence relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostOutcome {
    /// Returned before the receiver was there.
    Returned,
    /// Returned only when the receiver was there.
    Waited,
}

/// A matched message, as far as it matters here. Moments are nanoseconds on the run's clock.
#[derive(Debug, Clone, Copy)]
pub struct ObservedMessage {
    pub post_begin: i64,
    /// End of the posting call; `None` for blocking sends, whose end is that of the send.
    pub post_end: Option<i64>,
    /// When the sender was inside MPI and it was incomplete: inside the call that ended it and nothing else, or from the
    /// first to the last test that said so.
    pub incomplete: [Option<(i64, i64)>; 2],
    /// The earliest moment at which it was known to be complete; `None`: never.
    pub done: Option<i64>,
    pub receive_posted: i64,
    /// The receiver was inside MPI for the first time since the post; and since the message had time to come.
    pub first_inside: i64,
    pub looked: i64,
    /// Receive posted, and receiver inside MPI.
    pub ready: i64,
    /// Much longer than a transfer takes that waits for nobody.
    pub slack: i64,
    /// How exact moments of the two ranks compare.
    pub tolerance: i64,
    /// The sender had a processor while it posted, and the receiver while it was inside MPI without the receive: else they look as if
    /// they waited for something else.
    pub sender_ran: bool,
    pub receiver_ran: bool,
}

impl ObservedMessage {
    /// `None` where a moment is missing. `margin`: what the clocks of the two may differ by, nanoseconds.
    pub fn new(
        trace: &Trace,
        send: &Half<'_>,
        receive: &Half<'_>,
        slack: i64,
        margin: i64,
    ) -> Option<ObservedMessage> {
        let inside = |moment: i64| trace.next_inside(receive, moment);
        let ready = inside(send.post_begin.max(receive.post_begin))?;
        let looked = inside(send.post_begin + slack).unwrap_or(i64::MAX);
        let sender_ran = |interval: &(i64, i64)| ran(trace, send.rank, *interval);
        Some(ObservedMessage {
            post_begin: send.post_begin,
            post_end: send.operation.is_request.then_some(send.post_end),
            incomplete: [waited(trace, send), tested(send)].map(|it| it.filter(sender_ran)),
            done: done(send),
            receive_posted: receive.post_begin,
            first_inside: inside(send.post_begin)?,
            looked,
            ready,
            slack,
            tolerance: SAME_CLOCK + margin,
            sender_ran: sender_ran(&(send.post_begin, send.post_end)),
            receiver_ran: ran(trace, receive.rank, (looked, receive.post_begin)),
        })
    }

    pub fn completion(&self) -> Option<Completion> {
        let done = self.done.unwrap_or(i64::MAX);
        if self.is_before(done, self.receive_posted) {
            if self.gave_time(i64::MIN, done.min(self.first_inside)) {
                let is_unseen = self.is_before(done.saturating_add(self.slack), self.first_inside);
                return Some(if is_unseen {
                    Completion::Unseen
                } else {
                    Completion::AfterReceiverProgress
                });
            }
            return Some(if self.is_before(done, self.first_inside) {
                Completion::Early
            } else {
                Completion::Eager
            });
        }
        if self.is_before(done, self.first_inside) {
            return Some(Completion::WithoutReceiverProgress);
        }
        if done < self.ready {
            return None;
        }
        if self.is_before(self.looked, self.receive_posted) {
            let had_time = self.receiver_ran && self.gave_time(self.looked, self.receive_posted);
            return had_time.then_some(Completion::WaitedForReceive);
        }
        self.gave_time(i64::MIN, self.ready).then_some(Completion::WaitedForReceiver)
    }

    pub fn post(&self) -> Option<PostOutcome> {
        let end = self.post_end?;
        if self.is_before(end, self.ready) {
            return Some(PostOutcome::Returned);
        }
        let has_waited =
            end >= self.ready && self.is_before(self.post_begin + self.slack, self.ready);
        (has_waited && self.sender_ran).then_some(PostOutcome::Waited)
    }

    /// Whether the sender was inside MPI for longer than a transfer takes, between these moments.
    fn gave_time(&self, from: i64, until: i64) -> bool {
        self.incomplete.iter().flatten().any(|&(begin, end)| {
            self.is_before(begin.max(from).saturating_add(self.slack), end.min(until))
        })
    }

    fn is_before(&self, earlier: i64, later: i64) -> bool {
        earlier.saturating_add(self.tolerance) < later
    }
}

/// Whether a rank had a processor for nearly all of an interval.
fn ran(trace: &Trace, rank: usize, (begin, end): (i64, i64)) -> bool {
    const NEARLY: i64 = 10;
    trace.ranks[rank].starvation.within(begin, end) <= (end.saturating_sub(begin)).max(0) / NEARLY
}

/// Inside the call that ended this send and nothing else.
fn waited(trace: &Trace, send: &Half<'_>) -> Option<(i64, i64)> {
    let is_alone = send.completed_together == 1 && !also_receives(trace, send);
    let begin = send.completion_begin.filter(|_| is_alone)?;
    Some((begin, send.completion_end.unwrap_or(i64::MAX)))
}

/// From the first to the last test that saw it incomplete.
fn tested(send: &Half<'_>) -> Option<(i64, i64)> {
    let last = send.observed?.last_incomplete?;
    let first = send.observed?.first_unsuccessful_test.unwrap_or(last);
    Some((send.post_begin + first, send.post_begin + last))
}

fn done(send: &Half<'_>) -> Option<i64> {
    let seen = send.observed.and_then(|observed| observed.first_complete);
    let seen = seen.map(|moment| send.post_begin + moment);
    [seen, send.completion_end].into_iter().flatten().min()
}

/// MPI_Sendrecv and its relatives end with their receive.
fn also_receives(trace: &Trace, send: &Half<'_>) -> bool {
    trace.blocking_calls[send.operation.blocking_call as usize].sends_and_receives()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Posted at 1 ms for 1 us and waited for at once until `end`; the receiver comes and posts at 10 ms.
    fn message(end: i64) -> ObservedMessage {
        ObservedMessage {
            post_begin: MS,
            post_end: Some(MS + 1_000),
            incomplete: [Some((MS + 2_000, end)), None],
            done: Some(end),
            receive_posted: 10 * MS,
            first_inside: 10 * MS,
            looked: 10 * MS,
            ready: 10 * MS,
            slack: 50_000,
            tolerance: 1_000,
            sender_ran: true,
            receiver_ran: true,
        }
    }

    #[test]
    fn done_before_the_receiver_was_there() {
        assert_eq!(message(MS + 3_000).completion(), Some(Completion::Early));
        // not at once: somebody had to look
        assert_eq!(message(10 * MS - 2_000).completion(), Some(Completion::AfterReceiverProgress));
        // after a while, and by nobody that was seen: not for the receive, in any case
        assert_eq!(message(5 * MS).completion(), Some(Completion::Unseen));
        let posted_before = ObservedMessage { receive_posted: 0, ..message(MS + 3_000) };
        assert_eq!(posted_before.completion(), Some(Completion::WithoutReceiverProgress));
    }

    #[test]
    fn done_with_the_receiver() {
        let came = Some(Completion::WaitedForReceiver);
        assert_eq!(message(10 * MS + 5_000).completion(), came);
        let hung = ObservedMessage { done: None, ..message(i64::MAX) };
        assert_eq!(hung.completion(), came);
        let posted_before = ObservedMessage { receive_posted: 0, ..message(10 * MS + 5_000) };
        assert_eq!(posted_before.completion(), came);
    }

    #[test]
    fn a_look_into_mpi_parts_the_two() {
        let looked = |end| ObservedMessage { first_inside: 5 * MS, looked: 5 * MS, ..message(end) };
        assert_eq!(looked(MS + 3_000).completion(), Some(Completion::Early));
        assert_eq!(looked(5 * MS + 3_000).completion(), Some(Completion::AfterReceiverProgress));
        assert_eq!(looked(10 * MS + 3_000).completion(), Some(Completion::WaitedForReceive));
        // there from the start: nothing is waited for until the receive
        let there = |end| ObservedMessage { first_inside: MS, looked: MS + 50_000, ..message(end) };
        assert_eq!(there(MS + 3_000).completion(), Some(Completion::Eager));
        assert_eq!(there(10 * MS + 3_000).completion(), Some(Completion::WaitedForReceive));
    }

    #[test]
    fn too_close_to_tell() {
        let soon = MS + 40_000;
        let at_once = ObservedMessage {
            ready: soon,
            receive_posted: soon,
            first_inside: soon,
            looked: MS + 50_000,
            ..message(MS + 60_000)
        };
        assert_eq!(at_once.completion(), None);
        let with_others = ObservedMessage { incomplete: [None; 2], ..message(10 * MS + 5_000) };
        assert_eq!(with_others.completion(), None);
        let clocks_apart = ObservedMessage { tolerance: 9 * MS, ..message(MS + 3_000) };
        assert_eq!(clocks_apart.completion(), None);
    }

    #[test]
    fn tests_tell_too() {
        let tested = |first: i64, last: i64| ObservedMessage {
            incomplete: [Some((12 * MS, 12 * MS + 1_000)), Some((first, last))],
            ..message(12 * MS + 1_000)
        };
        assert_eq!(tested(2 * MS, 8 * MS).completion(), Some(Completion::WaitedForReceiver));
        assert_eq!(tested(2 * MS, 2 * MS + 10_000).completion(), None);
        assert_eq!(tested(10 * MS, 11 * MS).completion(), None);
    }

    #[test]
    fn who_had_no_processor_tells_nothing() {
        let looked = ObservedMessage {
            first_inside: 5 * MS,
            looked: 5 * MS,
            receiver_ran: false,
            ..message(10 * MS + 3_000)
        };
        assert_eq!(looked.completion(), None);
        let stuck = ObservedMessage { post_end: Some(10 * MS + 4_000), ..message(10 * MS + 5_000) };
        assert_eq!(ObservedMessage { sender_ran: false, ..stuck }.post(), None);
    }

    #[test]
    fn posting_calls_that_wait() {
        assert_eq!(message(10 * MS + 5_000).post(), Some(PostOutcome::Returned));
        let stuck = ObservedMessage { post_end: Some(10 * MS + 4_000), ..message(10 * MS + 5_000) };
        assert_eq!(stuck.post(), Some(PostOutcome::Waited));
        let blocking = ObservedMessage { post_end: None, ..message(10 * MS + 5_000) };
        assert_eq!(blocking.post(), None);
    }
}
