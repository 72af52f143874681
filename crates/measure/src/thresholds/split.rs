//! Where to part sizes so that the smaller ones did not wait and the larger ones did.
//!
//! Each message is right but for a small share, which the data themselves tell: messages on the wrong side of the best
//! limit. A limit is possible where it explains the data nearly as well as the best one; the bracket is what lies between
//! the possible limits. Single messages that happen to be wrong therefore widen it, and do not move it.
//!
//! A side that one or two messages speak for is none.

use super::cells::Extent;

/// How much less likely than the best a limit may be and still count as possible.
const ODDS: f64 = 1000.0;
/// Beyond this share of messages on the wrong side no limit explains them.
const MOST_CONTRADICTIONS: f64 = 0.25;
/// Fewer messages than this show no limit: a rank that loses its processor for a moment looks like one that waits.
const SEVERAL: u64 = 3;
/// A single message, or two, say nothing against so many, or twice as many.
const MANY: f64 = 1000.0;

/// Messages of one size, or with as many bytes on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitRow {
    /// A single size, or some that are not told apart.
    pub sizes: Extent,
    pub eager: u64,
    pub waited: u64,
}

impl SplitRow {
    pub fn total(&self) -> u64 {
        self.eager + self.waited
    }
}

/// Which limits are possible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    /// Largest size that surely did not wait, smallest that surely did.
    pub largest_eager: Option<u64>,
    pub smallest_waiting: Option<u64>,
    /// Messages that did not wait up to the first, that waited from the second on.
    pub eager: u64,
    pub waiting: u64,
    /// Messages that say the contrary.
    pub contradictions: u64,
    /// Messages in between.
    pub unsettled: u64,
    /// No limit explains the messages.
    pub is_unclear: bool,
}

impl Split {
    pub fn evidence(&self) -> u64 {
        self.eager + self.waiting + self.contradictions + self.unsettled
    }

    /// Without a side that only one or two messages speak for.
    pub fn of_several(mut self) -> Split {
        if !self.is_unclear && self.waiting < SEVERAL {
            self.unsettled += std::mem::take(&mut self.waiting);
            self.smallest_waiting = None;
        }
        if !self.is_unclear && self.eager < SEVERAL {
            self.unsettled += std::mem::take(&mut self.eager);
            self.largest_eager = None;
        }
        self
    }
}

/// `rows` in ascending order of size.
pub fn split(rows: &[SplitRow]) -> Split {
    let total: u64 = rows.iter().map(|row| row.total()).sum();
    if total == 0 {
        return Split::default();
    }
    let wrong = wrong_by_limit(rows);
    let fewest = wrong.iter().copied().min().unwrap_or(0);
    if fewest as f64 > MOST_CONTRADICTIONS * total as f64 {
        let waiting = rows.iter().map(|row| row.waited).sum();
        return Split {
            eager: total - waiting,
            waiting,
            contradictions: fewest,
            is_unclear: true,
            ..Split::default()
        };
    }
    let room = room(fewest, total);
    let is_possible = |limit: &usize| (wrong[*limit] - fewest) as f64 <= room;
    let low = (0..wrong.len()).find(is_possible).unwrap_or(0);
    let high = (0..wrong.len()).rev().find(is_possible).unwrap_or(rows.len());
    let sum = |rows: &[SplitRow], count: fn(&SplitRow) -> u64| rows.iter().map(count).sum::<u64>();
    let waited = |row: &SplitRow| row.waited;
    let (below, between, above) = (&rows[..low], &rows[low..high], &rows[high..]);
    Split {
        largest_eager: below.iter().map(|row| row.sizes.least).max(),
        smallest_waiting: above.iter().map(|row| row.sizes.most).min(),
        eager: sum(below, |row| row.eager),
        waiting: sum(above, waited),
        contradictions: sum(below, waited) + sum(above, |row| row.eager),
        unsettled: sum(between, |row| row.total()),
        is_unclear: false,
    }
}

/// For a limit behind the first 0, 1, ... rows: messages on the wrong side.
fn wrong_by_limit(rows: &[SplitRow]) -> Vec<u64> {
    let mut wrong = Vec::with_capacity(rows.len() + 1);
    wrong.push(rows.iter().map(|row| row.eager).sum());
    for row in rows {
        let last: u64 = wrong[wrong.len() - 1];
        wrong.push(last - row.eager + row.waited);
    }
    wrong
}

