//! The other side of a request: when it was there, and when it was inside MPI.

use serde::{Deserialize, Serialize};

use crate::thresholds::{LimitVerdict, Threshold, Thresholds};
use lapscope_data::model::{Epoch, Mode};
use lapscope_trace::target::Target;
use lapscope_trace::{Direction, Half, Trace};

/// Who is at the other side.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who<'a> {
    /// The other end of a message.
    End(Half<'a>),
    /// A collective: this rank's part of it, and the place of the rank that came last, as far as this one has to wait for it.
    Collective(Half<'a>, u32),
    /// The target of a one-sided call: its place, and when it entered MPI.
    Target(u32, i64),
}

/// The other side of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct OtherSide<'a> {
    /// When it had begun to post, and when it was back outside of that call, as far as that is known.
    pub posted: i64,
    pub post_end: i64,
    /// It has to be waited for; otherwise MPI may have done so: a root that broadcasts for those that receive.
    pub is_certain: bool,
    pub who: Who<'a>,
}

/// A rank that was waited for, and its part in the message or collective.
pub(super) type Culprit<'a> = (u32, Option<Half<'a>>);

/// Up to which size sends do not wait for their receivers.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct EagerLimits {
    /// By locality; `None`: not known.
    shown: [Option<u64>; 3],
    /// What the MPI says.
    declared: [Option<u64>; 3],
}

impl EagerLimits {
    pub fn new(limits: [Option<u64>; 3]) -> EagerLimits {
        EagerLimits { shown: limits, declared: limits }
    }

    /// As far as the run shows.
    pub fn from_thresholds(thresholds: &Thresholds) -> EagerLimits {
        let mut limits = EagerLimits::default();
        for locality in &thresholds.localities {
            let of = |threshold: &Threshold| match threshold.verdict {
                LimitVerdict::Unclear | LimitVerdict::NoEvidence => None,
                _ => threshold.largest_eager_bytes,
            };
            let (progress, rendezvous) =
                (of(&locality.needs_receiver_progress), of(&locality.rendezvous));
            let declared = locality.declared.as_ref().and_then(|declared| declared.bytes);
            limits.declared[locality.locality as usize] = declared;
            limits.shown[locality.locality as usize] = match progress.zip(rendezvous) {
                Some((progress, rendezvous)) => Some(progress.min(rendezvous)),
                None => rendezvous,
            };
        }
        limits
    }

    fn cover(&self, trace: &Trace, half: &Half<'_>) -> bool {
        let (Direction::Send, Some(peer)) = (half.operation.direction, half.operation.peer) else {
            return false;
        };
        match half.operation.mode {
            Mode::Buffered => true,
            Mode::Standard | Mode::Ready | Mode::Other => {
                let limit = self.shown[trace.locality(half.rank, peer as usize) as usize];
                limit.is_some_and(|limit| half.bytes().0 <= limit)
            }
            Mode::Synchronous | Mode::Partitioned => false,
        }
    }
}

/// Finds other sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides<'a> {
    pub trace: &'a Trace,
    pub eager: EagerLimits,
}

