//! The other side of a request: when it was there, and when it was inside MPI.

use super::walk::CulpritKey;
use crate::trace::{Half, Trace, NONE};

/// Who is at the other side.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who<'a> {
    /// The other end of a message.
    Half(Half<'a>),
    /// The member of a collective that came last, as far as this one had to wait for it: place of its rank.
    Member(u32),
    /// This rank came last itself.
    Own,
}

/// The other side of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side<'a> {
    /// When it had begun to post, and when it was back outside of that call, as far as that is known.
    pub posted: i64,
    pub post_end: i64,
    pub who: Who<'a>,
}

/// Finds other sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides<'a> {
    pub trace: &'a Trace,
}

impl<'a> Sides<'a> {
    pub fn other(self, half: &Half<'a>) -> Option<Side<'a>> {
        if let Some(partner) = self.trace.partner(half) {
            let (posted, post_end) = (partner.post_begin, partner.post_end);
            return Some(Side { posted, post_end, who: Who::Half(partner) });
        }
        let (posted, rank) = self.trace.awaited(half)?;
        let who = if rank as usize == half.rank { Who::Own } else { Who::Member(rank) };
        Some(Side { posted, post_end: posted, who })
    }

    /// The first moment from `moment` on at which it was inside MPI.
    pub fn inside(self, side: &Side<'a>, moment: i64) -> Option<i64> {
        match &side.who {
            Who::Half(half) => self.trace.next_inside(half, moment),
            Who::Member(rank) => self.trace.ranks[*rank as usize].presence.next(moment),
            Who::Own => Some(moment),
        }
    }

    /// How long it was outside MPI from `begin` until it last entered before `end`. One that tested in between was not.
    pub fn absent(self, side: &Side<'a>, begin: i64, end: i64) -> i64 {
        match &side.who {
            Who::Half(half) => {
                let tested = half.observed.and_then(|observed| {
                    let (first, last) = observed.first_poll.zip(observed.last_poll)?;
                    Some(half.post_begin + first < end && half.post_begin + last > begin)
                });
                match tested {
                    Some(true) => 0,
                    _ => self.trace.ranks[half.rank].presence.absent(begin, end),
                }
            }
            Who::Member(rank) => self.trace.ranks[*rank as usize].presence.absent(begin, end),
            Who::Own => 0,
        }
    }

    /// How long after both posts neither side was inside MPI, at most until the completing call.
    pub fn standstill(self, half: &Half<'a>, side: &Side<'a>) -> Option<i64> {
        let Who::Half(partner) = &side.who else { return None };
        let begin = half.post_end.max(side.post_end);
        let end = half.completion_begin?;
        if end <= begin {
            return Some(0);
        }
        let own = self.trace.next_inside(half, begin + 1);
        let other = self.trace.next_inside(partner, begin + 1);
        let first = [own, other].into_iter().flatten().fold(end, i64::min);
        Some((first - begin).max(0))
    }

    pub fn culprit(self, side: &Side<'a>, cell: u32) -> CulpritKey {
        match &side.who {
            Who::Half(half) => CulpritKey {
                cell,
                rank: half.rank as u32,
                call: half.operation.call,
                path: half.operation.path,
                completing: half.call.filter(|_| half.operation.is_request).map(|call| {
                    let rank = &self.trace.ranks[half.rank];
                    let by = rank.calls[call as usize].operation;
                    let by = &rank.operations[by as usize];
                    (by.call, by.path)
                }),
            },
            Who::Member(rank) => {
                CulpritKey { cell, rank: *rank, call: NONE, path: None, completing: None }
            }
            Who::Own => CulpritKey { cell, rank: NONE, call: NONE, path: None, completing: None },
        }
    }
}
