//! Messages that MPI had to keep because their receives were not posted yet: how many, at whom, since when, how much memory.
//!
//! What the record says of a message are two moments at its sender, the post and the completion, and the post of its receive.
//! A receive that was posted before its send is early: nothing was kept. A send that was complete before its receive was posted
//! was kept for certain, at the receiver, at the sender or between them, from its completion on: the low bound. From its post on
//! it may have been kept: the high bound, where of a message above the eager limit no more counts than the limit, since MPI sends
//! at most that much along with its envelope. Buffered sends (MPI_Bsend) are kept, too, perhaps in the buffer that their sender
//! attached, so they are counted besides. Those that lapscope made from copies are complete while their data is in its memory: they
//! count for the high bound alone. Envelopes are not counted as bytes.

mod levels;
mod overtaken;
mod pile;
#[cfg(test)]
mod tests;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::thresholds::{LimitVerdict, LocalityThresholds, Margins, Thresholds, WaitsFor};
use lapscope_data::model::{Bytes, Mode, Rank};
use lapscope_data::symbols::NameFrames;
use lapscope_trace::{Direction, RankTrace, RequestEnd, Trace, NONE};
use levels::Slots;
use pile::UnnamedPile;
pub use pile::{KeptAtSite, KeptFrom, KeptOverTime, Pile};

/// From so many messages, or bytes, on that one rank is certain to have had at once they matter: each receive searches a list that
/// long, or memory is taken that a program does not know of.
const MANY_MESSAGES: i64 = 1000;
const MUCH_MEMORY: i64 = 4 << 20;
/// What clocks of one node may differ by, nanoseconds.
const SAME_CLOCK: i64 = 1_000;

/// Messages, and what is in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    pub messages: u64,
    pub bytes: Bytes,
}

impl Volume {
    fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes.0 = self.bytes.0.saturating_add(bytes);
    }

    fn merge(&mut self, other: Volume) {
        self.messages += other.messages;
        self.bytes.0 = self.bytes.0.saturating_add(other.bytes.0);
    }
}

/// What was kept for receives that were not posted.
#[derive(Debug, Clone, Serialize)]
pub struct Unexpected {
    /// Messages both of whose ends are known, and those that nobody received.
    pub all: Volume,
    /// Their receives were posted before their sends.
    pub early: Volume,
    /// `early`, as a share of messages; `None`: there are none.
    pub early_share: Option<f64>,
    /// Kept for certain, and perhaps.
    pub low: Volume,
    pub high: Volume,
    /// Of `low`, those of buffered sends.
    pub buffered: Volume,
    /// Sends whose other end is not known; they are in no number here.
    pub unknown: u64,
    /// Where much was kept at once, the most bytes first.
    pub ranks: Vec<Pile>,
    /// At the first of `ranks`.
    pub over_time: Option<KeptOverTime>,
}

/// A message that was sent before its receive was posted.
#[derive(Debug, Clone, Copy)]
struct LateReceive {
    sender: usize,
    /// Of endpoints of the sender and of the receiver; [`NONE`]: nobody received it.
    send: u32,
    receive: u32,
    sent: i64,
    /// When MPI had it for certain; `None`: that is not known, or not before the receive.
    kept: Option<i64>,
    posted: i64,
    bytes: u64,
    /// As many of them as may have been kept.
    most_bytes: u64,
    is_buffered: bool,
}

/// By locality: what MPI sends at most before the receive is there; `None`: not known.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct KeptLimits([Option<u64>; 3]);

impl KeptLimits {
    /// As far as the run shows or MPI declares it.
    pub fn from_thresholds(thresholds: &Thresholds) -> KeptLimits {
        let mut limits = KeptLimits::default();
        for locality in &thresholds.localities {
            limits.0[locality.locality as usize] = most_eager(locality);
        }
        limits
    }
}

/// What the messages of some receivers come to. What is merged in any order comes to the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct KeptSums {
    all: Volume,
    early: Volume,
    low: Volume,
    high: Volume,
    buffered: Volume,
    /// Sends to them without a receive on record that may have been received.
    unknown: u64,
    piles: Vec<UnnamedPile>,
}

