//! `lapscope bench`: the published experiments under the MPIs of this machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::BenchArgs;
use crate::card;
use crate::database::{self, ResultsWriter};
use crate::figures;
use crate::link::slow_link;
use crate::model;
use crate::mpi::{self, Mpi};
use crate::plan::{self, Job, Scope};
use crate::program::{self, ExampleProgram};
use crate::results::{Link, Results};
use crate::session::{Done, Session};
use crate::simulated::{Simulated, StatedLink};
use lapscope_data::calendar;
use lapscope_data::say;
use lapscope_data::store;
use lapscope_data::text::shell;
use lapscope_data::text::style::Style;
use lapscope_data::text::visible::visible;
use lapscope_launch::install;
use lapscope_launch::own_program::warn_of_load;
use lapscope_launch::run::child::HeldSignals;
use lapscope_launch::run::environment;
use lapscope_show::format::{self, Document};

/// The exit code of a shell that was interrupted.
const INTERRUPTED: u8 = 128 + libc::SIGINT as u8;

/// Runs the experiments, or reads what they gave before; prints the report card and draws. Or replays the one of rendezvous
/// protocols, and runs nothing.
///
/// # Errors
/// There is no MPI, its compiler fails, something of lapscope is missing, or a file cannot be written. A run that fails is
/// none: it is named in the report card.
pub fn run(args: &BenchArgs) -> Result<ExitCode> {
    if args.simulated {
        return simulate(args);
    }
    let (mut results, code) = match &args.read {
        Some(file) => (database::read(file)?, ExitCode::SUCCESS),
        None => measure(args)?,
    };
    if let Some(directory) = &args.plot {
        draw(&results, directory)?;
    }
    format::print(&mut results, args.format)?;
    Ok(code)
}

