//! What a run's messages say of the sites whose buffers were watched: how many there are, what they take undisturbed, what
//! waiting for them cost, and which calls complete them.

use std::collections::{BTreeMap, BTreeSet};

use super::sites::SIMILAR;
use crate::overlap::{reference_time, Measured};
use crate::reference::Reference;
use lapscope_data::model::{Nanos, Side};
use lapscope_data::places::SiteId;
use lapscope_trace::{Direction, Operation, RankTrace, Trace};

/// What transfers of one site and size have in common.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Transfer {
    pub count: u64,
    /// Those of them with a reference time, and the sum of these times.
    pub known: u64,
    pub reference: Nanos,
}

/// All transfers of a run, or of the ranks that were asked for.
#[derive(Debug, Default)]
pub struct Transfers {
    /// By site, side and bytes.
    sizes: BTreeMap<(SiteId, Side), BTreeMap<u64, Transfer>>,
    /// Sites whose receives, or sends, a call completes.
    completed: BTreeMap<SiteId, BTreeSet<(SiteId, Side)>>,
    /// Time in completing and blocking calls, by post (or blocking call) and completing call.
    exposed: BTreeMap<(SiteId, SiteId), Nanos>,
    /// What others waited for sends posted there, or for those who were to post receives there.
    waited_for: BTreeMap<SiteId, Nanos>,
}

impl Transfers {
    /// `measured`: of the same trace.
    pub fn measure(trace: &Trace, reference: &Reference, measured: &Measured) -> Transfers {
        let mut transfers = Transfers::default();
        for rank in measured.places() {
            transfers.add_rank(trace, rank, reference);
        }
        transfers.exposed = measured.exposed_by_completion();
        transfers.waited_for = measured.waited_for();
        transfers
    }

    fn add_rank(&mut self, trace: &Trace, rank: usize, reference: &Reference) {
        let of_rank: &RankTrace = &trace.ranks[rank];
        let mut counts = vec![0u64; of_rank.operations.len()];
        let mut completions: BTreeSet<(u32, u32)> = BTreeSet::new();
        for endpoint in &of_rank.endpoints {
            counts[endpoint.operation as usize] += 1;
            if let Some(call) = of_rank.calls.get(endpoint.call as usize) {
                completions.insert((endpoint.operation, call.operation));
            }
        }
        for (operation, count) in of_rank.operations.iter().zip(counts) {
            let time = reference_time(trace, rank, reference, operation).map(|time| time.ns);
            for &side in sides(operation) {
                let sizes = self.sizes.entry((operation.site, side)).or_default();
                let sum = sizes.entry(operation.bytes.0).or_default();
                sum.count += count;
                if let Some(ns) = time {
                    sum.known += count;
                    sum.reference += Nanos(ns.saturating_mul(count as i64));
                }
            }
        }
        for (operation, by) in completions {
            let operation = &of_rank.operations[operation as usize];
            let by = of_rank.operations[by as usize].site;
            let completed = self.completed.entry(by).or_default();
            completed.extend(sides(operation).iter().map(|&side| (operation.site, side)));
        }
    }

    /// Those of a site whose sizes are near to `bytes`, smallest and largest, and nearer than to any of `others`: nothing was watched of
    /// messages of far other sizes.
    pub fn of_sizes(
        &self,
        site: SiteId,
        side: Side,
        bytes: (u64, u64),
        others: &[(u64, u64)],
    ) -> Transfer {
        let distance = |size: u64, (least, most): (u64, u64)| {
            let ratio = |a: u64, b: u64| a.max(1) as f64 / b.max(1) as f64;
            ratio(least, size).max(ratio(size, most)).max(1.0)
        };
        let is_nearest = |size: u64| {
            distance(size, bytes) <= SIMILAR as f64
                && others.iter().all(|&other| distance(size, bytes) <= distance(size, other))
        };
        let mut sum = Transfer::default();
        let sizes = self.sizes.get(&(site, side)).into_iter().flatten();
        for (_, transfer) in sizes.filter(|(&size, _)| is_nearest(size)) {
            sum.count += transfer.count;
            sum.known += transfer.known;
            sum.reference += transfer.reference;
        }
        sum
    }

    /// What the program was inside completing or blocking calls for the requests of a site.
    pub fn exposed(&self, site: SiteId) -> Nanos {
        self.exposed.iter().filter(|((post, _), _)| *post == site).map(|(_, &ns)| ns).sum()
    }

    /// What it was inside a completing or blocking call.
    pub fn exposed_in(&self, completing: SiteId) -> Nanos {
        self.exposed.iter().filter(|((_, by), _)| *by == completing).map(|(_, &ns)| ns).sum()
    }

    /// What others waited for what is posted at this site.
    pub fn waited_for(&self, site: SiteId) -> Nanos {
        self.waited_for.get(&site).copied().unwrap_or_default()
    }

    /// Sites of what a call completes.
    pub fn completed_by(&self, completing: SiteId) -> impl Iterator<Item = (SiteId, Side)> + '_ {
        self.completed.get(&completing).into_iter().flatten().copied()
    }

    /// Everything that completing and blocking calls took.
    pub fn exposed_in_all(&self) -> Nanos {
        self.exposed.values().copied().sum()
    }
}

/// Whose buffers an operation has.
fn sides(operation: &Operation) -> &'static [Side] {
    match operation.direction {
        Direction::Send => &[Side::Send],
        Direction::Receive => &[Side::Receive],
        Direction::Collective => &[Side::Send, Side::Receive],
        Direction::None => &[],
    }
}

impl Transfer {
    /// What one takes undisturbed, where that is known of most.
    pub fn mean_reference(&self) -> Option<Nanos> {
        self.reference.mean(self.known).filter(|_| self.known * 2 >= self.count)
    }
}
