//! `lapscope thresholds`: from which size on sends wait for their receiver.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::open::{print, print_json, warn, OpenRun};
use crate::analysis::problem::{Problem, ProblemKind};
use crate::analysis::report::JSON_VERSION;
use crate::analysis::thresholds::{Declared, Thresholds};
use crate::args::{Format, ThresholdsArgs};
use crate::calibration;
use crate::cvars;
use crate::render;
use crate::render::style::Style;
use crate::trace::Trace;

#[derive(Serialize)]
struct Document<'a> {
    json_version: u32,
    run: String,
    #[serde(flatten)]
    thresholds: &'a Thresholds,
}

/// Prints the limits of each path with what speaks for them.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &ThresholdsArgs) -> Result<ExitCode> {
    let open = OpenRun::open(args.run.as_deref())?;
    let (trace, failed) = Trace::read(&open.files.databases)?;
    let mut problems = open.problems.clone();
    problems.extend(
        failed.iter().map(|error| {
            Problem::new(ProblemKind::DamagedFile, format!("not read: {error}"), vec![])
        }),
    );
    warn(&problems);
    let declared = declared(&open.files.databases)?;
    let (reference, _) = calibration::reference_for(&trace, &open.files.databases);
    let thresholds = Thresholds::find_with(&trace, &reference, &args.ranks, declared);
    match args.format {
        Format::Text => {
            print(|out| render::thresholds::write(out, &thresholds, Style::for_stdout()))?;
        }
        Format::Json => print_json(&Document {
            json_version: JSON_VERSION,
            run: open.name(),
            thresholds: &thresholds,
        })?,
        Format::Csv => print(|out| render::thresholds::write_csv(out, &thresholds))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Variables that set limits, and which transports are used; says where they could not be asked for.
fn declared(databases: &[PathBuf]) -> Result<Vec<Declared>> {
    let (declared, trouble) = cvars::declared(databases)?;
    if let Some(trouble) = trouble {
        eprintln!("lapscope: {trouble}");
    }
    Ok(declared)
}
