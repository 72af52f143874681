//! Spools that killed ranks left become databases.
//!
//! The header of a spool names the job, the launch, the host with its boot, and the process with the name space in
//! which its pid is meant. By these a spool is told from one of another job, and its process can be seen to be dead, or
//! not.
//!
//! Spools of other nodes stay when a launcher has ended, though its ranks should have, too: a killed srun leaves them
//! running, and a spool that is converted under a running rank loses what follows.

mod claim;
mod node;
mod pointer;

use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{bail, Context};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::db::{self, DbError, FileKey};
use crate::store::{self, Converted, Fate, Owner};
use crate::text::shell;

pub use claim::{run_of, Claim};
pub use pointer::Pointer;

/// How long ranks may take to die when their launcher has ended already, as after MPI_Abort.
const LAST_BREATH: Duration = Duration::from_secs(3);

/// How long another recover is waited for. It may take minutes, and whoever only reads has the files that there are.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

const READS_OF_LOCKS: usize = 5;

/// Spools converted at a time: each is one thread of computation and one file written.
const WORKERS: usize = 2;

/// What became of the spools of a run directory.
#[derive(Debug, Default)]
pub struct RecoverSummary {
    /// Spools that became databases.
    pub recovered: Vec<Recovered>,
    /// Databases made of spools that stay where they are, as their ranks may still run on other nodes; in a temporary
    /// directory, which goes when this goes.
    pub copies: Copies,
    /// One sentence each: spools left alone, and why (still running, on another host, damaged).
    pub left: Vec<String>,
}

/// Databases in a temporary directory.
#[derive(Debug, Default)]
pub struct Copies {
    pub databases: Vec<PathBuf>,
    directory: Option<tempfile::TempDir>,
}

/// A spool that became a database, or the spools of the ranks of a node.
#[derive(Debug, Clone)]
pub struct Recovered {
    pub database: PathBuf,
    /// Whose spools it is made of.
    pub ranks: usize,
    /// Sums of several ranks, and otherwise what the first has.
    pub content: Converted,
}

/// Why spools are looked at, and so what is known of their ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intent<'a> {
    /// `lapscope recover`. `ended`: the user says that the job has ended, on all nodes.
    Recover { ended: bool },
    /// A run is read: spools of ranks that may run on other nodes are read, and stay.
    Read,
    /// The launcher has ended, and so have its ranks, or they will by then. With `launch`, only they are touched.
    Conclude { by: Instant, launch: &'a str },
}

/// Turns every leftover spool of the run directory `directory` into a database, and removes the spool, showing a bar on
/// standard error where that is a terminal. Ranks that still run on this host are left alone, and those that may run on
/// another, unless `ended`: the user says that the job has ended, on all nodes.
///
/// # Errors
/// The directory cannot be listed.
pub fn recover_spools(directory: &Path, ended: bool) -> anyhow::Result<RecoverSummary> {
    let mut summary = recover(directory, true, Intent::Recover { ended })?;
    if let Ok(files) = db::list_files(directory) {
        summary.left.extend(files.left_out.iter().map(DbError::to_string));
    }
    Ok(summary)
}

/// Turns every leftover spool of the run directory `directory` into a database, and removes the spool. Ranks that
/// still run on this host are left alone; of those that may run on another, copies are made. With `progress`, a bar on
/// standard error where that is a terminal.
///
/// # Errors
/// The directory cannot be listed. A spool that cannot be converted is no error; it is named in the summary.
pub fn recover_run(directory: &Path, progress: bool) -> anyhow::Result<RecoverSummary> {
    recover(directory, progress, Intent::Read)
}

/// As [`recover_run`], when the launcher has ended: so have its ranks on this host, or they will in a moment. `launch` is
/// what they were told by LAPSCOPE_LAUNCH: spools of others are left alone.
///
/// # Errors
/// As [`recover_run`].
pub fn recover_ended_run(
    directory: &Path,
    progress: bool,
    launch: &str,
) -> anyhow::Result<RecoverSummary> {
    recover(directory, progress, Intent::Conclude { by: Instant::now() + LAST_BREATH, launch })
}

