//! The programs of `tests/apps/torture`, which do what an interruption could break while large messages are pending, and how
//! they are run with tests injected, and words of buffers watched, as often as can be.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::build::{self, Binding};
use crate::differential::outcome_differences;
use crate::launch::{place, Form, Job, Outcome};
use crate::mpi::Mpi;
use crate::{invariants, messages, paths, rows};

/// Ways to inject tests, and to watch buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    Off,
    Calls,
    Timer,
    /// As [`Mode::Timer`] where perf's events are not allowed.
    CpuTime,
    Thread,
    /// Ways of injecting take turns while the program runs.
    Auto,
    /// Nothing is injected; words of all buffers are watched.
    Reach,
    /// [`Mode::Timer`] and [`Mode::Reach`]: interrupts of two kinds.
    ReachAndTimer,
    /// Nothing is injected; sends go from copies.
    Sends,
    /// [`Mode::Timer`] and [`Mode::Sends`].
    SendsAndTimer,
    /// Nothing is injected; samples are taken, very often.
    Sample,
    /// The same where perf's events are not allowed: by a signal.
    SampleBySignal,
    /// [`Mode::CpuTime`] and [`Mode::SampleBySignal`]: two signals.
    SampleAndTimer,
}

impl Mode {
    /// Those in which most is injected.
    pub const MOST: [Self; 10] = [
        Self::Timer,
        Self::CpuTime,
        Self::Thread,
        Self::Reach,
        Self::ReachAndTimer,
        Self::Sends,
        Self::SendsAndTimer,
        Self::Sample,
        Self::SampleBySignal,
        Self::SampleAndTimer,
    ];

    /// Whether buffers are watched.
    pub fn watches(self) -> bool {
        matches!(self, Self::Reach | Self::ReachAndTimer)
    }

    /// Whether tests are injected.
    pub fn injects(self) -> bool {
        let others = [Self::Off, Self::Reach, Self::Sends, Self::Sample, Self::SampleBySignal];
        !others.contains(&self)
    }

    /// Whether samples are taken.
    pub fn samples(self) -> bool {
        matches!(self, Self::Sample) || self.is_without_perf()
    }

    /// Whether perf's events are refused.
    pub fn is_without_perf(self) -> bool {
        matches!(self, Self::SampleBySignal | Self::SampleAndTimer)
    }

    /// Whether sends go from copies.
    pub fn copies(self) -> bool {
        matches!(self, Self::Sends | Self::SendsAndTimer)
    }

    /// Variables of lapscope: as often as can be, for requests and buffers of any size, whatever it costs.
    pub fn options(self) -> Vec<(&'static str, &'static str)> {
        let (mode, clock) = match self {
            Self::Off | Self::Reach | Self::Sends | Self::Sample | Self::SampleBySignal => {
                ("off", "auto")
            }
            Self::Calls => ("calls", "auto"),
            Self::Timer | Self::ReachAndTimer | Self::SendsAndTimer => ("timer", "auto"),
            Self::CpuTime | Self::SampleAndTimer => ("timer", "cputime"),
            Self::Thread => ("thread", "auto"),
            Self::Auto => ("auto", "auto"),
        };
        vec![
            ("LAPSCOPE_REACH", if self.watches() { "on" } else { "off" }),
            ("LAPSCOPE_REACH_SHARE", "100"),
            ("LAPSCOPE_REACH_MIN_BYTES", "0"),
            ("LAPSCOPE_REACH_BUDGET", "100"),
            ("LAPSCOPE_BUFFER_SENDS", if self.copies() { "1g" } else { "0" }),
            ("LAPSCOPE_SAMPLE", if self.samples() { "10000" } else { "0" }),
            ("LAPSCOPE_INJECT", mode),
            ("LAPSCOPE_INJECT_CLOCK", clock),
            ("LAPSCOPE_INJECT_INTERVAL_US", "20"),
            ("LAPSCOPE_INJECT_MIN_BYTES", "0"),
            ("LAPSCOPE_INJECT_BUDGET", "100"),
        ]
    }
}

/// Programs whose messages are not received as they were sent.
const UNBALANCED: &[&str] = &["errors"];

