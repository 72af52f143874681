//! `lapscope run`: around a launcher (outer form: a child, and a summary behind it), or as a rank that a launcher has
//! started (inner form: this process becomes the program).

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::watchdog::{self, Watchdog};
use crate::args::RunArgs;
use crate::commands::options::unknown_variables;
use lapscope_data::db::list_files;
use lapscope_data::program::{self, Obstacle, ProgramFile};
use lapscope_data::say;
use lapscope_data::text::shell;
use lapscope_launch::install;
use lapscope_launch::run::container;
use lapscope_launch::run::environment::{self, EnvironmentChanges};
use lapscope_launch::run::runs::RunDirectory;
use lapscope_launch::run::{child, line, outcome, Recorded};
use lapscope_report::calibration;
use lapscope_show::output;

const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// What is printed of a run once it is recorded.
pub type Print<'p> = &'p dyn Fn(&Path) -> anyhow::Result<()>;

/// # Errors
/// The preload library is missing, or an option is not valid. The program has then not been started.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let print = |run: &Path| {
        if args.report {
            super::report::print_of(run)?;
        }
        if args.html {
            super::html::write_of(run)?;
        }
        Ok(())
    };
    record(args, (args.report || args.html).then_some(&print))
}

/// As [`run`], with `print` for each run that was recorded in place of the report; a rank prints nothing.
///
/// # Errors
/// As [`run`].
pub fn record(args: &RunArgs, print: Option<Print<'_>>) -> anyhow::Result<ExitCode> {
    let library = install::preload_library()?;
    let mut settings = settings_of(args)?;
    settings.preload(&library);
    let inspected = inspected(&args.command);
    if inspected.as_ref().is_some_and(ProgramFile::has_shared_asan) {
        let theirs = settings.get("ASAN_OPTIONS").unwrap_or_default();
        let mut options = OsString::from("verify_asan_link_order=0:");
        options.push(theirs); // the last one counts
        settings.set("ASAN_OPTIONS", options);
    }
    let program = line::find_executable(&args.command[0]);
    let rank = environment::rank_variable().filter(|_| !line::is_launcher(&args.command[0]));
    let speaks = rank.map_or(true, |rank| std::env::var(rank).is_ok_and(|rank| rank == "0"));
    if let Some(reason) = unloadable(&args.command, program.as_deref()) {
        if speaks {
            say!("{reason}");
        }
        return Ok(ExitCode::from(NOT_EXECUTABLE));
    }
    if speaks {
        warn(inspected.as_ref());
        if let Some(tool) = environment::other_cuda_tool() {
            say!("when GPUs work is not recorded: {}. To have it, {}", tool.why(), tool.way_out());
        }
        if rank.is_some() && args.watchdog.is_some() {
            say!("--watchdog watches from around a launcher; within it each rank watches itself: --set WATCHDOG=SECONDS");
        }
    }
    match rank {
        Some(_) if args.dry_run => print_dry_run(&settings, &args.command),
        Some(_) => Ok(become_program(program.as_deref(), args, &settings)),
        None => around_launcher(program.as_deref(), args, settings, print),
    }
}

/// What would make a run record nothing, said while it can still be stopped.
pub fn warn(program: Option<&ProgramFile>) {
    for unknown in unknown_variables() {
        let guess =
            unknown.nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        say!("{} means nothing to lapscope{guess}", unknown.name);
    }
    if let Some((program, obstacle)) = program.and_then(|it| Some((it, it.obstacle()?))) {
        say!("{}", described(&program.path, &obstacle));
    }
}

/// The program, unless it is in a container, where it cannot be looked at.
fn program(command: &[OsString]) -> Option<PathBuf> {
    line::program(command).filter(|_| container::engine(command).is_none())
}

/// What its file says of it.
pub fn inspected(command: &[OsString]) -> Option<ProgramFile> {
    program::inspect(&program(command)?).ok()
}

/// Whether the site says so of every job.
fn records(settings: &EnvironmentChanges, word: &str) -> bool {
    settings.get("LAPSCOPE_RECORD").is_some_and(|value| value.eq_ignore_ascii_case(word))
}

