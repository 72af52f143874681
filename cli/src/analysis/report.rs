//! The numbers of `lapscope report`. Every nanosecond inside MPI is counted once; `docs/json.md` says what each is.

use std::collections::BTreeMap;

use serde::Serialize;

use super::advice::Advice;
use super::cell::Cell;
use super::combine::{RankSums, RunSums};
use super::injection::Injection;
use super::insight::{find_insights, Insight};
use super::overlap::sums::BlockingNumbers;
use super::overlap::{self, Overlap, ReferenceSays};
use super::part;
use super::problem::Problem;
use super::reference::Source;
use super::sites::{group_completing, group_sites, name_site, Grouping, Order, Site};
use super::summary::Summary;
use super::thresholds::Thresholds;
use super::transfers::{kinds, size_classes, KindRow, SizeClass};
use super::wrappers::Wrapper;
use crate::model::{Category, Ended, Nanos, Rank, RankInfo};
use crate::symbols::NameFrames;
use crate::trace::{Clocks, Matching};

/// Version of the JSON keys; raised when one changes its meaning or goes.
pub const JSON_VERSION: u32 = 2;

/// What `lapscope report` says.
#[derive(Debug, Serialize)]
pub struct Report {
    pub json_version: u32,
    pub run: String,
    pub head: Head,
    pub problems: Vec<Problem>,
    pub summary: Summary,
    pub totals: Totals,
    pub spread: Spread,
    pub insights: Vec<Insight>,
    pub ranks: Vec<RankRow>,
    /// Sites that end requests, the longest first; their time is shared out to `sites` as well.
    pub completing_sites: Vec<Site>,
    /// Call sites in the order asked for, as many as asked for.
    pub sites: Vec<Site>,
    /// Call sites in all.
    pub site_count: usize,
    /// Functions that only pass on to MPI: sites are named by their callers.
    pub wrappers: Vec<Wrapper>,
    pub size_classes: Vec<SizeClass>,
    /// What was transferred, by kind.
    pub kinds: Vec<KindRow>,
    pub overlap: OverlapSummary,
    pub thresholds: Thresholds,
    /// Where a rank was asked to inject.
    pub injection: Option<Injection>,
    /// What would help most first.
    pub advice: Vec<Advice>,
}

/// What `lapscope overlap` says of the whole run.
#[derive(Debug, Serialize)]
pub struct OverlapSummary {
    pub reference: ReferenceSays,
    pub clocks: Clocks,
    pub matching: Matching,
    pub totals: overlap::Totals,
    pub kinds: Vec<overlap::groups::KindRow>,
    pub blocking: BlockingNumbers,
}

/// What only a run that was read request by request tells.
pub struct InDetail {
    pub overlap: Overlap,
    pub thresholds: Thresholds,
    pub injection: Option<Injection>,
    pub advice: Vec<Advice>,
}

/// What ran.
#[derive(Debug, Serialize)]
pub struct Head {
    pub command: String,
    pub executable: String,
    /// Of the first world, which the launcher started.
    pub world_size: i64,
    /// Ranks that these numbers are of, in all worlds.
    pub ranks: usize,
    pub worlds: Vec<World>,
    pub hosts: Vec<Host>,
    pub mpi_abi: String,
    pub mpi_library: String,
    pub mpi_standard: String,
    /// As granted: 0 single, 1 funneled, 2 serialized, 3 multiple.
    pub thread_level: i64,
    /// Ranks in which more than one thread made MPI calls; their shares may exceed 1.
    pub threaded_ranks: u64,
    pub started_unix_ns: i64,
    /// Of the rank that ran longest.
    pub longest_run_ns: Nanos,
    pub job: String,
    pub lapscope_version: String,
}

/// An MPI_COMM_WORLD; all but the first were spawned.
#[derive(Debug, Serialize)]
pub struct World {
    pub world: i64,
    pub world_size: i64,
    pub ranks: usize,
    /// Of its first rank that was recorded.
    pub command: String,
}

