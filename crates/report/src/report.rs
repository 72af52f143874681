//! The numbers of `lapscope report`. Every nanosecond inside MPI is counted once; `docs/json.md` says what each is.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::calibration::MeasuredProgress;
use lapscope_advise::advice::Advice;
use lapscope_advise::insight::{find_insights, Insight};
use lapscope_advise::standstill_in_words::not_known;
use lapscope_advise::summary::{exposed, Summary};
use lapscope_data::model::{Kind, Nanos, RankInfo};
use lapscope_data::symbols::NameFrames;
use lapscope_data::text::units::MeanOfRanks;
use lapscope_data::JSON_VERSION;
use lapscope_measure::alike::Alike;
use lapscope_measure::efficiency::{Efficiency, Useful};
use lapscope_measure::gpu_efficiency::GpuEfficiency;
use lapscope_measure::injection::Injection;
use lapscope_measure::left_over::LeftOver;
use lapscope_measure::overlap::loops::TestLoop;
use lapscope_measure::overlap::sums::{BlockingNumbers, OverlapTimes};
use lapscope_measure::overlap::{self, Overlap, ReferenceNotes};
use lapscope_measure::profile::Profile;
use lapscope_measure::reach::document::Reach;
use lapscope_measure::reference::ReferenceSource;
use lapscope_measure::sites::{group_completing, group_sites, name_site, Site, SiteRanking};
use lapscope_measure::steps::{RegionRow, Steps};
use lapscope_measure::thresholds::Thresholds;
use lapscope_measure::totals::{min_mean_max, rank_rows, sum_totals, MinMeanMax, RankRow, Totals};
use lapscope_measure::transfers::{kinds, size_classes, KindRow, SizeClass, SizeKind};
use lapscope_measure::unexpected::Unexpected;
use lapscope_predict::whatif::bounds::RunTimeBounds;
use lapscope_predict::whatif::buffering::{BufferingFinding, ReliesOnBuffering};
use lapscope_trace::gpu::NoGpuTime;
use lapscope_trace::problem::Problem;
use lapscope_trace::stretch::NamedStretch;
use lapscope_trace::sums::combine::RunSums;
use lapscope_trace::wrappers::Wrapper;
use lapscope_trace::{Clocks, Matching};

/// What `lapscope report` says.
#[derive(Debug, Serialize)]
pub struct Report {
    pub json_version: u32,
    pub run: String,
    /// What of the run these numbers are of; `None`: all of it.
    pub stretch: Option<NamedStretch>,
    pub head: Head,
    pub problems: Vec<Problem>,
    pub summary: Summary,
    pub totals: Totals,
    pub spread: Spread,
    /// By POP's definitions; `None`: it is not known of a rank what it computed.
    pub efficiency: Option<Efficiency>,
    /// By TALP's definitions; `None`: no kernel was recorded.
    pub gpu_efficiency: Option<GpuEfficiency>,
    pub insights: Vec<Insight>,
    /// Which ranks did alike, and which stand apart.
    pub alike: Alike,
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
    /// `None`: there are none, as `no_steps` says, or they were not looked for.
    pub steps: Option<Steps>,
    pub no_steps: Option<String>,
    /// That the program marks.
    pub regions: Vec<RegionRow>,
    /// Where a rank was asked to inject.
    pub injection: Option<Injection>,
    /// Where buffers were watched.
    pub reach: Option<Reach>,
    /// At MPI_Finalize; `None`: it was not looked for, as in a part of a run, or a run that was looked at in parts.
    pub left_over: Option<Vec<LeftOver>>,
    /// `None` where `left_over` is.
    pub unexpected: Option<Unexpected>,
    /// Run times of replays; `None` where that tells nothing or takes too long.
    pub bounds: Option<RunTimeBounds>,
    /// `None`: nothing of it is known to do so, or it was not replayed, as `bounds` says.
    pub relies_on_buffering: Option<ReliesOnBuffering>,
    /// A sentence on calls of which it is not known whether they do.
    pub buffering_not_known: Option<String>,
    /// What moves while ranks compute, where that was measured and advice was asked for.
    pub progress: Option<MeasuredProgress>,
    /// Where the program computes; `None`: no samples were taken.
    pub profile: Option<Profile>,
    /// That it takes too long.
    #[serde(skip)]
    pub is_too_large_to_replay: bool,
    /// What would help most first.
    pub advice: Vec<Advice>,
}

/// What `lapscope overlap` says of the whole run.
#[derive(Debug, Serialize)]
pub struct OverlapSummary {
    pub reference: ReferenceNotes,
    pub clocks: Clocks,
    pub matching: Matching,
    pub totals: overlap::OverlapTotals,
    pub kinds: Vec<overlap::groups::KindRow>,
    pub blocking: BlockingNumbers,
    pub polling: BlockingNumbers,
    pub test_loops: Vec<TestLoop>,
}

