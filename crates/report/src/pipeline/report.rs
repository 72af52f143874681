//! The report on a run.

use std::collections::HashSet;

use anyhow::Result;

use super::filters::check_ranks;
use super::view::View;
use super::OpenRun;
use crate::calibration::MeasuredProgress;
use crate::cvars;
use crate::findings::{Findings, FindingsChoice};
use crate::pictures::Drawn;
use crate::report::{InDetail, Report, ReportOptions};
use lapscope_advise::advice::{Advice, AdviceContext, Limit, Replayed};
use lapscope_advise::problem::{module_problems, no_moments};
use lapscope_advise::{measures_in_words, standstill_in_words};
use lapscope_data::model::{Ended, Nanos, Rank, RankInfo};
use lapscope_data::places::group::Grouping;
use lapscope_data::symbols::Symbols;
use lapscope_measure::injection::Injection;
use lapscope_measure::overlap::{EagerLimits, Measured, Overlap, OverlapOptions};
use lapscope_measure::profile::Profile;
use lapscope_measure::reach::document::ReachInputs;
use lapscope_measure::reference::Reference;
use lapscope_measure::steps::{RegionRow, StepSums, Steps};
use lapscope_measure::unexpected::KeptLimits;
use lapscope_predict::whatif::bounds::{bounds, is_too_large, RunTimeBounds, MOST_ERROR};
use lapscope_predict::whatif::buffering::relies_on_buffering;

/// The report on a run, or on some of its ranks.
///
/// # Errors
/// No file of it can be read, or it has none of these ranks.
pub fn build(open: &mut OpenRun, ranks: &[Rank], options: ReportOptions) -> Result<Report> {
    let is_all = !options.without_advice;
    let wanted = FindingsChoice { advice: is_all, pictures: false, steps: is_all, kept: true };
    let (Reported { report, .. }, ()) = build_with(open, ranks, options, wanted, |_| Ok(()))?;
    Ok(report)
}

/// A report, and the overlap that it has the totals of.
pub struct Reported {
    pub report: Report,
    pub overlap: Overlap,
}

/// A run that was looked at, before it is let go of.
pub struct AnalyzedRun<'a> {
    pub view: &'a View,
    pub reference: &'a Reference,
    pub eager: EagerLimits,
    pub measured: &'a Measured,
    pub drawn: &'a Drawn,
    pub steps: &'a StepSums,
    pub names: &'a mut Symbols,
}

