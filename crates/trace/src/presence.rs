//! When a rank was inside MPI: only then can most MPI libraries move its messages.

use std::sync::atomic::{AtomicU32, Ordering};

/// Gaps between calls shorter than this are not looked at as computation, nanoseconds.
const SHORT_GAP: i64 = 1_000;

/// Disjoint intervals in which at least one thread of a rank was inside a recorded call, in order. Unsuccessful tests are
/// not among them: they are kept as sums (see [`super::Observation`]).
#[derive(Debug, Clone, Default)]
pub struct Presence {
    intervals: Vec<(i64, i64)>,
    near: Near,
}

/// Where something was found last; any value will do.
#[derive(Debug, Default)]
struct Near(AtomicU32);

impl Clone for Near {
    fn clone(&self) -> Near {
        Near::default()
    }
}

/// The first interval that does not end before `moment`, looked for from `near` outwards, in steps that double.
fn place_around(intervals: &[(i64, i64)], moment: i64, near: usize) -> usize {
    let is_before = |&(_, end): &(i64, i64)| end < moment;
    let (mut low, mut high) = (near, near);
    let mut step = 1;
    if is_before(&intervals[near]) {
        while high < intervals.len() && is_before(&intervals[high]) {
            (low, high) = (high + 1, (high + step).min(intervals.len()));
            step *= 2;
        }
    } else {
        while low > 0 && !is_before(&intervals[low - 1]) {
            (low, high) = (low.saturating_sub(step), low);
            step *= 2;
        }
    }
    low + intervals[low..high].partition_point(is_before)
}

impl Presence {
    /// From calls in any order, each from its begin to its end.
    pub fn new(mut calls: Vec<(i64, i64)>) -> Presence {
        calls.sort(); // stretches that are in order, as of one thread, are found and merged
        let mut last = 0;
        for index in 1..calls.len() {
            if calls[index].0 <= calls[last].1 + SHORT_GAP {
                calls[last].1 = calls[last].1.max(calls[index].1);
            } else {
                last += 1;
                calls[last] = calls[index];
            }
        }
        calls.truncate(last + 1);
        calls.shrink_to_fit();
        Presence { intervals: calls, near: Near::default() }
    }

    pub(super) fn intervals(&self) -> &[(i64, i64)] {
        &self.intervals
    }

    /// The presence of what [`Presence::intervals`] said.
    pub(super) fn of_intervals(intervals: Vec<(i64, i64)>) -> Presence {
        Presence { intervals, near: Near::default() }
    }

    /// The first interval that does not end before `moment`. Who looks at one request after the other looks near the
    /// last place, so it is looked for around that.
    #[inline]
    fn place(&self, moment: i64) -> usize {
        let intervals = &self.intervals;
        let Some(last) = intervals.len().checked_sub(1) else { return 0 };
        let near = (self.near.0.load(Ordering::Relaxed) as usize).min(last);
        let place = place_around(intervals, moment, near);
        self.near.0.store(place as u32, Ordering::Relaxed);
        place
    }

    /// The first moment from `moment` on at which the rank was inside MPI.
    #[inline]
    pub fn next(&self, moment: i64) -> Option<i64> {
        self.intervals.get(self.place(moment)).map(|&(begin, _)| begin.max(moment))
    }

    /// When it had left MPI last, before `moment`; `None` when it had not been there.
    #[inline]
    pub fn left_before(&self, moment: i64) -> Option<i64> {
        self.place(moment).checked_sub(1).map(|before| self.intervals[before].1)
    }

    /// The last intervals, at most so many, that end before `moment`.
    #[inline]
    pub fn latest(&self, moment: i64, most: usize) -> &[(i64, i64)] {
        let end = self.place(moment);
        &self.intervals[end.saturating_sub(most)..end]
    }

    /// Whether it was inside MPI at some moment from `begin` to `end`.
    #[inline]
    pub fn any(&self, begin: i64, end: i64) -> bool {
        self.next(begin).is_some_and(|moment| moment <= end)
    }