/// Sources of libraries among those of programs.
const LIBRARIES: &[&str] = &["plugin", "tripwire"];

fn sources() -> PathBuf {
    paths::apps().join("torture")
}

/// The names of all programs.
///
/// # Panics
/// When a file has no name.
pub fn programs() -> Vec<String> {
    rows::files(&sources())
        .iter()
        .filter(|path| {
            path.extension().is_some_and(|end| end == "c" || end == "cpp" || end == "f90")
        })
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .filter(|name| !LIBRARIES.contains(&name.as_str()))
        .collect()
}

/// What a C program is linked with, beside its MPI.
fn libraries(program: &str) -> &'static [&'static str] {
    match program {
        "openmp" => &["-fopenmp"],
        "state" => &["-lm"],
        _ => &[],
    }
}

/// The binary of a program; `None` where its MPI has no Fortran.
///
/// # Panics
/// When it cannot be built.
pub fn built(mpi: &Mpi, program: &str) -> Option<PathBuf> {
    let app = format!("torture/{program}");
    let is = |end| sources().join(program).with_extension(end).exists();
    if program == "loader" {
        build::library(mpi, "torture/plugin");
    }
    if is("f90") {
        let there = build::has_fortran(mpi, Binding::Module);
        return there.then(|| build::fortran(mpi, &app, Binding::Module, &[]));
    }
    Some(if is("cpp") {
        build::cpp(mpi, &app)
    } else {
        build::app_with(mpi, &app, libraries(program))
    })
}

/// A run of a program.
pub struct Run<'a> {
    pub mpi: &'static Mpi,
    pub program: &'a str,
    /// `None`: without lapscope.
    pub mode: Option<Mode>,
    /// How often the program does what it does; `None`: as often as it likes.
    pub rounds: Option<u32>,
    /// A library preloaded beside lapscope.
    pub library: Option<&'a Path>,
    /// A library that it is linked with, by the name of its file.
    pub linked: Option<&'a str>,
}

impl fmt::Display for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} under {}, ", self.program, self.mpi.name)?;
        if let Some(library) = self.linked {
            write!(f, "linked with {library}, ")?;
        }
        if let Some(library) = self.library {
            write!(f, "beside {}, ", library.display())?;
        }
        match self.mode {
            None => f.write_str("without lapscope"),
            Some(mode) => write!(f, "{mode:?}"),
        }
    }
}

/// Time in which each of these programs has long ended, also on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(90);

