//! The runs of a search: where they are recorded, what they get, how they end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{bail, Context};

use super::bar::TrialBar;
use super::copy::WorkingCopy;
use super::variable::Variable;
use crate::install;
use crate::run::child::{exit_code, ChildEnd, HeldSignals, Watch};
use crate::run::environment::{self, EnvironmentChanges};
use crate::run::{line, outcome, Mode, Recorded};
use lapscope_data::say;

/// A program that takes longer than this many times its first run hangs, if that is also [`LEAST_PATIENCE`] more.
const PATIENCE: u32 = 10;
const LEAST_PATIENCE: Duration = Duration::from_secs(60);

/// So much is shown of what a failed run printed.
const SHOWN_BYTES: u64 = 16 << 10;

/// A run ended in a way that ends the search.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
pub struct Stopped {
    /// The exit code of the run, as far as it is its own.
    pub code: u8,
    pub sentence: String,
    pub by_user: bool,
}

/// A run that ended well.
#[derive(Debug)]
pub struct Launched {
    pub directory: PathBuf,
    pub wall: Duration,
}

/// What the user asked for.
#[derive(Debug, Clone, Copy)]
pub struct TuneOptions<'a> {
    /// The launch line, with the program.
    pub command: &'a [OsString],
    /// Variables for all runs.
    pub set: &'a [(String, String)],
    pub min_bytes: Option<u64>,
    /// A run that takes longer is ended, seconds.
    pub timeout: Option<u64>,
    /// Where recorded runs are kept; `None`: in a directory named by the time, if they are.
    pub dir: Option<&'a Path>,
    pub keep: bool,
    /// To try.
    pub modes: &'a [Mode],
    /// Times between tests to try, microseconds.
    pub intervals: &'a [u32],
    /// The search has at most so many runs.
    pub runs: u32,
    /// Pairs of whole runs, which confirm what was found.
    pub pairs: u32,
    /// No run begins that would end later than so long from the begin.
    pub budget: Option<Duration>,
    /// Whether to try injected tests and copied sends, and the MPI's own settings.
    pub tries_injection: bool,
    pub tries_settings: bool,
    /// Settings to try in the place of those that are known.
    pub own_settings: &'a [Variable],
    /// Every run gets a copy of the working directory, which is removed behind it.
    pub copies_directory: bool,
    /// Whether to search although the first run shows nothing to gain.
    pub anyway: bool,
    /// The file to write.
    pub policy: &'a Path,
    /// Functions that only pass on to MPI.
    pub wrappers: &'a [String],
}

/// Everything that the runs have in common.
pub struct Session<'a> {
    pub(super) options: TuneOptions<'a>,
    directory: PathBuf,
    keeps: bool,
    settings: EnvironmentChanges,
    signals: HeldSignals,
    said: Vec<String>,
    /// How long the first run took.
    usual: Option<Duration>,
}

