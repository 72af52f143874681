//! `lapscope export`: a run, or what was calibrated, as other programs read it.

mod interrupt;
#[cfg(feature = "parquet")]
pub(super) mod parquet;
mod timelines;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, Context, Error, Result};

use super::merge;
use crate::args::{
    Between, ExportArgs, ExportGoalArgs, ExportLoggpsArgs, ExportWhat, Simulator, TimeUnit,
};
#[cfg(not(feature = "parquet"))]
use crate::commands::left_out;
use lapscope_data::files::{cannot_write, way_out};
use lapscope_data::places::group::Grouping;
use lapscope_data::say;
use lapscope_data::text::units::count;
use lapscope_data::text::visible::Form;
use lapscope_measure::loggps::LogGps;
use lapscope_measure::reference::ends;
use lapscope_predict::goal::SimulatorUnit;
use lapscope_predict::goal::{self, Written};
use lapscope_report::calibration::{self, Calibration, Circumstances};
use lapscope_report::pipeline::OpenRun;
use lapscope_show::format::warn_of_data;
use lapscope_show::output;
use lapscope_show::render::simulators::{dimemas, loggopsim, simgrid, Exported};
use lapscope_trace::{Locality, Trace};

/// # Errors
/// There is no run here, nothing of it can be read, no parameters are there, or the output fails.
pub fn run(args: &ExportArgs) -> Result<ExitCode> {
    match &args.what {
        ExportWhat::Goal(args) => export_goal(args)?,
        ExportWhat::Loggps(args) => export_loggps(args)?,
        #[cfg(feature = "parquet")]
        ExportWhat::Parquet(args) => return parquet::run(args),
        #[cfg(not(feature = "parquet"))]
        ExportWhat::Parquet(_) => return Err(left_out("export parquet")),
        ExportWhat::Sqlite(args) => return merge::run(args),
        ExportWhat::Chrome(args) => return timelines::chrome(&args.timeline),
        ExportWhat::Otf2(args) => return timelines::otf2(&args.timeline),
        ExportWhat::Perfetto(args) => return timelines::perfetto(&args.timeline),
    }
    Ok(ExitCode::SUCCESS)
}

fn unit(unit: TimeUnit) -> SimulatorUnit {
    match unit {
        TimeUnit::Ps => SimulatorUnit::Picoseconds,
        TimeUnit::Ns => SimulatorUnit::Nanoseconds,
    }
}

/// The trace of a run, whose problems are said.
fn read(run: Option<&Path>) -> Result<(OpenRun, Trace)> {
    let mut open = OpenRun::open(run)?;
    let trace = open.whole_trace(&[], Grouping::Address)?;
    warn_of_data(&open.problems(&[]));
    Ok((open, trace))
}

fn export_goal(args: &ExportGoalArgs) -> Result<()> {
    let (_, trace) = read(args.run.as_deref())?;
    let unit = unit(args.unit);
    let written = match &args.output {
        None => {
            let mut written = Written::default();
            output::print_with(Form::Text { color: false }, |out| {
                written = goal::write(&trace, unit, out).context(output::STANDARD_OUTPUT)?;
                Ok(())
            })?;
            written
        }
        Some(path) => {
            let file = File::create(path).map_err(|error| cannot_write(path, error))?;
            let mut out = BufWriter::new(file);
            let written = goal::write(&trace, unit, &mut out);
            let written = written.map_err(|error| cannot_write(path, error))?;
            out.flush().map_err(|error| cannot_write(path, error))?;
            written
        }
    };
    say_left_out(&written);
    Ok(())
}

fn say_left_out(written: &Written) {
    if written.messages_left_out > 0 {
        say!(
            "{} sends and receives are left out, as their other end is not known",
            count(written.messages_left_out)
        );
    }
    if written.collectives_left_out > 0 {
        say!(
            "{} entries of collectives are left out: of neighbours, or with members that were not recorded; lapscope whatif \
             takes them as they were",
            count(written.collectives_left_out)
        );
    }
}

fn export_loggps(args: &ExportLoggpsArgs) -> Result<()> {
    let measured = match &args.calibration {
        Some(file) => of_file(file)?,
        None => of_run(args.run.as_deref())?,
    };
    let exported = match args.simulator {
        Simulator::Dimemas => dimemas(&measured.all, measured.nodes, measured.processors),
        Simulator::Loggopsim => loggopsim(one(&measured.all, args.between)?, unit(args.unit)),
        Simulator::Simgrid => simgrid(one(&measured.all, args.between)?),
    };
    let Exported { text, notes } = exported;
    output::print_with(Form::Text { color: false }, |out| {
        out.write_all(text.as_bytes()).context(output::STANDARD_OUTPUT)
    })?;
    for note in notes {
        say!("{note}");
    }
    Ok(())
}

/// Parameters, and the machine that a simulator is to have.
struct SimulatorInputs {
    all: Vec<LogGps>,
    nodes: u64,
    /// Processors of each node, as many as there were ranks.
    processors: u64,
}

impl SimulatorInputs {
    fn new(all: Vec<LogGps>, hosts: usize, ranks: u64) -> SimulatorInputs {
        let nodes = (hosts as u64).max(1);
        SimulatorInputs { all, nodes, processors: ranks.div_ceil(nodes).max(1) }
    }
}

fn of_file(file: &Path) -> Result<SimulatorInputs> {
    let Calibration { loggps, circumstances, ranks, .. } = Calibration::read(file)?;
    if loggps.is_empty() {
        bail!(
            "{}: no LogGPS parameters: of one rank alone, or of an older lapscope; calibrate again: \
             lapscope calibrate -- <launch line>",
            file.display()
        );
    }
    Ok(SimulatorInputs::new(loggps, circumstances.hosts.len(), ranks))
}

fn of_run(run: Option<&Path>) -> Result<SimulatorInputs> {
    let (open, trace) = read(run)?;
    let Some(loggps) = calibration::loggps_for(&trace, &open.files) else {
        bail!(
            "no calibration with LogGPS parameters fits {}; make one: lapscope calibrate -- <launch line>, or name one: \
             --calibration FILE",
            open.name()
        );
    };
    let hosts = Circumstances::of_run(&trace, &open.files.databases)?.hosts.len();
    Ok(SimulatorInputs::new(loggps, hosts, trace.ranks.len() as u64))
}

/// The network of a simulator that knows one.
fn one(all: &[LogGps], between: Option<Between>) -> Result<&LogGps> {
    let locality = between.map(|between| match between {
        Between::Node => Locality::Node,
        Between::Network => Locality::Network,
    });
    let found = match locality {
        Some(locality) => all.iter().find(|loggps| loggps.locality == locality),
        None => all.iter().max_by_key(|loggps| loggps.locality),
    };
    match (found, locality) {
        (Some(found), _) => Ok(found),
        (None, Some(locality)) => bail!("the calibration has nothing between {}", ends(locality)),
        (None, None) => bail!("the calibration has no LogGPS parameters"),
    }
}

/// With what to do about it, where that is known. What was written is gone again by then.
fn with_cure(error: Error, wanted: &Path) -> Error {
    match way_out(&error, wanted) {
        Some(way) => error.context(format!("{} was not made: {way}", wanted.display())),
        None => error,
    }
}