impl KeptSums {
    /// Looks at what each of these ranks received, as far as they are in the focus; `ranks` empty: all of them.
    pub fn collect(trace: &Trace, limits: KeptLimits, ranks: &[Rank]) -> KeptSums {
        let search = KeptSearch::new(trace, limits);
        let (lost, unknown) = search.find_lost();
        let is_wanted =
            |place: &usize| ranks.is_empty() || ranks.contains(&trace.ranks[*place].info().rank);
        let wanted: Vec<usize> = trace.focus().filter(is_wanted).collect();
        let sums: Vec<ReceiverSums> =
            wanted.par_iter().map(|&place| search.sum(place, &lost)).collect();
        let mut found = KeptSums { unknown, ..KeptSums::default() };
        for (&place, ReceiverSums { sums, slots }) in wanted.iter().zip(sums) {
            found.merge(sums);
            if slots.may_reach(MANY_MESSAGES, MUCH_MEMORY) {
                let late = search.collect(place, &lost);
                found.piles.extend(pile::find(trace, place, &late, search.window()));
            }
        }
        found
    }

    /// Adds those of other receivers.
    pub fn merge(&mut self, other: KeptSums) {
        self.all.merge(other.all);
        self.early.merge(other.early);
        self.low.merge(other.low);
        self.high.merge(other.high);
        self.buffered.merge(other.buffered);
        self.unknown += other.unknown;
        self.piles.extend(other.piles);
    }

    /// As the document has them; `trace`: of the whole run, with or without rows.
    pub fn name(self, trace: &Trace, names: &mut dyn NameFrames) -> Unexpected {
        let KeptSums { all, early, low, high, buffered, unknown, mut piles } = self;
        piles.sort_by_key(UnnamedPile::order);
        let over_time = piles.first().map(|pile| pile.over_time.clone());
        let ranks = piles.into_iter().map(|pile| pile.name(trace, names)).collect();
        let messages = all.messages;
        Unexpected {
            all,
            early,
            early_share: (messages > 0).then(|| early.messages as f64 / messages as f64),
            low,
            high,
            buffered,
            unknown: unknown + sends_that_are_not_followed(trace),
            ranks,
            over_time,
        }
    }
}

/// What the messages of one receiver come to.
struct ReceiverSums {
    sums: KeptSums,
    slots: Slots,
}

struct KeptSearch<'a> {
    trace: &'a Trace,
    margins: Margins,
    limits: KeptLimits,
    begin: i64,
    end: i64,
}