fn recover(directory: &Path, progress: bool, intent: Intent) -> anyhow::Result<RecoverSummary> {
    if !directory.is_dir() || find_leftovers(directory)?.is_empty() {
        return Ok(RecoverSummary::default());
    }
    let _lock = lock(directory, LONGEST_WAIT)?;
    let leftovers = find_leftovers(directory)?; // again: another recover may have had the lock
    let bar = progress_bar(&leftovers, progress);
    let copies = Mutex::new(Copies::default());
    let pool = ThreadPoolBuilder::new().num_threads(leftovers.len().clamp(1, WORKERS)).build()?;
    let results: Vec<anyhow::Result<node::NodeRecovery>> = pool.install(|| {
        let each = leftovers.par_iter().with_max_len(1);
        each.map(|leftover| match leftover {
            Leftover::Rank(spool) => spool
                .recover(intent, &bar, &copies)
                .map(|recovered| node::NodeRecovery { recovered, left: Vec::new() }),
            Leftover::Node(node) => node.recover(intent, &bar, &copies),
        })
        .collect()
    });
    bar.finish_and_clear();
    let copies = copies.into_inner().expect("all workers have ended");
    let mut summary = RecoverSummary { copies, ..RecoverSummary::default() };
    for result in results {
        match result {
            Ok(node::NodeRecovery { recovered, left }) => {
                summary.recovered.extend(recovered);
                summary.left.extend(left);
            }
            Err(error) => summary.left.push(format!("{error:#}")),
        }
    }
    summary.recovered.sort_by_key(|recovered| {
        let Converted { world, rank, life, .. } = recovered.content;
        (world, rank, life)
    });
    summary.copies.databases.sort();
    summary.left.sort();
    Ok(summary)
}

