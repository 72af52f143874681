//! `lapscope diff`: two runs side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use super::open_run;
use crate::args::DiffArgs;
use lapscope_data::db::{Configuration, Database};
use lapscope_report::diff::{Diff, DiffSide};
use lapscope_report::pipeline::report::build;
use lapscope_report::pipeline::OpenRun;
use lapscope_report::report::ReportOptions;
use lapscope_show::format;

/// Reads both runs and prints what differs.
///
/// # Errors
/// One of them is no run, no file of it can be read, or standard output fails.
pub fn run(args: &DiffArgs) -> Result<ExitCode> {
    let (mut a, mut b) = (open(&args.a, args)?, open(&args.b, args)?);
    // What is a wrapper in one of them is one in both, or its callers would have no counterparts.
    a.wrappers.join(&b.wrappers);
    b.wrappers = a.wrappers.clone();
    let (a, b) = (side(a)?, side(b)?);
    let mut diff = Diff::new(&a, &b, args.format.top(args.top, 15));
    format::print(&mut diff, args.format)?;
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path, args: &DiffArgs) -> Result<OpenRun> {
    open_run(Some(path), &args.times, &args.wrappers, &args.resources)
}

fn side(mut open: OpenRun) -> Result<DiffSide> {
    let all = ReportOptions { without_advice: true, ..ReportOptions::default() };
    let report = build(&mut open, &[], all)?;
    let configuration = configuration(&open.files.databases)?;
    Ok(DiffSide { report, configuration })
}

/// That of the first file in which it can be read.
pub(super) fn configuration(databases: &[PathBuf]) -> Result<Configuration> {
    let mut error = anyhow::anyhow!("no data");
    for path in databases {
        match Database::open(path).and_then(|database| Configuration::read(&database)) {
            Ok(configuration) => return Ok(configuration),
            Err(why) => error = why.into(),
        }
    }
    Err(error)
}
