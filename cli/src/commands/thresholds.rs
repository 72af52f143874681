//! `lapscope thresholds`: from which size on sends wait for their receiver.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::args::ThresholdsArgs;
use lapscope_data::places::group::Grouping;
use lapscope_data::say;
use lapscope_data::text::style::Style;
use lapscope_data::JSON_VERSION;
use lapscope_launch::own_program::OwnProgram;
use lapscope_measure::thresholds::{Declared, Thresholds};
use lapscope_report::cvars;
use lapscope_report::pipeline::filters::check_ranks;
use lapscope_report::pipeline::view::View;
use lapscope_report::pipeline::OpenRun;
use lapscope_show::format::rows::RowWriter;
use lapscope_show::format::{self, warn, Document};
use lapscope_show::render;
use lapscope_trace::stretch::NamedStretch;

#[derive(Serialize)]
struct ThresholdsOutput {
    json_version: u32,
    run: String,
    /// What of the run these are of; `None`: all of it.
    stretch: Option<NamedStretch>,
    #[serde(flatten)]
    thresholds: Thresholds,
}

/// Prints the limits of each path with what speaks for them, of a run or of sends that are made for it.
///
/// # Errors
/// There is no run here, no file of it can be read, a launch failed, or standard output fails.
pub fn run(args: &ThresholdsArgs) -> Result<ExitCode> {
    if !args.probe {
        return of_run(args, args.read.run.as_deref());
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
    open.resources = args.resources.resources();
    open.stretch = args.stretch.wanted();
    open.reference.clone_from(&args.times.reference);
    let (mut view, _) = View::open(&mut open, Grouping::Address, false)?;
    let known = view.trace.ranks.iter().map(|trace| trace.info().rank);
    check_ranks("--ranks", args.ranks.chosen(), known, &open.name())?;
    warn(&open.problems(&[]));
    let declared = declared(&open.files.databases);
    let own = view.own_reference(false)?;
    let (reference, _) = open.reference_times(&view.trace, own)?;
    let thresholds = view.thresholds(&reference, &args.ranks.chosen(), declared, true)?;
    let (run, stretch) = (open.name(), view.stretch);
    let mut answer = ThresholdsOutput { json_version: JSON_VERSION, run, stretch, thresholds };
    format::print(&mut answer, args.read.format)?;
    Ok(ExitCode::SUCCESS)
}

impl Document for ThresholdsOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        render::stretch::write(out, self.stretch.as_ref(), style)?;
        Ok(render::thresholds::write(out, &self.thresholds, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(render::thresholds::write_rows(rows, &self.thresholds)?)
    }
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
