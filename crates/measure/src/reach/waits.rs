//! The calls that complete receives: each can come no later than the first of their data are needed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::bounds::ConfidenceBounds;
use super::estimate::BufferTimes;
use super::gain::at_most;
use super::site::{Movability, ProgramCall, SiteReach, WaitReach};
use super::transfers::Transfers;
use lapscope_data::model::{Nanos, Side};
use lapscope_data::places::SiteId;

/// `sites` as they are shown; `place` names a site.
pub(super) fn of_sites(
    sites: &[SiteReach],
    transfers: &Transfers,
    nearest: Nanos,
    place: &mut dyn FnMut(SiteId) -> ProgramCall,
) -> Vec<WaitReach> {
    let mut by_wait: BTreeMap<SiteId, Vec<usize>> = BTreeMap::new();
    for (at, site) in sites.iter().enumerate().filter(|(_, site)| site.side == Side::Receive) {
        let wait = site.completed_in.as_ref().unwrap_or(&site.place);
        by_wait.entry(wait.id).or_default().push(at);
    }
    let mut waits: Vec<WaitReach> = by_wait
        .into_iter()
        .map(|(id, receives)| wait(id, &receives, sites, (transfers, nearest), place))
        .collect();
    waits.sort_by_key(|wait| Reverse((wait.recoverable_ns, wait.exposed_ns)));
    waits
}

fn wait(
    id: SiteId,
    receives: &[usize],
    sites: &[SiteReach],
    (transfers, nearest): (&Transfers, Nanos),
    place: &mut dyn FnMut(SiteId) -> ProgramCall,
) -> WaitReach {
    let known: Option<Vec<ConfidenceBounds>> = receives.iter().map(|&at| sites[at].all).collect();
    let all = known.and_then(|all| all.into_iter().reduce(ConfidenceBounds::min));
    let known: Option<Vec<ConfidenceBounds>> =
        receives.iter().map(|&at| sites[at].movable()).collect();
    let all_with_copy = known.and_then(|all| all.into_iter().reduce(ConfidenceBounds::min));
    let high = |at: &usize| sites[*at].all.and_then(|all| all.high).unwrap_or(f64::INFINITY);
    let likely = |at: &usize| sites[*at].all.map_or(f64::INFINITY, ConfidenceBounds::likely);
    let first = receives
        .iter()
        .copied()
        .min_by(|a, b| likely(a).total_cmp(&likely(b)).then(high(a).total_cmp(&high(b))));
    let completed: BTreeSet<(SiteId, Side)> = transfers.completed_by(id).collect();
    let watched: BTreeSet<SiteId> = receives.iter().map(|&at| sites[at].place.id).collect();
    let is_unwatched =
        |&&(site, side): &&(SiteId, Side)| side == Side::Receive && !watched.contains(&site);
    let unwatched = completed.iter().filter(is_unwatched).map(|&(site, _)| place(site)).collect();
    let exposed_ns = transfers.exposed_in(id);
    let calls = receives.iter().map(|&at| sites[at].worth.transfers).max().unwrap_or(0);
    let reference = receives.iter().filter_map(|&at| sites[at].worth.reference_ns).max();
    let half = receives.iter().filter_map(|&at| sites[at].half).reduce(ConfidenceBounds::min);
    let found = BufferTimes { all, half, ..BufferTimes::default() };
    let copied = BufferTimes { all: all_with_copy, half: all_with_copy, ..BufferTimes::default() };
    let verdict = Movability::with_copy(&found, &copied, reference, nearest);
    let movable = match verdict {
        Movability::MovableWithCopy => all_with_copy,
        _ => all,
    };
    WaitReach {
        place: place(id),
        all,
        all_with_copy,
        first: first.filter(|_| all.is_some()),
        unwatched,
        completes_sends: completed.iter().any(|&(site, side)| side == Side::Send && site != id),
        exposed_ns,
        recoverable_ns: at_most(movable, calls).min(exposed_ns),
        verdict,
    }
}