/// What the options say.
///
/// # Errors
/// A path cannot be made absolute: the working directory is gone.
fn settings_of(args: &RunArgs) -> anyhow::Result<EnvironmentChanges> {
    let mut settings = EnvironmentChanges::default();
    for (name, value) in &args.set {
        settings.set(name, value);
    }
    // Where a site lets lapscope help every job, nothing of them is recorded; where it wants a record of each, no more than that, and
    // not in a directory of this run's.
    let is_asked = |wanted: &str| args.set.iter().any(|(name, _)| name == wanted);
    let of_all_jobs = records(&settings, "job");
    if !is_asked("LAPSCOPE_RECORD") && (of_all_jobs || records(&settings, "off")) {
        settings.set("LAPSCOPE_RECORD", "on");
        if of_all_jobs && !is_asked("LAPSCOPE_DIR") {
            settings.set("LAPSCOPE_DIR", std::path::absolute("lapscope-%j")?);
        }
    }
    if let Some(dir) = &args.dir {
        settings.set("LAPSCOPE_DIR", std::path::absolute(dir)?);
    }
    if let Some(dir) = &args.spool_dir {
        settings.set("LAPSCOPE_SPOOL_DIR", std::path::absolute(dir)?);
    }
    if let Some(files) = args.files {
        settings.set("LAPSCOPE_FILES", files.word());
    }
    if let Some(max_mb) = args.max_mb {
        settings.set("LAPSCOPE_MAX_MB", max_mb.to_string());
    }
    if let Some(mode) = args.inject {
        settings.set("LAPSCOPE_INJECT", mode.word());
    }
    if let Some(rate) = args.sample {
        settings.set("LAPSCOPE_SAMPLE", rate.to_string());
    }
    if args.no_callpath {
        settings.set("LAPSCOPE_CALLPATH", "off");
    }
    if args.quiet {
        settings.set("LAPSCOPE_QUIET", "on");
    }
    Ok(settings)
}

/// As a sentence.
fn described(path: &Path, obstacle: &Obstacle) -> String {
    let (path, what, cure) = (path.display(), obstacle.what(), obstacle.cure());
    format!("{path} {what}; nothing will be recorded: {cure}")
}

/// A program, or a launcher, that would not start with the preload library in it.
fn unloadable(command: &[OsString], first: Option<&Path>) -> Option<String> {
    let program = line::program(command);
    let mut all = [program.as_deref(), first].into_iter().flatten();
    let path = all.find(|path| program::is_of_musl(path))?.display();
    let (what, cure) = (Obstacle::Musl.what(), Obstacle::Musl.cure());
    Some(format!("{path} {what}: it would not start, and was not started; {cure}"))
}

// --- inner form ------------------------------------------------------------------------------------------------------

/// Returns only when the program cannot be executed.
fn become_program(
    program: Option<&Path>,
    args: &RunArgs,
    settings: &EnvironmentChanges,
) -> ExitCode {
    if program.is_none() {
        return not_found(&args.command[0]);
    }
    let line = settings.contained(&args.command).map_or(Cow::Borrowed(&args.command), Cow::Owned);
    let error = settings.command(&line).exec();
    cannot_execute(&args.command[0], &error)
}

fn not_found(command: &OsStr) -> ExitCode {
    let name = command.to_string_lossy();
    if name.contains('/') && Path::new(command).exists() {
        return cannot_execute(command, &io::ErrorKind::PermissionDenied.into());
    }
    let place = if name.contains('/') { "no such file" } else { "not in PATH" };
    say!("{name}: {place}");
    ExitCode::from(NOT_FOUND)
}

fn cannot_execute(command: &OsStr, error: &io::Error) -> ExitCode {
    say!("{}: cannot be executed ({error})", command.to_string_lossy());
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE })
}

// --- outer form ------------------------------------------------------------------------------------------------------

