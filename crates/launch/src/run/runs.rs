//! Which run directories a launch has made: its ranks are told its name, and write it into them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lapscope_data::db::{parse_name, with_siblings};
use lapscope_data::recovery::{recover_ended_run, Claim, RecoverSummary};

/// A launch, from before its start to behind its end. One that makes several jobs gives the first `DIR`, the next `DIR-2`,
/// and so on; and so does a launch into a directory that another job had before.
#[derive(Debug)]
pub struct Launch {
    directory: PathBuf,
    token: String,
    before: BTreeMap<PathBuf, BTreeSet<OsString>>,
}

/// A run directory that a launch has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirectory {
    pub directory: PathBuf,
    /// As its ranks know it: empty where the launcher has not passed our variables on.
    pub launch: String,
}

impl Launch {
    /// One that is told to write into `directory`. To be called before it starts.
    pub fn into_directory(directory: &Path) -> Launch {
        let before = with_siblings(directory).map(|run| (names_in(&run), run));
        Launch {
            directory: directory.into(),
            token: token(),
            before: before.map(|(names, run)| (run, names)).collect(),
        }
    }

    /// What no other launch has, the value of [`LAUNCH_VARIABLE`](lapscope_data::options::LAUNCH_VARIABLE).
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The run directories that name this launch. Where none does, because its launcher did not pass the variable on: those
    /// that have gained files and name no launch at all.
    pub fn runs(&self) -> Vec<RunDirectory> {
        let (mut ours, mut nobodys) = (Vec::new(), Vec::new());
        for directory in with_siblings(&self.directory) {
            let names = names_in(&directory);
            let has_grown =
                self.before.get(&directory).map_or(true, |before| !names.is_subset(before));
            let launch = Claim::read(&directory).map_or_else(String::new, |claim| claim.launch);
            if !names.is_empty() && launch == self.token {
                ours.push(RunDirectory { directory, launch });
            } else if !names.is_empty() && has_grown && launch.is_empty() {
                nobodys.push(RunDirectory { directory, launch });
            }
        }
        if ours.is_empty() {
            nobodys
        } else {
            ours
        }
    }
}

impl RunDirectory {
    /// Turns what killed ranks left into databases; the launcher has ended. With `progress`, a bar on standard error where
    /// that is a terminal.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn recover(&self, progress: bool) -> anyhow::Result<RecoverSummary> {
        recover_ended_run(&self.directory, progress, &self.launch)
    }
}

/// 128 bits of chance. Where the kernel gives none, the time and our pid, which no other launch on this node has.
fn token() -> String {
    let mut bytes = [0u8; 16];
    // SAFETY: as many bytes as there is room for.
    let given = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if given != bytes.len() as isize {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_nanos());
        bytes = (now ^ (u128::from(std::process::id()) << 96)).to_be_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names of the files of ranks: spools become databases, so without what is behind the last dot.
fn names_in(directory: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let stem = |path: PathBuf| path.file_stem().map(OsString::from);
    entries
        .filter(|entry| parse_name(&entry.file_name().to_string_lossy()).is_some())
        .filter_map(|entry| stem(entry.path()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(launch: &Launch) -> Vec<String> {
        let name = |run: &RunDirectory| {
            run.directory.file_name().unwrap_or_default().to_string_lossy().into()
        };
        launch.runs().iter().map(name).collect()
    }

    #[test]
    fn directories_name_their_launch() {
        let parent = tempfile::tempdir().unwrap();
        let launch = Launch::into_directory(&parent.path().join("run"));
        let other = Launch::into_directory(&parent.path().join("run"));
        let make = |name: &str, claim: &str| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("job"), claim).unwrap();
            std::fs::write(path.join("rank-0.spool"), "").unwrap();
        };
        make("run", &format!("j1\n{}", other.token()));
        make("run-10", &format!("j2\n{}", launch.token()));
        make("run-2", &format!("j3\n{}", launch.token()));
        make("run-3", "j4");
        assert_eq!(names(&launch), ["run-2", "run-10"]);
        assert_eq!(names(&other), ["run"]);
        let claim = Claim::read(&parent.path().join("run-3")).unwrap();
        assert_eq!((claim.job.as_str(), claim.launch.as_str()), ("j4", ""));
        assert_eq!(Claim::read(parent.path()), None);
    }

    #[test]
    fn where_no_launch_is_named_only_directories_that_gained_files_are_new() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        for old in ["run", "run-3", "run-other"] {
            std::fs::create_dir(path(old)).unwrap();
        }
        std::fs::write(path("run").join("rank-0.spool"), "").unwrap();
        let launch = Launch::into_directory(&path("run"));
        assert!(names(&launch).is_empty());
        std::fs::rename(path("run").join("rank-0.spool"), path("run").join("rank-0.db")).unwrap();
        assert!(names(&launch).is_empty(), "an old spool that was recovered is no new data");
        std::fs::create_dir(path("run-2")).unwrap();
        std::fs::write(path("run-2").join("rank-0.db"), "").unwrap();
        std::fs::write(path("run-3").join("rank-0.spool-at"), "").unwrap();
        std::fs::write(path("run-other").join("rank-0.db"), "").unwrap();
        assert_eq!(names(&launch), ["run-2", "run-3"]);
        std::fs::write(path("run-2").join("job"), "j\nanother launch").unwrap();
        assert_eq!(names(&launch), ["run-3"]);
    }
}
