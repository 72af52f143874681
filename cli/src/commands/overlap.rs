//! `lapscope overlap`: what was overlapped, what could have been, and what was waited for.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use super::open_run;
use crate::args::OverlapArgs;
use lapscope_data::model::RankList;
use lapscope_data::text::style::Style;
use lapscope_measure::overlap::OverlapOptions;
use lapscope_report::pipeline::overlap::{build, OverlapDocument};
use lapscope_show::format::rows::RowWriter;
use lapscope_show::format::{self, Document};
use lapscope_show::render;
use lapscope_show::render::overlap::OverlapBy;
use lapscope_trace::problem::Problem;

/// Reads the run, recovering what killed ranks left, and prints its overlap.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &OverlapArgs) -> Result<ExitCode> {
    let mut open =
        open_run(args.read.run.as_deref(), &args.times, &args.wrappers, &args.resources)?;
    open.stretch = args.stretch.wanted();
    let options =
        OverlapOptions { top: args.read.format.top(args.top, 10), ranks: &args.ranks.chosen() };
    let all = build(&mut open, options)?;
    let listed = args.ranked.listed.clone();
    format::print(&mut OverlapOutput { all, by: args.by, listed }, args.read.format)?;
    Ok(ExitCode::SUCCESS)
}

struct OverlapOutput {
    all: OverlapDocument,
    /// The one table that was asked for.
    by: Option<OverlapBy>,
    /// Ranks that the text has a line for.
    listed: Option<RankList>,
}

impl Document for OverlapOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::overlap::write(out, &self.all, self.by, self.listed.as_ref(), style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(&self.all, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(render::overlap::write_rows(rows, &self.all, self.by.unwrap_or(OverlapBy::Site))?)
    }

    fn problems(&self) -> &[Problem] {
        &self.all.overlap.problems
    }
}
