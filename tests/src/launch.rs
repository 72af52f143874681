//! Runs programs with and without lapscope, each under a time limit.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lapscope_fixture::{documented, numbers};
use tempfile::TempDir;

use crate::mpi::Mpi;
use crate::stuck::{self, Process};
use crate::{child, launcher, paths, turn};

/// Ways to run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Without lapscope.
    Bare,
    /// `LD_PRELOAD` and `LAPSCOPE_DIR` in the environment.
    Preload,
    /// `lapscope run -- mpirun -n 2 program`
    Outer,
    /// `mpirun -n 2 lapscope run -- program`
    Inner,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code as a shell gives it: 128 + N when signal N ended the launcher.
    pub code: i32,
    pub stdout: String,
    /// Standard error without lapscope's own lines.
    pub stderr: String,
    /// The lines that lapscope printed, without its name in front.
    pub said: Vec<String>,
}

/// A launch to be made.
pub struct Job<'a> {
    /// Whose launcher starts it.
    pub mpi: Option<&'a Mpi>,
    /// What it is a program of where something else starts it.
    pub of: Option<&'a Mpi>,
    pub ranks: u32,
    pub program: Vec<OsString>,
    pub form: Form,
    /// Holds the run directory, the working directory and the output.
    pub place: &'a Path,
    pub environment: Vec<(OsString, OsString)>,
    /// A command that runs the launch line given behind it: see [`crate::namespace`].
    pub inside: Vec<OsString>,
    pub limit: Duration,
}

/// Time within which every small program has long ended.
pub const LIMIT: Duration = Duration::from_secs(60);

/// An empty directory, removed when it goes out of scope.
///
/// # Panics
/// When it cannot be made.
pub fn place() -> TempDir {
    tempfile::Builder::new().prefix("lapscope-test-").tempdir().expect("a temporary directory")
}

impl<'a> Job<'a> {
    /// `ranks` ranks of `program` under an MPI's launcher.
    pub fn new(
        mpi: &'a Mpi,
        ranks: u32,
        program: impl Into<OsString>,
        form: Form,
        place: &'a Path,
    ) -> Self {
        Self {
            mpi: Some(mpi),
            of: None,
            ranks,
            program: vec![program.into()],
            form,
            place,
            environment: Vec::new(),
            inside: Vec::new(),
            limit: LIMIT,
        }
    }

    /// A program as it is, without a launcher.
    pub fn alone(program: impl Into<OsString>, form: Form, place: &'a Path) -> Self {
        Self {
            mpi: None,
            of: None,
            ranks: 1,
            program: vec![program.into()],
            form,
            place,
            environment: Vec::new(),
            inside: Vec::new(),
            limit: LIMIT,
        }
    }

    /// `lapscope calibrate WORDS... -- mpirun -n 2 EXTRA...`
    pub fn calibrate(mpi: &Mpi, words: &[&OsStr], extra: &[&str], place: &'a Path) -> Self {
        let job = Job::alone(paths::lapscope(), Form::Bare, place)
            .args(["calibrate"])
            .args(words)
            .args(["--"])
            .args(mpi.launch_line(2, &[]))
            .args(extra)
            .limit(Duration::from_secs(120));
        mpi.environment.iter().fold(job, |job, (name, value)| job.env(name, *value))
    }

    /// A failure of this MPI's is known, though not its launcher starts it.
    #[must_use]
    pub fn under(mut self, mpi: &'a Mpi) -> Self {
        self.of = Some(mpi);
        self
    }

    #[must_use]
    pub fn inside(mut self, command: Vec<OsString>) -> Self {
        self.inside = command;
        self
    }

    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.program.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The run directory that lapscope is told to write.
    pub fn run_directory(&self) -> PathBuf {
        self.place.join("run")
    }

    fn line(&self) -> Vec<OsString> {
        let tool = |line: Vec<OsString>| {
            let mut with = vec![paths::lapscope().into_os_string()];
            with.extend([
                "run".into(),
                "--dir".into(),
                self.run_directory().into_os_string(),
                "--".into(),
            ]);
            with.extend(line);
            with
        };
        let program = if self.form == Form::Inner {
            tool(self.program.clone())
        } else {
            self.program.clone()
        };
        let line =
            self.mpi.map_or_else(|| program.clone(), |mpi| mpi.launch_line(self.ranks, &program));
        let line = if self.form == Form::Outer { tool(line) } else { line };
        self.inside.iter().cloned().chain(line).collect()
    }

