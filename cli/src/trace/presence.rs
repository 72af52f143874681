//! When a rank was inside MPI: only then can most MPI libraries move its messages.

/// Gaps between calls shorter than this are not looked at as computation, nanoseconds.
const SHORT_GAP: i64 = 1_000;

/// Disjoint intervals in which at least one thread of a rank was inside a recorded call, in order. Tests that said no are
/// not among them: they are kept as sums (see [`super::Observation`]).
#[derive(Debug, Clone, Default)]
pub struct Presence {
    intervals: Vec<(i64, i64)>,
}

impl Presence {
    /// From calls in any order, each from its begin to its end.
    pub fn new(mut calls: Vec<(i64, i64)>) -> Presence {
        calls.sort_unstable(); // of one thread they are nearly in order, which the sort makes use of
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
        Presence { intervals: calls }
    }

    /// The first moment from `moment` on at which the rank was inside MPI.
    pub fn next(&self, moment: i64) -> Option<i64> {
        let at = self.intervals.partition_point(|&(_, end)| end < moment);
        self.intervals.get(at).map(|&(begin, _)| begin.max(moment))
    }

    /// Whether it was inside MPI at some moment from `begin` to `end`.
    pub fn any(&self, begin: i64, end: i64) -> bool {
        self.next(begin).is_some_and(|moment| moment <= end)
    }

    /// Nanoseconds of `begin..end` outside MPI.
    pub fn outside(&self, begin: i64, end: i64) -> i64 {
        if end <= begin {
            return 0;
        }
        let first = self.intervals.partition_point(|interval| interval.1 <= begin);
        let inside: i64 = self.intervals[first..]
            .iter()
            .take_while(|interval| interval.0 < end)
            .map(|interval| interval.1.min(end) - interval.0.max(begin))
            .sum();
        end - begin - inside
    }

    /// Nanoseconds outside MPI from `begin` until it last entered MPI before `end`; of very many intervals only the first
    /// are looked at.
    pub fn absent(&self, begin: i64, end: i64) -> i64 {
        const MOST: usize = 4_096;
        let first = self.intervals.partition_point(|interval| interval.1 <= begin);
        let mut left = begin;
        let mut absent = 0;
        for interval in self.intervals[first..].iter().take(MOST) {
            if interval.0 > end {
                break;
            }
            absent += (interval.0 - left).max(0);
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
    }
}
