//! How much of one transfer was overlapped with computation, and what could have been.
//!
//! `X` is the time that the transfer takes with nothing in between, `c` the computation between post and completing call,
//! `m` the time inside MPI during the life of the request. Time inside MPI is not overlapped, so
//!
//! - achieved = X - m, not below 0 (divided by X the overlap ratio (c - (l - X)) / X of [RA07], since l = c + m);
//! - possible = the smaller of X and c: no more can overlap than there was computation;
//! - lost = possible - achieved, as far as the request itself cost time: what passed in other calls of MPI, which waited for
//!   something else, cost nobody anything on its account.
//!
//! A test that completes a request ends its window, though the program may not have needed the data yet: it went on computing.
//! So possible is an interval, too: with the computation before that test, and with that until the next call that is no test.
//!
//! `m` is not always known, so there are two of it, and achieved overlap is an interval (the bounds of [SH08]):
//!
//! - the most: posting, other MPI calls in the window, and the whole completing call;
//! - the least: when the completing call ended other requests too, this one may have been complete before it began,
//!   and then nothing of that call was its own. The same when a test had seen it complete.
//!
//! Requests that one call ended are then taken together: while it waited, from the moment that all other sides were there,
//! at least one of their transfers moved. What all of them hid is at most what they take one after the other less that time
//! ([`Hidden::limit`]), which is the formula above for all of them as one transfer.
//!
//! A receive cannot have moved before its message was sent, so of its computation only what came after that can have
//! overlapped it; of a request that was seen complete only what came before that. An unsuccessful test narrows nothing: all but
//! the last byte may have arrived by then.
//!
//! X is not known exactly either. What of it was overlapped is worked out for the least and for the most that it may be, too:
//! of a transfer that is longer than thought a larger part was overlapped.
//!
//! Nothing is lost on a request's account that it did not cost: at most its post, its completing call and its own
//! unsuccessful tests. Lost overlap has three parts. One is what the partner came too late for: possible, less what the
//! computation after its post made possible. One is no progress, out of what the completing call took: all of it when
//! nothing was overlapped, else the time from both posts until either side was inside MPI again. The rest is other.

use crate::reference::Estimate;
use lapscope_trace::stats::in_proportion;

/// A completing call that is shorter waited for nothing, nanoseconds: this much a call takes.
const SHORT_CALL: i64 = 1_000;

/// What is known of one request. Nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    /// X
    pub transfer: Estimate,
    /// In the posting call.
    pub post: i64,
    /// From the end of the post to the begin of the completing call.
    pub window: i64,
    /// Inside other MPI calls during the window; `None` when another thread completed it.
    pub mpi: Option<i64>,
    /// The completing call, the whole of it.
    pub completion: i64,
    /// It ended other requests too.
    pub is_shared: bool,
    /// Computation of the window after both sides were there; `None` when the other side is not known.
    pub ready_compute: Option<i64>,
    /// Nothing can move before the other side is there: receives.
    pub needs_partner: bool,
    /// From the end of the post to the first time that a test saw it complete without ending it.
    pub seen_complete: Option<i64>,
    /// Unsuccessful tests covered it in the window: they may be all of `mpi`.
    pub is_tested: bool,
    /// Computation behind a test that completed it, before the program can have needed it.
    pub later_compute: i64,
}

/// What was overlapped and what not; parts of `transfer`, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Achieved {
    pub transfer: i64,
    /// What the transfer takes at most, undisturbed.
    pub most: i64,
    pub possible_low: i64,
    pub possible_high: i64,
    pub low: i64,
    pub high: i64,
    /// What is lost when `high` was overlapped and only `possible_low` was possible.
    pub lost_low: i64,
    /// What is lost when `low` was overlapped, by cause: the partner came too late for it.
    pub late_partner: i64,
    /// Both sides were there and nothing moved until one of them entered MPI.
    pub no_progress: i64,
    /// The rest: contention, queueing, and what cannot be told apart.
    pub rest: i64,
    /// Inside MPI on its own account, at most.
    pub own_cost: i64,
}

impl Achieved {
    /// What is lost when `low` was overlapped.
    pub fn lost_high(&self) -> i64 {
        self.late_partner + self.no_progress + self.rest
    }

    /// Loses these fractions of what it lost alone, at least and at most.
    pub fn lose(&mut self, least: f64, most: f64) {
        let of = |part: i64, share: f64| (part as f64 * share) as i64;
        self.late_partner = of(self.late_partner, most);
        self.no_progress = of(self.no_progress, most);
        self.rest = of(self.rest, most);
        self.lost_low = of(self.lost_low, least).min(self.lost_high());
    }

