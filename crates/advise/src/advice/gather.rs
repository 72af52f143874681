//! Lays every part of every call's time to what would help against it.
//!
//! - No remote and no local progress go to a test in the computation where the message stood still: to one finding when
//!   it is the same computation.
//! - A late partner goes to an earlier receive, or to nobody.
//! - Transfer goes to nobody. A slow one is contention, copying or a processor that was not there, not a lack of
//!   computation.
//! - A wait for sends only, with a receive already under way and another send posted before that receive is waited for,
//!   goes to one Waitall. The last such wait in a row does not count, as it keeps no send back. Where receivers
//!   computed for most of that time, tests there would do as well: the advice says so, and `tune` counts its time among
//!   what injection may win.
//! - Waits with idle GPUs go to kernels that run next to them, where nothing else is a cure.

mod kernels;
mod posts;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::chain::RankWait;
use super::finding::Finding;
use super::serial::{joins, Join};
use super::sums::{join_ranges, Late, Sums};
use lapscope_data::model::{Kind, Mode};
use lapscope_data::places::SiteId;
use lapscope_measure::overlap::exposure::{Exposure, ExposureBounds};
use lapscope_measure::overlap::witness::{Awaited, Waited, Witness};
use lapscope_predict::whatif::uneven::ComputingWait;
use lapscope_trace::stats::{in_proportion, scramble};
use lapscope_trace::{Direction, Half, Operation, Trace};

/// Everything found on some ranks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Gathered {
    pub(super) findings: FxHashMap<Finding, Sums>,
    /// In calls that communicate, by rank.
    pub(super) waited: BTreeMap<u32, i64>,
    /// Single waits, by rank.
    pub(super) waits: BTreeMap<u32, Vec<RankWait>>,
    /// Ranks with several threads.
    pub(super) threaded: BTreeSet<u32>,
}

impl Gathered {
    /// Single waits for ranks that were outside MPI.
    pub fn waits_for_computing(&self) -> Vec<ComputingWait> {
        let waits = self.waits.values().flatten().filter(|wait| wait.is_outside);
        waits
            .map(|&RankWait { by, whom, begin, end, .. }| ComputingWait { by, whom, begin, end })
            .collect()
    }

    pub fn merge(&mut self, other: Gathered) {
        for (finding, sums) in other.findings {
            self.findings.entry(finding).or_default().merge(sums);
        }
        for (rank, waited) in other.waited {
            *self.waited.entry(rank).or_default() += waited;
        }
        for (rank, waits) in other.waits {
            self.waits.entry(rank).or_default().extend(waits);
        }
        self.threaded.extend(other.threaded);
    }
}

/// Takes the calls of one rank.
#[derive(Debug)]
pub struct Gatherer<'a> {
    trace: &'a Trace,
    rank: usize,
    joins: Vec<Join>,
    of_run: (u64, i64),
    gathered: Gathered,
    kernels: kernels::LastKernels,
}

impl Witness for Gatherer<'_> {
    fn call(&mut self, waited: &Waited<'_>) {
        if !waited.is_own_work() {
            self.add(waited, true);
        }
    }

    fn polled(&mut self, waited: &Waited<'_>) {
        self.add(waited, false);
    }
}

/// A part of a call's time, with what it is laid to.
struct Booking {
    finding: Finding,
    parts: Exposure,
    /// The post whose window would change, the rank on which, and the computation in it.
    post: Option<SiteId>,
    changed: Option<u32>,
    compute: Option<i64>,
    late: Option<(u32, Late)>,
    or_test: Option<(SiteId, SiteId)>,
    behind: Option<SiteId>,
    /// The send that was late.
    late_post: Option<SiteId>,
}

