//! The report on a run.

use anyhow::Result;

use super::filters::check_ranks;
use super::OpenRun;
use crate::advice::{Gathered, Gatherer, Limit, Setting};
use crate::calibration;
use crate::cvars;
use crate::injection::Injection;
use crate::overlap::{measure, measure_with, EagerLimits, Options, Overlap};
use crate::problem::module_problems;
use crate::reach::Known;
use crate::report::{InDetail, Report, ReportOptions};
use crate::thresholds::Thresholds;
use crate::trace::Trace;
use crate::whatif::bounds::{bounds, is_too_large};
use lapscope_data::model::Rank;
use lapscope_data::text::progress::Progress;

/// The report on a run, or on some of its ranks.
///
/// # Errors
/// No file of it can be read, or it has none of these ranks.
pub fn build(open: &mut OpenRun, ranks: &[Rank], options: ReportOptions) -> Result<Report> {
    let (mut sums, trace) = open.sum_and_trace()?;
    let pending = if sums.entries.iter().any(|entry| entry.cell.pending > 0) {
        let pending = open.pending()?;
        pending.items
    } else {
        Vec::new()
    };
    let known = sums.ranks.iter().map(|rank| rank.info.rank);
    check_ranks("--rank", ranks.iter().copied(), known, &open.name())?;
    sums.retain_ranks(ranks);
    let injection = open.injection(ranks);
    let problems = open.problems(&pending);
    let detail = in_detail(open, &trace, ranks, injection, !options.without_advice);
    drop(trace);
    let name = open.name();
    let mut report = Report::build(&name, &sums, problems, options, detail, &mut open.symbols);
    report.wrappers = open.wrappers.iter().cloned().collect();
    for problem in module_problems(open.symbols.troubles()) {
        if !report.problems.contains(&problem) {
            report.problems.push(problem);
        }
    }
    Ok(report)
}

/// Overlap, thresholds, and what follows from them: advice where it is wanted.
pub fn in_detail(
    open: &mut OpenRun,
    trace: &Trace,
    ranks: &[Rank],
    injection: Option<Injection>,
    advises: bool,
) -> InDetail {
    let databases = &open.files.databases;
    let (declared, _) = cvars::declared(databases).unwrap_or_default();
    let (reference, notes) = calibration::reference_for(trace, databases);
    let thresholds = Thresholds::find(trace, &reference, &[], declared);
    let eager = EagerLimits::of(&thresholds);
    let progress = Progress::default();
    progress.expect(trace.ranks.iter().map(|rank| rank.endpoints.len() as u64).sum());
    let add = |requests| progress.add(requests);
    let mut gathered = Gathered::default();
    let measured = if advises {
        let gatherer = |rank| Gatherer::new(trace, rank);
        let (measured, gatherers) = measure_with(trace, &reference, eager, ranks, &add, gatherer);
        for gatherer in gatherers {
            gathered.merge(gatherer.finish());
        }
        measured
    } else {
        measure(trace, &reference, eager, ranks, &add)
    };
    drop(progress);
    let name = open.name();
    let names = &mut open.symbols;
    let all = Options { top: 0, ranks };
    let mut overlap = Overlap::build(&name, trace, &reference, &measured, all, names);
    overlap.reference.notes.extend(notes);
    let limits: Vec<Limit> = thresholds.localities.iter().map(Limit::of).collect();
    let known = Known { trace, reference: &reference, measured: &measured };
    let reach = open.reach(ranks, known);
    let is_whole = advises && ranks.is_empty();
    let is_too_large_to_replay = is_whole && is_too_large(trace);
    let bounds = match is_whole && !is_too_large_to_replay {
        true => bounds(trace, &reference, &thresholds),
        false => None,
    };
    let is_injected = injection.is_some();
    let setting = Setting { limits: &limits, is_injected, reach: reach.as_ref() };
    let names = &mut open.symbols;
    let advice = gathered.advise(trace, setting, overlap.totals.run_ns, names);
    InDetail { overlap, thresholds, injection, reach, bounds, is_too_large_to_replay, advice }
}
