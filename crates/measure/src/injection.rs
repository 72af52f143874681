//! What injected tests did, what they cost, and, in A/B runs, what they gained.
//!
//! [`Injection::of_files`] is the way in: of the tables `injector` and `injection` and, where ranks had slots, of the arms of
//! requests. Each of [`Injection::sites`] then has a [`Gain`], and the run a [`WholeGain`]. How these are estimated is in
//! [`estimate`].

pub mod automatic;
pub mod estimate;
mod gain;
mod places;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::automatic::Automatic;
pub use self::gain::{Gain, GainVerdict, WholeGain, LEAST_SLOTS};
use self::places::post_addresses;
pub use self::places::{PostAddress, PostPath};
use lapscope_data::model::{Nanos, Rank};
use lapscope_data::places::{Places, SiteId};
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_trace::injected::arms::Arms;
use lapscope_trace::injected::FileInjection;
use lapscope_trace::injected::{RankInjection, Tests};

/// Injection in a run. Keys are documented in `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct Injection {
    /// Ranks that were asked to inject.
    pub ranks: Vec<RankInjection>,
    pub totals: InjectionTotals,
    /// Call sites whose requests are long enough; those that gain or lose most first, then those with most tests.
    pub sites: Vec<SiteInjection>,
    /// Length of the slots that are on or off, in an A/B run.
    pub ab_slot_ns: Option<Nanos>,
    /// Only in an A/B run.
    pub whole: Option<WholeGain>,
    /// Only with `LAPSCOPE_INJECT=auto`.
    pub automatic: Option<Automatic>,
}

/// All ranks that were asked to inject.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct InjectionTotals {
    #[serde(flatten)]
    pub tests: Tests,
    pub spent_ns: Nanos,
    /// MPI_Init to MPI_Finalize, summed over these ranks.
    pub run_ns: Nanos,
}

/// Requests that are posted at one place.
#[derive(Debug, Clone, Serialize)]
pub struct SiteInjection {
    pub call: String,
    pub site: Option<FrameName>,
    /// Return addresses that are this site: several where a compiler has unrolled a loop, or ranks run different programs.
    pub addresses: Vec<PostPath>,
    pub ranks: usize,
    /// Whether the policy lets it be injected for, on any rank.
    pub policy: bool,
    #[serde(flatten)]
    pub tests: Tests,
    /// Only in an A/B run.
    pub gain: Option<Gain>,
}

impl Injection {
    /// What files say together. `None`: none of their ranks was asked to inject.
    pub fn of_files(
        files: &[FileInjection],
        places: &Places,
        names: &mut dyn NameFrames,
    ) -> Option<Injection> {
        let is_asked = files.iter().any(|file| !file.ranks.is_empty());
        is_asked.then(|| build(files, places, names))
    }
}

fn build(files: &[FileInjection], places: &Places, names: &mut dyn NameFrames) -> Injection {
    let mut ranks: Vec<RankInjection> =
        files.iter().flat_map(|file| file.ranks.iter().cloned()).collect();
    ranks.sort_by_key(|rank| (rank.rank, rank.life));
    let arms = merge_arms(files);
    let sums = sum_sites(files);
    let mut addresses = post_addresses(files, places);
    let totals = sum_totals(&ranks, &sums);
    // A thread of its own keeps the program from nothing: what it takes from it otherwise is in the gain of the whole.
    let is_beside = ranks.iter().all(|rank| rank.mode == "thread");
    let costs = arms.as_ref().filter(|_| !is_beside).map(|arms| share_costs(arms, &sums));
    let site = |(site, sum): (SiteId, SiteSum)| {
        let call = places.call(site).name.clone();
        let frame = places.site(site).frame;
        let name = frame.and_then(|frame| names.name(frame).into_iter().next());
        let addresses = addresses.remove(&site).unwrap_or_default().into_iter().collect();
        let cost = costs.as_ref().and_then(|costs| costs.get(&site)).copied().unwrap_or(0.0);
        let each = Nanos((cost / sum.tests.requests.max(1) as f64).round() as i64);
        let gain = arms.as_ref().map(|arms| gain::of_site(&arms.of_site(site), each, sum.policy));
        let (ranks, policy, tests) = (sum.ranks.len(), sum.policy, sum.tests);
        SiteInjection { call, site: name, addresses, ranks, policy, tests, gain }
    };
    let mut sites: Vec<SiteInjection> = sums.into_iter().map(site).collect();
    sites.sort_by_key(|site| {
        let gained = site.gain.as_ref().and_then(|gain| gain.run_estimate_ns);
        Reverse((gained.map(|ns| ns.0.abs()), site.tests.tests))
    });
    let ab_slot_ns = arms.as_ref().map(Arms::slot);
    let whole = arms.as_ref().map(gain::of_program);
    let automatic =
        Automatic::from_pages(ranks.iter().filter_map(|rank| rank.page.clone()).collect());
    Injection { ranks, totals, sites, ab_slot_ns, whole, automatic }
}

/// A call site on all ranks.
#[derive(Default)]
struct SiteSum {
    tests: Tests,
    ranks: BTreeSet<Rank>,
    policy: bool,
}

fn sum_sites(files: &[FileInjection]) -> BTreeMap<SiteId, SiteSum> {
    let mut sums: BTreeMap<SiteId, SiteSum> = BTreeMap::new();
    for row in files.iter().flat_map(|file| &file.rows) {
        let sum = sums.entry(row.at.0).or_default();
        sum.tests += row.tests;
        sum.ranks.insert(row.rank);
        sum.policy |= row.is_on;
    }
    sums
}

fn sum_totals(ranks: &[RankInjection], sums: &BTreeMap<SiteId, SiteSum>) -> InjectionTotals {
    let mut totals = InjectionTotals::default();
    sums.values().for_each(|sum| totals.tests += sum.tests);
    totals.spent_ns = ranks.iter().map(|rank| rank.spent_ns).sum();
    totals.run_ns = ranks.iter().map(|rank| rank.run_ns).sum();
    totals
}

/// What tests and interrupts cost each site.
fn share_costs(arms: &Arms<SiteId>, sums: &BTreeMap<SiteId, SiteSum>) -> BTreeMap<SiteId, f64> {
    let cost = |tests: &Tests| (tests.test_ns + tests.interrupt_ns).0 as f64;
    arms.share_out(&sums.iter().map(|(&site, sum)| (site, cost(&sum.tests))).collect())
}

fn merge_arms(files: &[FileInjection]) -> Option<Arms<SiteId>> {
    let ranks = || files.iter().flat_map(|file| &file.arms);
    let slot = ranks().map(Arms::slot).next()?;
    let mut run = Arms::new(slot);
    ranks().for_each(|arms| run.merge(arms, |(site, _)| *site));
    Some(run)
}
