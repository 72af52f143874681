//! What the words of a site's requests say of all of its buffers.
//!
//! A few words of each buffer are watched: the first, the last, and others drawn at random. What is wanted of *all* of a
//! buffer hangs on its worst word, which mostly was not watched. The worst of those that were is no better than it, so that
//! their median over requests has an upper bound that holds whatever the order, and so has each end's. For the lower bound
//! the order counts: where it makes an end the worst word, that was watched; else the words drawn leave a gap below the
//! least of them, as wide as the others are apart on the average ([SA06] takes one time from word to word).
//!
//! Each time is a pair of bounds. A word that nobody touched has a lower one, a word that was written too often an
//! upper one, and hits of other words meanwhile, which cost the program something, lie between nothing and their price.
//! A low end is computed from the lower bounds and a high end from the upper ones, so that no distribution is assumed.
//! Time in MPI is taken off: data that are needed after MPI_Barrier are needed at once. `simulated.rs` holds it against
//! made-up programs: what is printed as 95 % holds the truth in nine of ten at least, in every order.

use super::bounds::{median, median_of_words, ConfidenceBounds, LEAST_REQUESTS};
use super::order::{find, AccessOrder, OrderEstimate};
use lapscope_data::model::Side;
use lapscope_trace::watched::bounds::TimeBounds;
use lapscope_trace::watched::words::{Buffer, Word};

/// Drawn words that are enough for a median without the ends, which have more than their share otherwise.
const DRAWN_WORDS: usize = 12;

/// What is said of a site's buffers. Nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BufferTimes {
    /// T_AC or T_AP of [SA06]: the median over requests of the least over words. This and the next two are `None` of fewer than
    /// [`LEAST_REQUESTS`] requests.
    pub all: Option<ConfidenceBounds>,
    /// What half of the words have at least.
    pub half: Option<ConfidenceBounds>,
    /// T_C or T_P of [SA06]: from a word to the next in the order of consumption or production.
    pub word: Option<ConfidenceBounds>,
    pub order: OrderEstimate,
    /// Where buffers of one line differ: a tenth of them have at most that, far less than the others, nanoseconds. A line can be
    /// moved no further than nearly all of its requests allow, so `all` begins there.
    pub tenth: Option<f64>,
}

/// `nearest`: what watching makes uncertain of the distance of two touches, nanoseconds.
pub fn estimate(buffers: &[Buffer], side: Side, nearest: f64) -> BufferTimes {
    let order = find(buffers, side, nearest);
    let all = all(buffers, order.order, side, nearest);
    let tenth = all.and_then(|all| tenth(buffers, all.low / 2.0));
    BufferTimes {
        all: match tenth {
            Some(tenth) => {
                all.map(|all| ConfidenceBounds::new(tenth, None, all.high.unwrap_or(f64::INFINITY)))
            }
            None => all,
        },
        tenth,
        half: median_of_words(&drawn(buffers)),
        word: word(buffers, &order, side, nearest),
        order,
    }
}

/// What a tenth of the buffers have at most, where that is less than `little`. What disturbs a program makes times longer, so
/// shorter ones are no accident.
fn tenth(buffers: &[Buffer], little: f64) -> Option<f64> {
    /// So many that two of them are a tenth.
    const LEAST: usize = 20;
    let mut most: Vec<f64> =
        buffers.iter().filter_map(Buffer::least).map(|least| least.most).collect();
    most.sort_by(f64::total_cmp);
    let tenth = *most.get(most.len() / 10)?;
    (most.len() >= LEAST && tenth < little).then_some(tenth)
}

fn all(
    buffers: &[Buffer],
    order: AccessOrder,
    side: Side,
    nearest: f64,
) -> Option<ConfidenceBounds> {
    let least: Vec<TimeBounds> = buffers.iter().filter_map(Buffer::least).collect();
    let watched = median(&least)?;
    let [first, last] = [end(buffers, Word::is_first), end(buffers, Word::is_last)];
    // the worst word has no more than any word that is the same of every buffer
    let highs = [Some(watched), first, last].into_iter().flatten().filter_map(|it| it.high);
    let high = highs.fold(f64::INFINITY, f64::min);
    let worst = match (order, side) {
        (AccessOrder::Same, Side::Receive) | (AccessOrder::Reverse, Side::Send) => first,
        (AccessOrder::Same, Side::Send) | (AccessOrder::Reverse, Side::Receive) => last,
        (AccessOrder::AtOnce, _) => {
            Some(ConfidenceBounds { low: watched.low - nearest, ..watched })
        }
        (AccessOrder::Random | AccessOrder::Unknown, _) => None,
    };
    Some(match worst {
        Some(worst) => ConfidenceBounds::new(worst.low.min(high), worst.estimate, high),
        None => {
            let gap = Gap::measure(buffers);
            ConfidenceBounds::new(gap.low.min(watched.low).min(high), gap.likely, high)
        }
    })
}

/// The first, or the last, word of buffers, where it was watched often enough.
fn end(buffers: &[Buffer], is_it: fn(&Word) -> bool) -> Option<ConfidenceBounds> {
    let words = buffers.iter().filter_map(|buffer| buffer.words.iter().find(|word| is_it(word)));
    median(&words.map(|word| word.away).collect::<Vec<_>>())
}

/// How far the worst word of a buffer may lie below those that were drawn.
struct Gap {
    low: f64,
    likely: Option<f64>,
}

