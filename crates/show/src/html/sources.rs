//! Lines of the program around a call, of files that the reader has named a directory of.
//!
//! A run may be somebody else's, and the names of files are in its programs. So its word alone opens no file: a page goes to
//! others, and would carry to them what only its reader may read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use lapscope_data::files::read_short;

use super::escape::cut_to;

/// Lines before and behind the call.
const AROUND: usize = 3;
const MOST_BYTES: u64 = 8 << 20;
const MOST_LETTERS: usize = 160;
const ENDS: [&str; 32] = [
    "c", "cc", "cpp", "cxx", "c++", "C", "h", "hh", "hpp", "hxx", "inc", "tcc", "ipp", "cu", "cuh",
    "hip", "f", "F", "for", "f77", "f90", "F90", "f95", "F95", "f03", "F03", "f08", "F08", "rs",
    "jl", "py", "pyx",
];

/// Files by name, each read once.
#[derive(Default)]
pub struct Sources {
    /// Directories, without links.
    roots: Vec<PathBuf>,
    started: Option<SystemTime>,
    files: BTreeMap<String, Result<Vec<String>, String>>,
}

/// Lines of a file with their numbers.
pub type NumberedLines = Vec<(u32, String)>;

impl Sources {
    /// Those that lie in one of these directories.
    ///
    /// # Errors
    /// One of them is not there.
    pub fn within(roots: &[PathBuf]) -> anyhow::Result<Sources> {
        let whole = |root: &PathBuf| {
            let found = root.canonicalize().and_then(|path| path.read_dir().map(|_| path));
            found.with_context(|| format!("--sources {}", root.display()))
        };
        let roots = roots.iter().map(whole).collect::<anyhow::Result<_>>()?;
        Ok(Sources { roots, ..Sources::default() })
    }

    /// Keeps those that were changed last before a moment: nanoseconds since 1970.
    pub fn older_than(self, unix_ns: i64) -> Sources {
        let started = SystemTime::UNIX_EPOCH + Duration::from_nanos(unix_ns.max(0) as u64);
        Sources { started: Some(started), ..self }
    }

    /// Lines around one, or why there are none.
    pub fn around(&mut self, file: &str, line: u32) -> Result<NumberedLines, String> {
        if self.roots.is_empty() {
            return Err("Lines of sources are shown where --sources names their directory.".into());
        }
        if !self.files.contains_key(file) {
            self.files.insert(file.to_owned(), self.read(Path::new(file)));
        }
        let lines = self.files[file].as_ref().map_err(String::clone)?;
        let place = line as usize;
        if place == 0 || place > lines.len() {
            return Err(format!("{file} has no line {line}."));
        }
        let (first, last) =
            (place.saturating_sub(AROUND).max(1), (place + AROUND).min(lines.len()));
        let line =
            |number: usize| (number as u32, cut_to(&lines[number - 1], MOST_LETTERS).into_owned());
        Ok((first..=last).map(line).collect())
    }

    /// Files that lines were taken from.
    pub fn shown(&self) -> Vec<&str> {
        self.files.iter().filter(|(_, lines)| lines.is_ok()).map(|(name, _)| &**name).collect()
    }

    fn read(&self, path: &Path) -> Result<Vec<String>, String> {
        let name = path.display();
        if !path.is_absolute() {
            return Err(format!("{name}: the compiler recorded no whole path."));
        }
        // Where links lead is looked at, not only what they are called.
        let Ok(file) = path.canonicalize() else {
            return Err(format!("{name} is not on this machine."));
        };
        if !self.roots.iter().any(|root| file.starts_with(root)) {
            return Err(format!("{name} lies in no directory that --sources names."));
        }
        if !looks_like_source(path) || !looks_like_source(&file) {
            return Err(format!("{name} does not look like source of a program."));
        }
        let is_older = |started| file.metadata()?.modified().map(|modified| modified < started);
        if !self.started.is_some_and(|started| is_older(started).unwrap_or_default()) {
            return Err(format!(
                "{name} was changed after the run began: its lines may be others."
            ));
        }
        let bytes = read_short(&file, MOST_BYTES);
        let bytes = bytes.map_err(|error| format!("{name} cannot be read: {error}."))?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().map(|line| line.replace('\t', "    ")).collect())
    }
}

fn looks_like_source(path: &Path) -> bool {
    path.extension().and_then(|end| end.to_str()).is_some_and(|end| ENDS.contains(&end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> i64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as i64
    }

    /// A directory with these files, and what is shown of a later run's sources in it.
    fn made(files: &[(&str, &str)]) -> (tempfile::TempDir, Sources) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let sources = Sources::within(&[directory.path().to_owned()]).unwrap();
        (directory, sources.older_than(now() + 60_000_000_000))
    }

    #[test]
    fn lines_around_a_call() {
        let (directory, mut sources) = made(&[("halo.c", "one\ntwo\nthree\n\tfour\nfive\n")]);
        let path = directory.path().join("halo.c");
        let name = path.to_str().unwrap();
        let lines = sources.around(name, 5).unwrap();
        assert_eq!(lines.first(), Some(&(2, "two".to_owned())));
        assert_eq!(lines[2], (4, "    four".to_owned()));
        assert_eq!(lines.len(), 4);
        assert!(sources.around(name, 6).unwrap_err().contains("has no line 6"));
        assert_eq!(sources.shown(), [name]);
        let why = |sources: Sources| sources.older_than(1).around(name, 5).unwrap_err();
        let within = |root: &Path| Sources::within(&[root.to_owned()]).unwrap();
        assert!(why(within(directory.path())).contains("changed after the run began"));
        assert!(why(within(tempfile::tempdir().unwrap().path())).contains("no directory that"));
        assert!(why(Sources::default()).contains("where --sources names"));
        let nowhere = Sources::within(&["/nowhere".into()]).err().unwrap();
        assert_eq!(nowhere.to_string(), "--sources /nowhere");
    }

    /// A program of a stranger's run may say that its source is `~/.ssh/id_ed25519`, or a link to it.
    #[test]
    fn other_files_are_not_shown() {
        let (directory, mut sources) = made(&[("id_ed25519", "secret\n")]);
        let secret = directory.path().join("id_ed25519");
        let link = directory.path().join("lnk.c");
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let out = directory.path().join("out.c");
        std::os::unix::fs::symlink("/proc/version", &out).unwrap();
        let mut why = |path: &Path| sources.around(path.to_str().unwrap(), 1).unwrap_err();
        assert!(why(&secret).contains("does not look like source"));
        assert!(why(&link).contains("does not look like source"));
        assert!(why(&out).contains("lies in no directory"));
        assert!(why(Path::new("halo.c")).contains("no whole path"));
        assert!(why(Path::new("/nowhere/x.c")).contains("not on this machine"));
        assert!(why(&directory.path().join("../../etc/x.c")).contains("not on this machine"));
        assert!(sources.shown().is_empty());
    }
}
