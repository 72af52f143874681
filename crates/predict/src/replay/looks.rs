//! When a program tested for requests and they were not complete yet: from within a computation, or in a loop that does nothing else.

use lapscope_trace::{Half, Presence};

/// Tests in computation that found nothing, as requests tell of them.
#[derive(Default)]
pub(super) struct Looks {
    /// By the first of each.
    intervals: Vec<Look>,
}

/// Unsuccessful tests of a request: the first, the last, and the time from one to the next.
#[derive(Clone, Copy)]
struct Look {
    first: i64,
    last: i64,
    period: i64,
    /// Little else was done meanwhile.
    is_tight: bool,
}

/// A loop of tests that did nothing else spends at least this part of its time in them: one in so many.
const TIGHT: i64 = 4;

impl Looks {
    pub fn post(&mut self, half: Half<'_>, presence: &Presence) {
        let Some(seen) = half.observed else { return };
        let (Some(first), Some(last)) = (seen.first_unsuccessful_test, seen.last_unsuccessful_test)
        else {
            return;
        };
        let period = match seen.unsuccessful_tests {
            0 | 1 => first.max(1),
            tests => ((last - first) / (tests as i64 - 1)).max(1),
        };
        let [first, last] = [first, last].map(|test| half.post_begin + test);
        self.intervals.retain(|look| look.last >= half.post_begin);
        let is_tight = half.in_tests(presence).saturating_mul(TIGHT) >= last - first;
        let at = self.intervals.partition_point(|look| look.first <= first);
        self.intervals.insert(at, Look { first, last, period, is_tight });
    }

    /// How much of a time was spent in loops of tests that did nothing else.
    pub fn polled(&self, begin: i64, end: i64) -> i64 {
        let mut until = begin;
        let mut polled = 0;
        for look in self.intervals.iter().filter(|look| look.is_tight) {
            let (first, last) = (look.first.max(until), look.last.min(end));
            polled += (last - first).max(0);
            until = until.max(last);
        }
        polled
    }

    /// How far apart tests were in a computation, where it had any.
    pub fn period(&mut self, begin: i64, end: i64) -> Option<i64> {
        self.intervals.retain(|look| look.last >= begin);
        let inside = self.intervals.iter().filter(|look| look.first < end && look.last > begin);
        inside.map(|look| look.period).min().filter(|&period| period < end - begin)
    }
}
