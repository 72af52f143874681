//! Whose work makes others wait, and between which lines: of single waits for ranks that computed, in which region of the program
//! these were, and how unequally long ranks take for it.
//!
//! Said only where the record has all of every rank, in one thread each, and where all ranks that make visits of a region make as
//! many. A run that is too large to be replayed is not looked at.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use crate::replay::work::{for_each_visit, WorkRegion, WorkVisit};
use crate::replay::Program;
use lapscope_data::places::SiteId;
use lapscope_measure::uneven::Unevenness;
use lapscope_trace::Trace;

/// A rank waited for one that was outside MPI meanwhile, most of the time. Moments are on the run's clock.
#[derive(Debug, Clone, Copy)]
pub struct ComputingWait {
    /// The call that waited.
    pub by: SiteId,
    /// A place in [`Trace::ranks`].
    pub whom: u32,
    pub begin: i64,
    pub end: i64,
}

/// A region for which ranks take unequally long, while others wait for them.
#[derive(Debug, Clone)]
pub struct UnevenWork {
    pub region: WorkRegion,
    /// Places of the ranks that are there at some time.
    pub ranks: Vec<usize>,
    /// Its ranks are places in the trace.
    pub unevenness: Unevenness,
    /// Waits for ranks that were there, by the call that waited, nanoseconds.
    pub waits: BTreeMap<SiteId, i64>,
    /// What a replay in which all take equally long there gains, as a share of the run time; `None`: not known.
    pub gain: Option<f64>,
}

/// What is uneven in a run.
#[derive(Debug, Default)]
pub struct UnevenWorks {
    /// By how long others wait there, most first.
    pub works: Vec<UnevenWork>,
    /// All waits for ranks that computed, by the call that waited, nanoseconds.
    pub waits: BTreeMap<SiteId, i64>,
}

/// Waits by the region in which the awaited rank was, and by the call that waited.
type RegionWaits = HashMap<WorkRegion, BTreeMap<SiteId, i64>>;

/// So many regions are looked at: each costs a replay.
const MOST_REGIONS: usize = 2;
/// And so many visits of all ranks together.
const MOST_VISITS: usize = 8_000_000;
/// Waits for ranks in a region matter from this share of the time of all ranks on.
const LEAST_SHARE: f64 = 0.005;

impl UnevenWorks {
    /// What makes others wait; `program`: of all of the trace, as recorded.
    pub fn find(trace: &Trace, program: &Program, waits: &[ComputingWait]) -> UnevenWorks {
        let mut found = UnevenWorks::default();
        let is_known = |rank: &lapscope_trace::RankTrace| {
            rank.is_whole() && rank.threads.count() == 1 && rank.detail.is_empty()
        };
        if !trace.ranks.iter().all(is_known) {
            return found;
        }
        for wait in waits {
            *found.waits.entry(wait.by).or_default() += wait.end - wait.begin;
        }
        let all: i64 = trace.ranks.iter().map(|rank| rank.end - rank.init_end).sum();
        let time = |waits: &BTreeMap<SiteId, i64>| waits.values().sum::<i64>();
        let mut regions: Vec<(WorkRegion, BTreeMap<SiteId, i64>)> =
            waits_by_region(trace, program, waits).into_iter().collect();
        regions.retain(|(_, waits)| time(waits) as f64 >= LEAST_SHARE * all as f64);
        regions.sort_by_key(|(region, waits)| (std::cmp::Reverse(time(waits)), *region));
        regions.truncate(MOST_REGIONS);
        let asked: Vec<WorkRegion> = regions.iter().map(|(region, _)| *region).collect();
        let times = times_of(trace, program, &asked, |visit| visit.outside);
        // where ranks lacked a processor the same has to be true of what they had one for
        let worked = match trace.is_starved() {
            true => times_of(trace, program, &asked, |visit| visit.worked),
            false => times.clone(),
        };
        let both = times.into_iter().zip(worked);
        let works =
            regions.into_iter().zip(both).filter_map(|((region, waits), (times, worked))| {
                let unevenness = Unevenness::find(&times.of_visits)?;
                let is_sure = unevenness.agrees(&Unevenness::find(&worked.of_visits)?);
                let ranks = times.ranks;
                let slow = unevenness.slow.iter().map(|&place| ranks[place]).collect();
                let unevenness = Unevenness { slow, ..unevenness };
                is_sure.then_some(UnevenWork { region, ranks, unevenness, waits, gain: None })
            });
        found.works = works.collect();
        found
    }
}

