//! In which order the words of a buffer are produced or consumed: P(i) and C(i) of [SA06].

use serde::Serialize;

use super::bounds::LEAST_REQUESTS;
use lapscope_data::model::Side;
use lapscope_trace::stats::Interval;
use lapscope_trace::watched::words::{Buffer, Word};

/// Where the words of a buffer come in its production, or consumption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessOrder {
    /// The first word first.
    Same,
    /// The last word first.
    Reverse,
    /// In an order that has nothing to do with the place in the buffer.
    Random,
    /// So near each other that watching cannot tell them apart.
    AtOnce,
    /// Too few words tell.
    #[default]
    Unknown,
}

/// An order, and what it follows from.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct OrderEstimate {
    pub order: AccessOrder,
    /// Rank correlation of the order with the place in the buffer (Kendall's tau within requests): 1 the same, -1
    /// reverse. `None` where too few pairs of words tell.
    pub agreement: Option<Interval>,
    /// Pairs of words of one request of which it is known which came first.
    pub pairs: u64,
}

impl OrderEstimate {
    /// Whether pairs of words tell anything.
    pub fn is_known(&self) -> bool {
        self.order != AccessOrder::Unknown
    }
}

/// This share of all pairs is nearer than what can be told apart where all come at once.
const MOST: f64 = 0.9;
/// An agreement beyond that is an order; twelve pairs that all agree are beyond it.
const ORDERED: f64 = 0.4;
/// An agreement within that of zero is none.
const UNORDERED: f64 = 0.5;

/// So many hits are between two touches at most, as a rule.
const SOME_HITS: f64 = 8.0;

/// What the pairs of one request's words say.
#[derive(Debug, Clone, Copy, Default)]
struct Pairs {
    /// In order, less those that are not. Of sends the word with the longest time is first, of receives that with the shortest.
    agreeing: f64,
    /// Pairs of which it is known which came first.
    known: f64,
    /// Too near each other.
    near: f64,
}

impl Pairs {
    fn tell(&self) -> bool {
        self.known + self.near > 0.0
    }
}

/// Looks only at words that were drawn: the ends are the same words over and over, so that they tell little of the others.
/// Pairs are of the same request, as requests are early or late as a whole. Where too few requests have two such words, pairs
/// with the request before tell an order, and none where there is no order. `nearest`: nanoseconds below which two touches
/// cannot be told apart.
pub fn find(buffers: &[Buffer], side: Side, nearest: f64) -> OrderEstimate {
    let drawn: Vec<Vec<&Word>> = buffers
        .iter()
        .map(|buffer| buffer.words.iter().filter(|word| !word.is_end()).collect())
        .collect();
    let told = WordLimits { side, nearest };
    let within = drawn.iter().map(|words| told.count_pairs(pairs_within(words)));
    let within: Vec<Pairs> = within.filter(Pairs::tell).collect();
    if within.len() >= LEAST_REQUESTS {
        return judge(&within, true);
    }
    let between = drawn.windows(2).map(|two| told.count_pairs(pairs_between(&two[0], &two[1])));
    let between: Vec<Pairs> = between.filter(Pairs::tell).collect();
    if between.len() >= LEAST_REQUESTS {
        return judge(&between, false);
    }
    let pairs = within.iter().map(|pairs| pairs.known).sum::<f64>() as u64;
    OrderEstimate { pairs, ..OrderEstimate::default() }
}

fn pairs_within<'a>(words: &[&'a Word]) -> Vec<(&'a Word, &'a Word)> {
    let of = |at: usize| words[at + 1..].iter().map(move |&back| (words[at], back));
    (0..words.len()).flat_map(of).collect()
}

fn pairs_between<'a>(one: &[&'a Word], other: &[&'a Word]) -> Vec<(&'a Word, &'a Word)> {
    let of = |&a: &&'a Word| {
        other.iter().map(move |&b| if a.position < b.position { (a, b) } else { (b, a) })
    };
    one.iter().flat_map(of).collect()
}

struct WordLimits {
    side: Side,
    nearest: f64,
}

impl WordLimits {
    fn count_pairs(&self, of: Vec<(&Word, &Word)>) -> Pairs {
        let mut pairs = Pairs::default();
        for (front, back) in of.into_iter().filter(|(front, back)| front.position < back.position) {
            let later = back.away.less(front.away);
            let sign = if later.least > self.nearest {
                1.0
            } else if later.most < -self.nearest {
                -1.0
            } else {
                // times that are not bounds are sure to within some hits
                let is_sure = later.most - later.least <= SOME_HITS * self.nearest;
                pairs.near += f64::from(is_sure);
                continue;
            };
            pairs.known += 1.0;
            pairs.agreeing += if self.side == Side::Receive { sign } else { -sign };
        }
        pairs
    }
}

/// `tells_none`: whether pairs without an order say that there is none.
fn judge(told: &[Pairs], tells_none: bool) -> OrderEstimate {
    let sum = |of: fn(&Pairs) -> f64| told.iter().map(of).sum::<f64>();
    let known = sum(|pairs| pairs.known);
    let agreement = agreement(told, known);
    let order = match agreement {
        _ if sum(|pairs| pairs.near) >= MOST * (known + sum(|pairs| pairs.near)) => {
            AccessOrder::AtOnce
        }
        Interval { low, .. } if low >= ORDERED => AccessOrder::Same,
        Interval { high, .. } if high <= -ORDERED => AccessOrder::Reverse,
        Interval { low, high, .. } if low >= -UNORDERED && high <= UNORDERED && tells_none => {
            AccessOrder::Random
        }
        _ => AccessOrder::Unknown,
    };
    OrderEstimate { order, agreement: Some(agreement), pairs: known as u64 }
}

