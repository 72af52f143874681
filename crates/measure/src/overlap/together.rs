//! Requests that are under way together: what each could have overlapped alone they could not all.
//!
//! Computation is lost once. Requests that one call ended, or calls whose requests' overlap windows have something in
//! common, lose together no more than the computation in all of these windows, and what one call cost is lost once. For
//! certain they lose no more than that computation less what they achieved at most, since transfers over one link
//! cannot have had the same computation. What is left is shared out in proportion. Where several threads of a rank call
//! MPI, windows have computation of their own, and are left as they are.

use super::request::Achieved;

/// What was overlapped of one request.
pub(super) struct EndedRequest {
    pub index: u32,
    pub cell: u32,
    /// Its reference time is known; of others `achieved` says only what may be lost.
    pub is_measured: bool,
    pub is_other_side_known: bool,
    pub achieved: Achieved,
}

fn sum(requests: &[EndedRequest], of: fn(&Achieved) -> i64) -> i64 {
    requests.iter().map(|request| of(&request.achieved)).fold(0, i64::saturating_add)
}

/// What requests that one call ended can have overlapped at most, all of them together, shared out to them in proportion.
/// `moving`: how long that call waited while all other sides were there, nanoseconds.
pub(super) fn limit_achieved(requests: &mut [EndedRequest], moving: i64) {
    let (all, most) = (sum(requests, |it| it.transfer), sum(requests, |it| it.most));
    let high = sum(requests, |it| it.high);
    let hidden_of_most = (most - moving).max(0) as f64 / most.max(1) as f64;
    let limit = (hidden_of_most * all as f64) as i64;
    if high <= limit {
        return;
    }
    let share = limit as f64 / high as f64;
    for EndedRequest { achieved, is_other_side_known, .. } in requests {
        achieved.limit((achieved.high as f64 * share) as i64, *is_other_side_known);
    }
}

/// Computation is lost once, however many requests were under way beside it, and so is what one call cost that ended several.
/// This is the computation in overlap windows that have something in common, of one call or of several, and what of it has been
/// laid to requests so far. Nanoseconds.
#[derive(Debug, Default)]
pub(super) struct CommonWindow {
    begin: i64,
    end: i64,
    compute: i64,
    /// Achieved at most or lost at least: transfers that share a link cannot have had the same computation.
    used: i64,
    lost: i64,
}

/// Requests that one call ended. Moments.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedTogether {
    /// The first post returned.
    pub begin: i64,
    /// The call, and how long it took.
    pub end: i64,
    pub completion: i64,
    /// Most computation in one of their overlap windows.
    pub compute: i64,
    /// Kernels beside the wait.
    pub beside: i64,
    /// Computation behind it, where it was a test.
    pub later_compute: i64,
}

impl CommonWindow {
    /// Lays no more loss to requests than there is room for, in proportion to what each lost alone. `computed`: how much of an interval
    /// was computation, of the processor or, in calls, of a GPU.
    pub fn limit_lost(
        &mut self,
        requests: &mut [EndedRequest],
        ended: EndedTogether,
        computed: impl Fn(i64, i64) -> i64,
    ) {
        self.extend(&ended, computed);
        let compute = self.compute.saturating_add(ended.beside);
        let others = i64::try_from(requests.len()).unwrap_or(i64::MAX) - 1;
        let cost =
            sum(requests, |it| it.own_cost).saturating_sub(ended.completion.saturating_mul(others));
        let (low, high) = (sum(requests, |it| it.lost_low), sum(requests, Achieved::lost_high));
        let achieved = sum(requests, |it| it.high);
        let room = (compute + ended.later_compute).saturating_sub(self.lost);
        let most = high.min(room).min(cost).max(0);
        let least = low.min(compute.saturating_sub(self.used.saturating_add(achieved)));
        let least = least.clamp(0, most);
        if least < low || most < high {
            let of = |part: i64, whole: i64| part as f64 / whole.max(1) as f64;
            for EndedRequest { achieved, .. } in requests {
                achieved.lose(of(least, low), of(most, high));
            }
        }
        self.used = self.used.saturating_add(achieved).saturating_add(least);
        self.lost = self.lost.saturating_add(most);
    }