/// How many more messages than with the best limit may be on the wrong side.
fn room(fewest: u64, total: u64) -> f64 {
    // without any contradiction every message is taken at its word, few as they may be
    let error = (fewest as f64 + 0.01) / (total as f64 + 10.0);
    let room = ODDS.ln() / ((1.0 - error) / error).ln();
    room.max((total as f64 / MANY).floor().min(2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(size: u64, eager: u64, waited: u64) -> SplitRow {
        SplitRow { sizes: Extent { least: size, most: size }, eager, waited }
    }

    fn edges(rows: &[SplitRow]) -> (Option<u64>, Option<u64>) {
        let split = split(rows);
        assert_eq!(split.evidence(), rows.iter().map(|row| row.total()).sum::<u64>());
        (split.largest_eager, split.smallest_waiting)
    }

    #[test]
    fn clean_evidence() {
        assert_eq!(edges(&[row(10, 1, 0), row(20, 0, 1)]), (Some(10), Some(20)));
        assert_eq!(edges(&[row(10, 3, 0), row(20, 4, 0)]), (Some(20), None));
        assert_eq!(edges(&[row(10, 0, 3), row(20, 0, 4)]), (None, Some(10)));
        assert_eq!(edges(&[]), (None, None));
    }

    #[test]
    fn one_message_is_no_limit() {
        let several = |rows: &[SplitRow]| split(rows).of_several();
        let found = several(&[row(10, 10, 0), row(448, 0, 1)]);
        assert_eq!((found.largest_eager, found.smallest_waiting), (Some(10), None));
        assert_eq!((found.eager, found.waiting, found.unsettled), (10, 0, 1));
        let found = several(&[row(10, 2, 0), row(448, 0, 3)]);
        assert_eq!((found.largest_eager, found.smallest_waiting), (None, Some(448)));
    }

    #[test]
    fn few_contradictions_do_not_move_it() {
        let rows = [row(10, 900, 9), row(20, 900, 8), row(30, 7, 900), row(40, 1, 900)];
        let found = split(&rows);
        assert_eq!((found.largest_eager, found.smallest_waiting), (Some(20), Some(30)));
        assert_eq!((found.eager, found.waiting, found.contradictions), (1800, 1800, 25));
    }

    #[test]
    fn one_or_two_messages_say_nothing_against_thousands() {
        let rows = [row(10, 5000, 0), row(20, 2, 0), row(30, 0, 5000)];
        assert_eq!(edges(&rows), (Some(10), Some(30)));
        assert_eq!(split(&rows).unsettled, 2);
        // alone they do
        assert_eq!(edges(&[row(10, 50, 0), row(20, 2, 0), row(30, 0, 50)]), (Some(20), Some(30)));
    }

    #[test]
    fn a_size_that_says_both_is_left_in_the_middle() {
        let rows = [row(10, 50, 0), row(20, 10, 10), row(30, 0, 50)];
        assert_eq!(edges(&rows), (Some(10), Some(30)));
    }

    #[test]
    fn no_limit_explains_a_mixture() {
        let rows = [row(10, 50, 50), row(20, 60, 50), row(30, 40, 50)];
        let found = split(&rows);
        assert!(found.is_unclear);
        assert_eq!((found.largest_eager, found.eager, found.waiting), (None, 150, 150));
    }

    /// A generator of repeatable noise.
    fn random(seed: &mut u64) -> f64 {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn the_bracket_holds_the_limit_with_five_percent_noise() {
        let mut seed = 42;
        let (mut missed, mut widths) = (0, 0.0);
        const TRIALS: usize = 2000;
        for _ in 0..TRIALS {
            let limit = (64.0 * 2f64.powf(random(&mut seed) * 12.0)) as u64;
            let each = 4 + (random(&mut seed) * 30.0) as u64;
            let sizes = (0..40).map(|step| (40.0 * 1.25f64.powi(step)) as u64);
            let rows: Vec<SplitRow> = sizes
                .map(|size| {
                    let flipped = (0..each).filter(|_| random(&mut seed) < 0.05).count() as u64;
                    let right = each - flipped;
                    if size <= limit {
                        row(size, right, flipped)
                    } else {
                        row(size, flipped, right)
                    }
                })
                .collect();
            let found = split(&rows);
            let (low, high) = (found.largest_eager.unwrap(), found.smallest_waiting);
            missed += usize::from(low > limit || high.is_some_and(|high| high <= limit));
            widths += high.unwrap_or(low) as f64 / low as f64;
        }
        assert!(missed * 500 <= TRIALS, "{missed} of {TRIALS} brackets do not hold the limit");
        let width = widths / TRIALS as f64;
        assert!(width < 1.5, "brackets are {width} wide where sizes are 1.25 apart");
    }
}