impl<'a> Sides<'a> {
    /// `None` also where nobody is waited for.
    pub fn other(self, half: &Half<'a>) -> Option<OtherSide<'a>> {
        if self.eager.cover(self.trace, half) && !self.waited_for_receiver(half) {
            return None;
        }
        if let Some(mut partner) = self.trace.partner(half) {
            if self.is_kept_by_sender(half, &partner) {
                partner.completion_end = None;
            }
            let (posted, post_end) = (partner.post_begin, partner.post_end);
            return Some(OtherSide { posted, post_end, is_certain: true, who: Who::End(partner) });
        }
        if let Some(target) = self.target(half) {
            return Some(target);
        }
        let awaited = self.trace.awaited(half);
        let (posted, rank) = awaited.or_else(|| self.trace.last_member(half))?;
        let who = Who::Collective(*half, rank);
        Some(OtherSide { posted, post_end: posted, is_certain: awaited.is_some(), who })
    }

    /// Whether the receiver was visibly waited for. Sends within the limit do that, too, where it has to take them, or where
    /// buffers are used up.
    fn waited_for_receiver(self, half: &Half<'a>) -> bool {
        let next = |end: Half<'a>| move |from| self.trace.next_inside(&end, from);
        let end = self.trace.partner(half);
        end.and_then(|end| self.trace.waited_until(half, next(end))).is_some()
    }

    /// Whether a receive waited for a buffered send that was complete at once: what is above the eager limit its MPI keeps until the
    /// sender is inside MPI again. Where the limit is not known the wait has to show it.
    fn is_kept_by_sender(self, half: &Half<'a>, send: &Half<'a>) -> bool {
        let is_copy = send.operation.mode == Mode::Buffered;
        if !is_copy || send.operation.direction != Direction::Send {
            return false;
        }
        let locality = self.trace.locality(half.rank, send.rank) as usize;
        let limit = self.eager.shown[locality].or(self.eager.declared[locality]);
        let next = |from| self.trace.next_inside(send, from);
        match limit {
            Some(limit) => {
                let wait = half.completion_begin.zip(half.completion_end);
                send.bytes().0 > limit
                    && wait.is_some_and(|(begin, end)| next(begin).is_some_and(|came| came <= end))
            }
            None => self.trace.waited_until(half, next).is_some(),
        }
    }

    /// The target of a one-sided call, where that visibly waited for it.
    fn target(self, half: &Half<'a>) -> Option<OtherSide<'a>> {
        let Target { rank, entered, epoch } = self.trace.target(half)?;
        // it may have been ready all the time, and was not inside MPI; or had to make a call of its own
        let posted = if epoch == Epoch::Calls { entered } else { half.post_begin };
        let who = Who::Target(rank, entered);
        Some(OtherSide { posted, post_end: posted, is_certain: true, who })
    }

    /// The first moment from `moment` on at which it was inside MPI, or was not needed any more.
    pub fn inside(self, side: &OtherSide<'a>, moment: i64) -> Option<i64> {
        match &side.who {
            Who::End(end) if is_done(end, moment) => Some(moment),
            Who::End(end) => self.trace.next_inside(end, moment),
            Who::Target(_, entered) => Some(moment.max(*entered)),
            Who::Collective(own, last) if own.rank == *last as usize => Some(moment),
            // who comes last is inside from then on, and may be a rank that was not read
            Who::Collective(own, last) => match self.trace.last_member(own) {
                Some((begin, rank)) if rank == *last && moment <= begin => Some(begin),
                _ => self.trace.ranks[*last as usize].presence.next(moment),
            },
        }
    }

    /// How long it was outside MPI from `begin` until it last entered before `end`, and who it is: of the members of a
    /// collective the one that was away longest.
    pub fn absent(self, side: &OtherSide<'a>, begin: i64, end: i64) -> (i64, Culprit<'a>) {
        match &side.who {
            Who::End(half) => (self.absent_half(half, begin, end), (half.rank as u32, Some(*half))),
            Who::Target(rank, _) => {
                (self.trace.ranks[*rank as usize].presence.absent(begin, end), (*rank, None))
            }
            // members that block are inside until it is done
            Who::Collective(own, last) if !own.operation.is_request => (0, (*last, None)),
            Who::Collective(own, last) => self
                .trace
                .other_members(own)
                .map(|member| (self.absent_half(&member, begin, end), (member.rank as u32, None)))
                .max_by_key(|(absent, _)| *absent)
                .unwrap_or((0, (*last, None))),
        }
    }

    /// One that tested in between was not outside, and one that was done was not needed any more.
    fn absent_half(self, half: &Half<'a>, begin: i64, end: i64) -> i64 {
        let tested = half.observed.and_then(|observed| {
            let (first, last) =
                observed.first_unsuccessful_test.zip(observed.last_unsuccessful_test)?;
            Some(half.post_begin + first < end && half.post_begin + last > begin)
        });
        if tested == Some(true) {
            return 0;
        }
        let end = end.min(half.completion_end.unwrap_or(end));
        self.trace.ranks[half.rank].presence.absent(begin.max(half.post_begin), end)
    }

    /// How long after both posts neither side was inside MPI, at most until the completing call.
    pub fn standstill(self, half: &Half<'a>, side: &OtherSide<'a>) -> Option<i64> {
        let Who::End(partner) = &side.who else { return None };
        let begin = half.post_end.max(side.post_end);
        let end = half.completion_begin?;
        if end <= begin {
            return Some(0);
        }
        let own = self.trace.next_inside(half, begin + 1);
        let other = self.trace.next_inside(partner, begin + 1);
        let first = [own, other].into_iter().flatten().fold(end, i64::min);
        Some(if first <= begin + 1 { 0 } else { first - begin })
    }

    /// Who came last.
    pub fn last(self, side: &OtherSide<'a>) -> Culprit<'a> {
        match &side.who {
            Who::End(half) => (half.rank as u32, Some(*half)),
            Who::Collective(_, rank) | Who::Target(rank, _) => (*rank, None),
        }
    }
}

fn is_done(half: &Half<'_>, moment: i64) -> bool {
    half.completion_end.is_some_and(|end| end <= moment)
}
