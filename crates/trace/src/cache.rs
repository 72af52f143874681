//! Ranks that were read once, and parts that were put together once, in files of the command: what a run that is looked at in parts is
//! read from from then on, by workers of an engine, too, where they find the files. A full disk costs time, nothing else.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::file::{Communicators, FileTrace};
use super::packed::{self, Packed};
use super::roster::Roster;
use super::rows::RankRows;
use lapscope_data::store::host_name;
use serde::{Deserialize, Serialize};

/// A folder. It goes away when the process ends that made it; others that are told of it use what they find there.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cache {
    directory: PathBuf,
    #[serde(skip)]
    _own: Option<tempfile::TempDir>,
    /// Rows of a file that is held in memory as a whole, at the most.
    most_rows: u64,
    /// Parts are kept as well, not ranks alone.
    keeps_parts: bool,
    /// Nothing more is kept.
    #[serde(skip)]
    is_full: AtomicBool,
}

impl Cache {
    /// In the directory for temporary files. `times_read`: how often each rank is in a part, for its own sake or that of others; kept
    /// parts take as many times the run.
    ///
    /// # Errors
    /// No directory can be made there.
    pub fn new(most_rows: u64, times_read: f64) -> io::Result<Cache> {
        const MOST_TIMES: f64 = 3.0;
        let of_host = format!("lapscope-parts-{}-", host_name().replace('/', "_"));
        let name = format!("{of_host}{}-", std::process::id());
        let own = tempfile::Builder::new().prefix(&name).tempdir()?;
        let directory = own.path().to_owned();
        remove_of_killed(&directory, &of_host);
        let (keeps_parts, is_full) = (times_read <= MOST_TIMES, AtomicBool::new(false));
        Ok(Cache { directory, _own: Some(own), most_rows, keeps_parts, is_full })
    }

    /// Whether a file of so many rows can be held in memory, and then be kept.
    pub(super) fn has_room_for(&self, rows: u64) -> bool {
        rows <= self.most_rows && !self.is_full.load(Ordering::Relaxed)
    }

    /// Itself, where parts are kept.
    pub(super) fn of_parts(&self) -> Option<&Cache> {
        self.keeps_parts.then_some(self)
    }

    /// What is kept under a name.
    pub(super) fn open(&self, name: &str) -> Option<Packed> {
        File::open(self.directory.join(name)).ok().map(Packed::new)
    }

    /// Keeps what `put` writes under a name, unless the disk is full.
    pub(super) fn write(&self, name: &str, put: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        let path = self.directory.join(name);
        if self.is_full.load(Ordering::Relaxed) || path.exists() {
            return;
        }
        let write = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
            let mut out = BufWriter::new(&mut file);
            put(&mut out)?;
            out.flush()?;
            drop(out);
            file.persist(&path)?;
            Ok(())
        };
        if write().is_err() {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }

    /// The rows of the rank at `place`, if they are kept.
    pub(super) fn get(&self, place: u32) -> Option<(Communicators, RankRows)> {
        packed::read(&mut self.open(&place.to_string())?).ok()
    }

    /// Keeps rows.
    fn keep(&self, place: u32, communicators: &Communicators, rows: &RankRows) {
        self.write(&place.to_string(), |out| packed::write(out, communicators, rows));
    }
}

/// Takes away what commands of the same user left beside `own` that were killed on this machine.
fn remove_of_killed(own: &Path, of_host: &str) {
    let user = own.metadata().map(|it| it.uid());
    let (Ok(user), Some(Ok(beside))) = (user, own.parent().map(Path::read_dir)) else { return };
    for entry in beside.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(of_host).and_then(|rest| rest.split('-').next());
        let process = process.and_then(|process| process.parse::<u32>().ok());
        let is_over = process.is_some_and(|it| !Path::new(&format!("/proc/{it}")).exists());
        if is_over && entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == user) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl FileTrace {
    /// Keeps its ranks of which rows were wanted.
    pub(super) fn keep(&self, roster: &Roster, cache: &Cache) {
        for (slot, (info, rows)) in self.definitions.ranks.iter().zip(&self.ranks).enumerate() {
            let place = roster.place(info.rank, info.life).filter(|_| self.is_wanted(slot));
            if let Some(place) = place {
                cache.keep(place, &self.communicators, rows);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_command_left_goes_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        // no process has so large a number
        let names = ["a-4194305-x", "a-1-x", "b-4194305-x", "a-x"];
        let paths = names.map(|name| place.path().join(format!("lapscope-parts-{name}")));
        paths.iter().for_each(|path| std::fs::create_dir(path).unwrap());
        std::fs::write(paths[0].join("rank"), "rows").unwrap();
        remove_of_killed(&paths[1], "lapscope-parts-a-");
        assert_eq!(paths.map(|path| path.exists()), [false, true, true, true]);
    }
}