impl Gap {
    fn measure(buffers: &[Buffer]) -> Gap {
        let drawn = drawn(buffers);
        let words = drawn.iter().map(|words| words.len() as f64).fold(f64::INFINITY, f64::min);
        let least = drawn.iter().filter_map(|words| words.iter().copied().reduce(TimeBounds::min));
        let spreads: Vec<TimeBounds> = drawn.iter().filter_map(|words| spread(words)).collect();
        let (least, spread) = (median(&least.collect::<Vec<_>>()), median(&spreads));
        // The least of so many even ones lies further above the end than that in 5 % of all requests, or in half of them.
        let gap_of = |share: f64| 1.0 - share.powf(1.0 / words.max(1.0));
        let widest = spread.and_then(|spread| spread.high).unwrap_or(f64::INFINITY);
        let below = least.map_or(0.0, |least| least.low) - widest * gap_of(0.05);
        let estimates = least.and_then(|it| it.estimate).zip(spread.and_then(|it| it.estimate));
        Gap {
            low: below_all(buffers).max(below),
            likely: estimates.map(|(least, spread)| least - spread * gap_of(0.5)),
        }
    }
}

/// The words of each request that were drawn; all where too few were. Its ends are the same words every time, so that they say
/// nothing of others.
fn drawn(buffers: &[Buffer]) -> Vec<Vec<TimeBounds>> {
    let words_of = |is_wanted: fn(&Word) -> bool| -> Vec<Vec<TimeBounds>> {
        let words = |buffer: &Buffer| -> Vec<TimeBounds> {
            buffer.words.iter().filter(|word| is_wanted(word)).map(|word| word.away).collect()
        };
        buffers.iter().map(words).filter(|words| !words.is_empty()).collect()
    };
    let drawn = words_of(|word| !word.is_end());
    let is_enough =
        drawn.len() >= LEAST_REQUESTS && drawn.iter().map(Vec::len).sum::<usize>() >= DRAWN_WORDS;
    if is_enough {
        drawn
    } else {
        words_of(|_| true)
    }
}

/// What no word of any request is below, of those that were not watched, either: the least of n even ones lies more than
/// 3.7/n of their spread above the end with 2.5 %. The ends of buffers are the same words over and over: they count as two.
fn below_all(buffers: &[Buffer]) -> f64 {
    let words = || buffers.iter().flat_map(|buffer| &buffer.words);
    let drawn = words().filter(|word| !word.is_end()).count() as f64;
    let least = words().map(|word| word.away.least).fold(f64::INFINITY, f64::min);
    let most = words().map(|word| word.away.least).fold(0.0, f64::max);
    least - (most - least) * 3.7 / (drawn + 2.0)
}

/// Within what time all words of a buffer come, where they come evenly, by the range of those that were drawn. Their
/// median over requests is that time. `None` of fewer than two.
fn spread(words: &[TimeBounds]) -> Option<TimeBounds> {
    let first = words.iter().copied().reduce(TimeBounds::min)?;
    let last = words
        .iter()
        .copied()
        .reduce(|a, b| TimeBounds { least: a.least.max(b.least), most: a.most.max(b.most) })?;
    let share = median_range(words.len());
    (words.len() > 1).then(|| last.less(first).map(|ns| ns.max(0.0) / share))
}

/// The median of the range of `count` numbers drawn evenly between 0 and 1: where its distribution, k r^(k-1) - (k-1) r^k,
/// reaches a half.
fn median_range(count: usize) -> f64 {
    let (k, n) = (count as f64, count as i32);
    let below = |r: f64| k * r.powi(n - 1) - (k - 1.0) * r.powi(n);
    let mut between = (0.0, 1.0);
    for _ in 0..50 {
        let middle = (between.0 + between.1) / 2.0;
        between = if below(middle) < 0.5 { (middle, between.1) } else { (between.0, middle) };
    }
    between.0
}

fn word(
    buffers: &[Buffer],
    found: &OrderEstimate,
    side: Side,
    nearest: f64,
) -> Option<ConfidenceBounds> {
    let direction = if side == Side::Receive { 1.0 } else { -1.0 };
    let times: Vec<TimeBounds> = match found.order {
        AccessOrder::Same => buffers.iter().filter_map(|buffer| slope(buffer, direction)).collect(),
        AccessOrder::Reverse => {
            buffers.iter().filter_map(|buffer| slope(buffer, -direction)).collect()
        }
        AccessOrder::Random | AccessOrder::AtOnce => {
            let length = buffers.iter().map(steps).sum::<f64>() / buffers.len() as f64;
            drawn(buffers)
                .iter()
                .filter_map(|words| spread(words))
                .map(|it| it.map(|ns| ns / length))
                .collect()
        }
        AccessOrder::Unknown => return None,
    };
    let unsure = median(
        &buffers.iter().map(|it| TimeBounds::exactly(nearest / steps(it))).collect::<Vec<_>>(),
    );
    let unsure = unsure.and_then(|unsure| unsure.high).unwrap_or(0.0);
    let ConfidenceBounds { low, estimate, high } = median(&times)?;
    let high = high.map_or(f64::INFINITY, |high| high + unsure);
    Some(ConfidenceBounds::new(low - unsure, estimate, high))
}

/// Steps from its first word to its last.
fn steps(buffer: &Buffer) -> f64 {
    (buffer.length() - 1.0).max(1.0)
}

/// From a word to the next, by the two that are furthest apart.
fn slope(buffer: &Buffer, direction: f64) -> Option<TimeBounds> {
    let (first, last) = (buffer.words.first()?, buffer.words.last()?);
    let distance = (last.position - first.position) * steps(buffer);
    let later = last.away.less(first.away);
    let later =
        if direction > 0.0 { later } else { TimeBounds { least: -later.most, most: -later.least } };
    (distance > 0.0).then(|| later.map(|ns| ns.max(0.0) / distance))
}
