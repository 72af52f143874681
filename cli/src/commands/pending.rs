//! `lapscope pending`: what had not ended when the processes did.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::args::PendingArgs;
use crate::export::rows::{self, RowWriter};
use crate::export::{self, warn, Document};
use crate::render;
use lapscope_analysis::pending::{group_places, Outside, PendingItem, PlaceGroup};
use lapscope_analysis::pipeline::filters::check_ranks;
use lapscope_analysis::pipeline::OpenRun;
use lapscope_analysis::problem::module_problems;
use lapscope_analysis::JSON_VERSION;
use lapscope_data::model::RankList;
use lapscope_data::text::style::Style;

#[derive(Serialize)]
struct Answer {
    json_version: u32,
    run: String,
    pending: Vec<PendingItem>,
    /// Ranks that were in no call.
    outside: Vec<Outside>,
    /// Who is where.
    places: Vec<PlaceGroup>,
    /// As text: entries of a rank that are shown.
    #[serde(skip)]
    top: usize,
    /// As text: ranks that are shown one by one, however many there are.
    #[serde(skip)]
    listed: Option<RankList>,
}

/// Prints requests that never ended and calls that never returned.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &PendingArgs) -> Result<ExitCode> {
    let mut open = OpenRun::open(args.read.run.as_deref())?;
    let found = open.pending()?;
    let known = found.ranks.iter().copied();
    check_ranks("--rank", args.ranks.iter().copied(), known, &open.name())?;
    let is_wanted = |rank| args.ranks.is_empty() || args.ranks.contains(&rank);
    let (mut pending, mut outside) = (found.items, found.outside);
    pending.retain(|item| is_wanted(item.rank));
    outside.retain(|it| is_wanted(it.rank));
    let places = group_places(&pending, &outside);
    let mut problems = open.problems(&[]);
    problems.extend(module_problems(open.symbols.troubles()));
    warn(&problems);
    let (run, top, listed) = (open.name(), args.top, args.ranked.listed.clone());
    let mut answer =
        Answer { json_version: JSON_VERSION, run, pending, outside, places, top, listed };
    export::print(&mut answer, args.read.format)?;
    Ok(ExitCode::SUCCESS)
}

impl Document for Answer {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        let Answer { pending, outside, places, top, listed, .. } = self;
        let shown = render::pending::Shown { top: *top, listed: listed.as_ref() };
        Ok(render::pending::write(out, (pending, outside, places), shown, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        export::write_json(self, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(rows::write(rows, &render::columns::pending(), &self.pending)?)
    }
}