impl<'a> Run<'a> {
    pub fn new(mpi: &'static Mpi, program: &'a str, mode: Option<Mode>) -> Self {
        Self { mpi, program, mode, rounds: None, library: None, linked: None }
    }

    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = Some(rounds);
        self
    }

    #[must_use]
    pub fn beside(mut self, library: &'a Path) -> Self {
        self.library = Some(library);
        self
    }

    #[must_use]
    pub fn linked_with(mut self, library: &'a str) -> Self {
        self.linked = Some(library);
        self
    }

    /// As [`built`].
    fn binary(&self) -> Option<PathBuf> {
        let app = format!("torture/{}", self.program);
        match self.linked {
            Some(library) => Some(build::app_beside(self.mpi, &app, library)),
            None => built(self.mpi, self.program),
        }
    }

    fn job(&self, binary: &Path, place: &'a Path) -> Job<'a> {
        let form = if self.mode.is_some() { Form::Preload } else { Form::Bare };
        let mut job = Job::new(self.mpi, 2, binary, form, place).limit(LIMIT);
        job = job.args(self.rounds.map(|rounds| rounds.to_string()));
        for (name, value) in self.mode.iter().flat_map(|mode| mode.options()) {
            job = job.env(name, value);
        }
        if self.mode.is_some_and(Mode::is_without_perf) {
            job = job.inside(vec![build::tool("without").into(), "perf".into(), "EPERM".into()]);
        }
        let preloaded = self.mode.map(|_| paths::preload_library());
        let all: Vec<_> = preloaded.iter().map(PathBuf::as_path).chain(self.library).collect();
        if self.library.is_some() {
            let names: Vec<_> = all.iter().map(|path| path.display().to_string()).collect();
            job = job.env("LD_PRELOAD", names.join(":"));
        }
        job
    }

    /// The outcome without lapscope; `None` where the program cannot be built.
    ///
    /// # Panics
    /// When it fails.
    pub fn bare(&self) -> Option<Outcome> {
        let binary = self.binary()?;
        let place = place();
        let run = Run { mode: None, ..*self };
        let bare = run.job(&binary, place.path()).run();
        assert_eq!(bare.code, 0, "{run}: {}{}", bare.stdout, bare.stderr);
        Some(bare)
    }

    /// Runs it with lapscope and compares with a run without.
    ///
    /// # Errors
    /// What differs, or that it hangs, and how to do it again.
    ///
    /// # Panics
    /// When it cannot be built or started.
    pub fn check(&self, bare: &Outcome) -> Result<Injected, String> {
        let Some(binary) = self.binary() else { return Ok(Injected::default()) };
        let place =
            tempfile::Builder::new().prefix("lapscope-torture-").tempdir().expect("a directory");
        let job = self.job(&binary, place.path());
        let mut injected = Injected::default();
        let found = match job.try_run() {
            Err(hung) => vec![hung],
            Ok(with) => {
                injected = Injected::read(&job.run_directory(), &with);
                let mut found = outcome_differences(bare, &with);
                found.extend(broken_data(&job.run_directory()));
                if !UNBALANCED.contains(&self.program) {
                    found.extend(messages::check(&job.run_directory()).err());
                }
                found
            }
        };
        if found.is_empty() {
            return Ok(injected);
        }
        let again = job.shell_line();
        let kept = place.keep();
        Err(format!(
            "{self}:\n{}\nlapscope said {:#?}\ndata in {}\nagain: {again}",
            found.join("\n"),
            injected.said,
            kept.display(),
        ))
    }
}

/// What is wrong with what was recorded of two ranks that ended properly.
fn broken_data(run: &Path) -> Vec<String> {
    let databases = rows::databases(run);
    let mut wrong = Vec::new();
    if databases.len() != 2 {
        wrong.push(format!("{} databases instead of 2: {:?}", databases.len(), rows::files(run)));
    }
    for path in &databases {
        let database = rows::open(path);
        if let Err(broken) = invariants::check(&database) {
            wrong.push(format!("{}: {broken}", path.display()));
        }
        if rows::value(&database, "SELECT ended FROM rank") != "finalize" {
            wrong.push(format!("{}: has not ended by MPI_Finalize", path.display()));
        }
    }
    wrong
}

/// What was injected and watched in a run, over all ranks.
#[derive(Debug, Default)]
pub struct Injected {
    pub tests: u64,
    pub found: u64,
    /// Words of buffers.
    pub watches: u64,
    pub samples: u64,
    /// Why a rank watched nothing, or stopped.
    pub blind: Vec<String>,
    /// Why a rank injected nothing or stopped; `none` where it was not asked to.
    pub problems: Vec<String>,
    /// What lapscope said.
    pub said: Vec<String>,
}

impl Injected {
    fn read(run: &Path, with: &Outcome) -> Self {
        let mut all = Self { said: with.said.clone(), ..Self::default() };
        for path in rows::databases(run) {
            let database = rows::open(&path);
            let number = |query: &str| rows::value(&database, query).parse::<u64>().expect(query);
            all.tests += number("SELECT ifnull(sum(tests), 0) FROM injection");
            all.found += number("SELECT ifnull(sum(found), 0) FROM injection");
            all.watches += number("SELECT count(*) FROM watch");
            all.samples += number("SELECT ifnull(sum(count), 0) FROM sample");
            let blind = rows::value(
                &database,
                "SELECT ifnull((SELECT problem FROM watcher WHERE problem IS NOT NULL), '')",
            );
            if !blind.is_empty() {
                all.blind.push(blind);
            }
            let problem = "SELECT ifnull((SELECT coalesce(problem, '') FROM injector), 'none')";
            let problem = rows::value(&database, problem);
            if !problem.is_empty() {
                all.problems.push(problem);
            }
        }
        all
    }
}
