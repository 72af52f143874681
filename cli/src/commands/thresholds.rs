//! `lapscope thresholds`: from which size on sends wait for their receiver.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::own_program::OwnProgram;
use super::warn;
use crate::args::ThresholdsArgs;
use crate::output::Format;
use crate::output::{print, print_json};
use crate::render;
use lapscope_analysis::calibration;
use lapscope_analysis::cvars;
use lapscope_analysis::pipeline::OpenRun;
use lapscope_analysis::thresholds::{Declared, Thresholds};
use lapscope_analysis::JSON_VERSION;
use lapscope_data::say;
use lapscope_data::text::style::Style;

#[derive(Serialize)]
struct Document<'a> {
    json_version: u32,
    run: String,
    #[serde(flatten)]
    thresholds: &'a Thresholds,
}

/// Prints the limits of each path with what speaks for them, of a run or of sends that are made for it.
///
/// # Errors
/// There is no run here, no file of it can be read, a launch failed, or standard output fails.
pub fn run(args: &ThresholdsArgs) -> Result<ExitCode> {
    if !args.probe {
        return of_run(args, args.run.as_deref());
    }
    let program = OwnProgram {
        used_as: "lapscope thresholds --probe --",
        command: &args.command,
        mode: "limits",
        seconds: args.seconds,
        dir: args.dir.as_deref(),
        mpi_library: args.mpi_library.as_deref(),
    };
    match program.run()? {
        Ok(own_run) => of_run(args, Some(&own_run.directory)),
        Err(code) => Ok(code),
    }
}

fn of_run(args: &ThresholdsArgs, run: Option<&Path>) -> Result<ExitCode> {
    let mut open = OpenRun::open(run)?;
    let trace = open.trace(&args.ranks)?;
    warn(&open.problems(&[]));
    let declared = declared(&open.files.databases);
    let (reference, _) = calibration::reference_for(&trace, &open.files.databases);
    let thresholds = Thresholds::find(&trace, &reference, &args.ranks, declared);
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
fn declared(databases: &[PathBuf]) -> Vec<Declared> {
    let (declared, trouble) = cvars::declared(databases)
        .unwrap_or_else(|error| (Vec::new(), Some(format!("settings are not known: {error}"))));
    if let Some(trouble) = trouble {
        say!("{trouble}");
    }
    declared
}
