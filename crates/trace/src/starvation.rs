//! When a rank was able to run and had no processor.

use serde::{Deserialize, Serialize};

/// An interval, and how much of it the rank had to do without a processor. Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starved {
    pub begin: i64,
    pub end: i64,
    pub wait: i64,
}

impl Starved {
    /// How much of the part in `begin..end` it was, by the length of the part, and never more than that. Nanoseconds.
    #[inline]
    pub fn share_of(&self, begin: i64, end: i64) -> i64 {
        let part = (self.end.min(end) - self.begin.max(begin)).max(0) as i128;
        let length = (self.end - self.begin).max(1) as i128;
        (i128::from(self.wait) * part / length).min(part) as i64
    }
}

/// The disjoint intervals of one rank, in order; empty where it always had a processor, or nothing is known.
///
/// The kernel tells how much of an interval it was, not where in it. So what a part of it had is an estimate: its share by
/// length, and never more than the part is long.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Starvation {
    intervals: Vec<Starved>,
}

impl Starvation {
    /// From intervals in any order. What overlaps the one before, which no recorder writes, is left out.
    pub fn new(mut intervals: Vec<Starved>) -> Starvation {
        intervals.sort_unstable_by_key(|interval| (interval.begin, interval.end));
        let mut end = i64::MIN;
        intervals.retain(|interval| {
            let is_sound =
                interval.begin >= end && interval.end > interval.begin && interval.wait > 0;
            end = if is_sound { interval.end } else { end };
            is_sound
        });
        Starvation { intervals }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Nanoseconds of `begin..end` in which the rank could have run and did not, about.
    #[inline]
    pub fn within(&self, begin: i64, end: i64) -> i64 {
        self.touching(begin, end).map(|interval| interval.share_of(begin, end)).sum()
    }

    /// The intervals of which a part is in `begin..end`.
    pub fn touching(&self, begin: i64, end: i64) -> impl Iterator<Item = &Starved> {
        let first = self.intervals.partition_point(|interval| interval.end <= begin);
        self.intervals[first..].iter().take_while(move |interval| interval.begin < end)
    }

    /// The most that `begin..end` can have had of it: all that the intervals which it touches tell of, as far as it fits in.
    #[inline]
    pub fn most_within(&self, begin: i64, end: i64) -> i64 {
        let most = |interval: &Starved| {
            interval.wait.min(interval.end.min(end) - interval.begin.max(begin))
        };
        self.touching(begin, end).map(most).sum()
    }

    /// With moments moved: of a replay of the same run, in which they are a little earlier or later.
    pub fn moved(&self, to: impl Fn(i64) -> i64) -> Starvation {
        let mut moved = self.clone();
        moved.map(to);
        moved
    }

    pub(super) fn map(&mut self, correct: impl Fn(i64) -> i64) {
        for interval in &mut self.intervals {
            (interval.begin, interval.end) = (correct(interval.begin), correct(interval.end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_its_share() {
        let starved = |begin, end, wait| Starved { begin, end, wait };
        let starvation = Starvation::new(vec![
            starved(300, 400, 100),
            starved(100, 200, 50),
            starved(150, 210, 9),
        ]);
        assert_eq!(starvation.within(0, 1_000), 150);
        assert_eq!(starvation.within(150, 160), 5);
        assert_eq!(starvation.within(190, 310), 15);
        assert_eq!(starvation.within(200, 300), 0);
        assert_eq!(starvation.most_within(0, 1_000), 150);
        assert_eq!(starvation.most_within(150, 160), 10);
        assert_eq!(starvation.most_within(120, 310), 60);
        assert_eq!(starvation.within(500, 400), 0);
        assert!(Starvation::new(vec![starved(5, 5, 1), starved(7, 9, 0)]).is_empty());
    }
}
