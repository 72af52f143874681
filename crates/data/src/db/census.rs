//! What is in the files of a run, before any of them is read at length: which can be believed, and whose they are.
//!
//! Whatever else is wanted of every file is taken along while it is open ([`Census::take_with`]). Files in which nobody
//! was asked to inject, to watch or to take samples are not opened for that again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::Row;

use super::samples::was_asked_to_sample;
use super::{check, query_row, rows_to_scan, side_by_side, Database, DbError, FileDefinitions};
use crate::model::{Rank, RankInfo};

/// The files of a run that can be read, and why the others cannot.
#[derive(Debug, Default)]
pub struct Census {
    /// In the order in which they were named.
    pub files: Vec<PathBuf>,
    /// Those in these files, file by file.
    pub ranks: Vec<Vec<RankInfo>>,
    /// Rows of calls and requests in all of them, about.
    pub rows: u64,
    asked: Vec<RankTasks>,
    pub failed: Vec<DbError>,
}

/// What ranks of a file were asked to do besides recording.
#[derive(Debug, Clone, Copy)]
struct RankTasks {
    to_inject: bool,
    to_watch: bool,
    to_sample: bool,
}

impl RankTasks {
    fn read(database: &Database) -> rusqlite::Result<RankTasks> {
        let sql = "SELECT EXISTS (SELECT 1 FROM injector), EXISTS (SELECT 1 FROM watcher)";
        let to_sample = was_asked_to_sample(database)?;
        let read = |row: &Row<'_>| {
            Ok(RankTasks { to_inject: row.get(0)?, to_watch: row.get(1)?, to_sample })
        };
        query_row(&database.connection, sql, [], read)
    }
}

impl Census {
    /// Opens every file and checks all but the rows of its big tables, which are checked as they are read. A rank counts
    /// once: a file with one that an earlier file has is left out.
    pub fn take(files: &[PathBuf]) -> Census {
        Census::take_with(files, |_| Ok(())).0
    }

    /// As [`Census::take`], and what `more` makes of each file while it is open: of those of [`Census::files`], in their order.
    /// To open a file takes as long as to read some thousand rows of it.
    pub fn take_with<T: Send>(
        files: &[PathBuf],
        more: impl Fn(&Database) -> Result<T, DbError> + Sync,
    ) -> (Census, Vec<T>) {
        let (read, failed) = side_by_side(files, |database| {
            let Database { path, connection, .. } = database;
            check::small_tables(connection).map_err(DbError::reading(path))?;
            let rows = rows_to_scan(connection).map_err(DbError::reading(path))?;
            let asked = RankTasks::read(database).map_err(DbError::reading(path))?;
            let ranks = FileDefinitions::read_ranks(database)?;
            Ok((path.clone(), rows, asked, ranks, more(database)?))
        });
        let mut census = Census { failed, ..Census::default() };
        let mut all = Vec::new();
        let mut known: HashMap<(Rank, i64), PathBuf> = HashMap::new();
        for (path, rows, asked, ranks, more) in read {
            let keys = || ranks.iter().map(|info| (info.rank, info.life));
            let twice = keys().find_map(|key| known.get(&key).map(|first| (key.0, first.clone())));
            match twice {
                Some((rank, first)) => {
                    census.failed.push(DbError::RankTwice { path, rank, first });
                }
                None => {
                    known.extend(keys().map(|key| (key, path.clone())));
                    census.rows += rows;
                    census.files.push(path);
                    census.asked.push(asked);
                    all.push(more);
                    census.ranks.push(ranks);
                }
            }
        }
        (census, all)
    }

    /// Leaves out files that turned out to be unreadable later.
    pub fn without(&mut self, failed: &[DbError]) {
        let is_failed =
            |path: &Path| failed.iter().any(|error| error.path().is_some_and(|of| of == path));
        let keep: Vec<bool> = self.files.iter().map(|path| !is_failed(path)).collect();
        let mut of_files = keep.iter();
        self.files.retain(|_| *of_files.next().unwrap_or(&true));
        let mut of_ranks = keep.iter();
        self.ranks.retain(|_| *of_ranks.next().unwrap_or(&true));
        let mut of_asked = keep.iter();
        self.asked.retain(|_| *of_asked.next().unwrap_or(&true));
    }

    /// Files in which a rank was asked to inject tests.
    pub fn asked_to_inject(&self) -> Vec<PathBuf> {
        self.files_that(|asked| asked.to_inject)
    }

    /// Files in which a rank was asked to watch buffers.
    pub fn asked_to_watch(&self) -> Vec<PathBuf> {
        self.files_that(|asked| asked.to_watch)
    }

    /// Files in which a rank was asked to take samples.
    pub fn asked_to_sample(&self) -> Vec<PathBuf> {
        self.files_that(|asked| asked.to_sample)
    }

    /// Files with such a rank.
    pub fn files_with(&self, is_one: impl Fn(&RankInfo) -> bool) -> Vec<PathBuf> {
        let files = self.files.iter().zip(&self.ranks);
        let files = files.filter(|(_, ranks)| ranks.iter().any(&is_one));
        files.map(|(path, _)| path.clone()).collect()
    }

    fn files_that(&self, was_asked: impl Fn(&RankTasks) -> bool) -> Vec<PathBuf> {
        let files = self.files.iter().zip(&self.asked).filter(|(_, asked)| was_asked(asked));
        files.map(|(path, _)| path.clone()).collect()
    }

    /// All ranks of the files.
    pub fn infos(&self) -> Vec<&RankInfo> {
        self.ranks.iter().flatten().collect()
    }
}