    /// What to type to do it again.
    pub fn shell_line(&self) -> String {
        let quote = |word: &OsStr| {
            let word = word.to_string_lossy();
            shlex::try_quote(&word).expect("no argument has a null byte").into_owned()
        };
        let command = self.command();
        let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let set = set.map(|(name, value)| format!("{}={}", name.to_string_lossy(), quote(value)));
        let line = self.line();
        let line = line.iter().map(|word| quote(word));
        ["env", "-i"]
            .map(str::to_owned)
            .into_iter()
            .chain(set)
            .chain(line)
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn command(&self) -> Command {
        let line = self.line();
        let mut command = child::command(&line[0]);
        command.args(&line[1..]).current_dir(self.place).process_group(0);
        if let Some(mpi) = self.mpi {
            command.envs(mpi.environment.iter().copied());
            if let Some(variable) = mpi.timeout_variable {
                // ours comes first, which says what hangs: the launcher's own is for tests that are killed
                let seconds = self.limit.mul_f64(MOST_CROWDED).as_secs() + 120;
                command.env(variable, seconds.to_string());
            }
        }
        if self.form == Form::Preload {
            let variable = self.mpi.map_or("LD_PRELOAD", Mpi::preload_variable);
            command
                .env(variable, paths::preload_library())
                .env("LAPSCOPE_DIR", self.run_directory());
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it cannot be started, or takes longer than its limit.
    pub fn run(&self) -> Outcome {
        let _turn = turn::of_launches();
        self.run_beside_others()
    }

    /// [`Job::run`] without waiting for a turn, for jobs that are meant to meet.
    ///
    /// # Panics
    /// As [`Job::run`].
    pub fn run_beside_others(&self) -> Outcome {
        self.start_and_wait().unwrap_or_else(|text| panic!("{text}"))
    }

    /// [`Job::run`] for what may hang.
    ///
    /// # Errors
    /// When it takes longer than its limit; what it printed until then.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn try_run(&self) -> Result<Outcome, String> {
        let _turn = turn::of_launches();
        self.start_and_wait()
    }

    /// Starts it; what it prints is in the directory.
    pub(crate) fn start(&self) -> (Child, TempDir) {
        let output = tempfile::tempdir_in(self.place).expect("a directory for output");
        let mut command = self.command();
        if !self.environment.iter().any(|(name, _)| name == "TMPDIR") {
            // Open MPI's fail now and then where two make their directory in one place
            let temporary = output.path().join("tmp");
            fs::create_dir(&temporary).expect("a directory for the launcher");
            command.env("TMPDIR", temporary);
        }
        let file = |name| File::create(output.path().join(name)).expect("a file for output");
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        let child = command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", self.line()));
        (child, output)
    }

    /// Again where the launcher failed itself; says so.
    fn start_and_wait(&self) -> Result<Outcome, String> {
        for again in 1..=launcher::AGAIN {
            let before = self.recorded();
            let result = self.start_and_wait_once(false);
            let Some(why) = self.launcher_failure(&before, &result) else { return result };
            let name = self.mpi.map_or_else(|| "what starts it".to_owned(), launcher::name);
            crate::say!("LAUNCHED AGAIN ({again} of {}): {name}: {why}", launcher::AGAIN);
            if let Err(text) = &result {
                crate::say!("{text}");
            }
            self.remove_recorded(&before);
        }
        self.start_and_wait_once(true)
    }

    /// The last try has all its time, whatever it looks like.
    fn start_and_wait_once(&self, is_last: bool) -> Result<Outcome, String> {
        // what is asked of a job that hangs is there before it starts, or the job would be left
        let run = (self.form != Form::Bare).then(|| (paths::lapscope(), self.run_directory()));
        let (child, output) = self.start();
        let is_lost = |job: &[Process]| {
            let mpi = self.mpi.filter(|mpi| !is_last && launcher::can_stand_still(mpi));
            mpi.is_some_and(|mpi| {
                launcher::standstill(mpi, &stuck::stacks_of_waiting(job)).is_some()
            })
        };
        let describe = |job: &[Process]| stuck::describe(job, run.as_ref());
        let status = wait(child, self.limit, is_lost, describe);
        let (stdout, stderr) = (read(&output, "stdout"), read(&output, "stderr"));
        let status =
            status.map_err(|stuck| format!("{:?} {stuck}{stdout}{stderr}", self.line()))?;
        Ok(Outcome::from_output(status, stdout, &stderr))
    }

    /// The line by which it is known that the launcher failed, and not the program or lapscope. `before`: what was recorded.
    fn launcher_failure(
        &self,
        before: &BTreeSet<OsString>,
        result: &Result<Outcome, String>,
    ) -> Option<String> {
        let mpi = self.mpi.or(self.of)?;
        let line = match result {
            Ok(outcome) if outcome.code == 0 => None,
            Ok(outcome) => {
                let of_rank = |name: &OsString| name.to_string_lossy().contains("rank-");
                let has_recorded = self.recorded().difference(before).any(of_rank);
                let has_begun = has_recorded || !outcome.stdout.is_empty();
                launcher::failure(mpi, &outcome.stderr, has_begun)
            }
            Err(text) => launcher::standstill(mpi, text),
        };
        line.map(str::to_owned)
    }

    /// Names of the files that are in the run directory.
    fn recorded(&self) -> BTreeSet<OsString> {
        let entries = fs::read_dir(self.run_directory()).into_iter().flatten();
        entries.flatten().map(|entry| entry.file_name()).collect()
    }

    /// Removes what a launch has left there that was not there before.
    fn remove_recorded(&self, before: &BTreeSet<OsString>) {
        let run = self.run_directory();
        for name in self.recorded().difference(before) {
            let path = run.join(name);
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        if before.is_empty() {
            let _ = fs::remove_dir(run); // it may not be there
        }
    }
}

/// What was printed so far to "stdout" or "stderr".
pub(crate) fn read(output: &TempDir, name: &str) -> String {
    String::from_utf8_lossy(&fs::read(output.path().join(name)).expect("output")).into_owned()
}

impl Outcome {
    pub(crate) fn from_output(status: ExitStatus, stdout: String, stderr: &str) -> Self {
        let (said, stderr): (Vec<&str>, Vec<&str>) =
            stderr.lines().partition(|line| line.starts_with("lapscope: "));
        Self {
            code: exit_code(status),
            stdout,
            stderr: stderr.iter().map(|line| format!("{line}\n")).collect(),
            said: said.iter().map(|line| line["lapscope: ".len()..].to_owned()).collect(),
        }
    }
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Waits for a child that leads a process group; past the limit asks what hangs, then ends the group: first asks it, so that
/// a launcher can end its ranks, which may have groups of their own; kills those that it left. On a machine that is busy with
/// other things time counts for less, as the child has less of it.
///
/// # Errors
/// When the limit was passed, or `is_lost` said once, long before, that it never ends: what `describe` said of its processes.
fn wait(
    mut child: Child,
    limit: Duration,
    is_lost: impl Fn(&[Process]) -> bool,
    describe: impl Fn(&[Process]) -> String,
) -> Result<ExitStatus, String> {
    const TICK: Duration = Duration::from_millis(5);
    const LOOK: Duration = Duration::from_secs(10);
    let leader = libc::pid_t::try_from(child.id()).expect("a process id");
    let (mut over, mut crowd, mut ticks) = (Duration::ZERO, 1.0, 0u32);
    let mut stuck: Option<(Vec<Process>, String)> = None;
    let (mut end, mut is_looked_at) = (limit, false);
    loop {
        if let Some(status) = child.try_wait().expect("a child to wait for") {
            let Some((job, text)) = stuck else { return Ok(status) };
            job.iter().for_each(Process::kill);
            return Err(text);
        }
        if over > LOOK.min(limit) && !is_looked_at {
            is_looked_at = true;
            if is_lost(&stuck::processes(leader)) {
                end = over;
            }
        }
        if over > end + Duration::from_secs(5) {
            // SAFETY: signals only the group that this child leads
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        } else if over >= end && stuck.is_none() {
            let job = stuck::processes(leader);
            let why = match end < limit {
                true => "stands still".to_owned(),
                false => format!("took longer than {limit:?}"),
            };
            let text = format!("{why}\n{}", describe(&job));
            stuck = Some((job, text));
            // SAFETY: as above
            unsafe { libc::kill(-leader, libc::SIGTERM) };
        }
        if ticks % 200 == 0 {
            crowd = runnable_per_processor();
        }
        ticks += 1;
        let begin = Instant::now();
        thread::sleep(TICK);
        over += begin.elapsed().div_f64(crowd);
    }
}

/// A limit remains one: no more runnable processes for a processor count.
const MOST_CROWDED: f64 = 5.0;

/// Processes that want a processor, for each that there is, of late: from 1 on.
fn runnable_per_processor() -> f64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or(1.0);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    (load / processors as f64).clamp(1.0, MOST_CROWDED)
}

/// Runs `lapscope` with these arguments; its standard output, or what it printed when it failed.
///
/// # Errors
/// When its exit code is not 0.
pub fn try_lapscope<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Result<String, String> {
    let mut command = child::command(paths::lapscope());
    command.args(args).env("NO_COLOR", "1");
    let output = command.output().expect("lapscope runs");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        Ok(stdout.into_owned())
    } else {
        Err(format!("{command:?}: {}\n{stdout}{stderr}", output.status))
    }
}

/// [`try_lapscope`] where failing is a failure of the test.
///
/// # Panics
/// When it fails, or says what cannot be; the message has what it printed.
pub fn lapscope<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> String {
    let said = try_lapscope(args).unwrap_or_else(|text| panic!("{text}"));
    numbers::check(&said);
    documented::check(&said);
    said
}

/// `lapscope recover`. A launcher may come back before the ranks that it killed are dead: those are waited for.
///
/// # Panics
/// When it fails, or a rank is still running after ten seconds.
pub fn recover(run: &Path) {
    let begin = Instant::now();
    loop {
        match try_lapscope(["recover".as_ref(), run.as_os_str()]) {
            Err(text)
                if text.contains("still running") && begin.elapsed() < Duration::from_secs(10) =>
            {
                thread::sleep(Duration::from_millis(50));
            }
            result => return drop(result.unwrap_or_else(|text| panic!("{text}"))),
        }
    }
}