    fn bound_loss(&mut self) {
        let least = self.possible_low - self.high;
        self.lost_low = least.min(self.own_cost).clamp(0, self.lost_high());
    }

    /// Hides at most `high`. What is so known to be lost stood still when the other side is known to have been there.
    pub fn limit(&mut self, high: i64, is_other_side_known: bool) {
        let cut = self.high - high.clamp(self.low, self.high);
        self.high -= cut;
        self.bound_loss();
        if is_other_side_known {
            let stood_still = cut.min(self.rest);
            self.no_progress += stood_still;
            self.rest -= stood_still;
        }
    }
}

impl Life {
    /// Inside MPI on its own account, at most.
    fn own_cost(&self) -> i64 {
        let unsuccessful_tests = if self.is_tested { self.mpi.unwrap_or(self.window) } else { 0 };
        (self.post + unsuccessful_tests + self.completion).max(0)
    }

    /// What is achieved of a transfer that may take any time, so that nothing of it is known to be lost.
    pub fn achieved_unmeasured(&self) -> Achieved {
        let own_cost = self.own_cost();
        let rest = (self.compute() + self.later_compute).clamp(0, own_cost);
        Achieved { rest, own_cost, ..Achieved::default() }
    }

    fn compute(&self) -> i64 {
        (self.window - self.mpi.unwrap_or(0)).max(0)
    }

    /// The interval. `standstill` says how long after both sides were there neither was inside MPI; it is asked for only
    /// where it matters, and `None` says that it is not known.
    pub fn achieved(&self, standstill: impl FnOnce() -> Option<i64>) -> Achieved {
        let transfer = self.transfer.ns.max(0);
        let compute = self.compute();
        let possible_low = transfer.min(compute);
        let possible = transfer.min(compute + self.later_compute);
        let is_done_before = self.seen_complete.is_some();
        let own_call = if is_done_before { 0 } else { self.completion };
        let most = self.post + self.mpi.unwrap_or(self.window) + own_call;
        let (low, high) = self.interval(most);
        let own_cost = self.own_cost();
        let lost = (possible - low).min(own_cost);
        let late_partner = match self.ready_compute {
            Some(ready) => lost.min(possible - possible.min(ready.max(0) + self.later_compute)),
            None => 0,
        };
        let left = lost - late_partner;
        // what posting and other calls took was lost whatever moved meanwhile
        let without_wait = (transfer - (most - own_call)).clamp(0, possible);
        let waited = left.min((without_wait - low - late_partner).max(0));
        let no_progress = match (waited, self.ready_compute, high) {
            (0, ..) | (_, None, _) => 0,
            _ if own_call < SHORT_CALL => 0,
            (_, _, 0) => waited,
            _ => waited.min(standstill().unwrap_or(0).max(0)),
        };
        let mut found = Achieved {
            transfer,
            most: self.transfer.high_ns.max(transfer),
            possible_low,
            possible_high: possible,
            low,
            high,
            lost_low: 0,
            late_partner,
            no_progress,
            rest: left - no_progress,
            own_cost,
        };
        found.bound_loss();
        found
    }