fn around_launcher(
    program: Option<&Path>,
    args: &RunArgs,
    settings: EnvironmentChanges,
    print: Option<Print<'_>>,
) -> anyhow::Result<ExitCode> {
    if program.is_none() {
        return Ok(not_found(&args.command[0]));
    }
    let directory = match settings.get("LAPSCOPE_DIR") {
        Some(named) => environment::named_directory(&named, &line::display_name(&args.command))?,
        None => environment::default_directory(&line::display_name(&args.command))?,
    };
    let mut recorded = Recorded::into_directory(&directory, settings);
    let settings = &mut recorded.settings;
    let quiet = settings.get("LAPSCOPE_QUIET").is_some_and(|value| is_on(&value));
    settings.set("LAPSCOPE_QUIET", "on"); // we say what rank 0 would, and more
    let disabled = records(settings, "off")
        || settings.get("LAPSCOPE_ENABLE").is_some_and(|value| is_off(&value));
    let converts = !settings.get("LAPSCOPE_CONVERT").is_some_and(|value| is_off(&value));
    let line = settings.exported(&args.command);
    let contained = container::engine(&args.command).is_some();
    if contained {
        say!("adding options to the launch line: the container gets lapscope's libraries, the run directory and {}",
            settings.names().join(OsStr::new(", ")).to_string_lossy());
    } else if matches!(line, Cow::Owned(_)) {
        say!(
            "adding -x {} to the launch line: Open MPI does not take the environment to other nodes",
            settings.names().join(OsStr::new(" -x ")).to_string_lossy()
        );
    }
    if args.dry_run {
        return print_dry_run(settings, &line);
    }
    let made = contained && !directory.exists();
    let mut command = settings.command(&line);
    let ended = match args.watchdog {
        None => child::run(&mut command).map(|status| (status, false)),
        Some(seconds) => {
            let limit = Duration::from_secs(seconds);
            let watchdog = Watchdog::new(&recorded, limit, args.watchdog_kill);
            child::run_watched(&mut command, &|| watchdog.tick())
                .map(|ended| (ended.status, ended.out_of_time))
        }
    };
    let (status, was_ended) = match ended {
        Ok(ended) => ended,
        Err(error) => return Ok(cannot_execute(&line[0], &error)),
    };
    let code = if was_ended { watchdog::EXIT_CODE } else { child::exit_code(status) };
    let runs = recorded.runs();
    if made && runs.is_empty() {
        drop(std::fs::remove_dir(&directory)); // not where something is in it
    }
    if disabled && runs.is_empty() {
        return Ok(code.into());
    }
    if let Some(beside) = outcome::beside(&directory, &runs).filter(|_| !quiet) {
        say!("{beside}");
    }
    if runs.is_empty() {
        no_data(args, &directory);
    }
    if let Err(error) = conclude(&runs, print, quiet, converts) {
        say!("{error:#}"); // the exit code stays the program's
    }
    Ok(code.into())
}

fn is_on(value: &OsStr) -> bool {
    ["on", "1", "yes", "true"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

fn is_off(value: &OsStr) -> bool {
    ["off", "0", "no", "false"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Recovers what killed ranks left, says what there is and what to type next.
fn conclude(
    runs: &[RunDirectory],
    print: Option<Print<'_>>,
    quiet: bool,
    converts: bool,
) -> anyhow::Result<()> {
    for run in runs {
        if !converts && print.is_none() {
            if !quiet {
                say!("{}", outcome::describe_unconverted(run)?);
            }
            continue;
        }
        let outcome = outcome::read(run)?;
        if let Ok(files) = list_files(&run.directory) {
            calibration::keep(&files);
        }
        if !quiet {
            outcome.lines(&run.directory, print.is_some()).iter().for_each(|line| say!("{line}"));
        }
        if let Some(print) = print {
            print(&outcome::relative(&run.directory))?;
        }
    }
    Ok(())
}

/// Why there can be no such directory; `None`: there is one, or could be.
fn cannot_be_made(directory: &Path) -> Option<io::Error> {
    let is_there = directory.is_dir();
    let made = std::fs::create_dir_all(directory);
    if made.is_ok() && !is_there {
        drop(std::fs::remove_dir(directory));
    }
    made.err()
}

fn no_data(args: &RunArgs, directory: &Path) {
    if container::engine(&args.command).is_some() {
        say!("nothing was recorded: the container has an older glibc than 2.17 or musl, or an MPI for which there is no \
              recorder, or its user may not write to the run directory; to find out, in the container: lapscope doctor");
        return;
    }
    if let Some(error) = cannot_be_made(directory) {
        say!("nothing was recorded: the run directory {} cannot be made ({error}): name another with --dir", directory.display());
        return;
    }
    let obstacle = inspected(&args.command).and_then(|program| program.obstacle());
    let obstacle = obstacle.map(|obstacle| format!(": the program {}", obstacle.what()));
    let reason = obstacle.unwrap_or_else(|| {
        ". Unless a line above says why, the program did not reach MPI_Init, or it uses an MPI for \
         which there is no recorder, or its launcher did not pass LD_PRELOAD on"
            .into()
    });
    let program = program(&args.command);
    let program = program.map(|path| format!(" {}", path.display())).unwrap_or_default();
    say!("nothing was recorded{reason}");
    say!("to find out: lapscope doctor{program}");
}

// --- dry run ---------------------------------------------------------------------------------------------------------

fn print_dry_run(settings: &EnvironmentChanges, line: &[OsString]) -> anyhow::Result<ExitCode> {
    output::print(|out| {
        for (name, value) in settings.iter() {
            writeln!(out, "{}={} \\", name.to_string_lossy(), shell::quote(value))?;
        }
        writeln!(out, "{}", shell::join(line))
    })?;
    Ok(ExitCode::SUCCESS)
}