/// A node and how many of the ranks were on it.
#[derive(Debug, Serialize)]
pub struct Host {
    pub name: String,
    pub ranks: usize,
}

/// Sums over all ranks. Fractions are of `run_ns`.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Totals {
    /// MPI_Init to MPI_Finalize, summed over ranks.
    pub run_ns: Nanos,
    /// Inside MPI in that time: the sum of the eight below.
    pub mpi_ns: Nanos,
    pub mpi_share: f64,
    pub posting_ns: Nanos,
    /// In calls that ended requests: exposed time of non-blocking communication.
    pub waiting_ns: Nanos,
    pub blocking_ns: Nanos,
    pub collective_ns: Nanos,
    /// In calls on windows that make no request.
    pub rma_ns: Nanos,
    /// In calls on files that make no request.
    pub io_ns: Nanos,
    pub poll_ns: Nanos,
    pub other_ns: Nanos,
    /// Requests made.
    pub requests: u64,
    /// Calls of all kinds, polls included.
    pub calls: u64,
    /// Calls that ended requests.
    pub completing_calls: u64,
    pub polls: u64,
    /// Part of `waiting_ns` at no posting site: of requests whose start was not seen.
    pub unattributed_waiting_ns: Nanos,
    /// Completing time that computation in the windows of the same requests could at most have hidden.
    pub hideable_ns: Nanos,
}

/// How evenly the ranks share the work.
#[derive(Debug, Serialize)]
pub struct Spread {
    pub mpi_share: MinMeanMax,
    pub compute_ns: MinMeanMax,
    /// Largest computing time over the mean, minus 1.
    pub compute_imbalance: f64,
}

/// A number over ranks, with the ranks that have the extremes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MinMeanMax {
    pub min: f64,
    pub min_rank: Rank,
    pub mean: f64,
    pub max: f64,
    pub max_rank: Rank,
}

/// One rank.
#[derive(Debug, Serialize)]
pub struct RankRow {
    pub rank: Rank,
    pub life: i64,
    pub host: String,
    pub pid: i64,
    pub ended: Ended,
    pub lost_records: u64,
    pub unknown_requests: u64,
    pub summarized: bool,
    #[serde(flatten)]
    pub totals: Totals,
}

/// What the user asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportOptions {
    /// Call sites wanted; 0 means all.
    pub top: usize,
    pub order: Order,
    /// Leaves advice out, for who does not print it.
    pub without_advice: bool,
}

impl Report {
    /// Answers for a run of at least one rank.
    pub fn build(
        run_name: &str,
        run: &RunSums,
        problems: Vec<Problem>,
        options: ReportOptions,
        detail: InDetail,
        names: &mut dyn NameFrames,
    ) -> Report {
        let ranks = rank_rows(run);
        let totals = sum_totals(&ranks);
        let sums = group_sites(run, Grouping::Frame, options.order);
        let shown = if options.top == 0 { sums.len() } else { options.top };
        let mut name = |sums| name_site(run, sums, totals.run_ns, names);
        let mut sites: Vec<Site> = sums.iter().take(shown).map(&mut name).collect();
        let completing: Vec<Site> =
            group_completing(run).iter().take(shown).map(&mut name).collect();
        let spread = spread(&ranks);
        let mut size_classes = size_classes(run, totals.run_ns);
        part::add_to_sites(&mut sites, &detail.overlap);
        part::add_to_sizes(&mut size_classes, &detail.overlap);
        Report {
            json_version: JSON_VERSION,
            run: run_name.to_owned(),
            head: head(run),
            problems,
            summary: Summary::new(
                &totals,
                &detail.overlap.totals.numbers,
                &detail.overlap.blocking.totals,
                &detail.advice,
            ),
            insights: find_insights(run, &totals, &ranks),
            totals,
            spread,
            ranks,
            completing_sites: completing,
            sites,
            site_count: sums.len(),
            wrappers: Vec::new(),
            size_classes,
            kinds: kinds(run),
            overlap: OverlapSummary::new(detail.overlap),
            thresholds: detail.thresholds,
            injection: detail.injection,
            advice: detail.advice,
        }
    }
}

