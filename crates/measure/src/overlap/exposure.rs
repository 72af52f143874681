//! What a call that waited was waiting for. Its time is split once, whatever it completed:
//!
//! 1. late partner: until the other side had posted;
//! 2. partner outside: the other side had posted and was not inside MPI, so that nobody there moved the message;
//! 3. no local progress: the rest, as far as computation in the requests' own overlap windows could have overlapped it;
//! 4. transfer: what is left. No computation to overlap with, copying, contention.
//!
//! Of each of these, what this rank or the one that it waited for had no processor, though able to run, is a cause of its own.
//! What a GPU of this rank ran kernels in is taken out before: it was computed meanwhile, and is not exposed.
//!
//! A call that completes eight requests waited once: of these the one counts that could move last. Three things are not
//! waiting. A partner that comes after the call has ended was not waited for; one that is done is not needed any more;
//! of one that has been inside MPI since both had posted only absences beyond X count, since it may have left the
//! transfer to the network. A late partner is late also by what it lacked of a processor in the computation before.
//!
//! Sends below the limit that the run's own thresholds show wait for nobody, unless one is seen to. One-sided calls
//! wait for their target by the same rule and by no other: many an MPI moves such data without it. What they take
//! otherwise is transfer, and nothing is advised of it. For collectives the other side is whoever began last of those
//! that have to be waited for, and every member's absences count.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The time of a call by cause, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    pub late_partner: i64,
    pub no_remote_progress: i64,
    pub no_local_progress: i64,
    pub transfer: i64,
    pub no_processor: i64,
    /// No part of it: so long the rank was in the call as well, and its GPU computed.
    #[serde(default)]
    pub beside_gpu: i64,
}

/// How long a GPU of the rank computed during the parts of a wait, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct BesideGpu {
    /// While the partner was late, and while it was outside MPI.
    pub late: i64,
    pub outside: i64,
    pub rest: i64,
}

/// How long ranks were able to run and had no processor during the parts of a wait, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Starved {
    /// The late partner, since it was last inside MPI.
    pub late: i64,
    /// The partner, while it was outside MPI.
    pub outside: i64,
    /// This rank or its partner, during the rest.
    pub rest: i64,
}

/// Takes at most so much out of a part, and says how much.
fn take(part: &mut i64, most: i64) -> i64 {
    let taken = most.clamp(0, *part);
    *part -= taken;
    taken
}

impl Exposure {
    #[inline]
    pub fn total(&self) -> i64 {
        self.late_partner
            + self.no_remote_progress
            + self.no_local_progress
            + self.transfer
            + self.no_processor
    }

    /// Takes out of every part what a GPU of the rank computed in.
    #[inline]
    pub fn lay_to_gpu(&mut self, beside: BesideGpu) {
        self.beside_gpu += take(&mut self.late_partner, beside.late);
        self.beside_gpu += take(&mut self.no_remote_progress, beside.outside);
        let from_transfer = take(&mut self.transfer, beside.rest);
        let from_window = take(&mut self.no_local_progress, beside.rest - from_transfer);
        self.beside_gpu += from_transfer + from_window;
    }

    /// Takes out of every part what was the want of a processor.
    #[inline]
    pub fn lay_to_processors(&mut self, starved: Starved) {
        self.no_processor += take(&mut self.late_partner, starved.late);
        self.no_processor += take(&mut self.no_remote_progress, starved.outside);
        let from_transfer = take(&mut self.transfer, starved.rest);
        let from_window = take(&mut self.no_local_progress, starved.rest - from_transfer);
        self.no_processor += from_transfer + from_window;
    }

    /// As much of it as lasts so long: first what others were waited for.
    pub fn at_most(self, mut ns: i64) -> Exposure {
        let mut take = |part: i64| {
            let taken = part.min(ns).max(0);
            ns -= taken;
            taken
        };
        Exposure {
            late_partner: take(self.late_partner),
            no_remote_progress: take(self.no_remote_progress),
            no_local_progress: take(self.no_local_progress),
            transfer: take(self.transfer),
            no_processor: take(self.no_processor),
            beside_gpu: 0,
        }
    }

    /// Each part changed alike.
    pub fn map(self, change: impl Fn(i64) -> i64) -> Exposure {
        self.each(&self, |part, _| change(part))
    }

    /// What is left of it.
    pub fn without(self, part: &Exposure) -> Exposure {
        self.each(part, |whole, part| whole - part)
    }

