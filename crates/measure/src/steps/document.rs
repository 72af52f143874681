//! What is told of steps and regions. Keys are documented in `docs/json.md`.

use serde::Serialize;

use super::drift::Drift;
use super::events::{Caller, Path};
use super::sums::{RegionSums, Spent, StepCell, StepSums};
use super::{Plan, StepRule};
use crate::efficiency::Efficiency;
use crate::overlap::sums::ByCause;
use crate::overlap::sums::Cause;
use lapscope_data::model::{Nanos, Rank};
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_trace::stats::quantile;
use lapscope_trace::Trace;

/// A first step that is so many times as long as a typical one, and longer than nearly all others, is told apart.
const WARM_UP: f64 = 1.5;
const NEARLY_ALL: f64 = 0.95;

/// The steps of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Steps {
    pub what: StepStart,
    /// On each of `ranks`.
    pub count: u64,
    pub ranks: u64,
    /// Ranks that made another number of steps, and none: they are in no number here.
    pub other_ranks: u64,
    pub ranks_without: u64,
    /// Part of the run time that they fill, as a fraction: 1 where all of the run is steps.
    pub share: f64,
    pub duration: Duration,
    /// How many times as long as a typical step the first one was, where it stands apart.
    pub first_times_typical: Option<f64>,
    /// `None`: none that noise does not explain.
    pub drift: Option<Drift>,
    pub exposed: Exposed,
    /// `None`: no request has a reference time.
    pub overlap: Option<Hidden>,
    /// Steps that a row has together.
    pub steps_in_row: u64,
    /// Of all of them; `None`: not known, as [`Efficiency::new`] says.
    pub efficiency: Option<Efficiency>,
    pub rows: Vec<StepRow>,
}

/// What begins a step.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepStart {
    /// The program marks them: MPI_Pcontrol(2).
    Marks,
    /// A region that the program marks.
    Region { name: String },
    /// A call that is made once a step; `in_burst`: with others like it.
    Call { call: String, site: Option<FrameName>, in_burst: bool },
    /// Whatever is called from there.
    Function { site: Option<FrameName> },
}

/// How long steps take. A step's duration is the mean over ranks, each by its own begin and end; of several steps in a row, the
/// mean of these.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Duration {
    pub min_ns: Nanos,
    pub min_step: u64,
    /// The median.
    pub typical_ns: Nanos,
    pub p95_ns: Nanos,
    pub worst_ns: Nanos,
    /// The step that took longest, with the rank that took longest in it, and how long.
    pub worst_step: u64,
    pub worst_rank: Rank,
    pub worst_rank_ns: Nanos,
}

/// Exposed time of a step: completing and blocking calls, the mean over ranks.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Exposed {
    /// The median.
    pub typical_ns: Nanos,
    /// Of [`Duration::typical_ns`].
    pub typical_share: f64,
    pub worst_ns: Nanos,
    /// Of the duration of the same step.
    pub worst_share: f64,
    pub worst_step: u64,
}

/// Achieved overlap of a step, as a fraction of the reference time of its requests.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Hidden {
    pub typical_low: f64,
    pub typical_high: f64,
    /// The low bound of the step with the least.
    pub worst_low: f64,
    pub worst_high: f64,
    pub worst_step: u64,
}

/// One step, or several; over all ranks that count.
#[derive(Debug, Clone, Serialize)]
pub struct StepRow {
    /// The first, from 1, and the last.
    pub step: u64,
    pub last_step: u64,
    /// Since the first rank's MPI_Init returned: the first begin and the last end.
    pub begin_ns: Nanos,
    pub end_ns: Nanos,
    /// Mean duration of one step.
    pub duration_ns: Nanos,
    pub longest_ns: Nanos,
    pub longest_step: u64,
    pub longest_rank: Rank,
    #[serde(flatten)]
    pub numbers: StepNumbers,
}

/// Sums over ranks.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct StepNumbers {
    /// Exposed time of completing and blocking calls.
    pub exposed_ns: Nanos,
    pub exposed_late_partner_ns: Nanos,
    pub exposed_no_remote_progress_ns: Nanos,
    pub exposed_no_local_progress_ns: Nanos,
    pub exposed_transfer_ns: Nanos,
    pub exposed_no_processor_ns: Nanos,
    pub reference_ns: Nanos,
    /// Fractions of it; `None` of nothing.
    pub achieved_low: Option<f64>,
    pub achieved_high: Option<f64>,
    pub possible_low: Option<f64>,
    pub possible: Option<f64>,
    pub lost_low: Option<f64>,
    pub lost_high: Option<f64>,
}

/// A region that the program marks, over all ranks.
#[derive(Debug, Clone, Serialize)]
pub struct RegionRow {
    pub name: String,
    pub ranks: u64,
    /// Times that ranks were in it.
    pub count: u64,
    pub time_ns: Nanos,
    pub longest_ns: Nanos,
    pub longest_rank: Rank,
    #[serde(flatten)]
    pub numbers: StepNumbers,
    /// As that of steps.
    pub efficiency: Option<Efficiency>,
}

