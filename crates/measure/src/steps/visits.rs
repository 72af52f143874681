//! Visits of a place that may begin steps.

use super::events::Events;

/// Between bursts there is at least so many times as much computation as between visits within one.
pub(super) const APART: i64 = 8;
/// Computation between bursts is at least this part of all.
const MOST: f64 = 0.9;
/// Bursts are of the same number of visits but for this part, and so is the part of gaps that may be anything.
const UNLIKE: f64 = 0.05;
const ANYTHING: usize = 50;
/// With fewer bursts nothing is known.
const FEWEST: usize = 5;

/// The visits that begin bursts: a place in a loop over neighbours or dimensions is visited many times with hardly any computation
/// in between. `None` where visits come one by one.
pub(super) fn bursts(events: &Events, visits: &[u32]) -> Option<Vec<u32>> {
    let gaps: Vec<i64> = visits.windows(2).map(|pair| events.outside(pair[0], pair[1])).collect();
    let threshold = threshold(&gaps)?;
    let begins = (1..visits.len()).filter(|&at| gaps[at - 1] > threshold);
    let first: Vec<usize> = std::iter::once(0).chain(begins).collect();
    let first = of_one_size(&first, visits.len())?;
    (first.len() >= FEWEST).then(|| first.into_iter().map(|at| visits[at]).collect())
}

/// What parts gaps within bursts from those between, where they are of two kinds that are clearly apart but for a few.
fn threshold(gaps: &[i64]) -> Option<i64> {
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable();
    let all: i64 = sorted.iter().sum();
    let any = sorted.len() / ANYTHING;
    let mut within: i64 = 0;
    for at in 0..sorted.len().saturating_sub(1) {
        within += sorted[at];
        let (short, long) = (at + 1, sorted.len() - at - 1);
        if long + 1 < FEWEST || short + 1 < long {
            continue;
        }
        let (below, above) = (sorted[at.saturating_sub(any)], sorted[at + 1 + any.min(long / 2)]);
        let is_most = (all - within) as f64 >= MOST * all as f64;
        if above / APART >= below.max(1) && is_most {
            let least = below.max(1) as f64;
            return Some((least * (above as f64 / least).sqrt()) as i64);
        }
    }
    None
}

/// Bursts of as many visits as most have, those that an accident has cut put together; `None` where too many are of other sizes.
/// The last may be cut by the end.
fn of_one_size(first: &[usize], visits: usize) -> Option<Vec<usize>> {
    let size = |at: usize| first.get(at + 1).copied().unwrap_or(visits) - first[at];
    let mut sorted: Vec<usize> = (0..first.len()).map(size).collect();
    sorted.sort_unstable();
    let usual = *sorted.get(sorted.len() / 2).filter(|usual| **usual > 1)?;
    let mut whole: Vec<usize> = Vec::new();
    let (mut unlike, mut filled) = (0, usual);
    for (at, &visit) in first.iter().enumerate() {
        if filled + size(at) <= usual {
            filled += size(at);
            continue;
        }
        unlike += usize::from(filled != usual);
        whole.push(visit);
        filled = size(at);
    }
    ((unlike as f64) <= UNLIKE * whole.len() as f64).then_some(whole)
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
