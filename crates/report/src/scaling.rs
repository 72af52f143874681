//! Runs of growing rank counts beside each other: what `lapscope report RUN RUN...` answers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{bail, Result};
use serde::Serialize;

use crate::check::alike::are_different;
use crate::pipeline::report::build;
use crate::pipeline::OpenRun;
use crate::report::{Report, ReportOptions};
use lapscope_advise::problem::in_short;
use lapscope_data::db::{read_counter_sums, Database};
use lapscope_data::model::Rank;
use lapscope_data::symbols::base_name;
use lapscope_data::JSON_VERSION;
use lapscope_measure::gpu_efficiency::WAITS_FOR_GPUS;
use lapscope_measure::scaling::{is_work_per_rank_constant, RunAtScale, ScalingMode, ScalingRow};

/// What PAPI and its component `perf` call them.
const INSTRUCTIONS: [&str; 3] =
    ["PAPI_TOT_INS", "perf::INSTRUCTIONS", "perf::PERF_COUNT_HW_INSTRUCTIONS"];
const CYCLES: [&str; 3] = ["PAPI_TOT_CYC", "perf::CYCLES", "perf::PERF_COUNT_HW_CPU_CYCLES"];

/// What `lapscope report` says of several runs. Keys are documented in `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct Scaling {
    pub json_version: u32,
    pub mode: ScalingMode,
    /// The run that all others are held against: the first of those with the fewest ranks.
    pub reference: String,
    /// Those of few ranks first.
    pub runs: Vec<ScaledRun>,
    /// What to know before believing it, and what is not known.
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct ScaledRun {
    pub run: String,
    #[serde(flatten)]
    pub numbers: ScalingRow,
}

/// One of the runs, as it was read.
#[derive(Debug)]
pub struct RunToScale {
    name: String,
    program: String,
    library: String,
    problems: Vec<String>,
    has_gpus: bool,
    at_scale: RunAtScale,
}

impl RunToScale {
    /// Reads a run and has it analysed.
    ///
    /// # Errors
    /// No file of it can be read.
    pub fn read(open: &mut OpenRun) -> Result<RunToScale> {
        let report = build(open, &[], ReportOptions::default())?;
        RunToScale::of_report(&report, open)
    }

    /// The same of a run that was analysed already.
    ///
    /// # Errors
    /// A file of it can be read no more.
    pub fn of_report(report: &Report, open: &OpenRun) -> Result<RunToScale> {
        let counted = Counted::read(open)?;
        let ranks = report.head.ranks;
        Ok(RunToScale {
            name: report.run.clone(),
            program: base_name(&report.head.executable).to_owned(),
            library: report.head.mpi_library.clone(),
            problems: in_short(&report.problems).into_iter().map(Cow::into_owned).collect(),
            has_gpus: report.head.has_gpus(),
            at_scale: RunAtScale {
                ranks: ranks as u64,
                runtime: report.head.longest_run_ns,
                efficiency: report.efficiency,
                instructions: counted.sum(&INSTRUCTIONS, ranks),
                cycles: counted.sum(&CYCLES, ranks),
            },
        })
    }
}

/// What each rank has counted outside of MPI, by name.
#[derive(Default)]
struct Counted(BTreeMap<String, BTreeMap<(Rank, i64), i64>>);

impl Counted {
    fn read(open: &OpenRun) -> Result<Counted> {
        let mut counted = Counted::default();
        for path in &open.files.databases {
            for sum in read_counter_sums(&Database::open(path)?)? {
                let of_name = counted.0.entry(sum.name).or_default();
                of_name.entry((sum.rank, sum.life)).or_insert(sum.outside);
            }
        }
        Ok(counted)
    }

    /// `None`: not all ranks have counted it.
    fn sum(&self, names: &[&str], ranks: usize) -> Option<i64> {
        let of_name = names.iter().find_map(|name| self.0.get(*name))?;
        let sum = of_name.values().fold(0, |sum: i64, value| sum.saturating_add(*value));
        (of_name.len() == ranks).then_some(sum)
    }
}

