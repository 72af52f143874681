//! Spools that the ranks of a node have left on its own storage (`LAPSCOPE_FILES=node`): they become one database.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{bail, Context};
use indicatif::ProgressBar;

use super::{
    last_fate, lock, read_nevertheless, Claim, Copies, Intent, Pointer, Recovered, LONGEST_WAIT,
};
use crate::db::{link_out, parse_name, Database, FileDefinitions, FileKey};
use crate::model::RankInfo;
use crate::store::{self, Converted, Fate, Owner};
use crate::text::shell;

/// What a `node-HOST.spool-at` tells of.
pub(super) struct NodeSpools {
    pointer: PathBuf,
    host: String,
    /// Where its spools are.
    directory: PathBuf,
    pub database: PathBuf,
}

/// A spool, and whose it is.
struct Spool {
    path: PathBuf,
    key: FileKey,
    owner: Owner,
}

/// What became of the spools of a node.
#[derive(Default)]
pub(super) struct NodeRecovery {
    pub recovered: Option<Recovered>,
    /// As in [`super::RecoverSummary`].
    pub left: Vec<String>,
}

impl NodeSpools {
    /// `None` for what is no pointer.
    pub fn read(pointer: &Path) -> Option<NodeSpools> {
        let Pointer { host, place: directory } = Pointer::read(pointer)?;
        Some(NodeSpools {
            pointer: pointer.into(),
            host,
            directory,
            database: pointer.with_extension("db"),
        })
    }

