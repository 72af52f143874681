//! Jobs that are looked at while they run, many of which would never end: `tests/apps/hang`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::launch::{read, Job, Outcome};
use crate::paths;
use crate::stuck::within;

/// What a launcher sets for its ranks alone.
const OF_RANKS: &[&[u8]] = &[b"\0OMPI_COMM_WORLD_RANK=", b"\0PMI_RANK=", b"\0SLURM_PROCID="];

/// A job that runs. When it goes out of scope its processes are ended, and none else.
pub struct Watched {
    launcher: Child,
    output: TempDir,
    run: PathBuf,
    /// The status of the launcher, when it has ended.
    status: Option<ExitStatus>,
}

/// Waits until it is so; `false` when that takes longer.
pub(crate) fn until(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Processes of ranks that record into this run, their wrappers and children: those whose environment says so.
fn processes(run: &Path) -> Vec<libc::pid_t> {
    let mut wanted = b"\0LAPSCOPE_DIR=".to_vec();
    wanted.extend(run.as_os_str().as_encoded_bytes());
    wanted.push(0);
    let holds = |text: &[u8], part: &[u8]| text.windows(part.len()).any(|it| it == part);
    let is_rank = |pid: &libc::pid_t| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let environment = [&[0], &environment[..]].concat();
        holds(&environment, &wanted) && OF_RANKS.iter().any(|name| holds(&environment, name))
    };
    let entries = fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(is_rank).collect()
}

/// Files of shared memory that a process has mapped: nobody removes them when ranks are killed.
fn shared_memory(pid: libc::pid_t) -> BTreeSet<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mapped = maps.lines().filter_map(|line| Some(&line[line.find("/dev/shm/")?..]));
    mapped.map(PathBuf::from).collect()
}

impl Watched {
    /// Starts a job with lapscope preloaded.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(job: &Job<'_>) -> Self {
        let (launcher, output) = job.start();
        Self { launcher, output, run: job.run_directory(), status: None }
    }

    /// `lapscope hang --format json` of its processes, from outside, with these words besides.
    ///
    /// # Errors
    /// As [`diagnosis`].
    pub fn stacks(&self, interval: &str, more: &[&str]) -> Result<Value, String> {
        let pids: Vec<String> = processes(&self.run).iter().map(i32::to_string).collect();
        if pids.is_empty() {
            return Err("there is no process of this job".to_owned());
        }
        asked(&[&["--interval", interval, "--pid", &pids.join(",")][..], more].concat())
    }

    /// The same of all processes that run this program.
    ///
    /// # Errors
    /// As [`diagnosis`].
    pub fn stacks_of(&self, program: &Path, interval: &str) -> Result<Value, String> {
        asked(&[
            "--interval".as_ref(),
            interval.as_ref(),
            "--command".as_ref(),
            program.as_os_str(),
        ])
    }

    /// What it has printed on standard error so far.
    pub fn stderr(&self) -> String {
        read(&self.output, "stderr")
    }

    /// Waits until each rank has said `here`.
    ///
    /// # Errors
    /// When that takes longer than half a minute; what was printed.
    pub fn until_here(&mut self, ranks: u32) -> Result<(), String> {
        let count = |text: &str| text.lines().filter(|line| line.starts_with("here ")).count();
        let there = until(Duration::from_secs(30), || {
            count(&self.stderr()) >= ranks as usize || self.is_over()
        });
        if there && count(&self.stderr()) >= ranks as usize {
            return Ok(());
        }
        Err(format!("not all ranks came to the point:\n{}", self.stderr()))
    }

    /// Whether the launcher has ended.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn is_over(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.launcher.try_wait().expect("a child to wait for");
        }
        self.status.is_some()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When that takes longer than the limit; what was printed.
    pub fn outcome(mut self, limit: Duration) -> Result<Outcome, String> {
        until(limit, || self.is_over());
        let (stdout, stderr) = (read(&self.output, "stdout"), self.stderr());
        match self.status {
            Some(status) => Ok(Outcome::from_output(status, stdout, &stderr)),
            None => Err(format!("took longer than {limit:?}\n{stdout}{stderr}")),
        }
    }

    fn signal(&self, signal: libc::c_int) {
        let group = -libc::pid_t::try_from(self.launcher.id()).expect("a process id");
        // SAFETY: signals only the group that this child leads, which has not been waited for
        unsafe { libc::kill(group, signal) };
    }

    /// Kills its launcher alone, and waits until its ranks have gone, too; `false` where they stay.
    pub fn lose_launcher(&mut self) -> bool {
        let launcher = libc::pid_t::try_from(self.launcher.id()).expect("a process id");
        // SAFETY: this child has not been waited for
        unsafe { libc::kill(launcher, libc::SIGKILL) };
        until(Duration::from_secs(20), || self.is_over() && processes(&self.run).is_empty())
    }

    /// Kills its ranks, waits until its launcher has tidied up behind them, and does what it left.
    pub fn end(&mut self) {
        let shared: BTreeSet<PathBuf> =
            processes(&self.run).into_iter().flat_map(shared_memory).collect();
        let gone = until(Duration::from_secs(10), || {
            let left = processes(&self.run);
            for &pid in &left {
                // SAFETY: a rank of this job, by its environment
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            left.is_empty()
        });
        if !gone {
            crate::say!("ranks that do not die: {:?}", processes(&self.run));
        }
        if !until(Duration::from_secs(5), || self.is_over()) {
            self.signal(libc::SIGTERM);
        }
        if !until(Duration::from_secs(5), || self.is_over()) {
            self.signal(libc::SIGKILL);
        }
        until(Duration::from_secs(5), || self.is_over());
        for file in shared {
            let _ = fs::remove_file(file); // the launcher may have
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.end();
    }
}

/// `lapscope hang --format json` of a run, with two looks so many seconds apart.
///
/// # Errors
/// What it printed, where that is no JSON.
///
/// # Panics
/// When it cannot be started.
pub fn diagnosis(run: &Path, interval: f64) -> Result<Value, String> {
    asked(&[OsStr::new("--interval"), interval.to_string().as_ref(), run.as_ref()])
}

/// `lapscope hang --pending --format json` of a run.
///
/// # Errors
/// As [`diagnosis`].
pub fn pending(run: &Path) -> Result<Value, String> {
    asked(&[OsStr::new("--pending"), run.as_ref()])
}

fn asked<S: AsRef<OsStr>>(arguments: &[S]) -> Result<Value, String> {
    let mut command = within(120, paths::lapscope());
    command.args(["hang", "--format", "json"]).args(arguments);
    let output = command.output().expect("lapscope runs");
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).map_err(|error| {
        format!("{error}: {}\n{}{said}", output.status, String::from_utf8_lossy(&output.stdout))
    })
}