/// In which region awaited ranks were.
fn waits_by_region(trace: &Trace, program: &Program, waits: &[ComputingWait]) -> RegionWaits {
    /// Nobody waits for less, nanoseconds.
    const SHORT: i64 = 1_000;
    let mut of_ranks: BTreeMap<u32, Vec<&ComputingWait>> = BTreeMap::new();
    for wait in waits {
        of_ranks.entry(wait.whom).or_default().push(wait);
    }
    let of_rank = |(place, waits): (u32, Vec<&ComputingWait>)| {
        let mut visits = Vec::new();
        for_each_visit(trace, place as usize, &program.ranks[place as usize], |visit| {
            if visit.end - visit.begin >= SHORT {
                visits.push((visit.begin, visit.end, visit.region));
            }
        });
        let mut found = RegionWaits::new();
        for wait in waits {
            let first = visits.partition_point(|&(_, end, _)| end <= wait.begin);
            for &(begin, end, region) in &visits[first..] {
                let ns = end.min(wait.end) - begin.max(wait.begin);
                if ns <= 0 {
                    break;
                }
                *found.entry(region).or_default().entry(wait.by).or_default() += ns;
            }
        }
        found
    };
    let parts: Vec<RegionWaits> = of_ranks.into_par_iter().map(of_rank).collect();
    let mut all = RegionWaits::new();
    for (region, waits) in parts.into_iter().flatten() {
        let of_region = all.entry(region).or_default();
        waits.into_iter().for_each(|(by, ns)| *of_region.entry(by).or_default() += ns);
    }
    all
}

/// The ranks that are in a region at some time, with what each visit of them takes: nanoseconds.
#[derive(Debug, Clone, Default)]
struct RegionTimes {
    ranks: Vec<usize>,
    of_visits: Vec<Vec<i64>>,
}

/// Of each region; nothing of those with too many visits.
fn times_of(
    trace: &Trace,
    program: &Program,
    regions: &[WorkRegion],
    time: impl Fn(&WorkVisit) -> i64 + Sync,
) -> Vec<RegionTimes> {
    let most = MOST_VISITS / trace.ranks.len().max(1);
    let of_rank = |place: usize| {
        let mut times = vec![Vec::new(); regions.len()];
        for_each_visit(trace, place, &program.ranks[place], |visit| {
            let asked = regions.iter().position(|region| *region == visit.region);
            if let Some(times) = asked.map(|at| &mut times[at]).filter(|it| it.len() <= most) {
                times.push(time(&visit));
            }
        });
        times
    };
    let places = if regions.is_empty() { 0 } else { trace.ranks.len() };
    let by_rank: Vec<Vec<Vec<i64>>> = (0..places).into_par_iter().map(of_rank).collect();
    let mut by_region = vec![RegionTimes::default(); regions.len()];
    for (place, of_rank) in by_rank.into_iter().enumerate() {
        for (all, times) in by_region.iter_mut().zip(of_rank).filter(|(_, it)| !it.is_empty()) {
            all.ranks.push(place);
            all.of_visits.push(times);
        }
    }
    for all in &mut by_region {
        if all.of_visits.iter().any(|times| times.len() > most) {
            *all = RegionTimes::default();
        }
    }
    by_region
}

#[cfg(test)]
mod tests;