impl<'a> KeptSearch<'a> {
    fn new(trace: &'a Trace, limits: KeptLimits) -> KeptSearch<'a> {
        let begin = trace.ranks.iter().map(|rank| rank.init_end).min().unwrap_or(0);
        let end = trace.ranks.iter().map(|rank| rank.end).max().unwrap_or(begin);
        KeptSearch { trace, margins: Margins::measure(trace), limits, begin, end }
    }

    /// Begin and end of the run.
    fn window(&self) -> (i64, i64) {
        (self.begin, self.end)
    }

    fn sum(&self, place: usize, lost: &[(usize, LateReceive)]) -> ReceiverSums {
        let (mut sums, mut slots) = (KeptSums::default(), Slots::new(self.begin, self.end));
        self.walk(place, lost, |bytes, late| {
            sums.all.add(bytes);
            let Some(late) = late else { return sums.early.add(bytes) };
            sums.high.add(late.most_bytes);
            if let Some(kept) = late.kept {
                sums.low.add(bytes);
                if late.is_buffered {
                    sums.buffered.add(bytes);
                }
                slots.add(kept, late.posted, bytes);
            }
        });
        ReceiverSums { sums, slots }
    }

    fn collect(&self, place: usize, lost: &[(usize, LateReceive)]) -> Vec<LateReceive> {
        let mut all = Vec::new();
        self.walk(place, lost, |_, late| all.extend(late));
        all
    }

    /// Every message for a rank, with its bytes; `None`: its receive was early.
    fn walk(
        &self,
        place: usize,
        lost: &[(usize, LateReceive)],
        mut see: impl FnMut(u64, Option<LateReceive>),
    ) {
        let rank = &self.trace.ranks[place];
        for (index, receive) in (0..).zip(&rank.endpoints) {
            let operation = &rank.operations[receive.operation as usize];
            let is_receive = operation.direction == Direction::Receive
                && operation.mode != Mode::Partitioned
                && receive.partner != NONE;
            let Some(sender) = operation.peer.filter(|_| is_receive) else { continue };
            let Some(margin) = self.margins.between(place, sender as usize) else { continue };
            let sent = self.trace.ranks[sender as usize].endpoints[receive.partner as usize].begin;
            if receive.begin <= sent.saturating_add(margin) {
                see(operation.bytes.0, None);
                continue;
            }
            let send = (sender as usize, receive.partner);
            let late = self.late(send, place, receive.begin, margin);
            see(late.bytes, Some(LateReceive { receive: index, ..late }));
        }
        let lost = lost.iter().filter(|(receiver, _)| *receiver == place);
        lost.for_each(|(_, late)| see(late.bytes, Some(*late)));
    }

    /// `margin`: what the clocks of the two may differ by.
    fn late(
        &self,
        (sender, send): (usize, u32),
        receiver: usize,
        posted: i64,
        margin: i64,
    ) -> LateReceive {
        let half = self.trace.half(sender, send as usize);
        let bytes = half.bytes().0;
        let seen = half.observed.and_then(|observed| observed.first_complete);
        let seen = seen.map(|since| half.post_begin.saturating_add(since));
        let is_kept_by_mpi = half.operation.mode != Mode::Synchronous
            && self.trace.ranks[sender].info().copied_sends.is_none();
        let kept = [seen, half.completion_end].into_iter().flatten().min();
        let limit = self.limits.0[self.trace.locality(sender, receiver) as usize];
        let kept =
            kept.filter(|kept| is_kept_by_mpi && kept.saturating_add(SAME_CLOCK + margin) < posted);
        let most_bytes = limit.filter(|_| kept.is_none()).map_or(bytes, |limit| bytes.min(limit));
        let (sent, is_buffered) = (half.post_begin, half.operation.mode == Mode::Buffered);
        LateReceive {
            sender,
            send,
            receive: NONE,
            sent,
            kept,
            posted,
            bytes,
            most_bytes,
            is_buffered,
        }
    }

    /// Messages for ranks in the focus that nobody received, and at whom; and of how many sends to these that is not known.
    fn find_lost(&self) -> (Vec<(usize, LateReceive)>, u64) {
        let (mut lost, mut unknown) = (Vec::new(), 0);
        let unmatched = self.trace.matching.unmatched_sends;
        if unmatched == 0 || sends_that_are_not_followed(self.trace) > 0 {
            return (lost, unknown);
        }
        let tell_all: Vec<bool> = self.trace.ranks.iter().map(tells_of_all_receives).collect();
        for (place, rank) in self.trace.ranks.iter().enumerate() {
            for (index, send) in (0..).zip(&rank.endpoints) {
                let operation = &rank.operations[send.operation as usize];
                let is_lost = operation.direction == Direction::Send
                    && send.partner == NONE
                    && operation.mode != Mode::Partitioned
                    && !matches!(operation.ended, RequestEnd::Cancelled | RequestEnd::Failed);
                let peer = operation.peer.map(|peer| peer as usize);
                let is_here = |peer: &usize| is_lost && self.trace.is_in_focus(*peer);
                let Some(peer) = peer.filter(is_here) else { continue };
                if tell_all[peer] {
                    lost.push((peer, self.late((place, index), peer, i64::MAX, 0)));
                } else {
                    unknown += 1;
                }
            }
        }
        (lost, unknown)
    }
}

/// Sends whose other end is not known and cannot be looked for, as long as there are messages that could not be followed.
fn sends_that_are_not_followed(trace: &Trace) -> u64 {
    let matching = &trace.matching;
    match matching.doubtful + matching.not_followed + matching.other_end_left_out {
        0 => 0,
        unknown => unknown + matching.unmatched_sends,
    }
}

/// What MPI sends at most before the receive is there, as far as the run shows or MPI declares it.
fn most_eager(locality: &LocalityThresholds) -> Option<u64> {
    let rendezvous = &locality.rendezvous;
    let shown = match rendezvous.verdict {
        LimitVerdict::Unclear | LimitVerdict::NoEvidence | LimitVerdict::AlwaysEager => None,
        _ if locality.waits_for == WaitsFor::Receiver => None,
        _ => rendezvous.smallest_waiting_bytes,
    };
    let declared = locality.declared.as_ref().filter(|declared| declared.agrees != Some(false));
    [shown, declared.and_then(|declared| declared.bytes)].into_iter().flatten().max()
}

/// Whether a message that the record gives no receive was received by nobody, also where the rank was killed.
fn tells_of_all_receives(rank: &RankTrace) -> bool {
    let is_open = rank.operations.iter().any(|operation| {
        operation.direction == Direction::Receive
            && (operation.is_untraceable || operation.ended != RequestEnd::Completed)
    });
    !is_open && !rank.has_gaps()
}
