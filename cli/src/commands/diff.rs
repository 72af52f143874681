//! `lapscope diff`: two runs side by side.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::open::OpenRun;
use super::report::build;
use crate::analysis::diff::{Diff, Side};
use crate::analysis::report::ReportOptions;
use crate::args::{DiffArgs, Format};
use crate::db::{Configuration, Database};
use crate::output::{print, print_json};
use crate::render;
use crate::render::style::Style;

/// Reads both runs and prints what differs.
///
/// # Errors
/// One of them is no run, no file of it can be read, or standard output fails.
pub fn run(args: &DiffArgs) -> Result<ExitCode> {
    let (a, b) = (side(&args.a)?, side(&args.b)?);
    let diff = Diff::new(&a, &b, args.top);
    match args.format {
        Format::Text => print(|out| render::diff::write(out, &diff, Style::for_stdout()))?,
        Format::Json => print_json(&diff)?,
        Format::Csv => print(|out| render::csv::write_site_pairs(out, &diff.sites))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn side(path: &Path) -> Result<Side> {
    let open = OpenRun::open(Some(path))?;
    let all = ReportOptions { top: 0, ..ReportOptions::default() };
    let report = build(&open, &[], all)?;
    let first = open.files.databases.first().context("no data")?;
    let configuration = Configuration::read(&Database::open(first)?)?;
    Ok(Side { report, configuration })
}
