//! What the program marked by MPI_Pcontrol: begins and ends of regions, and of steps.

use std::collections::HashMap;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::query;
use lapscope_data::model::RankKey;
use lapscope_data::places::Interner;

/// A call of MPI_Pcontrol that marks something (table `mark`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Nanoseconds, on the clock of the run.
    pub at: i64,
    /// 1: a region begins; -1: it ends; 2: a step begins. Others are the program's own.
    pub level: i32,
    /// Index into [`Trace::mark_names`](super::Trace::mark_names); `None`: there was none.
    pub name: Option<u32>,
}

/// The marks of one rank on their way: moments since its epoch, in order, and names of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RankMarks {
    pub marks: Vec<Mark>,
    pub names: Vec<String>,
}

impl RankMarks {
    /// With names that all ranks share.
    pub fn with_names_of(self, shared: &mut Interner<String>) -> Vec<Mark> {
        let numbers: Vec<u32> =
            self.names.into_iter().map(|name| shared.intern(name) as u32).collect();
        let mut marks = self.marks;
        for mark in &mut marks {
            mark.name = mark.name.map(|name| numbers[name as usize]);
        }
        marks
    }
}

/// Those of a file, by the slots of their ranks; `slot_of` knows the ranks that are wanted.
pub(super) fn read_marks(
    connection: &Connection,
    slot_of: impl Fn(RankKey) -> Option<usize>,
) -> rusqlite::Result<HashMap<usize, RankMarks>> {
    let mut marks: HashMap<usize, (Vec<Mark>, Interner<String>)> = HashMap::new();
    let mut last = None;
    query::marks(connection, |mark| {
        // rows of a rank stand together
        let slot = match last {
            Some((known, slot)) if known == mark.rank => slot,
            _ => slot_of(mark.rank),
        };
        last = Some((mark.rank, slot));
        let Some(slot) = slot else { return };
        let (of_rank, names) = marks.entry(slot).or_default();
        let name = mark.name.map(|name| names.intern(name) as u32);
        of_rank.push(Mark { at: mark.at, level: mark.level, name });
    })?;
    let put_together = |(slot, (marks, names)): (usize, (Vec<Mark>, Interner<String>))| {
        (slot, RankMarks { marks, names: names.values })
    };
    Ok(marks.into_iter().map(put_together).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trace;
    use lapscope_fixture::{tables, write_file};

    /// Two ranks of one file and one of another, on another host whose clock began to count earlier.
    #[test]
    fn marks_of_all_files_are_on_one_clock_and_share_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let mark = |file: &lapscope_fixture::Fixture, begin_ns, level, name| {
            file.insert(tables::Mark { begin_ns, level, name, ..tables::Mark::default() });
        };
        let rank =
            |rank, epoch_ns| tables::Rank { world_size: 3, epoch_ns, ..tables::Rank::plain(rank) };
        let together = directory.path().join("node-a.db");
        write_file(&together, |file| {
            file.insert(rank(0, 1_000));
            file.insert(tables::Thread { id: Some(1), ..tables::Thread::default() });
            mark(file, 900, -1, Some("solve"));
            mark(file, 100, 1, Some("solve"));
            file.insert(rank(1, 1_500));
            mark(file, 100, 2, None);
        });
        let alone = directory.path().join("rank-2.db");
        write_file(&alone, |file| {
            file.insert(rank(2, 3_000));
            file.insert(tables::Thread { id: Some(1), ..tables::Thread::default() });
            mark(file, 10, 1, Some("write"));
            mark(file, 20, 1, Some("solve"));
        });
        let (trace, failed) = Trace::read(&[together, alone], &|_| ()).unwrap();
        assert!(failed.is_empty(), "{failed:?}");
        let named = |place: usize| -> Vec<(i64, i32, Option<&str>)> {
            let name = |mark: &Mark| mark.name.map(|name| &*trace.mark_names[name as usize]);
            let marks = trace.ranks[place].marks.iter();
            marks.map(|mark| (mark.at, mark.level, name(mark))).collect()
        };
        assert_eq!(named(0), [(100, 1, Some("solve")), (900, -1, Some("solve"))]);
        assert_eq!(named(1), [(600, 2, None)]);
        assert_eq!(named(2), [(2_010, 1, Some("write")), (2_020, 1, Some("solve"))]);
        assert_eq!(trace.mark_names.len(), 2);
    }
}
