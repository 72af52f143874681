//! The reach of a run.

use anyhow::Result;
use serde::Serialize;

use super::OpenRun;
use crate::watching::Watching;
use lapscope_advise::problem::module_problems;
use lapscope_data::places::group::Grouping;
use lapscope_data::text::progress::Progress;
use lapscope_data::JSON_VERSION;
use lapscope_measure::overlap::{EagerLimits, Measuring, OverlapOptions, ReferenceNotes};
use lapscope_measure::reach::document::{Reach, ReachInputs};
use lapscope_measure::reach::network::Network;
use lapscope_measure::reference::Reference;
use lapscope_measure::thresholds::Thresholds;
use lapscope_trace::problem::Problem;

/// What `lapscope reach` says. Keys are documented in `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct ReachDocument {
    pub json_version: u32,
    pub run: String,
    pub problems: Vec<Problem>,
    pub watching: Watching,
    pub reference: ReferenceNotes,
    /// `None`: no buffer was watched.
    pub reach: Option<Reach>,
}

/// Builds the document for the requests of these ranks, of all where none is named. `networks` are asked what the run
/// would take on them.
///
/// # Errors
/// No file of the run can be read, or it has none of these ranks.
pub fn build(
    open: &mut OpenRun,
    options: OverlapOptions<'_>,
    networks: &[Network],
) -> Result<ReachDocument> {
    let trace = open.whole_trace(options.ranks, Grouping::Line)?;
    let (reference, notes) = open.reference_times(&trace, Reference::of_run(&trace))?;
    let eager =
        EagerLimits::from_thresholds(&Thresholds::find(&trace, &reference, &[], Vec::new()));
    let progress = Progress::default();
    progress.expect(trace.ranks.iter().map(|rank| rank.endpoints.len() as u64).sum());
    let measured = Measuring {
        trace: &trace,
        reference: &reference,
        eager,
        ranks: options.ranks,
        progress: &|more| progress.add(more),
    }
    .sums();
    drop(progress);
    let known = ReachInputs { trace: &trace, reference: &reference, measured: &measured, networks };
    let mut reach = open.reach(options.ranks, known);
    if let Some(reach) = &mut reach {
        reach.truncate(options.top);
    }
    let (watching, failed) = Watching::of_run(&open.files.databases, options.ranks);
    open.leave_out(failed)?;
    let mut problems = watching.problems();
    problems.extend(open.problems(&[]));
    problems.extend(module_problems(open.symbols.troubles()));
    let reference = ReferenceNotes { description: reference.describe(), notes };
    let (json_version, run) = (JSON_VERSION, open.name());
    Ok(ReachDocument { json_version, run, problems, watching, reference, reach })
}

#[cfg(test)]
mod tests;
