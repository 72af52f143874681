//! Ranks that were read once, in files of this process: what a run that is larger than memory is read from when it is looked at
//! again. A full disk costs time, nothing else.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::file::{Communicators, FileTrace};
use super::packed;
use super::roster::Roster;
use super::rows::RankRows;

/// Goes away with its files.
#[derive(Debug)]
pub struct Cache {
    directory: tempfile::TempDir,
    /// Nothing more is kept.
    is_full: AtomicBool,
}

impl Cache {
    /// In the directory for temporary files.
    ///
    /// # Errors
    /// No directory can be made there.
    pub fn new() -> io::Result<Cache> {
        let directory = tempfile::Builder::new().prefix("lapscope-").tempdir()?;
        Ok(Cache { directory, is_full: AtomicBool::new(false) })
    }

    fn path(&self, place: u32) -> PathBuf {
        self.directory.path().join(place.to_string())
    }

    /// The rows of the rank at `place`, if they are kept.
    pub(super) fn get(&self, place: u32) -> Option<(Communicators, RankRows)> {
        let file = File::open(self.path(place)).ok()?;
        packed::read(&mut BufReader::new(file)).ok()
    }

    /// Keeps rows, unless the disk is full.
    pub(super) fn keep(&self, place: u32, communicators: &Communicators, rows: &RankRows) {
        let path = self.path(place);
        if self.is_full.load(Ordering::Relaxed) || path.exists() {
            return;
        }
        let write = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
            let mut out = BufWriter::new(&mut file);
            packed::write(&mut out, communicators, rows)?;
            out.flush()?;
            drop(out);
            file.persist(&path)?;
            Ok(())
        };
        if write().is_err() {
            self.is_full.store(true, Ordering::Relaxed);
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