impl<'a> Session<'a> {
    /// Makes the directory. To be called while this process has one thread.
    ///
    /// # Errors
    /// The launch line is of no use, something of lapscope is missing, or the directory cannot be made.
    pub fn begin(options: TuneOptions<'a>) -> anyhow::Result<Session<'a>> {
        if let Some(rank) = environment::rank_variable() {
            bail!("lapscope tune starts the launcher itself, and this is a rank of a job already ({rank} is set); as in: lapscope tune -- mpirun -n 4 ./app");
        }
        let program = &options.command[0];
        if line::find_executable(program).is_none() {
            bail!("{}: no such program", program.to_string_lossy());
        }
        let signals = HeldSignals::hold();
        let directory = match options.dir {
            Some(named) => std::path::absolute(named)?,
            None => default_directory(options.command)?,
        };
        let settings = settings(&options, &install::preload_library()?)?;
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.mode(0o700).create(&directory);
        made.with_context(|| format!("{} cannot be made", directory.display()))?;
        Ok(Session {
            options,
            keeps: options.keep || options.dir.is_some(),
            directory,
            settings,
            signals,
            said: Vec::new(),
            usual: None,
        })
    }

    /// As the user would type it.
    pub fn directory(&self) -> PathBuf {
        outcome::relative(&self.directory)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The value that runs get.
    pub fn setting(&self, name: &str) -> Option<OsString> {
        self.settings.get(name)
    }

    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// The runs stay where they are.
    pub fn keep(&mut self) {
        self.keeps = true;
    }

    /// Runs the program with these variables, recorded under `name`.
    ///
    /// # Errors
    /// [`Stopped`]; or it cannot be started, or its files not be read.
    pub fn launch(
        &mut self,
        name: &str,
        variables: &[(&str, String)],
        bar: &TrialBar,
    ) -> anyhow::Result<Launched> {
        for (variable, value) in variables {
            self.settings.set(variable, value);
        }
        let recorded = Recorded::into_directory(&self.file(name), self.settings.clone());
        let wall = self.time(name, &recorded.settings, bar)?;
        let run = recorded.recovered_run(false)?;
        self.usual.get_or_insert(wall);
        Ok(Launched { directory: run.directory, wall })
    }

    /// How long the whole launch takes: without lapscope, or with these variables and nothing else to do behind MPI_Finalize.
    ///
    /// # Errors
    /// As [`Session::launch`].
    pub fn time_whole(
        &mut self,
        name: &str,
        variables: Option<&[(String, String)]>,
        bar: &TrialBar,
    ) -> anyhow::Result<Duration> {
        let Some(variables) = variables else {
            return self.time(name, &EnvironmentChanges::default(), bar);
        };
        let mut settings = self.settings.clone();
        for (variable, value) in variables {
            settings.set(variable, value);
        }
        settings.set("LAPSCOPE_CONVERT", "off");
        let recorded = Recorded::into_directory(&self.file(name), settings);
        let wall = self.time(name, &recorded.settings, bar)?;
        recorded.run()?;
        Ok(wall)
    }

    /// How long the whole launch takes without lapscope, with these variables; or why it failed, in words.
    ///
    /// # Errors
    /// [`Stopped`] by the user; or it cannot be started.
    pub fn time_bare(
        &mut self,
        name: &str,
        variables: &[Variable],
        bar: &TrialBar,
    ) -> anyhow::Result<Result<Duration, String>> {
        if self.signals.is_interrupted() {
            return Err(interrupted(None).into());
        }
        let mut settings = EnvironmentChanges::default();
        for Variable { name, value } in variables {
            settings.set(name, value);
        }
        let (ended, wall) = self.run_child(name, &settings, bar)?;
        if ended.interrupted {
            return Err(interrupted(Some(exit_code(ended.status))).into());
        }
        if ended.out_of_time {
            let limit = self.limit().unwrap_or_default().as_secs();
            return Ok(Err(format!("it took longer than {limit} s and was ended")));
        }
        if ended.status.success() {
            return Ok(Ok(wall));
        }
        let said = end_of(&self.output(name, "stderr")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let mut lines =
            said.lines().map(str::trim).filter(|line| line.chars().any(char::is_alphabetic));
        let last = lines.next_back().map(|line| format!(": {line}")).unwrap_or_default();
        Ok(Err(format!("it failed with exit code {}{last}", exit_code(ended.status))))
    }

    /// How long the launch takes.
    fn time(
        &mut self,
        name: &str,
        settings: &EnvironmentChanges,
        bar: &TrialBar,
    ) -> anyhow::Result<Duration> {
        if self.signals.is_interrupted() {
            return Err(interrupted(None).into());
        }
        let (ended, wall) = self.run_child(name, settings, bar)?;
        let warnings = self.warnings(name);
        bar.say(&warnings);
        self.check(name, &ended)?;
        Ok(wall)
    }

    fn run_child(
        &self,
        name: &str,
        settings: &EnvironmentChanges,
        bar: &TrialBar,
    ) -> anyhow::Result<(ChildEnd, Duration)> {
        let line = settings.exported(self.options.command);
        let output = |kind| {
            let path = self.output(name, kind);
            File::create(&path).with_context(|| path.display().to_string())
        };
        let mut command = settings.command(&line);
        command.stdin(input()?).stdout(output("stdout")?).stderr(output("stderr")?);
        let watch = Watch {
            limit: self.limit(),
            tick: &|| {
                bar.tick();
                false
            },
        };
        let place = self.options.copies_directory.then(|| WorkingCopy::of_here(&self.directory));
        let place = place.transpose()?;
        if let Some(place) = &place {
            command.current_dir(place.path()).env("PWD", place.path());
        }
        let began = Instant::now();
        let ended = self.signals.run(&mut command, Some(watch));
        let ended = ended.with_context(|| line[0].to_string_lossy().into_owned())?;
        Ok((ended, began.elapsed()))
    }

    /// What a run printed: `stdout` or `stderr`.
    pub fn output(&self, name: &str, kind: &str) -> PathBuf {
        self.directory.join(format!("{name}.{kind}"))
    }

    fn limit(&self) -> Option<Duration> {
        let usual = self.usual.map(|usual| (usual * PATIENCE).max(usual + LEAST_PATIENCE));
        self.options.timeout.map(Duration::from_secs).or(usual)
    }

    /// What lapscope said in the ranks, each sentence once.
    fn warnings(&mut self, name: &str) -> Vec<String> {
        let text = std::fs::read(self.output(name, "stderr")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut new = Vec::new();
        for line in text.lines().filter_map(|line| line.strip_prefix("lapscope: ")) {
            if !self.said.iter().any(|said| said == line) {
                self.said.push(line.to_owned());
                new.push(line.to_owned());
            }
        }
        new
    }

    // --- ends that end the search ------------------------------------------------------------------------------------

    fn check(&self, name: &str, ended: &ChildEnd) -> Result<(), Stopped> {
        let code = exit_code(ended.status);
        if ended.interrupted {
            return Err(interrupted(Some(code)));
        }
        if ended.out_of_time {
            self.show_output(name);
            let limit = self.limit().unwrap_or_default().as_secs();
            let sentence = format!(
                "run {name} took longer than {limit} s (--timeout) and was ended: it hangs, or is much slower than the first"
            );
            return Err(Stopped { code: 1, sentence, by_user: false });
        }
        if !ended.status.success() {
            self.show_output(name);
            let sentence =
                format!("run {name} failed with exit code {code}; what it printed is above");
            return Err(Stopped { code, sentence, by_user: false });
        }
        Ok(())
    }

    /// The end of what a run printed, on standard error: standard output is for the result.
    #[allow(clippy::disallowed_methods)] // the user's own program, as it would have looked without lapscope
    fn show_output(&self, name: &str) {
        for kind in ["stdout", "stderr"] {
            let end = end_of(&self.output(name, kind)).unwrap_or_default();
            let _ = io::stderr().lock().write_all(&end); // nobody is there to be told
        }
    }

    /// Removes the runs, unless they are kept.
    pub fn end(&self) {
        if !self.keeps {
            if let Err(error) = std::fs::remove_dir_all(&self.directory) {
                say!("{} cannot be removed: {error}", self.directory().display());
            }
        }
    }
}

fn interrupted(code: Option<u8>) -> Stopped {
    let code = code.filter(|&code| code != 0).unwrap_or(128 + libc::SIGINT as u8);
    Stopped { code, sentence: "interrupted".into(), by_user: true }
}

/// Whether the user has ended it.
pub fn was_interrupted(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Stopped>().is_some_and(|stopped| stopped.by_user)
}

fn default_directory(command: &[OsString]) -> anyhow::Result<PathBuf> {
    let run = environment::default_directory(&line::display_name(command))?;
    let name = run.file_name().unwrap_or_default().to_string_lossy();
    Ok(run.with_file_name(name.replacen("lapscope-", "lapscope-tune-", 1)))
}

/// What all runs get.
fn settings(options: &TuneOptions<'_>, preload: &Path) -> anyhow::Result<EnvironmentChanges> {
    let mut settings = EnvironmentChanges::default();
    for (name, value) in options.set {
        settings.set(name, value);
    }
    if let Some(bytes) = options.min_bytes {
        settings.set("LAPSCOPE_INJECT_MIN_BYTES", bytes.to_string());
    }
    settings.preload(preload);
    // Without these there is nothing to compare, or no place to name.
    for name in ["ENABLE", "CALLPATH", "CONVERT", "QUIET"] {
        settings.set(format!("LAPSCOPE_{name}"), "on");
    }
    settings.set("LAPSCOPE_INJECT_POLICY", "");
    Ok(settings)
}

/// A file is read by every run from its beginning; what else there may be can be read once only.
fn input() -> anyhow::Result<Stdio> {
    let owned = io::stdin().as_fd().try_clone_to_owned();
    let Ok(mut file) = owned.map(File::from) else { return Ok(Stdio::null()) };
    if !file.metadata().is_ok_and(|facts| facts.is_file()) {
        return Ok(Stdio::null());
    }
    file.seek(SeekFrom::Start(0)).context("standard input")?;
    Ok(file.into())
}

fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SHOWN_BYTES)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    Ok(end)
}
