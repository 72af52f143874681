//! The reach of a run.

use anyhow::Result;
use serde::Serialize;

use super::filters::check_ranks;
use super::OpenRun;
use crate::problem::{module_problems, Problem};
use crate::reach::watching::Watching;
use crate::JSON_VERSION;
use lapscope_data::model::Rank;
use lapscope_data::places::group::Grouping;

/// What `lapscope reach` says. Keys are documented in `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct ReachDocument {
    pub json_version: u32,
    pub run: String,
    pub problems: Vec<Problem>,
    pub watching: Watching,
}

/// Of the requests of these ranks; of all where none is named.
///
/// # Errors
/// No file of the run can be read, or it has none of these ranks.
pub fn build(open: &mut OpenRun, ranks: &[Rank]) -> Result<ReachDocument> {
    open.places(Grouping::Line)?;
    let known: Vec<Rank> = open.census.infos().iter().map(|info| info.rank).collect();
    check_ranks("--rank", ranks.iter().copied(), known, &open.name())?;
    let (watching, failed) = Watching::of_run(&open.files.databases, ranks);
    open.leave_out(failed)?;
    let mut problems = watching.problems();
    problems.extend(open.problems(&[]));
    problems.extend(module_problems(open.symbols.troubles()));
    Ok(ReachDocument { json_version: JSON_VERSION, run: open.name(), problems, watching })
}