/// The mean over all pairs. The interval is that of a ratio of sums over requests, with two pairs added that agree and two that
/// do not, so that few pairs that all agree prove little (Agresti and Coull, 1998).
fn agreement(told: &[Pairs], known: f64) -> Interval {
    let all = known + 4.0;
    let sum: f64 = told.iter().map(|pairs| pairs.agreeing).sum();
    let middle = sum / all;
    let added = [1.0, 1.0, -1.0, -1.0].map(|agreeing| Pairs { agreeing, near: 0.0, known: 1.0 });
    let squares: f64 = told
        .iter()
        .chain(&added)
        .map(|pairs| (pairs.agreeing - middle * pairs.known).powi(2))
        .sum();
    let reach = 1.96 * squares.sqrt() / all;
    let estimate = if known > 0.0 { sum / known } else { 0.0 };
    Interval {
        low: (middle - reach).clamp(-1.0, estimate),
        estimate,
        high: (middle + reach).clamp(estimate, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_trace::watched::bounds::TimeBounds;
    use lapscope_trace::watched::words::Word;

    /// Requests of which 4 words were drawn, that are touched at these times.
    fn requests(times: &[[f64; 4]]) -> Vec<Buffer> {
        let word = |(at, &ns): (usize, &f64)| Word {
            position: (at + 1) as f64 / 5.0,
            away: TimeBounds::exactly(ns),
        };
        let buffer =
            |times: &[f64; 4]| Buffer::new(48, times.iter().enumerate().map(word).collect());
        times.iter().map(buffer).collect()
    }

    fn order(times: &[[f64; 4]], side: Side) -> AccessOrder {
        find(&requests(times), side, 2.0).order
    }

    #[test]
    fn a_rising_time_is_the_same_order_for_receives_and_the_reverse_for_sends() {
        let rising = [[10.0, 20.0, 30.0, 40.0]; 6];
        let falling = [[40.0, 30.0, 20.0, 10.0]; 6];
        assert_eq!(order(&rising, Side::Receive), AccessOrder::Same);
        assert_eq!(order(&rising, Side::Send), AccessOrder::Reverse);
        assert_eq!(order(&falling, Side::Receive), AccessOrder::Reverse);
        assert_eq!(order(&falling, Side::Send), AccessOrder::Same);
        assert_eq!(order(&[[10.0, 11.0, 9.0, 10.0]; 6], Side::Receive), AccessOrder::AtOnce);
    }

    #[test]
    fn few_pairs_tell_little_and_ends_tell_nothing() {
        let rising = [[10.0, 20.0, 30.0, 40.0]; 6];
        let mut buffers = requests(&rising);
        // one word of each request is left, and it is the same
        buffers.iter_mut().for_each(|buffer| buffer.words.truncate(1));
        assert_eq!(find(&buffers, Side::Receive, 2.0), OrderEstimate::default());
        let mut buffers = requests(&rising);
        buffers.iter_mut().for_each(|buffer| buffer.words.truncate(2));
        let found = find(&buffers, Side::Receive, 2.0);
        assert_eq!((found.order, found.pairs), (AccessOrder::Unknown, 6));
        for buffer in &mut buffers {
            (buffer.words[0].position, buffer.words[1].position) = (0.0, 1.0);
        }
        assert_eq!(find(&buffers, Side::Receive, 2.0), OrderEstimate::default());
    }

    #[test]
    fn words_of_neighbouring_requests_tell_an_order_where_each_has_one() {
        let mut buffers = requests(&[[10.0, 20.0, 30.0, 40.0]; 40]);
        for (at, buffer) in buffers.iter_mut().enumerate() {
            buffer.words = vec![buffer.words[at % 4]];
        }
        let found = find(&buffers, Side::Receive, 2.0);
        assert_eq!((found.order, found.pairs), (AccessOrder::Same, 39));
        for (at, buffer) in buffers.iter_mut().enumerate() {
            buffer.words[0].away = TimeBounds::exactly(10.0 * ((at * 7) % 5) as f64);
        }
        assert_eq!(find(&buffers, Side::Receive, 2.0).order, AccessOrder::Unknown);
    }

    #[test]
    fn what_differs_from_request_to_request_is_random() {
        let mixed = [
            [10.0, 40.0, 20.0, 30.0],
            [30.0, 10.0, 40.0, 20.0],
            [40.0, 20.0, 30.0, 10.0],
            [20.0, 30.0, 10.0, 40.0],
        ];
        let times: Vec<[f64; 4]> = (0..40).map(|at| mixed[at % 4]).collect();
        let found = find(&requests(&times), Side::Receive, 2.0);
        assert_eq!((found.order, found.pairs), (AccessOrder::Random, 240));
        // in order less not: 2, 0, -4 and 2 of 6
        let agreement = found.agreement.unwrap();
        assert!(agreement.estimate == 0.0 && agreement.low < 0.0, "{agreement:?}");
    }

    #[test]
    fn words_of_which_only_bounds_are_known_tell_what_they_can() {
        let mut buffers = requests(&[[10.0, 20.0, 30.0, 40.0]; 6]);
        for buffer in &mut buffers {
            buffer.words[3].away = TimeBounds::at_least(25.0);
        }
        // it is behind 10 and 20; whether behind 30 is not known
        let found = find(&buffers, Side::Receive, 2.0);
        assert_eq!((found.order, found.pairs), (AccessOrder::Same, 30));
        for buffer in &mut buffers {
            buffer.words.iter_mut().for_each(|word| word.away = TimeBounds::at_least(5.0));
        }
        assert_eq!(find(&buffers, Side::Receive, 2.0), OrderEstimate::default());
    }
}