    /// All of it, in the order of the fields.
    pub fn parts(&self) -> [i64; 5] {
        [
            self.late_partner,
            self.no_remote_progress,
            self.no_local_progress,
            self.transfer,
            self.no_processor,
        ]
    }

    /// Part by part.
    pub fn each(&self, other: &Exposure, of: impl Fn(i64, i64) -> i64) -> Exposure {
        Exposure {
            late_partner: of(self.late_partner, other.late_partner),
            no_remote_progress: of(self.no_remote_progress, other.no_remote_progress),
            no_local_progress: of(self.no_local_progress, other.no_local_progress),
            transfer: of(self.transfer, other.transfer),
            no_processor: of(self.no_processor, other.no_processor),
            beside_gpu: of(self.beside_gpu, other.beside_gpu),
        }
    }

    /// The part of number `number` of `of` equal parts. They add up exactly: what does not divide goes to the first.
    #[inline]
    pub fn share(&self, number: u64, of: u64) -> Exposure {
        let share = |whole| part(whole, number, of);
        Exposure {
            late_partner: share(self.late_partner),
            no_remote_progress: share(self.no_remote_progress),
            no_local_progress: share(self.no_local_progress),
            transfer: share(self.transfer),
            no_processor: share(self.no_processor),
            beside_gpu: share(self.beside_gpu),
        }
    }
}

/// As [`Exposure::share`] has it.
#[inline]
pub fn part(whole: i64, number: u64, of: u64) -> i64 {
    // most are none, and to divide takes as long as all else here
    if whole == 0 {
        return 0;
    }
    let of = of.max(1) as i64;
    whole / of + i64::from((number as i64) < whole % of)
}

impl AddAssign for Exposure {
    #[inline]
    fn add_assign(&mut self, other: Exposure) {
        *self = self.each(&other, i64::saturating_add);
    }
}

/// What each part of a call's time is at least and at most, for all that its transfers may take undisturbed: how much of
/// a wait a window could have overlapped hangs on that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExposureBounds {
    pub least: Exposure,
    pub most: Exposure,
}

impl ExposureBounds {
    pub fn exactly(found: Exposure) -> ExposureBounds {
        ExposureBounds { least: found, most: found }
    }

    pub fn include(&mut self, other: Exposure) {
        self.least = self.least.each(&other, i64::min);
        self.most = self.most.each(&other, i64::max);
    }
}

/// The other side of the request that a call waited for. Moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partner {
    pub posted: i64,
    /// First moment, both sides having posted, at which it was inside MPI.
    pub inside: Option<i64>,
    /// The call cannot have ended without it. Otherwise only time beyond that of the transfer is laid to it.
    pub is_certain: bool,
}

/// A call that waited, from `begin` to `end`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wait {
    pub begin: i64,
    pub end: i64,
    pub partner: Option<Partner>,
    /// What all transfers that it waited for take one after the other; 0 when not known.
    pub transfer: i64,
    /// How much of them computation in their overlap windows could have overlapped.
    pub possible_overlap: i64,
}

