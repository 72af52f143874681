//! The report on a run.

use anyhow::Result;

use super::filters::check_ranks;
use super::view::View;
use super::OpenRun;
use crate::advice::{Limit, Setting};
use crate::calibration;
use crate::cvars;
use crate::injection::Injection;
use crate::overlap::{EagerLimits, Options, Overlap};
use crate::problem::module_problems;
use crate::reach::Known;
use crate::report::{InDetail, Report, ReportOptions};
use crate::whatif::bounds::{bounds, is_too_large};
use lapscope_data::model::Rank;
use lapscope_data::places::group::Grouping;

/// The report on a run, or on some of its ranks.
///
/// # Errors
/// No file of it can be read, or it has none of these ranks.
pub fn build(open: &mut OpenRun, ranks: &[Rank], options: ReportOptions) -> Result<Report> {
    let (mut view, sums) = View::open(open, Grouping::Line, true)?;
    let mut sums = sums.unwrap_or_default();
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
    let detail = in_detail(open, &mut view, ranks, injection, !options.without_advice)?;
    drop(view);
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
///
/// # Errors
/// The run is looked at in parts, and these fail.
pub fn in_detail(
    open: &mut OpenRun,
    view: &mut View,
    ranks: &[Rank],
    injection: Option<Injection>,
    advises: bool,
) -> Result<InDetail> {
    let databases = &open.files.databases;
    let (declared, _) = cvars::declared(databases).unwrap_or_default();
    let own = view.own_reference()?;
    let (reference, notes) = calibration::reference_with(&view.trace, databases, own);
    let thresholds = view.thresholds(&reference, &[], declared)?;
    let eager = EagerLimits::of(&thresholds);
    let (measured, gathered) = view.measure(&reference, eager, ranks, advises)?;
    // a run that was looked at in parts and fits into memory is looked at as a whole for what needs that
    let read_again = match view.is_whole() || !open.resources.fits(open.rows()) {
        true => None,
        false => Some(open.trace(&[], Grouping::Line)?),
    };
    let whole = read_again.as_ref().or_else(|| view.is_whole().then_some(&view.trace));
    let trace = &view.trace;
    let name = open.name();
    let names = &mut open.symbols;
    let all = Options { top: 0, ranks };
    let mut overlap = Overlap::build(&name, trace, &reference, &measured, all, names);
    overlap.reference.notes.extend(notes);
    let limits: Vec<Limit> = thresholds.localities.iter().map(Limit::of).collect();
    let reach = match whole {
        Some(trace) => {
            open.reach(ranks, Known { trace, reference: &reference, measured: &measured })
        }
        None => open.reach_left_out(),
    };
    let is_wanted = advises && ranks.is_empty();
    let replayed = whole.filter(|trace| is_wanted && !is_too_large(trace));
    let is_too_large_to_replay = is_wanted && replayed.is_none();
    let bounds = replayed.and_then(|trace| bounds(trace, &reference, &thresholds));
    let is_injected = injection.is_some();
    let setting = Setting { limits: &limits, is_injected, reach: reach.as_ref() };
    let names = &mut open.symbols;
    let advice = gathered.advise(trace, setting, overlap.totals.run_ns, names);
    Ok(InDetail { overlap, thresholds, injection, reach, bounds, is_too_large_to_replay, advice })
}