    /// The least and the most that can have been overlapped, for all that the transfer may take, as a part of what it is taken
    /// to. `most`: time inside MPI.
    fn interval(&self, most: i64) -> (i64, i64) {
        let is_done_before = self.seen_complete.is_some();
        let least = match (is_done_before, self.is_shared) {
            (true, _) => self.post,
            (false, true) => self.post + self.mpi.unwrap_or(0),
            (false, false) => self.post + self.mpi.unwrap_or(0) + self.completion,
        };
        let mut behind = self.compute().min(self.seen_complete.unwrap_or(i64::MAX).max(0));
        if self.needs_partner {
            behind = behind.min(self.ready_compute.unwrap_or(i64::MAX).max(0));
        }
        let of = |transfer: i64| {
            let high = (transfer - least).clamp(0, behind.min(transfer));
            ((transfer - most).clamp(0, high), high)
        };
        let taken = self.transfer.ns.max(0);
        let part = |(low, high): (i64, i64), transfer: i64| {
            let scale = |ns: i64| in_proportion(ns, taken, transfer);
            (scale(low), scale(high))
        };
        let bounds = [self.transfer.low_ns, self.transfer.high_ns];
        let others = bounds.into_iter().filter(|&ns| ns > 0 && ns != taken);
        let (low, high) = others
            .map(|ns| part(of(ns), ns))
            .fold(of(taken), |(low, high), other| (low.min(other.0), high.max(other.1)));
        (low, high.min(taken.min(self.compute())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn achieved(life: Life) -> Achieved {
        life.achieved(|| None)
    }

    /// 100 us of transfer, 1 us of post, both sides there from the begin.
    const LIFE: Life = Life {
        transfer: Estimate::exactly(100_000),
        post: 1_000,
        window: 200_000,
        mpi: Some(0),
        completion: 500,
        is_shared: false,
        ready_compute: Some(200_000),
        needs_partner: true,
        seen_complete: None,
        is_tested: false,
        later_compute: 0,
    };

    #[test]
    fn hidden_but_for_what_posting_and_waiting_took() {
        let found = achieved(LIFE);
        assert_eq!((found.low, found.high, found.possible_low), (98_500, 98_500, 100_000));
        assert_eq!((found.lost_low, found.possible_high), (1_500, 100_000));
        assert_eq!((found.late_partner, found.no_progress, found.rest), (0, 0, 1_500));
    }

    #[test]
    fn a_transfer_that_stands_still_loses_all_that_was_possible() {
        let found = achieved(Life { completion: 100_000, ..LIFE });
        assert_eq!((found.low, found.high), (0, 0));
        assert_eq!((found.no_progress, found.rest), (99_000, 1_000));
        let half = achieved(Life {
            window: 50_000,
            completion: 100_000,
            ready_compute: Some(50_000),
            ..LIFE
        });
        assert_eq!((half.possible_low, half.high, half.no_progress), (50_000, 0, 50_000));
    }

    #[test]
    fn small_messages_lose_what_calls_take() {
        let small = Life { transfer: Estimate::exactly(900), post: 600, completion: 400, ..LIFE };
        let found = achieved(small);
        assert_eq!((found.low, found.possible_low), (0, 900));
        assert_eq!((found.no_progress, found.rest), (0, 900));
    }

    #[test]
    fn a_shared_completing_call_leaves_an_interval() {
        let shared = Life { completion: 60_000, is_shared: true, ..LIFE };
        let found = shared.achieved(|| Some(40_000));
        assert_eq!((found.low, found.high), (39_000, 99_000));
        assert_eq!((found.no_progress, found.rest), (40_000, 21_000));
    }

    #[test]
    fn what_others_of_the_call_leave_is_a_limit() {
        let shared = Life { completion: 60_000, is_shared: true, ..LIFE };
        let mut found = achieved(shared);
        assert_eq!(
            (found.low, found.high, found.no_progress, found.rest),
            (39_000, 99_000, 0, 61_000)
        );
        found.limit(50_000, true);
        assert_eq!(
            (found.low, found.high, found.no_progress, found.rest),
            (39_000, 50_000, 49_000, 12_000)
        );
        found.limit(0, false);
        assert_eq!((found.high, found.no_progress, found.rest), (39_000, 49_000, 12_000));
    }

    /// It waits for 534 us behind 2 ms of computation. Calibrated were 685 us, the quickest took 530 us.
    #[test]
    fn a_reference_that_is_too_long_does_not_make_anything_hidden_for_certain() {
        let transfer = Estimate { ns: 685_000, low_ns: 530_000, high_ns: 700_000 };
        let waited =
            Life { window: 2_000_000, completion: 534_000, ready_compute: Some(2_000_000), ..LIFE };
        let exact = achieved(Life { transfer: Estimate::exactly(685_000), ..waited });
        assert_eq!((exact.low, exact.high), (150_000, 150_000));
        let found = achieved(Life { transfer, ..waited });
        // of 700 us 165 would be overlapped, 23.6 %
        assert_eq!((found.low, found.high, found.possible_low), (0, 161_464, 685_000));
        let parts = found.late_partner + found.no_progress + found.rest;
        assert_eq!((parts, found.most), (535_000, 700_000));
    }

    #[test]
    fn what_waits_for_nothing_is_hidden_whatever_it_takes() {
        let transfer = Estimate { ns: 100_000, low_ns: 80_000, high_ns: 150_000 };
        let found = achieved(Life { transfer, post: 0, completion: 0, ..LIFE });
        assert_eq!((found.low, found.high), (100_000, 100_000));
        let short = Life { window: 50_000, ready_compute: Some(50_000), ..LIFE };
        let found = achieved(Life { transfer, post: 0, completion: 0, ..short });
        // 50 of 150 are the least part
        assert_eq!((found.low, found.high, found.possible_low), (33_333, 50_000, 50_000));
    }

    #[test]
    fn a_late_sender_leaves_only_what_is_behind_it() {
        // the sender came 170 us into the window of 200 us; the wait took the rest of the transfer
        let found = achieved(Life { completion: 70_000, ready_compute: Some(30_000), ..LIFE });
        assert_eq!((found.low, found.high), (29_000, 29_000));
        assert_eq!((found.late_partner, found.no_progress, found.rest), (70_000, 0, 1_000));
    }

    #[test]
    fn a_test_that_saw_it_complete_makes_the_completing_call_free() {
        let shared = Life { completion: 60_000, is_shared: true, ..LIFE };
        let found = achieved(Life { seen_complete: Some(99_500), ..shared });
        assert_eq!((found.low, found.high), (99_000, 99_000));
    }

    #[test]
    fn computation_goes_on_counting_behind_the_test_that_completes() {
        // 20 us were computed until a test moved all of it, and 300 us behind that test
        let tested = Life {
            window: 20_000,
            completion: 100_000,
            ready_compute: Some(20_000),
            later_compute: 300_000,
            ..LIFE
        };
        let found = achieved(tested);
        assert_eq!((found.possible_low, found.possible_high), (20_000, 100_000));
        assert_eq!((found.low, found.high), (0, 0));
        assert_eq!((found.lost_low, found.lost_high()), (20_000, 100_000));
        assert_eq!((found.no_progress, found.rest), (99_000, 1_000));
    }

    #[test]
    fn what_other_calls_waited_for_is_no_loss() {
        // 140 of the window's 150 us passed in other calls
        let elsewhere = Life { window: 150_000, mpi: Some(140_000), ..LIFE };
        let found = achieved(elsewhere);
        assert_eq!((found.low, found.high, found.possible_high), (0, 0, 10_000));
        assert_eq!((found.lost_low, found.lost_high()), (1_500, 1_500));
        // or in tests of its own
        let tested = achieved(Life { is_tested: true, ..elsewhere });
        assert_eq!((tested.lost_low, tested.lost_high()), (10_000, 10_000));
    }

    #[test]
    fn another_threads_completion_leaves_its_computation_open() {
        let found = achieved(Life { mpi: None, ..LIFE });
        assert_eq!((found.low, found.high), (0, 98_500));
    }

    #[test]
    fn without_a_window_nothing_was_possible() {
        let found = achieved(Life { window: 0, ready_compute: Some(0), ..LIFE });
        assert_eq!((found.possible_high, found.high, found.rest), (0, 0, 0));
    }

    #[test]
    fn parts_make_wholes_whatever_is_known() {
        let mut state = 1u64;
        let mut random = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % limit) as i64
        };
        for _ in 0..100_000 {
            let window = random(2_000);
            let known = random(64);
            let transfer = random(1_000);
            let (low_ns, high_ns) =
                (transfer - random(transfer as u64 + 1), transfer + random(500));
            let life = Life {
                transfer: Estimate { ns: transfer, low_ns, high_ns },
                post: random(300),
                window,
                mpi: (known & 1 == 0).then(|| random(1_000).min(window)),
                completion: random(3_000),
                is_shared: known & 2 == 0,
                ready_compute: (known & 4 == 0).then(|| random(2_000).min(window)),
                needs_partner: known & 8 == 0,
                seen_complete: (known & 48 == 0).then(|| random(2_000)),
                is_tested: random(2) == 0,
                later_compute: random(3) * random(1_000),
            };
            let standstill = random(2_500);
            let found = life.achieved(|| Some(standstill));
            assert!(0 <= found.low && found.low <= found.high, "{life:?} {found:?}");
            assert!(found.high <= found.possible_low, "{life:?} {found:?}");
            assert!(found.possible_low <= found.possible_high, "{life:?} {found:?}");
            assert!(found.possible_high <= found.transfer, "{life:?} {found:?}");
            assert!(0 <= found.lost_low && found.lost_low <= found.lost_high(), "{life:?}");
            let parts = [found.late_partner, found.no_progress, found.rest];
            assert!(parts.iter().all(|&part| part >= 0), "{life:?} {found:?}");
            assert!(found.lost_high() <= found.possible_high - found.low, "{life:?}");
        }
    }
}
