//! Lines of the program around a call, where its source is there and has not changed since the run.
//!
//! A run may be somebody else's, and names of files are in its programs: only what looks like source of a program is read, so
//! that a page cannot be made to carry any other file of who makes it.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

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
pub struct Sources {
    started: Option<SystemTime>,
    files: HashMap<String, Result<Vec<String>, String>>,
}

/// Lines of a file with their numbers.
pub type Lines = Vec<(u32, String)>;

impl Sources {
    /// Those that were changed last before a moment: nanoseconds since 1970.
    pub fn older_than(unix_ns: i64) -> Sources {
        let started = SystemTime::UNIX_EPOCH + Duration::from_nanos(unix_ns.max(0) as u64);
        Sources { started: Some(started), files: HashMap::new() }
    }

    /// Shows nothing.
    pub fn none() -> Sources {
        Sources { started: None, files: HashMap::new() }
    }

    /// Lines around one, or why there are none.
    pub fn around(&mut self, file: &str, line: u32) -> Result<Lines, String> {
        let started = self.started.ok_or("Source lines are left out, as asked for.")?;
        let read = || read(Path::new(file), started);
        let lines = self.files.entry(file.to_owned()).or_insert_with(read);
        let lines = lines.as_ref().map_err(String::clone)?;
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
}

fn read(path: &Path, started: SystemTime) -> Result<Vec<String>, String> {
    let name = path.display();
    if !path.is_absolute() {
        return Err(format!("{name}: the compiler recorded no whole path."));
    }
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    if !ENDS.contains(&end) {
        return Err(format!("{name} does not look like source of a program."));
    }
    let facts = match std::fs::metadata(path) {
        Ok(facts) if facts.is_file() => facts,
        _ => return Err(format!("{name} is not on this machine.")),
    };
    if facts.len() > MOST_BYTES {
        return Err(format!("{name} is too large to be shown."));
    }
    if !facts.modified().is_ok_and(|modified| modified < started) {
        return Err(format!("{name} was changed after the run began: its lines may be others."));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("{name} cannot be read: {error}."))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().map(|line| line.replace('\t', "    ")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> i64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as i64
    }

    #[test]
    fn lines_around_a_call() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("halo.c");
        std::fs::write(&path, "one\ntwo\nthree\n\tfour\nfive\n").unwrap();
        let name = path.to_str().unwrap();
        let later = now() + 60_000_000_000;
        let lines = Sources::older_than(later).around(name, 5).unwrap();
        assert_eq!(lines.first(), Some(&(2, "two".to_owned())));
        assert_eq!(lines[2], (4, "    four".to_owned()));
        assert_eq!(lines.len(), 4);
        let why = |sources: &mut Sources, line| sources.around(name, line).unwrap_err();
        assert!(why(&mut Sources::older_than(later), 6).contains("has no line 6"));
        assert!(why(&mut Sources::older_than(1), 5).contains("changed after the run began"));
        assert!(why(&mut Sources::none(), 5).contains("as asked for"));
    }

    /// A program of a stranger's run may say that its source is `~/.ssh/id_ed25519`.
    #[test]
    fn other_files_are_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("id_ed25519");
        std::fs::write(&path, "secret\n").unwrap();
        let mut sources = Sources::older_than(now() + 60_000_000_000);
        let why = sources.around(path.to_str().unwrap(), 1).unwrap_err();
        assert!(why.contains("does not look like source"), "{why}");
        assert!(sources.around("halo.c", 1).unwrap_err().contains("no whole path"));
        assert!(sources.around("/nowhere/x.c", 1).unwrap_err().contains("not on this machine"));
        assert!(sources.around("/dev/x.c", 1).unwrap_err().contains("not on this machine"));
    }
}