impl StepNumbers {
    fn from_spent(spent: &Spent) -> StepNumbers {
        let share = |ns: i64| (spent.transfer > 0).then(|| ns as f64 / spent.transfer as f64);
        let [late, remote, local, transfer, processor]: ByCause =
            Cause::ALL.map(|cause| spent.exposed.by_cause(cause));
        StepNumbers {
            exposed_ns: Nanos(spent.exposed.total()),
            exposed_late_partner_ns: late,
            exposed_no_remote_progress_ns: remote,
            exposed_no_local_progress_ns: local,
            exposed_transfer_ns: transfer,
            exposed_no_processor_ns: processor,
            reference_ns: Nanos(spent.transfer),
            achieved_low: share(spent.achieved_low),
            achieved_high: share(spent.achieved_high),
            possible_low: share(spent.possible_low),
            possible: share(spent.possible_high),
            lost_low: share(spent.lost_low),
            lost_high: share(spent.lost_high),
        }
    }
}

impl Steps {
    /// `None`: none of the ranks that were asked for made these steps, or none of them counts.
    pub fn build(
        plan: &Plan,
        sums: &StepSums,
        trace: &Trace,
        names: &mut dyn NameFrames,
    ) -> Option<Steps> {
        let told = |(_, cell): &(u64, &StepCell)| cell.times > 0;
        let cells: Vec<(u64, &StepCell)> = (0..).zip(&sums.cells).filter(told).collect();
        let per = sums.steps_in_cell;
        let step = |cell: u64| cell * per + 1;
        let mean = |ns: i64, cell: &StepCell| ns as f64 / cell.times as f64;
        let durations: Vec<f64> = cells.iter().map(|(_, cell)| mean(cell.ns, cell)).collect();
        let (duration, typical) = duration(&cells, &durations, per, trace)?;
        let exposed: Vec<(u64, f64, f64)> = cells
            .iter()
            .map(|(at, cell)| {
                let exposed = mean(cell.spent.exposed.total(), cell);
                (step(*at), exposed, exposed / mean(cell.ns.max(1), cell))
            })
            .collect();
        let warm_up = first_apart(&cells, &durations, typical);
        let settled = if warm_up.is_some() { &durations[1..] } else { &durations[..] };
        let rank = |place: u32| trace.ranks[place as usize].info().rank;
        let begin = trace.begin();
        let row = |(at, cell): &(u64, &StepCell)| StepRow {
            step: step(*at),
            last_step: (step(*at) + per - 1).min(plan.count),
            begin_ns: Nanos(cell.begin - begin),
            end_ns: Nanos(cell.end - begin),
            duration_ns: Nanos(mean(cell.ns, cell).round() as i64),
            longest_ns: Nanos(cell.longest.ns),
            longest_step: cell.longest.step + 1,
            longest_rank: rank(cell.longest.rank),
            numbers: StepNumbers::from_spent(&cell.spent),
        };
        Some(Steps {
            what: StepStart::from_rule(&plan.rule, trace, names),
            count: plan.count,
            ranks: plan.ranks,
            other_ranks: plan.others,
            ranks_without: plan.without,
            share: share(&cells, per, trace),
            duration,
            first_times_typical: warm_up,
            drift: Drift::fit(settled),
            exposed: exposed_of(&exposed, typical)?,
            overlap: hidden(&cells, per),
            steps_in_row: per,
            efficiency: Efficiency::new(&sums.useful, None),
            rows: cells.iter().map(row).collect(),
        })
    }
}

/// Share of the run time of the ranks that made them, on average.
fn share(cells: &[(u64, &StepCell)], per: u64, trace: &Trace) -> f64 {
    let ns: i64 = cells.iter().map(|(_, cell)| cell.ns).fold(0, i64::saturating_add);
    let ranks = cells.iter().map(|(_, cell)| cell.times.div_ceil(per)).max().unwrap_or(0);
    let run: i64 = (0..trace.ranks.len()).map(|place| trace.run_time(place).0).sum();
    let mean_run = run as f64 / trace.ranks.len().max(1) as f64;
    (ns as f64 / (ranks as f64 * mean_run).max(1.0)).min(1.0)
}