    fn extend(&mut self, ended: &EndedTogether, computed: impl Fn(i64, i64) -> i64) {
        if ended.begin >= self.end {
            *self =
                CommonWindow { begin: ended.begin, end: ended.begin, ..CommonWindow::default() };
        }
        self.compute += computed(ended.begin, self.begin);
        self.compute += computed(self.end, ended.end);
        self.compute = self.compute.max(ended.compute); // gaps between calls that are short are none there
        self.begin = self.begin.min(ended.begin);
        self.end = self.end.max(ended.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap::request::Life;
    use crate::reference::Estimate;
    use lapscope_trace::Presence;

    fn outside(begin: i64, end: i64) -> i64 {
        (end - begin).max(0)
    }

    /// Requests of 10 ms each, posted at 0, whose computation of `compute` ended at the wait, which took `wait`.
    fn requests(count: u32, compute: i64, wait: i64) -> Vec<EndedRequest> {
        let life = Life {
            transfer: Estimate::exactly(10_000_000),
            post: 0,
            window: compute,
            mpi: Some(0),
            completion: wait,
            is_shared: count > 1,
            ready_compute: Some(compute),
            needs_partner: true,
            seen_complete: None,
            is_tested: false,
            later_compute: 0,
        };
        let one = |index| EndedRequest {
            index,
            cell: 0,
            is_measured: true,
            is_other_side_known: true,
            achieved: life.achieved(|| Some(wait)),
        };
        (0..count).map(one).collect()
    }

    fn lost(requests: &[EndedRequest]) -> (i64, i64) {
        (sum(requests, |it| it.lost_low), sum(requests, Achieved::lost_high))
    }

    fn ended(begin: i64, end: i64, completion: i64) -> EndedTogether {
        EndedTogether { begin, end, completion, compute: 10_000_000, beside: 0, later_compute: 0 }
    }

    /// Four of 10 ms, on one link or on four: of 10 ms of computation 10 ms were lost.
    #[test]
    fn requests_of_one_call_lose_the_same_computation_once() {
        for wait in [10_000_000, 40_000_000] {
            let mut four = requests(4, 10_000_000, wait);
            limit_achieved(&mut four, wait);
            let ended = ended(0, 10_000_000, wait);
            CommonWindow::default().limit_lost(&mut four, ended, outside);
            assert!(lost(&four).1 <= 10_000_000, "{wait} {:?}", lost(&four));
        }
    }

    /// On one link 15 of the 40 ms were overlapped and 5 more could have been; on four links 5 of 10 were.
    #[test]
    fn what_is_certain_is_so_for_any_link() {
        let mut four = requests(4, 20_000_000, 25_000_000);
        limit_achieved(&mut four, 25_000_000);
        let ended = ended(0, 20_000_000, 25_000_000);
        CommonWindow::default().limit_lost(&mut four, ended, outside);
        let (low, high) = lost(&four);
        assert!(low <= 5_000_000 && (10_000_000..=20_000_000).contains(&high), "{low} {high}");
    }

    #[test]
    fn windows_of_calls_one_behind_the_other_have_computation_in_common() {
        let mut common = CommonWindow::default();
        let presence = &Presence::new(vec![(10_000_000, 20_000_000), (20_000_001, 30_000_000)]);
        let mut all = 0;
        for end in [10_000_000, 20_000_001] {
            let mut one = requests(1, 10_000_000, 10_000_000);
            common.limit_lost(&mut one, ended(0, end, 10_000_000), |a, b| presence.outside(a, b));
            all += lost(&one).1;
        }
        assert!((10_000_000..=10_000_001).contains(&all), "{all}");
        // and the next has its own
        let mut one = requests(1, 10_000_000, 10_000_000);
        common.limit_lost(&mut one, ended(40_000_000, 50_000_000, 10_000_000), |a, b| {
            presence.outside(a, b)
        });
        assert_eq!(lost(&one), (10_000_000, 10_000_000));
    }
}