    /// Bytes of its spools, for a bar.
    pub fn bytes(&self) -> u64 {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|facts| facts.len()).sum()
    }

    /// Converts and tidies up.
    pub fn recover(
        &self,
        intent: Intent<'_>,
        bar: &ProgressBar,
        copies: &Mutex<Copies>,
    ) -> anyhow::Result<NodeRecovery> {
        if !self.directory.exists() {
            return self.without_directory().map(|()| NodeRecovery::default());
        }
        self.check_directory()?;
        // a rank that makes the database at this moment has it
        let _lock = lock(&self.directory, LONGEST_WAIT)?;
        if !self.directory.exists() {
            return Ok(NodeRecovery::default());
        }
        let mut outcome = NodeRecovery::default();
        let spools = self.spools(&mut outcome.left)?;
        if spools.is_empty() {
            self.tidy();
            return Ok(outcome);
        }
        self.check_job(&spools, intent)?;
        let fates: Vec<Fate> = spools.iter().map(|spool| last_fate(&spool.owner, intent)).collect();
        let with = |fate| spools.iter().zip(&fates).filter(move |(_, one)| **one == fate);
        if let Some((spool, _)) = with(Fate::Runs).next() {
            bail!(
                "{}: {} of the {} ranks of {} with spools in {} still run (pid {}), left alone",
                self.name(),
                with(Fate::Runs).count(),
                spools.len(),
                self.host,
                self.directory.display(),
                spool.owner.pid
            );
        }
        let is_known = with(Fate::Unknown).next().is_none();
        if is_known || intent == (Intent::Recover { ended: true }) {
            outcome.recovered = match self.convert(spools, bar, &mut outcome.left) {
                Err(why) if self.is_read_nevertheless(intent, bar, copies) => {
                    outcome.left.push(read_nevertheless(&why));
                    None
                }
                converted => converted?,
            };
        } else {
            let was_read = intent != (Intent::Recover { ended: false });
            if was_read {
                self.copy(&spools, bar, copies)?;
            }
            outcome.left.push(self.may_run(was_read));
        }
        Ok(outcome)
    }

    /// A run directory that somebody else made may point to anything, and spools are removed when they are databases.
    fn check_directory(&self) -> anyhow::Result<()> {
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        let facts = fs::symlink_metadata(&self.directory)
            .with_context(|| self.directory.display().to_string())?;
        // SAFETY: asks for a number.
        let user = unsafe { libc::geteuid() };
        let run = self.pointer.parent().and_then(|run| fs::metadata(run).ok());
        let is_run = run.is_some_and(|run| (run.dev(), run.ino()) == (facts.dev(), facts.ino()));
        let is_recorders = name.starts_with("lapscope-") && facts.is_dir() && !is_run;
        if !is_recorders || facts.uid() != user {
            bail!(
                "{}: its spools are said to be in {}, which is no directory of this user with a name that a recorder gives, \
                 left alone",
                self.name(),
                self.directory.display()
            );
        }
        Ok(())
    }

    /// Those that can be read, as the conversion wants them: first worlds and lives in the order of ranks, then others.
    fn spools(&self, left: &mut Vec<String>) -> anyhow::Result<Vec<Spool>> {
        let mut spools = Vec::new();
        let entries =
            fs::read_dir(&self.directory).with_context(|| self.directory.display().to_string())?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Some((key, "spool")) = parse_name(&name) else { continue };
            let path = entry.path();
            if let Some(error) = link_out(&path) {
                left.push(error.to_string());
                continue;
            }
            match store::owner(&path) {
                Ok(owner) => spools.push(Spool { path, key, owner }),
                Err(error) => left.push(format!("{error:#}")),
            }
        }
        let is_further = |key: &FileKey| !matches!(key, FileKey::Rank { world: 1, life: 1, .. });
        spools.sort_by(|a, b| (is_further(&a.key), &a.key).cmp(&(is_further(&b.key), &b.key)));
        Ok(spools)
    }

    /// Whether they are of the job that the run directory belongs to, and of the launch that has ended.
    fn check_job(&self, spools: &[Spool], intent: Intent<'_>) -> anyhow::Result<()> {
        let claim = self.pointer.parent().and_then(Claim::read);
        let is_others = |owner: &Owner| match intent {
            Intent::Conclude { launch, .. } => owner.launch != launch,
            _ => claim.as_ref().is_some_and(|of| !owner.job.is_empty() && owner.job != of.job),
        };
        match spools.iter().find(|spool| is_others(&spool.owner)) {
            Some(spool) => bail!(
                "{}: the spool {} is of another job, left alone",
                self.name(),
                spool.path.display()
            ),
            None => Ok(()),
        }
    }

    fn convert(
        &self,
        mut spools: Vec<Spool>,
        bar: &ProgressBar,
        left: &mut Vec<String>,
    ) -> anyhow::Result<Option<Recovered>> {
        let database = self.free_name(&mut spools)?;
        if spools.is_empty() {
            self.tidy();
            return Ok(None);
        }
        let paths: Vec<PathBuf> = spools.into_iter().map(|spool| spool.path).collect();
        let made = store::convert_all(&paths, &database, &mut |bytes| bar.inc(bytes))?;
        let mut all = Vec::new();
        for (path, converted) in paths.iter().zip(made) {
            match converted {
                Ok(converted) => {
                    all.push(converted);
                    fs::remove_file(path)
                        .with_context(|| format!("{} cannot be removed", path.display()))?;
                }
                Err(why) => left.push(why),
            }
        }
        self.tidy();
        Ok(Some(Recovered { database, ranks: all.len(), content: sum(&all) }))
    }

    /// The name of a database that is not there yet. Spools whose ranks are in one that is there are removed: whoever made it
    /// was killed before it could do that.
    fn free_name(&self, spools: &mut Vec<Spool>) -> anyhow::Result<PathBuf> {
        let run = self.pointer.parent().unwrap_or(Path::new("."));
        let name = |number: u64| match number {
            1 => run.join(format!("node-{}.db", self.host)),
            _ => run.join(format!("node-{}+{number}.db", self.host)),
        };
        let mut number = 1;
        while name(number).exists() {
            link_out(&name(number)).map_or(Ok(()), Err)?;
            let there = FileDefinitions::read_ranks(&Database::open(&name(number))?)?;
            let is_there = |spool: &Spool| there.iter().any(|info| is_of(spool, info));
            for spool in spools.iter().filter(|spool| is_there(spool)) {
                fs::remove_file(&spool.path)
                    .with_context(|| format!("{} cannot be removed", spool.path.display()))?;
            }
            spools.retain(|spool| !is_there(spool));
            number += 1;
        }
        Ok(name(number))
    }

    /// Where the run directory takes no database, as one that may only be read, or is full.
    fn is_read_nevertheless(
        &self,
        intent: Intent<'_>,
        bar: &ProgressBar,
        copies: &Mutex<Copies>,
    ) -> bool {
        let spools = self.spools(&mut Vec::new()).unwrap_or_default();
        let is_wanted = intent == Intent::Read && !self.database.exists() && !spools.is_empty();
        is_wanted && self.copy(&spools, bar, copies).is_ok()
    }

    /// Copies what the spools hold so far.
    fn copy(
        &self,
        spools: &[Spool],
        bar: &ProgressBar,
        copies: &Mutex<Copies>,
    ) -> anyhow::Result<()> {
        let place = copies.lock().expect("no worker panics with the lock held").place()?;
        let copy = place.join(self.database.file_name().unwrap_or_default());
        let paths: Vec<PathBuf> = spools.iter().map(|spool| spool.path.clone()).collect();
        store::convert_all(&paths, &copy, &mut |bytes| bar.inc(bytes))?;
        let mut copies = copies.lock().expect("no worker panics with the lock held");
        copies.databases.push(copy);
        Ok(())
    }

    /// Nothing is said of the pointer and the directory where they stay: a spool may be left.
    fn tidy(&self) {
        if fs::remove_dir(&self.directory).is_ok() {
            let _ = fs::remove_file(&self.pointer);
        }
    }

    fn without_directory(&self) -> anyhow::Result<()> {
        let (name, host, at) = (self.name(), &self.host, self.directory.display());
        if self.database.exists() {
            let _ = fs::remove_file(&self.pointer);
            return Ok(());
        }
        if *host == store::host_name() {
            bail!("{name}: the spools of its ranks, in {at}, are gone, and with them what they recorded");
        }
        let run = shell::quote(self.pointer.parent().unwrap_or(&self.pointer));
        bail!(
            "{name}: the spools of its ranks are on {host} in {at}; there: lapscope recover {run}"
        )
    }

    fn may_run(&self, was_read: bool) -> String {
        let run = self.pointer.parent().unwrap_or(&self.pointer);
        let run = std::path::absolute(run).unwrap_or_else(|_| run.into());
        let (name, host, run) = (self.name(), &self.host, shell::quote(run));
        let so_far = if was_read { ", and what they hold so far was read" } else { "" };
        format!(
            "{name}: its ranks may still run on {host}, which cannot be seen from here: their spools, in {}, stay{so_far}. When \
             they have ended, there: lapscope recover {run}; or here: lapscope recover --ended {run}",
            self.directory.display()
        )
    }

    /// `node-HOST`, as its files are called.
    fn name(&self) -> String {
        self.database.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

fn is_of(spool: &Spool, info: &RankInfo) -> bool {
    let number = |value: i64| u64::try_from(value).unwrap_or(u64::MAX);
    let FileKey::Rank { world, rank, life } = spool.key else { return false };
    (world, rank, life) == (number(info.rank.world), number(info.rank.number), number(info.life))
}

/// Sums over several spools.
fn sum(all: &[Converted]) -> Converted {
    let mut whole = all.first().copied().unwrap_or_default();
    for one in all.iter().skip(1) {
        whole.requests += one.requests;
        whole.calls += one.calls;
        whole.pending += one.pending;
        whole.lost += one.lost;
        if whole.damaged == 0 {
            whole.damaged_at = one.damaged_at;
        }
        whole.damaged += one.damaged;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::recover_run;

    fn pointer(run: &Path, host: &str, text: &str) -> PathBuf {
        let path = run.join(format!("node-{host}.spool-at"));
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn spools_of_other_nodes_are_named() {
        let run = tempfile::tempdir().unwrap();
        let pointer = pointer(run.path(), "c7", "c7\t/scratch/lapscope-1-c7\n");
        let left = recover_run(run.path(), false).unwrap().left;
        let expected = "node-c7: the spools of its ranks are on c7 in /scratch/lapscope-1-c7; there: lapscope recover ";
        assert!(left[0].starts_with(expected), "{left:?}");
        fs::write(run.path().join("node-c7.db"), "").unwrap();
        assert!(recover_run(run.path(), false).unwrap().left.is_empty());
        assert!(!pointer.exists(), "a pointer to what was converted is of no use");
    }

    #[test]
    fn spools_that_are_gone_are_missed() {
        let run = tempfile::tempdir().unwrap();
        let host = store::host_name();
        pointer(run.path(), &host, &format!("{host}\t/nowhere/lapscope-1-{host}\n"));
        let left = recover_run(run.path(), false).unwrap().left;
        assert!(left[0].contains("are gone, and with them what they recorded"), "{left:?}");
    }

    #[test]
    fn only_directories_that_a_recorder_makes_are_touched() {
        let (run, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spool = other.path().join("rank-0.spool");
        fs::write(&spool, "somebody's").unwrap();
        pointer(run.path(), "c7", &format!("c7\t{}\n", other.path().display()));
        let left = recover_run(run.path(), false).unwrap().left;
        assert!(left[0].contains("left alone") && spool.exists(), "{left:?}");
    }

    /// It would be locked twice.
    #[test]
    fn a_run_directory_is_not_its_own_node() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("lapscope-1");
        fs::create_dir(&run).unwrap();
        pointer(&run, "c7", &format!("c7\t{}\n", run.display()));
        let left = recover_run(&run, false).unwrap().left;
        assert!(left[0].contains("left alone"), "{left:?}");
    }

    #[test]
    fn what_is_no_spool_stays_and_is_named() {
        let (run, storage) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let directory = storage.path().join("lapscope-1-c7");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("rank-0.spool"), "nothing like a spool").unwrap();
        pointer(run.path(), "c7", &format!("c7\t{}\n", directory.display()));
        let left = recover_run(run.path(), false).unwrap().left;
        assert!(left[0].contains("rank-0.spool"), "{left:?}");
        assert!(directory.join("rank-0.spool").exists() && !run.path().join("node-c7.db").exists());
    }

    #[test]
    fn a_directory_without_spools_goes_with_its_pointer() {
        let (run, storage) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let directory = storage.path().join("lapscope-1-c7");
        fs::create_dir(&directory).unwrap();
        let pointer = pointer(run.path(), "c7", &format!("c7\t{}\n", directory.display()));
        assert!(recover_run(run.path(), false).unwrap().left.is_empty());
        assert!(!pointer.exists() && !directory.exists());
    }
}