/// How long steps take, and the median, nanoseconds.
fn duration(
    cells: &[(u64, &StepCell)],
    durations: &[f64],
    per: u64,
    trace: &Trace,
) -> Option<(Duration, f64)> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let typical = quantile(&sorted, 0.5)?;
    let ns = |ns: f64| Nanos(ns.round() as i64);
    let by_length = |a: &usize, b: &usize| durations[*a].total_cmp(&durations[*b]);
    let least = (0..cells.len()).min_by(by_length)?;
    let most = (0..cells.len()).rev().max_by(by_length)?;
    let longest = cells[most].1.longest;
    let duration = Duration {
        min_ns: ns(durations[least]),
        min_step: cells[least].0 * per + 1,
        typical_ns: ns(typical),
        p95_ns: ns(quantile(&sorted, 0.95)?),
        worst_ns: ns(durations[most]),
        worst_step: if per == 1 { cells[most].0 + 1 } else { longest.step + 1 },
        worst_rank: trace.ranks[longest.rank as usize].info().rank,
        worst_rank_ns: Nanos(longest.ns),
    };
    Some((duration, typical))
}

/// How many times as long as a typical step the first is, where that is much more.
fn first_apart(cells: &[(u64, &StepCell)], durations: &[f64], typical: f64) -> Option<f64> {
    let first = cells.first().filter(|(at, _)| *at == 0).map(|_| durations[0])?;
    let mut others = durations[1..].to_vec();
    others.sort_unstable_by(f64::total_cmp);
    let nearly_all = quantile(&others, NEARLY_ALL)?;
    let times = first / typical.max(1.0);
    (times >= WARM_UP && first > nearly_all).then_some(times)
}

/// Of steps with their exposed time, and its share of them; `typical` is how long a typical one takes, nanoseconds.
fn exposed_of(steps: &[(u64, f64, f64)], typical: f64) -> Option<Exposed> {
    let mut exposed: Vec<f64> = steps.iter().map(|it| it.1).collect();
    exposed.sort_unstable_by(f64::total_cmp);
    let typical_exposed = quantile(&exposed, 0.5)?;
    let worst = steps.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Exposed {
        typical_ns: Nanos(typical_exposed.round() as i64),
        typical_share: typical_exposed / typical.max(1.0),
        worst_ns: Nanos(worst.1.round() as i64),
        worst_share: worst.2,
        worst_step: worst.0,
    })
}

fn hidden(cells: &[(u64, &StepCell)], per: u64) -> Option<Hidden> {
    let share = |(at, cell): &(u64, &StepCell)| {
        let spent = &cell.spent;
        let of = |ns: i64| ns as f64 / spent.transfer as f64;
        let low_high = (of(spent.achieved_low), of(spent.achieved_high));
        (spent.transfer > 0).then_some((at * per + 1, low_high.0, low_high.1))
    };
    let known: Vec<(u64, f64, f64)> = cells.iter().filter_map(share).collect();
    let typical = |of: fn(&(u64, f64, f64)) -> f64| {
        let mut values: Vec<f64> = known.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        quantile(&values, 0.5)
    };
    let worst = known.iter().min_by(|a, b| (a.1 + a.2).total_cmp(&(b.1 + b.2)))?;
    Some(Hidden {
        typical_low: typical(|it| it.1)?,
        typical_high: typical(|it| it.2)?,
        worst_low: worst.1,
        worst_high: worst.2,
        worst_step: worst.0,
    })
}

impl RegionRow {
    /// All regions, those first in which most time was spent.
    pub fn all(sums: &StepSums, trace: &Trace) -> Vec<RegionRow> {
        let row = |(name, region): (&String, &RegionSums)| RegionRow {
            name: name.clone(),
            ranks: region.ranks,
            count: region.count,
            time_ns: Nanos(region.ns),
            longest_ns: Nanos(region.longest.ns),
            longest_rank: trace.ranks[region.longest.rank as usize].info().rank,
            numbers: StepNumbers::from_spent(&region.spent),
            efficiency: Efficiency::new(&region.useful, None),
        };
        let mut rows: Vec<RegionRow> = sums.regions.iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
        rows
    }
}

impl StepStart {
    fn from_rule(rule: &StepRule, trace: &Trace, names: &mut dyn NameFrames) -> StepStart {
        match rule {
            StepRule::Marks => StepStart::Marks,
            StepRule::Region(name) => StepStart::Region { name: name.clone() },
            StepRule::Anchor(anchor) => {
                let site = site(&anchor.path, names);
                match anchor.path.last() {
                    Some(Caller::Call(call)) => StepStart::Call {
                        call: trace.places.calls[*call as usize].name.clone(),
                        site,
                        in_burst: anchor.is_burst,
                    },
                    _ => StepStart::Function { site },
                }
            }
        }
    }
}

/// The innermost function of a path that is none of MPI's.
fn site(path: &Path, names: &mut dyn NameFrames) -> Option<FrameName> {
    let frames = path.iter().rev().filter_map(|caller| match caller {
        Caller::Frame(frame) => Some(*frame),
        Caller::Call(_) => None,
    });
    let mut named = frames.flat_map(|frame| names.name(frame)).collect::<Vec<_>>().into_iter();
    let first = named.next()?;
    if !first.is_mpi() {
        return Some(first);
    }
    Some(named.find(|name| !name.is_mpi()).unwrap_or(first))
}