/// As [`build`], with what `look` makes of the run.
///
/// # Errors
/// As [`build`], and those of `look`.
pub fn build_with<T>(
    open: &mut OpenRun,
    ranks: &[Rank],
    options: ReportOptions,
    wanted: FindingsChoice,
    look: impl FnOnce(AnalyzedRun<'_>) -> Result<T>,
) -> Result<(Reported, T)> {
    let (mut view, sums) = View::open(open, Grouping::Line, true)?;
    let mut sums = sums.unwrap_or_default();
    let with_pending = sums.entries.iter().filter(|entry| entry.cell.pending > 0);
    let with_pending: HashSet<(Rank, i64)> =
        with_pending.map(|entry| &sums.ranks[entry.rank].info).map(key_of).collect();
    let pending = match with_pending.is_empty() {
        true => Vec::new(),
        false => {
            // of a stretch, and of what began before MPI did, the sums do not tell all
            let all = view.stretch.is_some();
            let may_have = |info: &RankInfo| {
                all || info.ended != Ended::Finalize || with_pending.contains(&key_of(info))
            };
            open.pending_with(may_have)?.items
        }
    };
    let known = sums.ranks.iter().map(|rank| rank.info.rank);
    check_ranks("--ranks", ranks.iter().copied(), known, &open.name())?;
    sums.retain_ranks(ranks);
    let injection = open.injection_counted(ranks);
    let (detail, looked) = in_detail(open, &mut view, ranks, (injection, wanted), look)?;
    sums.lay_to_gpus(&detail.overlap.laid_to_gpus);
    let stretch = view.stretch;
    drop(view);
    let mut problems = open.problems(&pending);
    problems.extend(no_moments(&sums.untold));
    let name = open.name();
    let names = &mut open.symbols;
    let (mut report, overlap) = Report::build(&name, &sums, problems, options, detail, names);
    report.stretch = stretch;
    report.wrappers = open.wrappers.iter().cloned().collect();
    for problem in module_problems(open.symbols.troubles()) {
        if !report.problems.contains(&problem) {
            report.problems.push(problem);
        }
    }
    Ok((Reported { report, overlap }, looked))
}

fn key_of(info: &RankInfo) -> (Rank, i64) {
    (info.rank, info.life)
}

/// What to do about a run, without a report.
///
/// # Errors
/// As [`build`].
pub fn advise(open: &mut OpenRun, view: &mut View) -> Result<Vec<Advice>> {
    let wanted = FindingsChoice { advice: true, pictures: false, steps: false, kept: false };
    let (detail, ()) = in_detail(open, view, &[], (None, wanted), |_| Ok(()))?;
    Ok(detail.advice)
}

/// Overlap, thresholds, and what follows from them: advice where it is wanted.
///
/// # Errors
/// The run is looked at in parts, and these fail.
fn in_detail<T>(
    open: &mut OpenRun,
    view: &mut View,
    ranks: &[Rank],
    (injection, wanted): (Option<Injection>, FindingsChoice),
    look: impl FnOnce(AnalyzedRun<'_>) -> Result<T>,
) -> Result<(InDetail, T)> {
    let (declared, _) = cvars::declared(&open.files.databases).unwrap_or_default();
    let own = view.own_reference(wanted.steps)?;
    let (reference, notes) = open.reference_times(&view.trace, own)?;
    let thresholds = view.thresholds(&reference, &[], declared, false)?;
    let eager = EagerLimits::from_thresholds(&thresholds);
    let no_steps = match wanted.steps {
        true => view.find_steps()?.err().map(measures_in_words::no_steps),
        false => None,
    };
    // what was kept and left over is told of all of the run
    let is_all_of_it = view.stretch.is_none();
    let wanted = FindingsChoice { kept: wanted.kept && is_all_of_it, ..wanted };
    let limits = (eager, KeptLimits::from_thresholds(&thresholds));
    let Findings { measured, gathered, drawn, steps, kept, left_over } =
        view.find(&reference, limits, ranks, wanted)?;
    let looked = {
        let (reference, measured, drawn, steps) = (&reference, &measured, &drawn, &steps);
        look(AnalyzedRun {
            view,
            reference,
            eager,
            measured,
            drawn,
            steps,
            names: &mut open.symbols,
        })?
    };
    let is_wanted = wanted.advice && ranks.is_empty() && is_all_of_it;
    let is_replayed = is_wanted && !is_too_large(view.endpoints);
    // a run that was looked at in parts and fits into memory is looked at as a whole for what needs that
    let needs_whole = is_replayed || is_all_of_it && open.is_watched();
    let read_again = match needs_whole && !view.is_whole() && open.resources.fits(open.rows()) {
        true => Some(open.trace(&[], Grouping::Line)?),
        false => None,
    };
    let whole = read_again.as_ref().or_else(|| view.is_whole().then_some(&view.trace));
    let trace = &view.trace;
    let name = open.name();
    let names = &mut open.symbols;
    let all = OverlapOptions { top: 0, ranks };
    let mut overlap = Overlap::build(&name, trace, &reference, &measured, all, names);
    measures_in_words::fill(&mut overlap);
    overlap.reference.notes.extend(notes);
    let limits: Vec<Limit> = thresholds.localities.iter().map(Limit::from_thresholds).collect();
    let reach = match whole {
        _ if view.stretch.is_some() => open.reach_of_stretch(),
        Some(trace) => open.reach(
            ranks,
            ReachInputs { trace, reference: &reference, measured: &measured, networks: &[] },
        ),
        None => open.reach_left_out(),
    };
    let left_over = wanted.kept.then(|| left_over.name(trace, &mut open.symbols));
    let unexpected = wanted.kept.then(|| kept.name(trace, &mut open.symbols));
    let replayed = whole.filter(|_| is_replayed);
    let is_too_large_to_replay = is_wanted && replayed.is_none();
    // of what was summed up the replay would make computation
    let replayed = replayed.filter(|trace| !trace.is_summarized());
    let replays = replayed.and_then(|trace| Some((trace, bounds(trace, &reference, &thresholds)?)));
    let unbuffered = replays.as_ref().and_then(|(trace, replays)| {
        let outcome = replays.unbuffered.as_ref()?;
        Some(relies_on_buffering(trace, outcome, &thresholds, &mut open.symbols))
    });
    let mut buffering = unbuffered.unwrap_or_default();
    buffering.relies.iter_mut().for_each(standstill_in_words::fill_buffering);
    // of a trace that was read again the places have other numbers than those that were gathered
    let of_same_trace = replays.as_ref().filter(|_| read_again.is_none());
    let uneven = of_same_trace
        .map(|(trace, replays)| replays.uneven_works(trace, &gathered.waits_for_computing()));
    let bounds = replays.map(|(_, replays)| replays.bounds);
    let is_injected = injection.is_some() || open.is_injection_left_out();
    let replayed = bounds.as_ref().map(replayed_gains).unwrap_or_default();
    let progress = is_wanted.then(|| MeasuredProgress::for_run(trace, &open.files)).flatten();
    let moved = progress.as_ref().map_or(&[][..], |progress| &progress.moved);
    let samples = open.samples(ranks, &trace.places);
    let profile = Profile::of_run(&samples, &trace.places, &mut open.symbols);
    let setting = AdviceContext {
        limits: &limits,
        is_injected,
        reach: reach.as_ref(),
        replayed,
        moved,
        uneven: uneven.as_ref(),
        samples: &samples,
    };
    let names = &mut open.symbols;
    let mut advice = gathered.advise(trace, setting, overlap.totals.run_ns, names);
    advice.iter_mut().for_each(Advice::predict);
    let told = view.plan().filter(|_| wanted.steps);
    let detail = InDetail {
        overlap,
        thresholds,
        steps: told.and_then(|plan| Steps::build(plan, &steps, trace, names)),
        no_steps,
        regions: RegionRow::all(&steps, trace),
        injection,
        reach,
        left_over,
        unexpected,
        bounds,
        buffering,
        is_too_large_to_replay,
        progress,
        profile,
        advice,
    };
    Ok((detail, looked))
}

/// What is said of cures by replays, where these are near enough to the record.
fn replayed_gains(bounds: &RunTimeBounds) -> Replayed {
    let is_near = bounds.error() <= MOST_ERROR;
    let gain = |run_ns: Option<Nanos>| run_ns.filter(|_| is_near).map(|run_ns| bounds.gain(run_ns));
    Replayed {
        progress: gain(bounds.perfect_progress_ns),
        balance: gain(bounds.balanced_load_ns),
        error: bounds.error(),
    }
}
