//! `lapscope calibrate`: runs lapscope's own MPI program under the user's launcher, and keeps how long its transfers took.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{bail, Context};

use super::recover::recover_ended_run;
use crate::analysis::reference::Reference;
use crate::args::{CalibrateArgs, TextOrJson};
use crate::calibration::{self, Calibration, Circumstances};
use crate::db::list_files;
use crate::install;
use crate::launch::environment::{self, Settings};
use crate::launch::{child, line, mpi_library, nodes};
use crate::render;
use crate::render::style::Style;
use crate::trace::Trace;

/// # Errors
/// The launch line has a program already, something of lapscope is missing, the launch failed or measured nothing, or the
/// file cannot be written.
pub fn run(args: &CalibrateArgs) -> anyhow::Result<ExitCode> {
    check(args)?;
    let preload = install::preload_library()?;
    let program = install::calibrator(&preload)?;
    let place = Place::new(args)?;
    let settings = settings(args, &preload, &place.run)?;
    let line = launch_line(args, &program, &settings);
    warn_of_load();
    let status = launch(&line, &settings)?;
    if !status.success() {
        return Ok(failed(status));
    }
    let calibration = measured(&place.run, args)?;
    let path = match &args.output {
        Some(path) => path.clone(),
        None => calibration::directory()?.join(calibration.file_name()),
    };
    calibration.write(&path)?;
    print(args, &calibration)?;
    let hosts: Vec<&str> = calibration.circumstances.hosts.iter().map(String::as_str).collect();
    eprintln!("lapscope: calibration in {}", path.display());
    if args.output.is_none() {
        eprintln!(
            "lapscope: used from now on for runs on {} with this MPI and the same transport settings",
            hosts.join(", ")
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn check(args: &CalibrateArgs) -> anyhow::Result<()> {
    if let Some(rank) = environment::rank_variable() {
        bail!("calibrate starts the launcher itself, and this is a rank of a job already ({rank} is set)");
    }
    if line::find_executable(&args.command[0]).is_none() {
        bail!(
            "{}: no such program; expected a launch line, as in: lapscope calibrate -- mpirun -n 2",
            args.command[0].to_string_lossy()
        );
    }
    let last = args.command.last().filter(|_| args.command.len() > 1);
    let is_program = |word: &&OsString| {
        word.to_string_lossy().contains('/') && line::find_executable(word).is_some()
    };
    if let Some(program) = last.filter(is_program) {
        bail!(
            "leave out the program ({}): lapscope's own is launched, as in: lapscope calibrate -- mpirun -n 2",
            program.to_string_lossy()
        );
    }
    Ok(())
}

/// Where the run is recorded.
struct Place {
    run: PathBuf,
    /// Removed with everything in it.
    _directory: Option<tempfile::TempDir>,
}

impl Place {
    /// In the working directory, which ranks on other nodes see too.
    fn new(args: &CalibrateArgs) -> anyhow::Result<Place> {
        if let Some(kept) = &args.dir {
            return Ok(Place { run: std::path::absolute(kept)?, _directory: None });
        }
        let here = std::env::current_dir()?;
        let directory = tempfile::Builder::new()
            .prefix(".lapscope-calibration-")
            .tempdir_in(&here)
            .with_context(|| {
                format!("{}: the run needs a directory that all ranks can write to", here.display())
            })?;
        Ok(Place { run: directory.path().join("run"), _directory: Some(directory) })
    }
}

fn settings(args: &CalibrateArgs, preload: &Path, run: &Path) -> anyhow::Result<Settings> {
    let mut settings = Settings::default();
    let existing = std::env::var_os("LD_PRELOAD");
    settings.set("LD_PRELOAD", environment::preload(preload, existing.as_deref()));
    settings.set("LAPSCOPE_DIR", run);
    for (name, value) in [
        ("ENABLE", "on"),
        ("QUIET", "on"),
        ("CALLPATH", "off"),
        ("CONVERT", "on"),
        ("MAX_MB", "512"),
    ] {
        settings.set(format!("LAPSCOPE_{name}"), value);
    }
    let library = match &args.mpi_library {
        Some(named) => Some(named.canonicalize().with_context(|| named.display().to_string())?),
        None => mpi_library::find(&args.command),
    };
    if let Some(library) = library {
        settings.set("LAPSCOPE_MPI_LIBRARY", library);
    }
    if io::stderr().is_terminal() {
        settings.set("LAPSCOPE_CALIBRATE_PROGRESS", "on");
    }
    Ok(settings)
}

/// Other programs on this machine make every time too long, which no statistics can mend.
fn warn_of_load() {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|load| load.parse::<f64>().ok()).unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if load > 0.5 * processors as f64 {
        eprintln!(
            "lapscope: other programs run here (load {load} on {processors} processors): times will be too long, \
             better calibrate again when they have ended"
        );
    }
}

/// The user's line with our program behind it.
fn launch_line(args: &CalibrateArgs, program: &Path, settings: &Settings) -> Vec<OsString> {
    let exported = nodes::with_exported(&args.command, &settings.names());
    let mut line = exported.unwrap_or_else(|| args.command.clone());
    line.extend([program.into(), "transfers".into(), args.seconds.to_string().into()]);
    line
}

/// Standard output is for our own data.
fn launch(line: &[OsString], settings: &Settings) -> anyhow::Result<ExitStatus> {
    let stderr = io::stderr().lock();
    let to_stderr = std::os::fd::AsFd::as_fd(&stderr).try_clone_to_owned().map(Stdio::from);
    drop(stderr);
    let mut command = Command::new(&line[0]);
    command
        .args(&line[1..])
        .envs(settings.iter())
        .stdout(to_stderr.unwrap_or_else(|_| Stdio::null()));
    child::run(&mut command).with_context(|| line[0].to_string_lossy().into_owned())
}

fn failed(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    eprintln!("lapscope: the launch failed with exit code {code}: no calibration was written");
    eprintln!("lapscope: when the wrong MPI was loaded, name the right one: --mpi-library /path/to/libmpi.so");
    ExitCode::from(code)
}

/// What the run says.
fn measured(run: &Path, args: &CalibrateArgs) -> anyhow::Result<Calibration> {
    if !run.is_dir() {
        bail!("nothing was recorded: the launcher did not pass LD_PRELOAD on, or there is no recorder for this MPI; `lapscope doctor` says");
    }
    recover_ended_run(run, true)?;
    let files = list_files(run)?.databases;
    let (trace, failed) = Trace::read(&files)?;
    if let Some(error) = failed.into_iter().next() {
        return Err(error).context("part of the run cannot be read");
    }
    let reference = Reference::of_run(&trace);
    if reference.is_empty() {
        bail!("no transfer was measured; are there processors for all ranks?");
    }
    let launch = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let circumstances = Circumstances::of_run(&trace, &files)?;
    Ok(Calibration::new(launch, trace.ranks.len() as u64, circumstances, reference))
}

fn print(args: &CalibrateArgs, calibration: &Calibration) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match args.format {
        TextOrJson::Json => {
            serde_json::to_writer_pretty(&mut out, calibration)?;
            writeln!(out)?;
        }
        TextOrJson::Text => render::calibration::write(&mut out, calibration, Style::for_stdout())?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    use clap::Parser;

    fn args(words: &[&str]) -> CalibrateArgs {
        let words = ["lapscope", "calibrate", "--"].iter().chain(words);
        match crate::args::Cli::parse_from(words).command {
            crate::args::Command::Calibrate(args) => args,
            _ => unreachable!("`calibrate` was parsed"),
        }
    }

    #[test]
    fn a_program_in_the_launch_line_is_an_error() {
        let error = check(&args(&["/bin/sh", "-n", "2", "/bin/ls"])).unwrap_err().to_string();
        assert!(error.contains("leave out the program (/bin/ls)"), "{error}");
        let error = check(&args(&["no-such-launcher", "-n", "2"])).unwrap_err().to_string();
        assert!(error.contains("expected a launch line"), "{error}");
        check(&args(&["/bin/sh", "-n", "2", "--map-by", "ls"])).unwrap();
    }

    #[test]
    fn the_program_stands_behind_the_line() {
        let line = launch_line(
            &args(&["mpirun", "-n", "2", "--mca", "btl", "tcp,self"]),
            Path::new("/lib/lapscope-calibrate"),
            &Settings::default(),
        );
        let expected = "mpirun -n 2 --mca btl tcp,self /lib/lapscope-calibrate transfers 10";
        assert_eq!(line.join(OsStr::new(" ")), expected);
    }
}