impl Scaling {
    /// # Errors
    /// There are no two runs.
    pub fn new(mut runs: Vec<RunToScale>, mode: ScalingMode) -> Result<Scaling> {
        runs.sort_by_key(|run| run.at_scale.ranks);
        let [reference, _, ..] = &runs[..] else {
            bail!("one run does not scale: name several, of growing numbers of ranks")
        };
        let row = |run: &RunToScale| ScaledRun {
            run: run.name.clone(),
            numbers: ScalingRow::new(&run.at_scale, &reference.at_scale, mode),
        };
        Ok(Scaling {
            json_version: JSON_VERSION,
            mode,
            reference: reference.name.clone(),
            runs: runs.iter().map(row).collect(),
            notes: notes(&runs, mode),
        })
    }
}

/// Names of those of which it is so.
fn names_of(runs: &[RunToScale], is_so: impl Fn(&RunToScale) -> bool) -> Option<String> {
    let names: Vec<&str> =
        runs.iter().filter(|run| is_so(run)).map(|run| run.name.as_str()).collect();
    let all = if names.len() == runs.len() { "all runs".to_owned() } else { names.join(", ") };
    (!names.is_empty()).then_some(all)
}

fn notes(runs: &[RunToScale], mode: ScalingMode) -> Vec<String> {
    let of_run = |run: &RunToScale| {
        let name = run.name.clone();
        run.problems.clone().into_iter().map(move |problem| format!("{name}: {problem}"))
    };
    let mut notes: Vec<String> = runs.iter().flat_map(of_run).collect();
    notes.dedup();
    let all = |of: fn(&RunToScale) -> &String| -> BTreeSet<String> {
        runs.iter().map(of).cloned().collect()
    };
    let ranks: BTreeSet<u64> = runs.iter().map(|run| run.at_scale.ranks).collect();
    if ranks.len() == 1 {
        notes.push(
            "all runs have as many ranks, so nothing is scaled: lapscope diff and lapscope check --against compare such runs"
                .to_owned(),
        );
    }
    notes.extend(are_different("programs", &all(|run| &run.program)));
    notes.extend(are_different("MPIs", &all(|run| &run.library)));
    let at_scale: Vec<RunAtScale> = runs.iter().map(|run| run.at_scale).collect();
    if mode == ScalingMode::Strong && is_work_per_rank_constant(&at_scale) {
        notes.push(
            "ranks compute about as long in every run: where each was given as much work, --scaling weak says how that scales"
                .to_owned(),
        );
    }
    notes.extend(runs.iter().any(|run| run.has_gpus).then(|| WAITS_FOR_GPUS.to_owned()));
    notes.extend(unknown(runs));
    notes
}

/// What is not known of which runs, and why.
fn unknown(runs: &[RunToScale]) -> Vec<String> {
    let efficiency = names_of(runs, |run| run.at_scale.efficiency.is_none()).map(|names| {
        format!(
            "efficiencies are not known of {names}: several threads of a rank call MPI, or not all of what ranks did is on record"
        )
    });
    let is_not_replayed = |run: &RunToScale| {
        run.at_scale.efficiency.is_some_and(|it| it.transfer_efficiency.is_none())
    };
    let transfer = names_of(runs, is_not_replayed).map(|names| {
        format!(
            "serialisation and transfer efficiency are not known of {names}: no replay on an ideal network is near enough to the \
             record"
        )
    });
    let is_not_counted =
        |run: &RunToScale| run.at_scale.instructions.is_none() || run.at_scale.cycles.is_none();
    let counters = names_of(runs, is_not_counted).map(|names| {
        format!(
            "instructions and cycles are not known of {names}: LAPSCOPE_COUNTERS={},{} counts them where the processor lets PAPI",
            INSTRUCTIONS[0], CYCLES[0]
        )
    });
    [efficiency, transfer, counters].into_iter().flatten().collect()
}
