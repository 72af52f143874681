//! `lapscope calibrate`: runs lapscope's own MPI program under the user's launcher, and keeps how long its transfers took.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, Context};

use crate::args::CalibrateArgs;
use lapscope_data::db::list_files;
use lapscope_data::say;
use lapscope_data::secrets::hide_in_command;
use lapscope_data::text::progress::Progress;
use lapscope_data::text::units::percent;
use lapscope_launch::own_program::OwnProgram;
use lapscope_measure::loggps::{self, is_of_round_trip};
use lapscope_measure::reference::sharing::{at_once, is_of_sharing};
use lapscope_measure::reference::Reference;
use lapscope_report::calibration::{self, Calibration, Circumstances};
use lapscope_report::pipeline::follow;
use lapscope_show::format;
use lapscope_trace::{Operation, Trace};

/// # Errors
/// The launch line has a program already, something of lapscope is missing, the launch failed or measured nothing, or the
/// file cannot be written.
pub fn run(args: &CalibrateArgs) -> anyhow::Result<ExitCode> {
    let program = OwnProgram {
        used_as: "lapscope calibrate --",
        command: &args.command,
        mode: "transfers",
        seconds: args.seconds,
        dir: args.dir.as_deref(),
        mpi_library: args.mpi_library.as_deref(),
    };
    let own_run = match program.run()? {
        Ok(own_run) => own_run,
        Err(code) => return Ok(code),
    };
    let mut calibration = measured(&own_run.directory, args)?;
    let path = match &args.output {
        Some(path) => path.clone(),
        None => calibration::directory()?.join(calibration.file_name()),
    };
    calibration.write(&path)?;
    format::print(&mut calibration, args.format)?;
    let hosts: Vec<&str> = calibration.circumstances.hosts.iter().map(String::as_str).collect();
    say!("calibration in {}", path.display());
    let hosts = hosts.join(", ");
    if let Some(share) = calibration::lacked_processors(calibration.times.processor_share) {
        say!(
            "no report uses it, unless --reference names the file: its ranks had a processor for only {} of the time in which they \
             could have run; calibrate again with a processor for each rank and nothing else running there",
            percent(share)
        );
    } else if args.output.is_none() {
        say!("used from now on for runs on {hosts} with this MPI and the same transport settings");
    }
    Ok(ExitCode::SUCCESS)
}

/// What the run says.
fn measured(run: &Path, args: &CalibrateArgs) -> anyhow::Result<Calibration> {
    let files = list_files(run)?.databases;
    let progress = Progress::default();
    let (trace, failed) = Trace::read(&files, &|rows| follow(&progress, rows))?;
    drop(progress);
    if let Some(error) = failed.into_iter().next() {
        return Err(error).context("part of the run cannot be read");
    }
    let is_alone =
        |operation: &Operation| !is_of_round_trip(operation) && !is_of_sharing(operation);
    let mut reference = Reference::of_operations(&trace, is_alone);
    if reference.is_empty() {
        bail!("no transfer was measured; are there processors for all ranks?");
    }
    reference.at_once = at_once(&trace);
    let mut launch: Vec<String> =
        args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = launch.join(" ");
    let shown = hide_in_command(&line);
    if shown != line {
        launch = shown.split(' ').map(str::to_owned).collect();
    }
    let circumstances = Circumstances::of_run(&trace, &files)?;
    let calibration = Calibration::new(launch, trace.ranks.len() as u64, circumstances, reference);
    Ok(Calibration { loggps: loggps::of_run(&trace), ..calibration })
}
