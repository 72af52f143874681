//! `lapscope report`: where the time went.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use super::warn;
use crate::args::{ReportArgs, REPORTED_SITES};
use crate::output::{print, print_json, Format};
use crate::render;
use lapscope_analysis::pipeline::report::build;
use lapscope_analysis::pipeline::OpenRun;
use lapscope_analysis::report::{Report, ReportOptions};
use lapscope_data::text::style::Style;

/// Reads the run, recovering what killed ranks left, and prints the report.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &ReportArgs) -> Result<ExitCode> {
    let mut open = OpenRun::open(args.run.as_deref())?;
    open.find_wrappers(&args.wrappers.names)?;
    let options =
        ReportOptions { top: args.top, order: args.sort.into(), ..ReportOptions::default() };
    let report = build(&mut open, &args.ranks, options)?;
    match args.format {
        Format::Text => print_text(&report)?,
        Format::Json => print_json(&report)?,
        Format::Csv => {
            warn(&report.problems);
            print(|out| render::csv::write_sites(out, &report.sites))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the command prints of a run that nothing more was said about.
///
/// # Errors
/// As [`run`].
pub fn print_of(run: &Path) -> Result<()> {
    let mut open = OpenRun::open(Some(run))?;
    open.find_wrappers(&[])?;
    let options = ReportOptions { top: REPORTED_SITES, ..ReportOptions::default() };
    print_text(&build(&mut open, &[], options)?)
}

fn print_text(report: &Report) -> Result<()> {
    print(|out| render::report::write(out, report, Style::for_stdout()))
}