/// What only a run that was read request by request tells.
pub struct InDetail {
    pub overlap: Overlap,
    pub thresholds: Thresholds,
    pub steps: Option<Steps>,
    pub no_steps: Option<String>,
    pub regions: Vec<RegionRow>,
    pub injection: Option<Injection>,
    pub reach: Option<Reach>,
    pub left_over: Option<Vec<LeftOver>>,
    pub unexpected: Option<Unexpected>,
    pub bounds: Option<RunTimeBounds>,
    pub buffering: BufferingFinding,
    pub is_too_large_to_replay: bool,
    pub progress: Option<MeasuredProgress>,
    pub profile: Option<Profile>,
    pub advice: Vec<Advice>,
}

/// What ran.
#[derive(Debug, Serialize)]
pub struct Head {
    pub command: String,
    pub executable: String,
    /// Size of the first world, which the launcher started.
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
    /// Those whose drivers came into ranks; empty: none did.
    pub accelerators: Vec<Accelerator>,
    pub started_unix_ns: i64,
    /// Run time of the rank that ran longest.
    pub longest_run_ns: Nanos,
    pub job: String,
    pub lapscope_version: String,
}

/// Accelerators that ranks used.
#[derive(Debug, Serialize)]
pub struct Accelerator {
    /// Of their driver, as `libcuda`.
    pub library: String,
    /// In whose memory MPI takes buffers, by its own words: `cuda,rocm`, `none`; `None`: it does not say.
    pub device_buffers: Option<String>,
    pub ranks: usize,
    /// Of these, those whose GPUs' busy intervals are recorded.
    pub recorded_ranks: usize,
    /// Those that had CUDA's driver, and did not use it.
    pub unused_ranks: usize,
    /// Why of how many ranks these are not known, or not all.
    pub missing: BTreeMap<&'static str, usize>,
}

impl Head {
    /// Whether some rank may have used a GPU.
    pub fn has_gpus(&self) -> bool {
        self.accelerators.iter().any(|it| it.ranks > it.unused_ranks)
    }
}

/// An MPI_COMM_WORLD; all but the first were spawned.
#[derive(Debug, Serialize)]
pub struct World {
    pub world: i64,
    pub world_size: i64,
    pub ranks: usize,
    /// The command of its first rank that was recorded.
    pub command: String,
}

/// A node and how many of the ranks were on it.
#[derive(Debug, Serialize)]
pub struct Host {
    pub name: String,
    pub ranks: usize,
}

/// How evenly the ranks share the work.
#[derive(Debug, Serialize)]
pub struct Spread {
    pub mpi_share: MinMeanMax,
    pub compute_ns: MinMeanMax,
    /// Largest computing time over the mean, minus 1.
    pub compute_imbalance: f64,
}

/// What the user asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportOptions {
    /// Call sites wanted; 0 means all.
    pub top: usize,
    pub order: SiteRanking,
    /// Leaves advice out, for who does not print it.
    pub without_advice: bool,
}

impl Report {
    /// How what is summed over ranks is shown.
    pub fn mean(&self) -> MeanOfRanks {
        MeanOfRanks(self.ranks.len() as u64)
    }

    /// Answers for a run of at least one rank; gives back the overlap, of which it has the totals alone.
    pub fn build(
        run_name: &str,
        run: &RunSums,
        problems: Vec<Problem>,
        options: ReportOptions,
        mut detail: InDetail,
        names: &mut dyn NameFrames,
    ) -> (Report, Overlap) {
        let ranks = rank_rows(run);
        let totals = sum_totals(&ranks);
        let sums = group_sites(run, options.order);
        let shown = if options.top == 0 { usize::MAX } else { options.top };
        let mut name = |sums| name_site(run, sums, totals.run_ns, names);
        let mut sites: Vec<Site> = sums.iter().take(shown).map(&mut name).collect();
        let completing: Vec<Site> =
            group_completing(run).iter().take(shown).map(&mut name).collect();
        let spread = spread(&ranks);
        let transfer = detail.bounds.as_ref().and_then(RunTimeBounds::on_ideal_network);
        let useful = Useful::of_run(&ranks, &detail.overlap.ranks);
        let efficiency = Efficiency::new(&useful, transfer);
        let mut size_classes = size_classes(run, totals.run_ns);
        add_to_sites(&mut sites, &detail.overlap);
        add_to_sizes(&mut size_classes, &detail.overlap);
        let exposed_ns = exposed(&totals);
        for advice in &mut detail.advice {
            // requests that one call completes cost its time once
            advice.time_high_ns = advice.time_high_ns.min(exposed_ns).max(advice.time_ns);
            advice.predict();
        }
        let report = Report {
            json_version: JSON_VERSION,
            run: run_name.to_owned(),
            stretch: None,
            head: head(run),
            problems,
            summary: Summary::new(&totals, &detail.overlap, &detail.advice, run),
            gpu_efficiency: GpuEfficiency::new(&detail.overlap.gpus),
            insights: find_insights(run, &totals, &ranks),
            totals,
            spread,
            efficiency,
            alike: Alike::of_totals(&ranks),
            ranks,
            completing_sites: completing,
            sites,
            site_count: sums.len(),
            wrappers: Vec::new(),
            size_classes,
            kinds: kinds(run),
            overlap: OverlapSummary::from_overlap(&detail.overlap),
            thresholds: detail.thresholds,
            steps: detail.steps,
            no_steps: detail.no_steps,
            regions: detail.regions,
            injection: detail.injection,
            reach: detail.reach,
            left_over: detail.left_over,
            unexpected: detail.unexpected,
            bounds: detail.bounds,
            relies_on_buffering: detail.buffering.relies,
            buffering_not_known: detail.buffering.not_known.as_ref().map(not_known),
            is_too_large_to_replay: detail.is_too_large_to_replay,
            progress: detail.progress,
            profile: detail.profile,
            advice: detail.advice,
        };
        (report, detail.overlap)
    }
}

