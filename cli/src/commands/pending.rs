//! `lapscope pending`: what had not ended when the processes did.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::args::PendingArgs;
use crate::export::rows::{self, RowWriter};
use crate::export::{self, warn, Document};
use crate::render;
use lapscope_analysis::pending::PendingItem;
use lapscope_analysis::pipeline::filters::check_ranks;
use lapscope_analysis::pipeline::OpenRun;
use lapscope_analysis::problem::module_problems;
use lapscope_analysis::JSON_VERSION;
use lapscope_data::text::style::Style;

#[derive(Serialize)]
struct Answer {
    json_version: u32,
    run: String,
    pending: Vec<PendingItem>,
    /// As text: entries of a rank that are shown.
    #[serde(skip)]
    top: usize,
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
    let mut items = found.items;
    items.retain(|item| args.ranks.is_empty() || args.ranks.contains(&item.rank));
    let mut problems = open.problems(&[]);
    problems.extend(module_problems(open.symbols.troubles()));
    warn(&problems);
    let (run, top) = (open.name(), args.top);
    let mut answer = Answer { json_version: JSON_VERSION, run, pending: items, top };
    export::print(&mut answer, args.read.format)?;
    Ok(ExitCode::SUCCESS)
}

impl Document for Answer {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::pending::write(out, &self.pending, self.top, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        export::write_json(self, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(rows::write(rows, &render::columns::pending(), &self.pending)?)
    }
}
