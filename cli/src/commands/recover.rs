//! `lapscope recover`: spools that killed ranks left become databases.

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{bail, Context};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::RecoverArgs;
use crate::db;
use crate::store::{self, Converted};

/// How long ranks may take to die when their launcher has ended already, as after MPI_Abort.
const LAST_BREATH: Duration = Duration::from_secs(3);

/// Spools converted at a time: each is one thread of computation and one file written.
const WORKERS: usize = 2;

/// What [`recover_run`] did.
#[derive(Debug, Default)]
pub struct RecoverSummary {
    /// Spools that became databases.
    pub recovered: Vec<Recovered>,
    /// One sentence each: spools left alone, and why (still running, on another host, damaged).
    pub left: Vec<String>,
}

/// A spool that became a database.
#[derive(Debug, Clone)]
pub struct Recovered {
    pub database: PathBuf,
    pub content: Converted,
}

/// # Errors
/// No run there, or the directory cannot be listed.
pub fn run(args: &RecoverArgs) -> anyhow::Result<ExitCode> {
    let directory = db::find_run(args.run.as_deref())?;
    if !directory.is_dir() {
        bail!("{}: not a run directory", directory.display());
    }
    let summary = recover_run(&directory, true)?;
    let mut out = io::stdout().lock();
    for recovered in &summary.recovered {
        writeln!(out, "{}", describe(recovered))?;
    }
    for sentence in &summary.left {
        eprintln!("lapscope: {sentence}");
    }
    if summary.recovered.is_empty() && summary.left.is_empty() {
        writeln!(out, "{}: nothing to recover", directory.display())?;
    }
    Ok(if summary.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(recovered: &Recovered) -> String {
    let Converted { requests, calls, pending, lost, damaged, damaged_at, .. } = recovered.content;
    let mut text = format!("{}: {requests} requests, {calls} calls", recovered.database.display());
    let optional = [(pending, "had not ended"), (lost, "lost during the run")];
    for (count, what) in optional.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {what}"));
    }
    if damaged > 0 {
        text.push_str(&format!(
            ", {damaged} damaged pieces left out, the first at byte {damaged_at}"
        ));
    }
    text
}

/// Turns every leftover spool of the run directory `directory` into a database, and removes the spool. Ranks that
/// still run on this host are left alone. With `progress`, a bar on standard error where that is a terminal.
///
/// # Errors
/// The directory cannot be listed. A spool that cannot be converted is no error; it is named in the summary.
pub fn recover_run(directory: &Path, progress: bool) -> anyhow::Result<RecoverSummary> {
    recover(directory, progress, None)
}

/// As [`recover_run`], when the launcher has ended: so have its ranks, on other hosts too, or they will in a moment.
///
/// # Errors
/// As [`recover_run`].
pub fn recover_ended_run(directory: &Path, progress: bool) -> anyhow::Result<RecoverSummary> {
    recover(directory, progress, Some(Instant::now() + LAST_BREATH))
}

/// `ended_by`: when all ranks should have ended; `None` when nothing is known of that.
fn recover(
    directory: &Path,
    progress: bool,
    ended_by: Option<Instant>,
) -> anyhow::Result<RecoverSummary> {
    if !directory.is_dir() || find_leftovers(directory)?.is_empty() {
        return Ok(RecoverSummary::default());
    }
    let _lock = lock(directory);
    let leftovers = find_leftovers(directory)?; // again: another recover may have had the lock
    let bar = progress_bar(&leftovers, progress);
    let (next, summary) = (AtomicUsize::new(0), Mutex::new(RecoverSummary::default()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS.min(leftovers.len()) {
            scope.spawn(|| {
                while let Some(leftover) = leftovers.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = leftover.recover(ended_by, &bar);
                    let mut summary = summary.lock().expect("no worker panics with the lock held");
                    match result {
                        Ok(recovered) => summary.recovered.extend(recovered),
                        Err(error) => summary.left.push(format!("{error:#}")),
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    let mut summary = summary.into_inner().expect("all workers have ended");
    summary.recovered.sort_by_key(|recovered| {
        let Converted { world, rank, life, .. } = recovered.content;
        (world, rank, life)
    });
    summary.left.sort();
    Ok(summary)
}

/// Two at once would write the same files. On file systems without locks there is none to hold.
fn lock(directory: &Path) -> Option<std::fs::File> {
    let file = std::fs::File::open(directory).ok()?;
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) };
    Some(file)
}

fn progress_bar(leftovers: &[Leftover], wanted: bool) -> ProgressBar {
    if !wanted {
        return ProgressBar::hidden();
    }
    let bytes = leftovers.iter().filter_map(|leftover| leftover.spool.metadata().ok());
    let total: u64 = bytes.map(|metadata| metadata.len()).sum();
    // stderr() draws nothing where standard error is no terminal
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = "recovering {wide_bar} {bytes}/{total_bytes}, {eta} left";
    bar.with_style(ProgressStyle::with_template(template).expect("a constant template"))
}

/// A spool, and the database that it should become.
struct Leftover {
    spool: PathBuf,
    database: PathBuf,
    /// The `rank-N.spool-at` that told of a spool elsewhere, and the host that it names.
    elsewhere: Option<(PathBuf, String)>,
}

fn find_leftovers(directory: &Path) -> anyhow::Result<Vec<Leftover>> {
    let mut leftovers = Vec::new();
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry.with_context(|| directory.display().to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let database = path.with_extension("db");
        match db::parse_name(&name).map(|(_, extension)| extension) {
            Some("spool") => leftovers.push(Leftover { spool: path, database, elsewhere: None }),
            Some("spool-at") => {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let (host, spool) = text.trim_end().split_once('\t').unwrap_or_default();
                let elsewhere = Some((path.clone(), host.to_owned()));
                leftovers.push(Leftover { spool: spool.into(), database, elsewhere });
            }
            _ => {}
        }
    }
    leftovers.sort_by(|a, b| a.database.cmp(&b.database));
    Ok(leftovers)
}

impl Leftover {
    /// Converts and tidies up. `None`: there was nothing to do.
    fn recover(
        &self,
        ended_by: Option<Instant>,
        bar: &ProgressBar,
    ) -> anyhow::Result<Option<Recovered>> {
        if let Some((pointer, host)) = self.elsewhere.as_ref().filter(|_| !self.spool.exists()) {
            return self.without_spool(pointer, host).map(|()| None);
        }
        let owner = store::owner(&self.spool)?;
        while ended_by.is_some_and(|by| Instant::now() < by) && owner.is_alive_here() {
            std::thread::sleep(Duration::from_millis(20));
        }
        if owner.is_alive_here() {
            bail!("{}: still running (pid {}), left alone", self.spool.display(), owner.pid);
        }
        // On another host the process may run on, and then it needs its spool: take a copy of what is there so far.
        let keep = ended_by.is_none() && !owner.is_of_this_boot() && owner.host != host_name();
        if keep && is_newer(&self.database, &self.spool) {
            return Ok(None);
        }
        let mut progress = |bytes| bar.inc(bytes);
        let content = store::convert(&self.spool, &self.database, &mut progress)?;
        if !keep {
            std::fs::remove_file(&self.spool)
                .with_context(|| format!("{} cannot be removed", self.spool.display()))?;
            if let Some((pointer, _)) = &self.elsewhere {
                let _ = std::fs::remove_file(pointer); // it only pointed to what is no more
            }
        }
        Ok(Some(Recovered { database: self.database.clone(), content }))
    }

    fn without_spool(&self, pointer: &Path, host: &str) -> anyhow::Result<()> {
        let spool = self.spool.display();
        if self.database.exists() {
            let _ = std::fs::remove_file(pointer);
            return Ok(());
        }
        let directory = pointer.parent().unwrap_or(pointer).display();
        let rank = self.database.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if host == host_name() {
            bail!("{rank}: its spool {spool} is gone, and with it what it recorded");
        }
        bail!("{rank}: its spool is on {host} in {spool}; there: lapscope recover {directory}")
    }
}

fn is_newer(database: &Path, spool: &Path) -> bool {
    let written = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    matches!((written(database), written(spool)), (Some(database), Some(spool)) if database >= spool)
}

/// As the recorder has it.
pub fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: one byte less than there is, so that the name ends with a zero in any case.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
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
    fn what_is_no_spool_is_named_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let spool = directory.path().join("rank-0.spool");
        std::fs::write(&spool, "nothing like a spool").unwrap();
        let summary = recover_run(directory.path(), false).unwrap();
        assert!(summary.left[0].contains("rank-0.spool"), "{:?}", summary.left);
        assert!(spool.exists() && !directory.path().join("rank-0.db").exists());
    }
}