/// From this share of the run time on, time that is known to within an interval only is worth another measurement.
const WORTH_CALIBRATING: f64 = 0.005;

impl Report {
    /// Whether reference times would tell more: much time is known to within wide bounds only, and there is no calibration, or
    /// one of ranks that lacked processors.
    pub fn would_calibrating_tell(&self) -> bool {
        let reference = &self.overlap.reference.description;
        let is_calibrated = matches!(reference.source, ReferenceSource::Calibration { .. });
        if is_calibrated && reference.processor_share.is_none() {
            return false;
        }
        let numbers = &self.overlap.totals.numbers;
        let window =
            numbers.exposed_no_local_progress_high_ns - numbers.exposed_no_local_progress_low_ns;
        let advice = self.advice.iter().filter(|advice| advice.is_vague());
        let most = advice.map(|advice| advice.time_high_ns - advice.time_low_ns).max();
        let most = window.max(most.unwrap_or_default());
        most.share_of(self.totals.run_ns) >= WORTH_CALIBRATING
    }
}

impl OverlapSummary {
    fn from_overlap(overlap: &Overlap) -> OverlapSummary {
        OverlapSummary {
            reference: overlap.reference.clone(),
            clocks: overlap.clocks.clone(),
            matching: overlap.matching.clone(),
            totals: overlap.totals.clone(),
            kinds: overlap.kinds.clone(),
            blocking: overlap.blocking.totals,
            polling: overlap.polling,
            test_loops: overlap.test_loops.clone(),
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
        accelerators: accelerators(&infos),
        started_unix_ns: infos.iter().map(|info| info.epoch_unix_ns).min().unwrap_or(0),
        longest_run_ns: infos.iter().map(|info| info.run_time()).max().unwrap_or_default(),
        job: first.job.clone(),
        lapscope_version: first.lapscope_version.clone(),
    }
}

fn accelerators(infos: &[&RankInfo]) -> Vec<Accelerator> {
    let mut all: BTreeMap<(&str, Option<&str>), Vec<&RankInfo>> = BTreeMap::new();
    for info in infos {
        if let Some(library) = &info.accelerator {
            all.entry((library, info.device_buffers.as_deref())).or_default().push(info);
        }
    }
    let one = |((library, buffers), infos): ((&str, Option<&str>), Vec<&RankInfo>)| Accelerator {
        library: library.to_owned(),
        device_buffers: buffers.map(str::to_owned),
        ranks: infos.len(),
        recorded_ranks: infos.iter().filter(|info| info.has_device_time()).count(),
        unused_ranks: infos.iter().filter(|info| info.cuda_unused).count(),
        missing: missing(&infos),
    };
    all.into_iter().map(one).collect()
}

fn missing(infos: &[&RankInfo]) -> BTreeMap<&'static str, usize> {
    let mut missing = BTreeMap::new();
    for reason in infos.iter().filter_map(|info| NoGpuTime::of_rank(info)) {
        *missing.entry(reason.key()).or_default() += 1;
    }
    missing
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

/// What overlap says of the same call sites.
fn add_to_sites(sites: &mut [Site], overlap: &Overlap) {
    let mut parts: HashMap<_, OverlapTimes> = HashMap::new();
    for row in &overlap.sites {
        parts.entry(row.id).or_default().add_requests(&row.numbers);
    }
    for row in &overlap.blocking.sites {
        parts.entry(row.id).or_default().add_blocking(&row.numbers);
    }
    for site in sites {
        site.overlap = parts.get(&site.id).copied();
    }
}

/// What overlap says of transfers of the same sizes.
fn add_to_sizes(classes: &mut [SizeClass], overlap: &Overlap) {
    let mut parts: HashMap<_, OverlapTimes> = HashMap::new();
    for row in &overlap.sizes {
        let kind = match row.kind {
            Kind::Send | Kind::Recv => SizeKind::PointToPoint,
            Kind::Collective => SizeKind::Collective,
            Kind::Rma => SizeKind::Rma,
            Kind::Io => SizeKind::Io,
            Kind::Generalized | Kind::Other => continue,
        };
        parts.entry((kind, row.below_bytes)).or_default().add_requests(&row.numbers);
    }
    for class in classes {
        class.overlap = parts.get(&(class.kind, class.below_bytes)).copied();
    }
}