/// From this share of the run time on, time that is known to within an interval only is worth another measurement.
const WORTH_CALIBRATING: f64 = 0.005;

impl Report {
    /// Whether reference times would tell more: much time is known to within wide bounds only, and there is no calibration, or
    /// one of ranks that lacked processors.
    pub fn would_calibrating_tell(&self) -> bool {
        let reference = &self.overlap.reference.description;
        let is_calibrated = matches!(reference.source, Source::Calibration { .. });
        if is_calibrated && reference.processor_share.is_none() {
            return false;
        }
        let numbers = &self.overlap.totals.numbers;
        let window = numbers.exposed_own_window_high_ns - numbers.exposed_own_window_low_ns;
        let advice = self.advice.iter().filter(|advice| advice.is_vague());
        let most = advice.map(|advice| advice.time_high_ns - advice.time_low_ns).max();
        let most = window.max(most.unwrap_or_default());
        most.share_of(self.totals.run_ns) >= WORTH_CALIBRATING
    }
}

impl OverlapSummary {
    fn new(overlap: Overlap) -> OverlapSummary {
        OverlapSummary {
            reference: overlap.reference,
            clocks: overlap.clocks,
            matching: overlap.matching,
            totals: overlap.totals,
            kinds: overlap.kinds,
            blocking: overlap.blocking.totals,
        }
    }
}

fn head(run: &RunSums) -> Head {
    let infos: Vec<&RankInfo> = run.ranks.iter().map(|rank| &rank.info).collect();
    let first = infos[0];
    let worlds = worlds(&infos);
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    for info in &infos {
        *hosts.entry(&info.host).or_default() += 1;
    }
    Head {
        command: first.command.clone(),
        executable: first.executable.clone(),
        world_size: worlds.first().map_or(0, |world| world.world_size),
        ranks: infos.len(),
        worlds,
        hosts: hosts
            .into_iter()
            .map(|(name, ranks)| Host { name: name.to_owned(), ranks })
            .collect(),
        mpi_abi: first.mpi_abi.clone(),
        mpi_library: first.mpi_library.clone(),
        mpi_standard: first.mpi_standard.clone(),
        thread_level: first.thread_level,
        threaded_ranks: run.threaded_ranks,
        started_unix_ns: infos.iter().map(|info| info.epoch_unix_ns).min().unwrap_or(0),
        longest_run_ns: infos.iter().map(|info| info.run_time()).max().unwrap_or_default(),
        job: first.job.clone(),
        lapscope_version: first.lapscope_version.clone(),
    }
}

/// `infos` in the order of ranks.
fn worlds(infos: &[&RankInfo]) -> Vec<World> {
    infos
        .chunk_by(|a, b| a.rank.world == b.rank.world)
        .map(|infos| World {
            world: infos[0].rank.world,
            world_size: infos.iter().map(|info| info.world_size).max().unwrap_or(0),
            ranks: infos.len(),
            command: infos[0].command.clone(),
        })
        .collect()
}

fn rank_rows(run: &RunSums) -> Vec<RankRow> {
    let mut totals = vec![Totals::default(); run.ranks.len()];
    let mut shared_out = vec![Nanos(0); run.ranks.len()];
    for entry in &run.entries {
        let category = run.category(entry);
        totals[entry.rank].add(category, &entry.cell);
        if category == Category::Posting {
            shared_out[entry.rank] += entry.cell.completion;
        }
    }
    let rows = run.ranks.iter().zip(totals).zip(shared_out);
    rows.map(|((rank, totals), shared_out)| rank_row(rank, totals, shared_out)).collect()
}