impl Document for Results {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(card::write(out, self, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }
}

fn simulate(args: &BenchArgs) -> Result<ExitCode> {
    let link = match &args.calibration {
        Some(file) => StatedLink::of_calibration(file)?,
        None => StatedLink::published().with(args.latency, args.bandwidth),
    };
    format::print(&mut Simulated::on(link), args.format)?;
    Ok(ExitCode::SUCCESS)
}

impl Document for Simulated {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(card::simulated::write(out, self, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }
}

fn draw(results: &Results, directory: &Path) -> Result<()> {
    let drawn = figures::draw(results, directory)?;
    match drawn.len() {
        0 => say!("nothing to draw: no experiment gave a result"),
        count => say!("{count} figures in {}", directory.display()),
    }
    Ok(())
}

// --- measuring -------------------------------------------------------------------------------------------------------

fn measure(args: &BenchArgs) -> Result<(Results, ExitCode)> {
    if let Some(rank) = environment::rank_variable() {
        bail!("lapscope bench starts launchers itself, and this is a rank of a job already ({rank} is set)");
    }
    let signals = HeldSignals::hold();
    let preload = install::preload_library()?;
    let calibrator = install::calibrator(&preload)?;
    let place = BenchDirectory::make(args)?;
    warn_of_load();
    let front = link_fronts(args)?;
    let scope = scope(args, &front);
    let mpis = mpis(args, &place.directory, &scope.programs)?;
    let jobs = plan::jobs(&mpis, &scope);
    if jobs.is_empty() {
        bail!("nothing to run: how to send over TCP is not known of this MPI; try --link shared");
    }
    let mut results = Results {
        facts: facts(&scope),
        mpis: mpis.iter().map(Mpi::facts).collect(),
        runs: Vec::new(),
    };
    let output = output(args);
    let mut writer = ResultsWriter::create(&output, &results)?;
    let session = Session {
        mpis: &mpis,
        processors: scope.processors,
        directory: &place.directory,
        preload: &preload,
        calibrator: &calibrator,
        slow_link: &front.unwrap_or_default(),
        signals: &signals,
        keeps: args.dir.is_some(),
    };
    let code = run_all(&session, &jobs, &mut results, &mut writer);
    let (file, quoted) = (output.display(), shell::quote(&output));
    say!("results in {file}; to see them again: lapscope bench --read {quoted}");
    Ok((results, code))
}

/// How it ended; what was measured until then is in `results`.
fn run_all(
    session: &Session<'_>,
    jobs: &[Job],
    results: &mut Results,
    writer: &mut ResultsWriter,
) -> ExitCode {
    let bar = BenchBar::new(jobs.len());
    for (number, job) in jobs.iter().enumerate() {
        let mpi = &results.mpis[job.mpi];
        bar.begin(&format!("{}, {}: {}", mpi.version, job.link.words(), describe(job)));
        match session.run(job, number, &|| bar.tick()) {
            Done::Interrupted => {
                bar.say("interrupted: the report card is of what was measured until now");
                return ExitCode::from(INTERRUPTED);
            }
            Done::Run(mut run) => {
                model::add_predictions(&mut run, &results.runs, session.processors);
                if let Some(problem) = &run.problem {
                    let (mpi, link) = (&mpi.version, job.link.words());
                    bar.say(&format!("{mpi}, {link}: {}: {problem}", describe(job)));
                }
                let written = writer.add(&run);
                results.runs.push(*run);
                if let Err(error) = written {
                    bar.say(&format!(
                        "{error:#}: the report card is of what was measured until now"
                    ));
                    return ExitCode::FAILURE;
                }
            }
        }
        bar.end();
    }
    ExitCode::SUCCESS
}

fn describe(job: &Job) -> String {
    let injected = match job.inject.key() {
        "off" => String::new(),
        mode => format!(", injected by {mode}"),
    };
    format!("{} {}{injected}", job.program.name, job.arguments.join(" "))
}

// --- what there is -----------------------------------------------------------------------------------------------------

/// Where programs and runs are.
struct BenchDirectory {
    directory: PathBuf,
    /// Removed with everything in it.
    _temporary: Option<tempfile::TempDir>,
}

impl BenchDirectory {
    fn make(args: &BenchArgs) -> Result<BenchDirectory> {
        if let Some(named) = &args.dir {
            std::fs::create_dir(named)
                .with_context(|| format!("{} cannot be made", named.display()))?;
            return Ok(BenchDirectory { directory: named.canonicalize()?, _temporary: None });
        }
        let temporary = tempfile::Builder::new().prefix("lapscope-bench-").tempdir();
        let temporary =
            temporary.context("no directory for programs and runs; name one with --dir")?;
        Ok(BenchDirectory { directory: temporary.path().to_owned(), _temporary: Some(temporary) })
    }
}

/// The MPIs asked for, or all in PATH, with every experiment compiled.
fn mpis(args: &BenchArgs, directory: &Path, programs: &[ExampleProgram]) -> Result<Vec<Mpi>> {
    let mut mpis = match args.mpis.as_slice() {
        [] => mpi::in_path(),
        names => names.iter().map(|name| mpi::named(name)).collect::<Result<_>>()?,
    };
    if mpis.is_empty() {
        bail!("no MPI in PATH; on Debian: apt-get install libopenmpi-dev openmpi-bin; or name one: --mpi /where/it/is");
    }
    program::write_sources(directory)?;
    let is_asked_for = !args.mpis.is_empty();
    let mut troubles = Vec::new();
    mpis.retain_mut(|mpi| {
        let compiled = mpi
            .ask(directory)
            .and_then(|()| programs.iter().try_for_each(|program| program.compile(directory, mpi)));
        compiled.map_err(|error| troubles.push(format!("{error:#}"))).is_ok()
    });
    if mpis.is_empty() || (is_asked_for && !troubles.is_empty()) {
        bail!("{}", troubles.join("\n"));
    }
    troubles.iter().for_each(|trouble| say!("left out: {trouble}"));
    Ok(mpis)
}

/// The front of command lines over the slow link; `None`: it is not wanted, or not to be had and not asked for.
fn link_fronts(args: &BenchArgs) -> Result<Option<Vec<OsString>>> {
    let is_asked_for = args.links.contains(&Link::SlowLink);
    if !args.links.is_empty() && !is_asked_for {
        return Ok(None);
    }
    match slow_link() {
        Ok(front) => Ok(Some(front)),
        Err(why) if is_asked_for => bail!("the slow link {why}"),
        Err(why) => {
            say!("left out: the slow link {why}");
            Ok(None)
        }
    }
}

fn scope(args: &BenchArgs, front: &Option<Vec<OsString>>) -> Scope {
    let is_wanted = |link: &Link| match link {
        Link::SharedMemory => args.links.is_empty() || args.links.contains(&Link::SharedMemory),
        Link::SlowLink => front.is_some(),
    };
    let programs = match args.only.as_slice() {
        [] => program::ALL.to_vec(),
        only => only.to_vec(),
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    Scope {
        links: Link::ALL.into_iter().filter(is_wanted).collect(),
        programs,
        is_quick: args.quick,
        processors,
    }
}

fn output(args: &BenchArgs) -> PathBuf {
    let default = || PathBuf::from(format!("lapscope-bench-{}.db", calendar::local_stamp()));
    args.output.clone().unwrap_or_else(default)
}

/// What the results depend on besides MPI and link.
fn facts(scope: &Scope) -> BTreeMap<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map(|model| model.trim_start_matches([' ', '\t', ':']).to_owned());
    let load = read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned();
    let facts = [
        ("created", calendar::utc_text()),
        ("lapscope", env!("CARGO_PKG_VERSION").to_owned()),
        ("host", store::host_name()),
        ("processors", scope.processors.to_string()),
        ("processor", model.unwrap_or_default()),
        ("kernel", read("/proc/sys/kernel/osrelease").trim().to_owned()),
        ("load", load),
        ("quick", if scope.is_quick { "yes" } else { "no" }.to_owned()),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}

// --- progress ----------------------------------------------------------------------------------------------------------

/// Shown on a terminal only.
struct BenchBar(ProgressBar);

impl BenchBar {
    fn new(runs: usize) -> BenchBar {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{msg}\n{wide_bar} {pos}/{len}, {elapsed}, {eta} left");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.reset_eta();
        BenchBar(bar)
    }

    fn begin(&self, what: &str) {
        self.0.set_message(visible(what).into_owned());
    }

    fn tick(&self) {
        if self.0.elapsed() > Duration::from_secs(1) {
            self.0.tick();
        }
    }

    fn end(&self) {
        self.0.inc(1);
    }

    /// A line of standard error.
    fn say(&self, line: &str) {
        self.0.suspend(|| say!("{line}"));
    }
}

impl Drop for BenchBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