    /// Nanoseconds of `begin..end` outside MPI.
    #[inline]
    pub fn outside(&self, begin: i64, end: i64) -> i64 {
        if end <= begin {
            return 0;
        }
        let first = self.place(begin + 1);
        let inside: i64 = self.intervals[first..]
            .iter()
            .take_while(|interval| interval.0 < end)
            .map(|interval| interval.1.min(end) - interval.0.max(begin))
            .sum();
        end - begin - inside
    }

    /// Nanoseconds of `begin..end` in which both ranks were outside MPI.
    #[inline]
    pub fn outside_both(&self, other: &Presence, begin: i64, end: i64) -> i64 {
        let inside = |presence: &Presence| {
            let first = presence.place(begin + 1);
            let intervals = presence.intervals[first..].iter();
            intervals.take_while(|interval| interval.0 < end).copied().collect::<Vec<_>>()
        };
        let mut either = inside(self);
        either.extend(inside(other));
        Presence::new(either).outside(begin, end)
    }

    /// Nanoseconds outside MPI from `begin` until it last entered MPI before `end`; of very many intervals only the first
    /// are looked at.
    #[inline]
    pub fn absent(&self, begin: i64, end: i64) -> i64 {
        const MOST: usize = 4_096;
        let first = self.place(begin + 1);
        let mut left = begin;
        let mut absent = 0i64;
        for interval in self.intervals[first..].iter().take(MOST) {
            if interval.0 > end {
                break;
            }
            absent = absent.saturating_add((interval.0 - left).max(0));
            left = interval.1;
        }
        absent
    }

    pub(super) fn map(&mut self, correct: impl Fn(i64) -> i64) {
        for interval in &mut self.intervals {
            *interval = (correct(interval.0), correct(interval.1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_merged_and_found() {
        let presence = Presence::new(vec![(50_000, 60_000), (10_000, 20_000), (20_500, 30_000)]);
        assert_eq!(presence.intervals, [(10_000, 30_000), (50_000, 60_000)]);
        let next: Vec<_> =
            [0, 10_000, 25_000, 30_000, 30_001, 60_001].map(|t| presence.next(t)).to_vec();
        let expected = [10_000, 10_000, 25_000, 30_000, 50_000].map(Some);
        assert_eq!(next[..5], expected);
        assert_eq!(next[5], None);
        assert!(presence.any(0, 10_000) && !presence.any(30_001, 49_999));
        assert_eq!(presence.outside(0, 100_000), 70_000);
        assert_eq!(presence.outside(15_000, 55_000), 20_000);
        assert_eq!(presence.outside(5, 5), 0);
        assert_eq!(presence.absent(15_000, 49_999), 0);
        assert_eq!(presence.absent(15_000, 50_000), 20_000);
        assert_eq!(presence.absent(0, 100_000), 30_000);
        assert_eq!(Presence::new(vec![]).outside(0, 7), 7);
        let other = Presence::new(vec![(20_000, 40_000), (90_000, 95_000)]);
        assert_eq!(presence.outside_both(&other, 0, 100_000), 55_000);
        assert_eq!(presence.outside_both(&other, 40_000, 92_000), 40_000);
    }

    #[test]
    fn intervals_are_found_from_wherever_was_looked_last() {
        let calls =
            (0..200i64).map(|number| (number * number * 5_000, number * number * 5_000 + 3_000));
        let presence = Presence::new(calls.collect());
        let edges = presence.intervals.iter().flat_map(|&(begin, end)| [begin, end, end + 1]);
        let mut moments: Vec<i64> = edges.chain([-40, i64::MAX]).collect();
        // back and forth, near and far
        moments.sort_by_key(|moment| moment.wrapping_mul(0x9e37_79b9));
        for moment in moments {
            let expected = presence.intervals.partition_point(|&(_, end)| end < moment);
            assert_eq!(presence.place(moment), expected, "{moment}");
        }
        assert_eq!(Presence::default().place(5), 0);
    }
}