fn rank_row(rank: &RankSums, mut totals: Totals, shared_out: Nanos) -> RankRow {
    let info = &rank.info;
    totals.run_ns = info.run_time();
    totals.mpi_share = totals.mpi_ns.share_of(totals.run_ns);
    totals.unattributed_waiting_ns = Nanos((totals.waiting_ns - shared_out).0.max(0));
    // Windows of different completing calls may overlap too, but a rank cannot hide more than it computed.
    let computed = Nanos((totals.run_ns - totals.mpi_ns).0.max(0));
    totals.hideable_ns = rank.hideable.min(computed);
    RankRow {
        rank: info.rank,
        life: info.life,
        host: info.host.clone(),
        pid: info.pid,
        ended: info.ended,
        lost_records: info.lost_records,
        unknown_requests: info.unknown_requests,
        summarized: info.summarized.is_some(),
        totals,
    }
}

impl Totals {
    fn add(&mut self, category: Category, cell: &Cell) {
        let sum = match category {
            Category::Posting => &mut self.posting_ns,
            Category::Completing => &mut self.waiting_ns,
            Category::BlockingPointToPoint => &mut self.blocking_ns,
            Category::Collective => &mut self.collective_ns,
            Category::Rma => &mut self.rma_ns,
            Category::Io => &mut self.io_ns,
            Category::Poll => &mut self.poll_ns,
            Category::Other => &mut self.other_ns,
            Category::Outside => return,
        };
        *sum += cell.inside;
        self.mpi_ns += cell.inside;
        self.calls += cell.count;
        match category {
            Category::Posting => self.requests += cell.count,
            Category::Completing => self.completing_calls += cell.count,
            Category::Poll => self.polls += cell.count,
            _ => {}
        }
    }
}

fn sum_totals(ranks: &[RankRow]) -> Totals {
    let mut sum = Totals::default();
    for Totals {
        run_ns,
        mpi_ns,
        mpi_share: _,
        posting_ns,
        waiting_ns,
        blocking_ns,
        collective_ns,
        rma_ns,
        io_ns,
        poll_ns,
        other_ns,
        requests,
        calls,
        completing_calls,
        polls,
        unattributed_waiting_ns,
        hideable_ns,
    } in ranks.iter().map(|rank| rank.totals)
    {
        sum.run_ns += run_ns;
        sum.mpi_ns += mpi_ns;
        sum.posting_ns += posting_ns;
        sum.waiting_ns += waiting_ns;
        sum.blocking_ns += blocking_ns;
        sum.collective_ns += collective_ns;
        sum.rma_ns += rma_ns;
        sum.io_ns += io_ns;
        sum.poll_ns += poll_ns;
        sum.other_ns += other_ns;
        sum.requests += requests;
        sum.calls += calls;
        sum.completing_calls += completing_calls;
        sum.polls += polls;
        sum.unattributed_waiting_ns += unattributed_waiting_ns;
        sum.hideable_ns += hideable_ns;
    }
    sum.mpi_share = sum.mpi_ns.share_of(sum.run_ns);
    sum
}

fn spread(ranks: &[RankRow]) -> Spread {
    let compute = |row: &RankRow| (row.totals.run_ns - row.totals.mpi_ns).0.max(0) as f64;
    let compute_ns = min_mean_max(ranks, compute);
    let compute_imbalance =
        if compute_ns.mean > 0.0 { compute_ns.max / compute_ns.mean - 1.0 } else { 0.0 };
    Spread {
        mpi_share: min_mean_max(ranks, |row| row.totals.mpi_share),
        compute_ns,
        compute_imbalance,
    }
}

pub(super) fn min_mean_max(ranks: &[RankRow], value: impl Fn(&RankRow) -> f64) -> MinMeanMax {
    let mut values = ranks.iter().map(|row| (value(row), row.rank));
    let (first, rank) = values.next().unwrap_or((0.0, Rank::of_first_world(0)));
    let start = MinMeanMax { min: first, min_rank: rank, mean: first, max: first, max_rank: rank };
    let mut found = values.fold(start, |mut found, (value, rank)| {
        if value < found.min {
            (found.min, found.min_rank) = (value, rank);
        }
        if value > found.max {
            (found.max, found.max_rank) = (value, rank);
        }
        found.mean += value;
        found
    });
    found.mean /= ranks.len().max(1) as f64;
    found
}
