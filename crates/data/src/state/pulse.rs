//! Whether a job goes on: how many calls the threads of its ranks have behind them, and nothing else of their spools.
//!
//! A watchdog that read what a job records would cost as much. A pulse is one `pread` for each thread.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::elsewhere;
use super::layout::{chunk as at, header, now, u16_at, u32_at, u64_at};
use crate::db::list_files;
use crate::files::open_regular;

/// A moment of a job: as long as nothing of it changes, no call has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beat {
    /// Ranks whose spools can be seen from here: those that run, and those that were killed.
    pub ranks: usize,
    /// Ranks elsewhere, which cannot be seen.
    pub unseen: usize,
    /// Databases of ranks that have ended.
    pub databases: usize,
    /// Calls of all threads, unsuccessful tests not among them.
    pub calls: u64,
}

/// Feels the pulse of a job again and again, at the price of a pread(2) for each thread.
#[derive(Debug)]
pub struct Pulse {
    root: PathBuf,
    spools: BTreeMap<PathBuf, Threads>,
}

/// Where a spool has the states of its threads.
#[derive(Debug)]
struct Threads {
    file: File,
    states: Vec<u64>,
    next_chunk: u64,
}

impl Pulse {
    pub fn new(root: &Path) -> Pulse {
        Pulse { root: root.into(), spools: BTreeMap::new() }
    }

    /// A run directory without ranks has no pulse.
    pub fn feel(&mut self) -> Beat {
        let Ok(files) = list_files(&self.root) else { return Beat::default() };
        let found = elsewhere::find(&self.root, &files.spools);
        let mut known = std::mem::take(&mut self.spools);
        let mut calls = 0u64;
        for source in found.sources {
            let threads = known.remove(&source.path).or_else(|| Threads::open(&source.path));
            let Some(mut threads) = threads else { continue };
            calls = calls.wrapping_add(threads.calls());
            self.spools.insert(source.path, threads);
        }
        let (ranks, unseen) = (self.spools.len(), found.unseen.len());
        Beat { ranks, unseen, databases: files.databases.len(), calls }
    }
}

impl Threads {
    fn open(path: &Path) -> Option<Threads> {
        let file = open_regular(path).ok()?;
        Some(Threads { file, states: Vec::new(), next_chunk: header::BYTES as u64 })
    }

    fn calls(&mut self) -> u64 {
        let behind_a_gap = self.find_states();
        let of = |place: &u64| {
            let mut state = [0; at::BYTES];
            let is_there = self.file.read_exact_at(&mut state, *place).is_ok();
            let progress =
                || u64_at(&state, now::CALLS).wrapping_sub(u64_at(&state, now::UNSUCCESSFUL_TESTS));
            if is_there {
                progress()
            } else {
                0
            }
        };
        self.states.iter().chain(&behind_a_gap).map(of).fold(0, u64::wrapping_add)
    }

    /// Where threads that came keep their state. A chunk that is being made has no mark yet: what is behind it is not kept, so
    /// that it is looked for again.
    fn find_states(&mut self) -> Vec<u64> {
        let bytes = self.file.metadata().map_or(0, |facts| facts.len());
        let (mut place, mut has_gap, mut behind) = (self.next_chunk, false, Vec::new());
        while place + (at::BYTES as u64) <= bytes {
            let mut head = [0; at::BYTES];
            if self.file.read_exact_at(&mut head, place).is_err() {
                break;
            }
            let size = u64_at(&head, at::SIZE);
            if u32_at(&head, 0) != at::MAGIC || size < at::ALIGN || size % at::ALIGN != 0 {
                has_gap = true;
                place += at::ALIGN;
                continue;
            }
            if u16_at(&head, at::KIND) == at::LIVE && u64_at(&head, at::HAS_STATE) == 1 {
                let states = if has_gap { &mut behind } else { &mut self.states };
                states.push(place + at::BYTES as u64);
            }
            place = place.saturating_add(size);
            if !has_gap {
                self.next_chunk = place;
            }
        }
        behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(calls: u64, unsuccessful: u64) -> Vec<u8> {
        let mut bytes = vec![0; at::ALIGN as usize];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &at::MAGIC.to_ne_bytes());
        put(at::KIND, &at::LIVE.to_ne_bytes());
        put(at::SIZE, &at::ALIGN.to_ne_bytes());
        put(at::HAS_STATE, &1u64.to_ne_bytes());
        put(at::BYTES + now::CALLS, &calls.to_ne_bytes());
        put(at::BYTES + now::UNSUCCESSFUL_TESTS, &unsuccessful.to_ne_bytes());
        bytes
    }

    #[test]
    fn calls_of_threads_are_its_pulse() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rank-0.spool");
        let mut pulse = Pulse::new(directory.path());
        assert_eq!(pulse.feel(), Beat::default());
        let write = |chunks: &[Vec<u8>]| {
            let parts: Vec<u8> = chunks.concat();
            let file =
                File::options().create(true).truncate(false).write(true).open(&path).unwrap();
            file.write_all_at(&parts, header::BYTES as u64).unwrap();
        };
        let mut calls = |chunks: &[Vec<u8>]| {
            write(chunks);
            let beat = pulse.feel();
            assert_eq!((beat.ranks, beat.databases), (1, 0));
            beat.calls
        };
        let gap = vec![0; at::ALIGN as usize];
        assert_eq!(calls(&[chunk(10, 4)]), 6);
        assert_eq!(calls(&[chunk(20, 14)]), 6, "tests without success are no progress");
        assert_eq!(calls(&[chunk(21, 14), gap, chunk(5, 0)]), 12);
        assert_eq!(calls(&[chunk(21, 14), chunk(1, 0), chunk(5, 0)]), 13, "none is counted twice");
    }
}
