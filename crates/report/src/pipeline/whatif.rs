//! A run under scenarios.

use anyhow::{bail, Result};

use super::collective_sites::find_collective_sites;
use super::OpenRun;
use crate::cvars;
use lapscope_advise::problem::module_problems;
use lapscope_advise::whatif_in_words;
use lapscope_data::model::Full;
use lapscope_data::places::group::Grouping;
use lapscope_data::text::progress::Progress;
use lapscope_data::JSON_VERSION;
use lapscope_measure::overlap::{EagerLimits, Measuring};
use lapscope_measure::reach::document::{Reach, ReachInputs};
use lapscope_measure::reach::room::MoveRoom;
use lapscope_measure::reference::Reference;
use lapscope_measure::thresholds::Thresholds;
use lapscope_predict::replay::injected::Injected;
use lapscope_predict::replay::scenario::Scenario;
use lapscope_predict::whatif::document::WhatIf;
use lapscope_predict::whatif::predictor::Predictor;
use lapscope_predict::whatif::replayer::Replayer;
use lapscope_predict::whatif::sweep::SweepRequest;
use lapscope_trace::{injected, Trace};

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct WhatIfOptions {
    pub scenarios: Vec<Scenario>,
    /// Each of one knob, with all others as in the first scenario, or as recorded.
    pub sweeps: Vec<SweepRequest>,
    /// Call sites, stretches of the critical path and root causes wanted; 0 means all.
    pub top: usize,
}

/// Replays the run as it was and under each scenario.
///
/// # Errors
/// No file of the run can be read.
pub fn build(open: &mut OpenRun, asked: &WhatIfOptions) -> Result<WhatIf> {
    let trace = open.whole_trace(&[], Grouping::Line)?;
    if trace
        .ranks
        .iter()
        .all(|rank| matches!(rank.info().summarized, Some(Full::Asked | Full::JobRecord)))
    {
        bail!("only sums were kept of this run (LAPSCOPE_RECORD), and there is nothing to replay: record it with rows, by lapscope run -- <launch line>");
    }
    let (reference, mut notes) = open.reference_times(&trace, Reference::of_run(&trace))?;
    let (declared, _) = cvars::declared(&open.files.databases).unwrap_or_default();
    let thresholds = Thresholds::find(&trace, &reference, &[], declared);
    let room = room(open, &trace, &reference, &thresholds, asked)?;
    let swept = asked.sweeps.iter().flat_map(|sweep| &sweep.points).map(|point| &point.scenario);
    let all = asked.scenarios.iter().chain(swept);
    let collective_sites = find_collective_sites(&trace, all, &mut open.symbols)?;
    let points = asked.sweeps.iter().map(|sweep| sweep.points.len());
    let replays = 3 + asked.scenarios.len() + points.sum::<usize>();
    let progress = Progress::new("replaying");
    let (files, failed) = injected::read_files(&open.census.asked_to_inject(), &trace.places, &[]);
    open.read_in_part("what was injected is not read", failed);
    let injected = Injected::of_files(&files, &trace);
    let mut replayer = Replayer::new(trace, reference, &thresholds, injected.as_deref());
    replayer.room = room;
    replayer.collective_sites = collective_sites;
    let steps = replayer.program.steps() as u64;
    progress.expect(steps * replays as u64);
    let name = open.name();
    let (mut answers, identity, mut model) =
        Predictor::new(replayer, (name.clone(), asked.top), &mut open.symbols);
    progress.add(3 * steps);
    model.notes.append(&mut notes);
    let recorded = answers.recorded();
    let mut scenarios = Vec::new();
    for scenario in &asked.scenarios {
        scenarios.push(answers.under(scenario));
        progress.add(steps);
    }
    let mut sweeps = Vec::new();
    for sweep in &asked.sweeps {
        sweeps.push(answers.sweep(sweep));
        progress.add(steps * sweep.points.len() as u64);
    }
    drop(progress);
    drop(answers);
    let mut problems = open.problems(&[]);
    problems.extend(module_problems(open.symbols.troubles()));
    let json_version = JSON_VERSION;
    let mut whatif =
        WhatIf { json_version, run: name, problems, recorded, model, identity, scenarios, sweeps };
    whatif_in_words::fill(&mut whatif);
    Ok(whatif)
}

/// How far calls can be moved, where a scenario moves any.
fn room(
    open: &mut OpenRun,
    trace: &Trace,
    reference: &Reference,
    thresholds: &Thresholds,
    asked: &WhatIfOptions,
) -> Result<MoveRoom> {
    let points = asked.sweeps.iter().flat_map(|sweep| &sweep.points);
    let all = asked.scenarios.iter().chain(points.map(|point| &point.scenario));
    let mut moves = false;
    for scenario in all {
        moves |= scenario.wait.is_some() || scenario.post.is_some();
    }
    if !moves {
        return Ok(MoveRoom::default());
    }
    let eager = EagerLimits::from_thresholds(thresholds);
    let measured = Measuring { trace, reference, eager, ranks: &[], progress: &|_| () }.sums();
    let reach =
        open.reach(&[], ReachInputs { trace, reference, measured: &measured, networks: &[] });
    match reach {
        Some(reach) => Ok(Reach::room(&reach)),
        None => {
            bail!("no buffer was watched in this run; record one with `lapscope reach -- LAUNCH`")
        }
    }
}
