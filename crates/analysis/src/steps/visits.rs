//! Visits of a place that may begin steps.

use super::events::Events;

/// Within a burst, visits lie at most so many times closer to each other than bursts.
const APART: i64 = 8;
/// Time between bursts is at least this part of all.
const MOST: f64 = 0.9;
/// Bursts are of the same number of visits but for this part.
const UNLIKE: f64 = 0.05;
/// Of fewer bursts nothing is known.
const FEWEST: usize = 5;

/// The visits that begin bursts: a place in a loop over neighbours or dimensions is visited many times at once. `None` where
/// visits come one by one.
pub(super) fn bursts(events: &Events, visits: &[u32]) -> Option<Vec<u32>> {
    let moments: Vec<i64> = visits.iter().map(|&at| events.begin(at)).collect();
    let gaps: Vec<i64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let threshold = threshold(&gaps)?;
    let mut first = vec![*visits.first()?];
    let begins = visits.iter().skip(1).zip(&gaps).filter(|(_, gap)| **gap > threshold);
    first.extend(begins.map(|(&at, _)| at));
    Some(first).filter(|first| are_alike(visits, first))
}

/// The longest gap within bursts, where gaps are of two kinds that are clearly apart.
fn threshold(gaps: &[i64]) -> Option<i64> {
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable();
    let all: i64 = sorted.iter().sum();
    let mut within = 0;
    for (at, pair) in sorted.windows(2).enumerate() {
        within += pair[0];
        let (short, long) = (at + 1, sorted.len() - at - 1);
        let is_apart = pair[1] / APART >= pair[0].max(1);
        let is_most = (all - within) as f64 >= MOST * all as f64;
        if is_apart && is_most && long + 1 >= FEWEST && short + 1 >= long {
            return Some(pair[0]);
        }
    }
    None
}

/// Whether nearly all bursts, but for the last, are of as many visits.
fn are_alike(visits: &[u32], first: &[u32]) -> bool {
    let at = |visit: &u32| visits.partition_point(|it| it < visit);
    let sizes: Vec<usize> = first.windows(2).map(|pair| at(&pair[1]) - at(&pair[0])).collect();
    let mut sorted = sizes.clone();
    sorted.sort_unstable();
    let Some(&usual) = sorted.get(sorted.len() / 2) else { return false };
    let unlike = sizes.iter().filter(|size| **size != usual).count();
    usual > 1 && unlike as f64 <= UNLIKE * sizes.len() as f64
}

/// For each visit how many of `others` lie between it and the next; both in order. What is before the first is left out.
pub(super) fn counts_between(visits: &[u32], others: &[u32]) -> Vec<usize> {
    let mut counts = vec![0; visits.len()];
    let mut at = 0;
    for other in others {
        while at < visits.len() && visits[at] <= *other {
            at += 1;
        }
        if at > 0 {
            counts[at - 1] += 1;
        }
    }
    counts
}
