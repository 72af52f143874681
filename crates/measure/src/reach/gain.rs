//! What moving a post or a wait is worth: what of a transfer it would hide, and what of the time that was waited it could save. Both are bounds:
//! what else keeps a message from moving is not known.

use std::collections::BTreeMap;

use super::bounds::ConfidenceBounds;
use super::estimate::BufferTimes;
use super::site::{Movability, SiteReach, WaitReach, Worth};
use super::sites::SiteWatches;
use super::transfers::{Transfer, Transfers};
use lapscope_data::model::{Nanos, Side};
use lapscope_data::places::SiteId;

/// In the order of `groups`.
pub(super) fn of_groups(
    groups: &[SiteWatches],
    transfers: &Transfers,
    nearest: Nanos,
) -> Vec<(Worth, Movability)> {
    let of_group = |group: &SiteWatches| {
        let is_beside = |other: &&SiteWatches| (other.id, other.side) == (group.id, group.side);
        let others: Vec<(u64, u64)> =
            groups.iter().filter(is_beside).map(SiteWatches::bytes).collect();
        let transfer = transfers.of_sizes(group.id, group.side, group.bytes(), &others);
        let reference = transfer.mean_reference().filter(|time| time.0 > 0);
        let verdict = Movability::with_copy(&group.found, &group.copied, reference, nearest);
        let found = match verdict {
            Movability::MovableWithCopy => &group.copied,
            _ => &group.found,
        };
        (Worth::estimate(group, found.all, transfer, transfers), verdict)
    };
    groups.iter().map(of_group).collect()
}

impl Worth {
    /// What was waited for these requests, on either side.
    pub fn at_stake(&self) -> Nanos {
        self.exposed_ns + self.waited_for_ns
    }

    fn estimate(
        group: &SiteWatches,
        all: Option<ConfidenceBounds>,
        transfer: Transfer,
        transfers: &Transfers,
    ) -> Worth {
        let reference_ns = transfer.mean_reference().filter(|time| time.0 > 0);
        let exposed_ns = transfers.exposed(group.id);
        let waited_for_ns = match group.side {
            Side::Send => transfers.waited_for(group.id),
            Side::Receive => Nanos(0),
        };
        let hides = all.zip(reference_ns).map(|(all, reference)| {
            let share = |ns: f64| (ns / reference.0 as f64).min(1.0);
            let at_most = ConfidenceBounds { high: all.high.or(Some(reference.0 as f64)), ..all };
            at_most.map(share)
        });
        let most = at_most(all, transfer.count);
        Worth {
            transfers: transfer.count,
            reference_ns,
            hides,
            exposed_ns,
            waited_for_ns,
            recoverable_ns: most.min(exposed_ns + waited_for_ns),
        }
    }
}

/// What moving so many calls by that can save at most.
pub(super) fn at_most(all: Option<ConfidenceBounds>, calls: u64) -> Nanos {
    match all.and_then(|all| all.high) {
        Some(high) => Nanos((high * calls as f64).min(i64::MAX as f64 / 2.0) as i64),
        None => Nanos(i64::MAX),
    }
}

impl Movability {
    /// What is less than three hits of watched words, by which a time may be off, or a twentieth of the transfer, is nothing.
    pub(super) fn judge(
        found: &BufferTimes,
        reference: Option<Nanos>,
        nearest: Nanos,
    ) -> Movability {
        const LITTLE: f64 = 0.05;
        let little = reference.map_or(0.0, |reference| reference.0 as f64 * LITTLE);
        let worth = little.max(3.0 * nearest.0 as f64);
        let (Some(all), Some(half)) = (found.all, found.half) else { return Movability::Unknown };
        let is_nothing = all.estimate.or(all.high).is_some_and(|most| most <= worth);
        match is_nothing {
            false if all.likely() > worth => Movability::Movable,
            false => Movability::Unknown,
            true if half.likely() > worth => Movability::HalfMovable,
            true => Movability::AtOnce,
        }
    }
}

impl Movability {
    /// The same where the program copies the data beside the call: then the copying can be moved as well.
    pub(super) fn with_copy(
        found: &BufferTimes,
        copied: &BufferTimes,
        reference: Option<Nanos>,
        nearest: Nanos,
    ) -> Movability {
        let own = Movability::judge(found, reference, nearest);
        let is_kept = matches!(own, Movability::AtOnce | Movability::HalfMovable);
        match is_kept && Movability::judge(copied, reference, nearest) == Movability::Movable {
            true => Movability::MovableWithCopy,
            false => own,
        }
    }
}

/// What all posts and waits together could save at most: a wait once, however many receives it completes, and a call that sends
/// and receives once.
pub(super) fn in_all(sites: &[SiteReach], waits: &[WaitReach]) -> Nanos {
    let mut by_site: BTreeMap<SiteId, Nanos> = BTreeMap::new();
    for site in sites.iter().filter(|site| site.side == Side::Send) {
        let sum = by_site.entry(site.place.id).or_default();
        *sum = (*sum + site.worth.recoverable_ns).min(site.worth.at_stake());
    }
    for wait in waits {
        let sum = by_site.entry(wait.place.id).or_default();
        *sum = wait.recoverable_ns.max(*sum);
    }
    by_site.into_values().sum()
}
