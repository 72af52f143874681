//! The critical path and root causes, with the names of their places.

use super::document::{CriticalPath, PathKind, PathRank, PathSite, ReplayNote, RootCause};
use crate::replay::critical::{self, Stretch};
use crate::replay::roots::roots;
use crate::replay::{Outcome, Program};
use lapscope_data::model::Nanos;
use lapscope_data::places::SiteId;
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_trace::Trace;

/// Below this share of all waiting, what is in no root cause is not told.
const TOLD: f64 = 0.01;

/// What the run's time is made of; `None`: it never ends. `top`: as many of its stretches, 0 for all.
pub fn critical_path(
    trace: &Trace,
    program: &Program,
    outcome: &Outcome,
    top: usize,
    names: &mut dyn NameFrames,
) -> Option<CriticalPath> {
    let path = critical::critical_path(trace, program, outcome)?;
    let length = Nanos(path.length);
    let mut sums = [0; 3];
    for &(stretch, ns) in &path.stretches {
        sums[kind(stretch) as usize] += ns;
    }
    let [compute_ns, overhead_ns, communication_ns] = sums.map(Nanos);
    let by_rank = trace.ranks.iter().zip(&path.ranks).map(|(rank, &ns)| PathRank {
        rank: rank.info().rank,
        ns: Nanos(ns),
        share: Nanos(ns).share_of(length),
    });
    let wanted = if top == 0 { path.stretches.len() } else { top };
    let mut named = NamedSites { trace, names, length };
    let by_site = path.stretches.iter().take(wanted).map(|&(stretch, ns)| named.site(stretch, ns));
    Some(CriticalPath {
        length_ns: length,
        compute_ns,
        overhead_ns,
        communication_ns,
        by_rank: by_rank.collect(),
        by_site: by_site.collect(),
    })
}

/// What waits are due to, the largest first, and a sentence about those that are due to none of it. Of a run that never ends
/// there is nothing. `top`: as many, 0 for all.
pub fn root_causes(
    trace: &Trace,
    program: &Program,
    outcome: &Outcome,
    top: usize,
    names: &mut dyn NameFrames,
) -> (Vec<RootCause>, Option<ReplayNote>) {
    let length = Nanos(outcome.run_ns(trace).unwrap_or(0));
    let found = roots(trace, program, outcome, top);
    let mut named = NamedSites { trace, names, length };
    let causes = found.causes.iter().map(|cause| RootCause {
        rank: trace.ranks[cause.rank].info().rank,
        what: named.site(cause.what, cause.took),
        delayed_ns: Nanos(cause.delayed),
        delayed_ranks: cause.delayed_ranks,
    });
    let causes = causes.collect();
    let waiting = Nanos(found.short + found.rest);
    let share = waiting.share_of(Nanos(found.waits));
    (causes, (share >= TOLD).then_some(ReplayNote::Untraced { share, waiting }))
}

fn kind(stretch: Stretch) -> PathKind {
    match stretch {
        Stretch::Computation { .. } => PathKind::Computation,
        Stretch::Overhead(_) => PathKind::Overhead,
        Stretch::Communication(_) => PathKind::Communication,
    }
}

/// Call sites with their names.
pub(super) struct NamedSites<'a> {
    pub trace: &'a Trace,
    pub names: &'a mut dyn NameFrames,
    /// Length of the run, for shares.
    pub length: Nanos,
}

impl NamedSites<'_> {
    /// A call and its place.
    pub fn call(&mut self, site: SiteId) -> (String, Option<FrameName>) {
        let frame = self.trace.places.site(site).frame;
        let name = frame.and_then(|frame| self.names.name(frame).into_iter().next());
        (self.trace.places.call(site).name.clone(), name)
    }

    fn site(&mut self, stretch: Stretch, ns: i64) -> PathSite {
        let (before, after) = match stretch {
            Stretch::Computation { before, after } => (before, after),
            Stretch::Overhead(site) | Stretch::Communication(site) => (Some(site), None),
        };
        let mut name = |site: Option<SiteId>| match site.map(|site| self.call(site)) {
            Some((call, site)) => (Some(call), site),
            None => (None, None),
        };
        let ((call, site), (next_call, next_site)) = (name(before), name(after));
        let ns = Nanos(ns);
        let share = ns.share_of(self.length);
        PathSite { kind: kind(stretch), call, site, next_call, next_site, ns, share }
    }
}
