//! What is summed over the calls of a finding.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use lapscope_data::places::SiteId;
use lapscope_measure::overlap::exposure::Exposure;

/// What is known of a finding. Ranks are places in [`Trace::ranks`], times nanoseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    pub parts: Exposure,
    /// What of these parts there is at least, and at most.
    pub bounds: (i64, i64),
    pub posting: i64,
    pub calls: u64,
    pub bytes: Option<(u64, u64)>,
    /// The calls that wait, and the posts whose windows would change, by the time laid to them.
    pub waiting: BTreeMap<SiteId, i64>,
    pub posts: BTreeMap<SiteId, i64>,
    /// Post and completing call around computations in which a test would help as well, by the time it would help against.
    pub or_test: BTreeMap<(SiteId, SiteId), i64>,
    /// The time of waits for sends that could come behind these calls, though little is computed on the way there.
    pub behind: BTreeMap<SiteId, i64>,
    /// Sends that were late, by the time that was waited for them.
    pub late_posts: BTreeMap<SiteId, i64>,
    pub ranks: BTreeMap<u32, i64>,
    /// Ranks on which something would change.
    pub change_ranks: BTreeMap<u32, i64>,
    /// Computation in so many windows that would change.
    pub compute: i64,
    pub windows: u64,
    /// What the transfers of so many calls take one after the other.
    pub transfer: i64,
    pub transfers: u64,
    /// The part of the time in standard sends, which may go from copies.
    pub standard_sends: i64,
    /// The part of it in calls that post.
    pub in_posts: i64,
    /// Some of it is of collectives.
    pub collective: bool,
    /// Whether posts send.
    pub sends: bool,
    /// Ranks that waited and that were waited for, of findings about late partners.
    pub pairs: BTreeMap<(u32, u32), Late>,
}

/// Time that one rank waited for another to arrive.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Late {
    pub ns: i64,
    /// The part of it in which the partner was outside MPI.
    pub outside: i64,
    pub calls: u64,
    pub bytes: Option<(u64, u64)>,
}

impl Sums {
    pub fn add_bounds(&mut self, (least, most): (i64, i64)) {
        self.bounds.0 = self.bounds.0.saturating_add(least);
        self.bounds.1 = self.bounds.1.saturating_add(most);
    }

    pub fn merge(&mut self, other: Sums) {
        self.parts += other.parts;
        self.add_bounds(other.bounds);
        self.posting += other.posting;
        self.calls += other.calls;
        self.bytes = join_ranges(self.bytes, other.bytes);
        add_all(&mut self.waiting, other.waiting);
        add_all(&mut self.posts, other.posts);
        add_all(&mut self.or_test, other.or_test);
        add_all(&mut self.behind, other.behind);
        add_all(&mut self.late_posts, other.late_posts);
        add_all(&mut self.ranks, other.ranks);
        add_all(&mut self.change_ranks, other.change_ranks);
        self.compute += other.compute;
        self.windows += other.windows;
        self.transfer += other.transfer;
        self.transfers += other.transfers;
        self.standard_sends = self.standard_sends.saturating_add(other.standard_sends);
        self.in_posts = self.in_posts.saturating_add(other.in_posts);
        self.collective |= other.collective;
        self.sends |= other.sends;
        for (pair, late) in other.pairs {
            self.pairs.entry(pair).or_default().add(&late);
        }
    }
}

impl Sums {
    /// As much of its time as `share`, a fraction, says, and the rest. Both are of the same calls.
    pub fn split(self, share: f64) -> (Sums, Sums) {
        (self.clone().scaled(share), self.scaled(1.0 - share))
    }

    fn scaled(mut self, share: f64) -> Sums {
        let part = |ns: i64| (ns as f64 * share).round() as i64;
        self.parts = self.parts.map(part);
        self.bounds = (part(self.bounds.0), part(self.bounds.1));
        self.posting = part(self.posting);
        self.standard_sends = part(self.standard_sends);
        self.in_posts = part(self.in_posts);
        let by_site = [&mut self.waiting, &mut self.posts, &mut self.behind, &mut self.late_posts];
        by_site.into_iter().flat_map(BTreeMap::values_mut).for_each(|ns| *ns = part(*ns));
        self.or_test.values_mut().for_each(|ns| *ns = part(*ns));
        let by_rank = [&mut self.ranks, &mut self.change_ranks];
        by_rank.into_iter().flat_map(BTreeMap::values_mut).for_each(|ns| *ns = part(*ns));
        for late in self.pairs.values_mut() {
            (late.ns, late.outside) = (part(late.ns), part(late.outside));
        }
        self
    }
}

fn add_all<K: Ord>(sums: &mut BTreeMap<K, i64>, more: BTreeMap<K, i64>) {
    for (key, ns) in more {
        *sums.entry(key).or_default() += ns;
    }
}

impl Late {
    pub fn add(&mut self, other: &Late) {
        self.ns += other.ns;
        self.outside += other.outside;
        self.calls += other.calls;
        self.bytes = join_ranges(self.bytes, other.bytes);
    }
}

/// Where most of the time is.
pub(super) fn most(sites: &BTreeMap<SiteId, i64>) -> Option<SiteId> {
    sites.iter().max_by_key(|(_, ns)| **ns).map(|(site, _)| *site)
}

pub(super) fn join_ranges(a: Option<(u64, u64)>, b: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (range, None) | (None, range) => range,
    }
}