impl Wait {
    /// `outside` says how long the partner was outside MPI from a moment until it last entered before the end.
    ///
    /// A partner that has not come at the end was not waited for: the message had been buffered. The same holds for a
    /// partner that is outside; and as it may leave the transfer to the network once it has been inside, only time beyond
    /// that of the transfer itself is laid to later absences.
    #[inline]
    pub fn split(&self, outside: impl FnOnce(i64) -> i64) -> Exposure {
        let mut found = Exposure::default();
        let duration = (self.end - self.begin).max(0);
        let Some(partner) = self.partner.filter(|partner| partner.posted <= self.end) else {
            found.no_local_progress = self.possible_overlap.clamp(0, duration);
            found.transfer = duration - found.no_local_progress;
            return found;
        };
        let mut at = partner.posted.max(self.begin);
        let excess = (duration - self.transfer.max(0)).max(0);
        if !partner.is_certain {
            at = at.min(self.begin + excess);
        }
        found.late_partner = at - self.begin;
        let entered = partner.inside.filter(|_| partner.is_certain);
        let entered = entered.filter(|&inside| inside > at && inside <= self.end);
        if let Some(inside) = entered {
            found.no_remote_progress = inside - at;
            at = inside;
        }
        let excess = self.end - at - self.transfer.max(0);
        if excess > 0 {
            found.no_remote_progress += outside(at).clamp(0, excess);
        }
        let left = duration - found.late_partner - found.no_remote_progress;
        found.no_local_progress = self.possible_overlap.clamp(0, left);
        found.transfer = left - found.no_local_progress;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 100 to 200.
    fn wait(posted: i64, inside: i64) -> Wait {
        let partner = Some(Partner { posted, inside: Some(inside), is_certain: true });
        Wait { begin: 100, end: 200, partner, transfer: 20, possible_overlap: 0 }
    }

    fn parts(found: Exposure) -> [i64; 4] {
        [found.late_partner, found.no_remote_progress, found.no_local_progress, found.transfer]
    }

    #[test]
    fn time_goes_to_one_cause() {
        assert_eq!(parts(wait(150, 150).split(|_| 0)), [50, 0, 0, 50]);
        assert_eq!(parts(wait(50, 170).split(|_| 0)), [0, 70, 0, 30]);
        assert_eq!(parts(wait(120, 170).split(|_| 0)), [20, 50, 0, 30]);
        let possible_overlap = Wait { possible_overlap: 25, ..wait(50, 60) };
        assert_eq!(parts(possible_overlap.split(|_| 0)), [0, 0, 25, 75]);
        assert_eq!(parts(Wait { partner: None, ..possible_overlap }.split(|_| 0)), [0, 0, 25, 75]);
    }

    #[test]
    fn a_partner_that_comes_later_was_not_waited_for() {
        assert_eq!(parts(wait(201, 201).split(|_| 0)), [0, 0, 0, 100]);
        assert_eq!(parts(wait(50, 201).split(|_| 0)), [0, 0, 0, 100]);
    }

    #[test]
    fn a_partner_that_need_not_be_waited_for_explains_what_the_transfer_does_not() {
        let uncertain = |posted| {
            let partner = Some(Partner { posted, inside: Some(posted), is_certain: false });
            Wait { partner, ..wait(0, 0) }
        };
        assert_eq!(parts(uncertain(170).split(|_| 0)), [70, 0, 0, 30]);
        assert_eq!(parts(uncertain(195).split(|_| 0)), [80, 0, 0, 20]);
        let long = Wait { transfer: 100, ..uncertain(170) };
        assert_eq!(parts(long.split(|_| 0)), [0, 0, 0, 100]);
    }

    #[test]
    fn later_absences_count_beyond_the_transfer() {
        // it posted at 130 and was outside for 60 of the 70 that were left; 20 the transfer takes anyway
        assert_eq!(parts(wait(130, 130).split(|from| 190 - from)), [30, 50, 0, 20]);
        assert_eq!(parts(wait(130, 130).split(|_| 10)), [30, 10, 0, 60]);
    }

    #[test]
    fn a_missing_processor_is_a_cause_of_its_own() {
        let mut found = wait(120, 170).split(|_| 0); // 20 late, 50 outside, 30 transfer
        found.lay_to_processors(Starved { late: 100, outside: 10, rest: 5 });
        assert_eq!((parts(found), found.no_processor), ([0, 40, 0, 25], 35));
        let possible_overlap = Wait { possible_overlap: 25, ..wait(50, 60) };
        let mut found = possible_overlap.split(|_| 0); // 25 no local progress, 75 transfer
        found.lay_to_processors(Starved { rest: 80, ..Starved::default() });
        assert_eq!((parts(found), found.no_processor), ([0, 0, 20, 0], 80));
        assert_eq!(found.total(), 100);
    }

    #[test]
    fn what_a_gpu_computes_beside_a_wait_is_not_exposed() {
        let mut found = wait(120, 170).split(|_| 0); // 20 late, 50 outside, 30 transfer
        found.lay_to_gpu(BesideGpu { late: 20, outside: 10, rest: 40 });
        assert_eq!((parts(found), found.beside_gpu, found.total()), ([0, 40, 0, 0], 60, 40));
        assert_eq!(found.at_most(100).total(), 40);
    }

    #[test]
    fn shares_add_up() {
        let whole = Exposure {
            late_partner: 10,
            no_remote_progress: 1,
            no_local_progress: 0,
            transfer: 10_001,
            no_processor: 6,
            beside_gpu: 9,
        };
        let mut sum = Exposure::default();
        for number in 0..7 {
            sum += whole.share(number, 7);
        }
        assert_eq!(sum, whole);
    }
}