impl<'a> Gatherer<'a> {
    /// `rank` is a place in [`Trace::ranks`]; `of_run`: rows of the run, and how long it took, nanoseconds, which takes a look at all
    /// ranks.
    pub fn new(trace: &'a Trace, rank: usize, of_run: (u64, i64)) -> Gatherer<'a> {
        let joins = joins(&trace.ranks[rank]);
        let (gathered, kernels) = Default::default();
        Gatherer { trace, rank, joins, of_run, gathered, kernels }
    }

    pub fn finish(mut self) -> Gathered {
        if self.trace.ranks[self.rank].threads.count() > 1 {
            self.gathered.threaded.insert(self.rank as u32);
        }
        self.add_posts();
        self.gathered
    }

    /// `is_call`: one call is what waited.
    fn add(&mut self, waited_for: &Waited<'_>, is_call: bool) {
        let Some(call) = waited_for.half.call else { return };
        let parts = waited_for.exposed;
        *self.gathered.waited.entry(self.rank as u32).or_default() += parts.total();
        let waited = parts.late_partner + parts.no_remote_progress;
        self.keep(waited_for, call, waited);
        let waiting = waited_for.at.unwrap_or_else(|| self.call_site(self.rank, call));
        let mut bookings = Vec::with_capacity(4);
        let joined = self.joined(waited_for, waiting, call);
        let parts = joined.as_ref().map_or(parts, |joined| parts.without(&joined.parts));
        let left = Waited { exposed: parts, ..*waited_for };
        let beside_kernels = match is_call {
            true => self.beside_kernels(&left, waiting),
            false => Vec::new(),
        };
        let taken = beside_kernels.iter().map(|booking| booking.parts);
        let parts = taken.fold(parts, |parts, taken| parts.without(&taken));
        let left = Waited { exposed: parts, ..*waited_for };
        bookings.extend(joined.into_iter().chain(beside_kernels));
        bookings.extend(self.late(&left, waiting));
        bookings.extend(self.outside(&left, waiting));
        if parts.no_local_progress > 0 {
            let own =
                Exposure { no_local_progress: parts.no_local_progress, ..Exposure::default() };
            let post = Some(self.post_site(&waited_for.half));
            bookings.push(Booking {
                post,
                ..self.own_booking(Finding::Test(waiting), waited_for, own)
            });
        }
        // A generalized request waits for the program itself, which transfers nothing.
        let transfers = waited_for.half.operation.kind != Kind::Generalized;
        if parts.transfer > 0 && transfers {
            let transfer = Exposure { transfer: parts.transfer, ..Exposure::default() };
            bookings.push(self.own_booking(
                transfer_finding(waited_for, waiting),
                waited_for,
                transfer,
            ));
        }
        if parts.no_processor > 0 {
            let missing = Exposure { no_processor: parts.no_processor, ..Exposure::default() };
            bookings.push(self.own_booking(Finding::NoProcessor, waited_for, missing));
        }
        for (index, booking) in bookings.iter().enumerate() {
            let is_first = bookings[..index].iter().all(|old| old.finding != booking.finding);
            self.book(booking, waited_for, waiting, is_first);
        }
    }

    /// Remembers a single wait for another rank, if it is long enough to matter: few of them are, so they need little memory.
    fn keep(&mut self, waited_for: &Waited<'_>, call: u32, waited: i64) {
        /// Nanoseconds.
        const SHORT: i64 = 1_000;
        /// A wait that is shorter than the run's time divided by this does not matter.
        const PART: i64 = 100_000;
        let rank = &self.trace.ranks[self.rank];
        if waited < SHORT.max((rank.end - rank.init_end) / PART) {
            return;
        }
        let by = waited_for.at.unwrap_or_else(|| self.call_site(self.rank, call));
        let (whom, awaited) = match waited_for.awaited {
            Awaited::Partner(half) => (half.rank as u32, half.operation.site),
            Awaited::Member(member) => (member, by),
            Awaited::Unknown => return,
        };
        let begin = waited_for.half.completion_begin.unwrap_or(waited_for.half.post_begin);
        let end = begin + waited;
        if !self.is_looked_at(begin) {
            return;
        }
        let past = self.trace.past(&waited_for.half, whom as usize);
        let is_outside = past.outside(begin, end) * 2 >= waited;
        let wait = RankWait { begin, end, by, whom, awaited, is_outside };
        self.gathered.waits.entry(self.rank as u32).or_default().push(wait);
    }

    /// Whether waits of that time are kept: where there are very many, those of some stretches of time are, the same on all ranks,
    /// so that a chain of them is whole.
    fn is_looked_at(&self, moment: i64) -> bool {
        /// Rows of a run of which all waits are kept.
        const MOST_ROWS: u64 = 30_000_000;
        const STRETCHES: i128 = 1_024;
        let (rows, run_ns) = self.of_run;
        let stretch = i128::from(moment) * STRETCHES / i128::from(run_ns.max(1));
        rows <= MOST_ROWS || scramble(stretch as u64) % rows < MOST_ROWS
    }

    /// What joining the call with a later one is a cure for: all the time that it waited for others where that kept sends from
    /// being posted, else what computation would have overlapped.
    fn joined(&self, waited_for: &Waited<'_>, waiting: SiteId, call: u32) -> Option<Booking> {
        /// Behind so little computation nothing is overlapped: this part of the wait.
        const LITTLE: i64 = 10;
        let Exposure { late_partner, no_remote_progress, transfer, .. } = waited_for.exposed;
        let parts = Exposure { late_partner, no_remote_progress, ..Exposure::default() };
        let (later, parts, is_together) = match self.joins[call as usize] {
            Join::Together(later) => (later, parts, true),
            Join::Behind { call, room } => {
                let parts = Exposure { transfer, ..parts };
                let is_little = room.saturating_mul(LITTLE) < parts.total();
                (call, if is_little { Exposure::default() } else { parts.at_most(room) }, false)
            }
            Join::Nothing => return None,
        };
        let later = self.call_site(self.rank, later);
        let finding = match is_together {
            true => Finding::WaitTogether(waiting, later),
            false => Finding::WaitBehind(waiting, later),
        };
        (parts.total() > 0).then(|| Booking {
            or_test: self.region_of_partner(waited_for, waiting),
            ..self.own_booking(finding, waited_for, parts)
        })
    }

    /// What would change is where this rank waits.
    fn own_booking(&self, finding: Finding, waited_for: &Waited<'_>, parts: Exposure) -> Booking {
        Booking {
            finding,
            parts,
            post: None,
            changed: Some(self.rank as u32),
            compute: has_window(&waited_for.half).then_some(waited_for.compute),
            late: None,
            or_test: None,
            behind: self.behind(waited_for),
            late_post: None,
        }
    }

    fn late(&self, waited_for: &Waited<'_>, waiting: SiteId) -> Option<Booking> {
        let ns = waited_for.exposed.late_partner;
        if ns <= 0 {
            return None;
        }
        let operation = waited_for.half.operation;
        let sends = operation.direction == Direction::Send;
        let (finding, partner) = match waited_for.awaited {
            _ if sends
                && !operation.is_request
                && !self.also_receives(operation)
                && waited_for.at.is_none() =>
            {
                (Finding::Blocking(waiting), None)
            }
            Awaited::Partner(partner) if sends && operation.is_request => {
                (Finding::LateReceive(waiting, self.post_site(&partner)), Some(partner.rank as u32))
            }
            Awaited::Partner(partner) => (Finding::Late(waiting), Some(partner.rank as u32)),
            Awaited::Member(rank) => match self.end_of_puts(&waited_for.half) {
                Some(call) => (Finding::LateCall(waiting, call), Some(rank)),
                None => (Finding::Late(waiting), Some(rank)),
            },
            Awaited::Unknown => (Finding::Late(waiting), None),
        };
        let begin = waited_for.half.completion_begin.unwrap_or(waited_for.half.post_begin);
        let late = partner.map(|partner| {
            let past = self.trace.past(&waited_for.half, partner as usize);
            let outside = past.outside(begin, begin + ns);
            let bytes = waited_for.half.bytes().0;
            (partner, Late { ns, outside, calls: 1, bytes: Some((bytes, bytes)) })
        });
        let parts = Exposure { late_partner: ns, ..Exposure::default() };
        let changed = Some(self.rank as u32).filter(|_| partner.is_none());
        let late_post = match waited_for.awaited {
            Awaited::Partner(partner) if !sends => Some(self.post_site(&partner)),
            _ => None,
        };
        Some(Booking { late, changed, late_post, ..self.own_booking(finding, waited_for, parts) })
    }

    /// The MPI_Win_complete that a one-sided call waits for, where computation alone stands between it and the call of its epoch
    /// before it.
    fn end_of_puts(&self, half: &Half<'_>) -> Option<SiteId> {
        let awaited = self.trace.awaited_target(half)?;
        let rank = &self.trace.ranks[awaited.rank as usize];
        let number = awaited.call? as usize;
        let of_call =
            |number: usize| Some(&rank.operations[rank.calls.get(number)?.operation as usize]);
        let (own, before) = (of_call(number)?, of_call(number.checked_sub(1)?)?);
        let is_end = self.trace.call_of(own).blocking.ends_with("Win_complete");
        (is_end && before.kind == Kind::Rma).then_some(own.site)
    }

    /// The partner had posted and computed: what would change is in its window. A partner whose call blocks has none, and is
    /// late in what it does besides.
    fn outside(&self, waited_for: &Waited<'_>, waiting: SiteId) -> Option<Booking> {
        let ns = waited_for.exposed.no_remote_progress;
        if ns <= 0 {
            return None;
        }
        let own = self.rank as u32;
        let (region, half, changed) = match waited_for.awaited {
            Awaited::Partner(partner) => {
                let end = partner.call.map(|call| self.call_site(partner.rank, call));
                (end.unwrap_or(self.post_site(&partner)), partner, partner.rank as u32)
            }
            // Members of a collective run the same code, as a rule.
            Awaited::Member(rank) => (waiting, waited_for.half, rank),
            Awaited::Unknown => (waiting, waited_for.half, own),
        };
        let parts = Exposure { no_remote_progress: ns, ..Exposure::default() };
        if waited_for.half.operation.kind == Kind::Rma || half.operation.mode == Mode::Buffered {
            let booking = self.own_booking(Finding::Target(waiting), waited_for, parts);
            return Some(Booking { changed: Some(changed), ..booking });
        }
        if !has_window(&half) {
            let bytes = waited_for.half.bytes().0;
            let late = Late { ns, outside: ns, calls: 1, bytes: Some((bytes, bytes)) };
            let booking = self.own_booking(Finding::Late(waiting), waited_for, parts);
            return Some(Booking { changed: None, late: Some((changed, late)), ..booking });
        }
        Some(Booking {
            finding: Finding::Test(region),
            parts,
            post: Some(self.post_site(&half)),
            changed: Some(changed),
            compute: compute(&half),
            late: None,
            or_test: None,
            behind: self.behind(waited_for),
            late_post: None,
        })
    }

    /// The call behind which the one that waited could come as well.
    fn behind(&self, waited_for: &Waited<'_>) -> Option<SiteId> {
        match self.joins[waited_for.half.call? as usize] {
            Join::Behind { call, .. } => Some(self.call_site(self.rank, call)),
            Join::Together(_) | Join::Nothing => None,
        }
    }

    /// The post and the completing call between which the partner computed.
    fn region_of_partner(
        &self,
        waited_for: &Waited<'_>,
        waiting: SiteId,
    ) -> Option<(SiteId, SiteId)> {
        match self.outside(waited_for, waiting)? {
            Booking { finding: Finding::Test(region), post: Some(post), .. } => {
                Some((post, region))
            }
            _ => None,
        }
    }

    /// An exchange needs what its partner sends, however it is called.
    fn also_receives(&self, operation: &Operation) -> bool {
        let call = self.trace.call_of(operation);
        call.role == "BLOCK" && call.sends_and_receives()
    }

    fn book(
        &mut self,
        booking: &Booking,
        waited_for: &Waited<'_>,
        waiting: SiteId,
        is_first: bool,
    ) {
        let sums = self.gathered.findings.entry(booking.finding).or_default();
        let total = booking.parts.total();
        sums.parts += booking.parts;
        if posts::is_of(&waited_for.half) {
            sums.in_posts = sums.in_posts.saturating_add(total);
        } else if self.trace.call_of(waited_for.half.operation).is_standard_send() {
            sums.standard_sends = sums.standard_sends.saturating_add(total);
        }
        sums.add_bounds(booking.bounds(waited_for));
        *sums.ranks.entry(self.rank as u32).or_default() += total;
        if let Some(rank) = booking.changed {
            *sums.change_ranks.entry(rank).or_default() += total;
        }
        *sums.waiting.entry(waiting).or_default() += total;
        if let Some(post) = booking.post {
            *sums.posts.entry(post).or_default() += total;
        }
        if let Some(behind) = booking.behind {
            *sums.behind.entry(behind).or_default() += total;
        }
        if let Some(post) = booking.late_post {
            *sums.late_posts.entry(post).or_default() += total;
        }
        if let Some(region) = booking.or_test {
            *sums.or_test.entry(region).or_default() += booking.parts.no_remote_progress;
        }
        if let Some((partner, late)) = &booking.late {
            *sums.change_ranks.entry(*partner).or_default() += late.ns;
            sums.pairs.entry((self.rank as u32, *partner)).or_default().add(late);
        }
        if !is_first {
            return;
        }
        sums.calls += 1;
        let bytes = waited_for.half.bytes().0;
        sums.bytes = join_ranges(sums.bytes, Some((bytes, bytes)));
        sums.compute += booking.compute.unwrap_or(0);
        sums.windows += u64::from(booking.compute.is_some());
        sums.transfer += waited_for.transfer;
        sums.transfers += u64::from(waited_for.transfer > 0);
        sums.collective |= waited_for.half.operation.direction == Direction::Collective;
    }

    fn call_site(&self, rank: usize, call: u32) -> SiteId {
        let rank = &self.trace.ranks[rank];
        rank.operations[rank.calls[call as usize].operation as usize].site
    }

    fn post_site(&self, half: &Half<'_>) -> SiteId {
        half.operation.site
    }
}

/// Transferring: much longer than alone, or with computation enough beside it; or with no computation to overlap with.
fn transfer_finding(waited_for: &Waited<'_>, waiting: SiteId) -> Finding {
    const MUCH: i64 = 3;
    const SHORT: i64 = 20_000;
    let takes = waited_for.exposed.transfer;
    let alone = waited_for.transfer;
    let is_slow = alone > 0 && takes > MUCH * alone && takes > SHORT;
    let enough = if alone > 0 { alone } else { takes };
    let has_enough = has_window(&waited_for.half) && waited_for.compute >= enough;
    if is_slow || has_enough {
        Finding::Slow(waiting)
    } else {
        Finding::Nothing(waiting)
    }
}

/// Blocking calls have none.
fn has_window(half: &Half<'_>) -> bool {
    half.operation.is_request
}

/// Computation in the window of a request; blocking calls have none.
fn compute(half: &Half<'_>) -> Option<i64> {
    let window = half.window().filter(|_| has_window(half))?;
    Some((window - half.mpi.unwrap_or(0)).max(0))
}

impl Booking {
    /// What of its parts there is at least and at most, whatever the transfers take: in proportion, where it is a part of
    /// the call's.
    fn bounds(&self, waited_for: &Waited<'_>) -> (i64, i64) {
        let ExposureBounds { least, most } = waited_for.bounds;
        let of = |bound: &Exposure| -> i64 {
            let likely = waited_for.exposed.parts();
            let parts = self.parts.parts().into_iter().zip(likely).zip(bound.parts());
            let scaled = parts
                .filter(|((_, whole), _)| *whole > 0)
                .map(|((part, whole), bound)| in_proportion(part, bound, whole));
            scaled.fold(0, i64::saturating_add)
        };
        let likely = self.parts.total();
        (of(&least).min(likely), of(&most).max(likely))
    }
}