/// Two at once would write the same files. On file systems without locks there is none to hold.
///
/// # Errors
/// Another process held the lock for all of `longest`.
fn lock(directory: &Path, longest: Duration) -> anyhow::Result<Option<std::fs::File>> {
    let Ok(file) = std::fs::File::open(directory) else { return Ok(None) };
    let begin = Instant::now();
    loop {
        // SAFETY: the descriptor is open.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(Some(file));
        }
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::WouldBlock {
            return Ok(Some(file));
        }
        if begin.elapsed() >= longest {
            bail!(
                "{}: its spools were not recovered: {} has locked the directory for {} s. Try again when it has ended",
                directory.display(),
                holder(&file).unwrap_or_else(|| "another process".to_owned()),
                longest.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Who holds the lock of an open directory, as far as the kernel tells: a process of this host.
fn holder(directory: &std::fs::File) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{}", directory.metadata().ok()?.ino());
    // "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
    let pid_in = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_held = fields.get(1) == Some(&"FLOCK") && fields.get(5)?.ends_with(&inode);
        fields.get(4).filter(|_| is_held).map(|&pid| pid.to_owned())
    };
    // A lock may be missing from a list that others lock and unlock between two reads of.
    let pid = (0..READS_OF_LOCKS).find_map(|_| {
        let mut locks = String::with_capacity(64 << 10);
        std::fs::File::open("/proc/locks").ok()?.read_to_string(&mut locks).ok()?;
        locks.lines().find_map(pid_in)
    })?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(match name.trim() {
        "" => format!("process {pid}"),
        name => format!("process {pid} ({name})"),
    })
}

fn progress_bar(leftovers: &[Leftover], wanted: bool) -> ProgressBar {
    if !wanted {
        return ProgressBar::hidden();
    }
    let bytes = |leftover: &Leftover| match leftover {
        Leftover::Rank(spool) => spool.spool.metadata().map_or(0, |facts| facts.len()),
        Leftover::Node(node) => node.bytes(),
    };
    let total: u64 = leftovers.iter().map(bytes).sum();
    // stderr() draws nothing where standard error is no terminal
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = "recovering {wide_bar} {bytes}/{total_bytes}, {eta} left";
    bar.with_style(ProgressStyle::with_template(template).expect("a constant template"))
}

/// What is to become a database.
enum Leftover {
    Rank(LeftSpool),
    Node(node::NodeSpools),
}

impl Leftover {
    fn database(&self) -> &Path {
        match self {
            Leftover::Rank(spool) => &spool.database,
            Leftover::Node(node) => &node.database,
        }
    }
}

/// A spool, and the database that it should become.
struct LeftSpool {
    spool: PathBuf,
    database: PathBuf,
    /// The `rank-N.spool-at` that told of a spool elsewhere, and the host that it names.
    elsewhere: Option<(PathBuf, String)>,
}

fn find_leftovers(directory: &Path) -> anyhow::Result<Vec<Leftover>> {
    let mut leftovers = Vec::new();
    let spools = match db::list_files(directory) {
        Ok(files) => files.spools,
        Err(DbError::Empty(_) | DbError::OnlyPages(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    for path in spools {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let database = path.with_extension("db");
        let alone = |spool| LeftSpool { spool, database: database.clone(), elsewhere: None };
        match db::parse_name(&name) {
            Some((FileKey::Node { .. }, "spool-at")) => {
                leftovers.push(match node::NodeSpools::read(&path) {
                    Some(node) => Leftover::Node(node),
                    None => Leftover::Rank(alone(path)), // which is said of it
                })
            }
            Some((FileKey::Rank { .. }, "spool")) => leftovers.push(Leftover::Rank(alone(path))),
            Some((FileKey::Rank { .. }, "spool-at")) => {
                let Some(Pointer { host, place }) = Pointer::read(&path) else {
                    // no pointer, and no spool: which is said of it
                    leftovers.push(Leftover::Rank(alone(path)));
                    continue;
                };
                let elsewhere = Some((path.clone(), host));
                leftovers.push(Leftover::Rank(LeftSpool { elsewhere, ..alone(place) }));
            }
            _ => {}
        }
    }
    leftovers.sort_by(|a, b| a.database().cmp(b.database()));
    Ok(leftovers)
}

impl LeftSpool {
    /// Converts and tidies up. `None`: there was nothing to do.
    fn recover(
        &self,
        intent: Intent,
        bar: &ProgressBar,
        copies: &Mutex<Copies>,
    ) -> anyhow::Result<Option<Recovered>> {
        if let Some((pointer, host)) = self.elsewhere.as_ref().filter(|_| !self.spool.exists()) {
            return self.without_spool(pointer, host).map(|()| None);
        }
        self.check_name()?;
        let owner = store::owner(&self.spool)?;
        self.check_job(&owner, intent)?;
        let fate = match (last_fate(&owner, intent), intent) {
            (Fate::Unknown, Intent::Recover { ended: true }) => Fate::Ended,
            (fate, _) => fate,
        };
        match fate {
            Fate::Runs => {
                bail!("{}: still running (pid {}), left alone", self.spool.display(), owner.pid)
            }
            Fate::Ended => match self.convert(bar) {
                Err(why) if self.is_read_nevertheless(intent, bar, copies) => {
                    bail!(read_nevertheless(&why))
                }
                converted => converted.map(Some),
            },
            Fate::Unknown => {
                let was_read = intent != (Intent::Recover { ended: false });
                // Its rank may write the database at this moment: nothing in its directory is touched.
                if was_read && !self.database.exists() {
                    self.copy(bar, copies)?;
                }
                bail!(self.may_run(&owner, was_read))
            }
        }
    }

    /// Whether a spool elsewhere has a name that recorders give there, `lapscope-JOB-rank-N.spool`: a run directory that
    /// somebody else made may point to anything, and spools are removed when they are databases.
    fn check_name(&self) -> anyhow::Result<()> {
        let name = self.spool.file_name().unwrap_or_default().to_string_lossy();
        let rank = self.rank();
        let is_recorders =
            name.starts_with("lapscope-") && name.ends_with(&format!("-{rank}.spool"));
        if self.elsewhere.is_some() && !is_recorders {
            let spool = self.spool.display();
            bail!("{rank}: its spool is said to be {spool}, which is no name that a recorder gives, left alone");
        }
        Ok(())
    }

    /// Whether it is of the job that the directory belongs to, and of the launch that has ended.
    fn check_job(&self, owner: &Owner, intent: Intent) -> anyhow::Result<()> {
        let is_others = match intent {
            Intent::Conclude { launch, .. } => owner.launch != launch,
            _ => {
                let claim = self.database.parent().and_then(Claim::read);
                claim.is_some_and(|claim| !owner.job.is_empty() && owner.job != claim.job)
            }
        };
        if is_others {
            let (spool, rank) = (self.spool.display(), self.rank());
            bail!("{rank}: the spool {spool} is of another job, left alone");
        }
        Ok(())
    }

    fn convert(&self, bar: &ProgressBar) -> anyhow::Result<Recovered> {
        let mut progress = |bytes| bar.inc(bytes);
        let content = store::convert(&self.spool, &self.database, &mut progress)?;
        std::fs::remove_file(&self.spool)
            .with_context(|| format!("{} cannot be removed", self.spool.display()))?;
        if let Some((pointer, _)) = &self.elsewhere {
            let _ = std::fs::remove_file(pointer); // it only pointed to what is no more
        }
        Ok(Recovered { database: self.database.clone(), ranks: 1, content })
    }

    /// Where its own place takes no database, as one that may only be read, or is full.
    fn is_read_nevertheless(
        &self,
        intent: Intent,
        bar: &ProgressBar,
        copies: &Mutex<Copies>,
    ) -> bool {
        intent == Intent::Read && !self.database.exists() && self.copy(bar, copies).is_ok()
    }

    /// Copies what the spool holds so far.
    fn copy(&self, bar: &ProgressBar, copies: &Mutex<Copies>) -> anyhow::Result<()> {
        let place = copies.lock().expect("no worker panics with the lock held").place()?;
        let copy = place.join(self.database.file_name().unwrap_or_default());
        store::convert(&self.spool, &copy, &mut |bytes| bar.inc(bytes))?;
        let mut copies = copies.lock().expect("no worker panics with the lock held");
        copies.databases.push(copy);
        Ok(())
    }

    fn may_run(&self, owner: &Owner, was_read: bool) -> String {
        let directory = self.database.parent().unwrap_or(&self.database);
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.into());
        let (rank, directory) = (self.rank(), shell::quote(directory));
        let so_far = if was_read { ", and what it holds so far was read" } else { "" };
        let place = owner.whereabouts();
        format!(
            "{rank} may still run {place}, which cannot be seen from here: its spool stays{so_far}. When it has ended, there: \
             lapscope recover {directory}; or here: lapscope recover --ended {directory}"
        )
    }

    /// `rank-3`, as its files are called.
    fn rank(&self) -> String {
        self.database.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn without_spool(&self, pointer: &Path, host: &str) -> anyhow::Result<()> {
        let spool = self.spool.display();
        if self.database.exists() {
            let _ = std::fs::remove_file(pointer);
            return Ok(());
        }
        let directory = shell::quote(pointer.parent().unwrap_or(pointer));
        let rank = self.rank();
        if host == store::host_name() {
            bail!("{rank}: its spool {spool} is gone, and with it what it recorded");
        }
        bail!("{rank}: its spool is on {host} in {spool}; there: lapscope recover {directory}")
    }
}

/// What is said of spools that cannot become databases where they are.
fn read_nevertheless(why: &anyhow::Error) -> String {
    let scratch = std::env::temp_dir();
    format!("{why:#}: the spool stays, and was read by way of {} (TMPDIR)", scratch.display())
}

impl Copies {
    pub(crate) fn place(&mut self) -> anyhow::Result<PathBuf> {
        if self.directory.is_none() {
            let made = tempfile::Builder::new().prefix("lapscope-copies-").tempdir();
            self.directory = Some(made.context("no temporary directory for copies")?);
        }
        Ok(self.directory.as_ref().map(|made| made.path().into()).unwrap_or_default())
    }
}

/// What can be told of a rank, when one that is about to die has had its time.
fn last_fate(owner: &Owner, intent: Intent) -> Fate {
    loop {
        let fate = owner.fate();
        match intent {
            Intent::Conclude { by, .. } if fate == Fate::Runs && Instant::now() < by => {
                std::thread::sleep(Duration::from_millis(20));
            }
            _ => return fate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_to_spools_elsewhere_are_explained() {
        let directory = tempfile::tempdir().unwrap();
        let pointer = directory.path().join("rank-3.spool-at");
        std::fs::write(&pointer, "other-host\t/scratch/lapscope-1-rank-3.spool\n").unwrap();
        let summary = recover_run(directory.path(), false).unwrap();
        assert!(summary.left[0].starts_with("rank-3: its spool is on other-host in /scratch/"));
        std::fs::write(directory.path().join("rank-3.db"), "").unwrap();
        assert!(recover_run(directory.path(), false).unwrap().left.is_empty());
        assert!(!pointer.exists(), "a pointer to what was converted is of no use");
    }

    #[test]
    fn a_lock_that_is_held_is_not_waited_for_without_end() {
        let directory = tempfile::tempdir().unwrap();
        let held = lock(directory.path(), Duration::ZERO).unwrap();
        let error = lock(directory.path(), Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.contains("were not recovered"), "{error}");
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        // Another test may just start a child, which has the descriptor until it is another program.
        assert!(lock(directory.path(), LONGEST_WAIT).is_ok());
    }

    #[test]
    fn what_is_no_spool_is_named_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let spool = directory.path().join("rank-0.spool");
        std::fs::write(&spool, "nothing like a spool").unwrap();
        let summary = recover_run(directory.path(), false).unwrap();
        assert!(summary.left[0].contains("rank-0.spool"), "{:?}", summary.left);
        assert!(spool.exists() && !directory.path().join("rank-0.db").exists());
    }
}
