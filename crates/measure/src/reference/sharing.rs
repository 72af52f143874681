//! What several messages at once take: `interposer/calibrate/sharing.c`, in its recorded run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use lapscope_trace::{Half, Locality, Operation, Trace};

/// As in interposer/calibrate/sharing.c: messages, and what agrees on them.
const TAG_SHARED: i64 = 20501;
const TAG_SHARED_PLAN: i64 = 20503;

/// Whether a message was sent to find out what several share. These are no reference times.
pub fn is_of_sharing(operation: &Operation) -> bool {
    operation.tag.is_some_and(|tag| (TAG_SHARED..=TAG_SHARED_PLAN).contains(&tag))
}

/// Messages between two ranks that were on their way at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AtOnce {
    /// Size of each.
    pub bytes: u64,
    /// In each direction.
    pub messages: u32,
    /// As many went the other way meanwhile.
    pub both_ways: bool,
    /// From the first post to the end of the last receive, nanoseconds: a quarter took less.
    pub ns: f64,
    pub samples: u64,
}

/// What messages of the largest size that was measured take at once, as multiples of what one takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    pub bytes: u64,
    /// [`SEVERAL`] in one direction.
    pub several: f64,
    /// One in each direction.
    pub both_ways: f64,
}

pub const SEVERAL: u32 = 4;

impl Sharing {
    /// `None`: of no size all of it was measured.
    pub(super) fn fit(all: &[AtOnce]) -> Option<Sharing> {
        let sizes: BTreeSet<u64> = all.iter().map(|it| it.bytes).collect();
        sizes.into_iter().rev().find_map(|bytes| Sharing::of_size(all, bytes))
    }

    fn of_size(all: &[AtOnce], bytes: u64) -> Option<Sharing> {
        let ns = |messages: u32, both_ways: bool| {
            let is_it = |it: &&AtOnce| {
                (it.bytes, it.messages, it.both_ways) == (bytes, messages, both_ways)
            };
            all.iter().find(is_it).map(|it| it.ns).filter(|ns| ns.is_finite() && *ns >= 1.0)
        };
        let one = ns(1, false)?;
        Some(Sharing { bytes, several: ns(SEVERAL, false)? / one, both_ways: ns(1, true)? / one })
    }
}

/// By locality; nothing of any run but that of `lapscope calibrate`.
pub fn at_once(trace: &Trace) -> BTreeMap<Locality, Vec<AtOnce>> {
    let mut times: BTreeMap<(Locality, u64, u32, bool), Vec<i64>> = BTreeMap::new();
    for rank in 0..trace.ranks.len() {
        let mut calls: BTreeMap<u32, Vec<Half<'_>>> = BTreeMap::new();
        for half in trace.halves(rank).filter(|half| half.operation.tag == Some(TAG_SHARED)) {
            if let Some(call) = half.call {
                calls.entry(call).or_default().push(half);
            }
        }
        for halves in calls.values() {
            let received = || halves.iter().filter(|half| !half.operation.is_send());
            let sent: Vec<Half<'_>> = received().filter_map(|half| trace.partner(half)).collect();
            let sends = sent.iter().chain(halves.iter().filter(|half| half.operation.is_send()));
            let begin = sends.map(|half| half.post_begin).min();
            // the other rank's call ends with what goes the other way
            let ends = halves.iter().chain(&sent).map(|half| half.completion_end);
            let end = ends.collect::<Option<Vec<i64>>>().and_then(|ends| ends.into_iter().max());
            let (Some(begin), Some(end), Some(first)) = (begin, end, received().next()) else {
                continue;
            };
            let Some(peer) = first.operation.peer else { continue };
            let messages = received().count();
            let locality = trace.locality(rank, peer as usize);
            let key = (locality, first.bytes().0, messages as u32, messages < halves.len());
            times.entry(key).or_default().push(end - begin);
        }
    }
    let mut found: BTreeMap<Locality, Vec<AtOnce>> = BTreeMap::new();
    for ((locality, bytes, messages, both_ways), mut all) in times {
        all.sort_unstable();
        let (ns, samples) = (all[all.len() / 4] as f64, all.len() as u64);
        found.entry(locality).or_default().push(AtOnce { bytes, messages, both_ways, ns, samples });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_largest_size_that_was_measured_in_full() {
        let at =
            |bytes, messages, both_ways, ns| AtOnce { bytes, messages, both_ways, ns, samples: 3 };
        let mut all = vec![at(64, 1, false, 1.0), at(64, 1, true, 9.0), at(64, 4, false, 9.0)];
        all.extend([at(128, 1, false, 2.0), at(128, 4, false, 8.0)]);
        let found = Sharing { bytes: 64, several: 9.0, both_ways: 9.0 };
        assert_eq!(Sharing::fit(&all), Some(found));
        all.push(at(128, 1, true, 3.0));
        let found = Sharing { bytes: 128, several: 4.0, both_ways: 1.5 };
        assert_eq!(Sharing::fit(&all), Some(found));
        assert_eq!(Sharing::fit(&[at(128, 1, false, f64::NAN)]), None);
    }
}
