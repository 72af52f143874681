//! `lapscope diff`: two runs side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use crate::args::DiffArgs;
use crate::output::Format;
use crate::output::{print, print_json};
use crate::render;
use lapscope_analysis::diff::{Diff, Side};
use lapscope_analysis::pipeline::report::build;
use lapscope_analysis::pipeline::OpenRun;
use lapscope_analysis::report::ReportOptions;
use lapscope_data::db::{Configuration, Database};
use lapscope_data::text::style::Style;

/// Reads both runs and prints what differs.
///
/// # Errors
/// One of them is no run, no file of it can be read, or standard output fails.
pub fn run(args: &DiffArgs) -> Result<ExitCode> {
    let (mut a, mut b) =
        (open(&args.a, &args.wrappers.names)?, open(&args.b, &args.wrappers.names)?);
    // What is a wrapper in one of them is one in both, or its callers would have no counterparts.
    a.wrappers.join(&b.wrappers);
    b.wrappers = a.wrappers.clone();
    let (a, b) = (side(a)?, side(b)?);
    let diff = Diff::new(&a, &b, args.top);
    match args.format {
        Format::Text => print(|out| render::diff::write(out, &diff, Style::for_stdout()))?,
        Format::Json => print_json(&diff)?,
        Format::Csv => print(|out| render::csv::write_site_pairs(out, &diff.sites))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path, wrappers: &[String]) -> Result<OpenRun> {
    let mut open = OpenRun::open(Some(path))?;
    open.find_wrappers(wrappers)?;
    Ok(open)
}

fn side(mut open: OpenRun) -> Result<Side> {
    let all = ReportOptions { without_advice: true, ..ReportOptions::default() };
    let report = build(&mut open, &[], all)?;
    let configuration = configuration(&open.files.databases)?;
    Ok(Side { report, configuration })
}

/// That of the first file in which it can be read.
fn configuration(databases: &[PathBuf]) -> Result<Configuration> {
    let mut error = anyhow::anyhow!("no data");
    for path in databases {
        match Database::open(path).and_then(|database| Configuration::read(&database)) {
            Ok(configuration) => return Ok(configuration),
            Err(why) => error = why.into(),
        }
    }
    Err(error)
}
