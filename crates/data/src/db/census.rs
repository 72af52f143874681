//! What is in the files of a run, before any of them is read at length: which can be believed, and whose they are.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{check, rows_to_scan, side_by_side, Database, DbError, Definitions};
use crate::model::{Rank, RankInfo};

/// The files of a run that can be read, and why the others cannot.
#[derive(Debug, Default)]
pub struct Census {
    /// In the order in which they were named.
    pub files: Vec<PathBuf>,
    /// Those in these files, file by file.
    pub ranks: Vec<Vec<RankInfo>>,
    /// Of calls and requests in all of them, about.
    pub rows: u64,
    pub failed: Vec<DbError>,
}

impl Census {
    /// Opens every file and checks all but the rows of its big tables, which are checked as they are read. A rank counts
    /// once: a file with one that an earlier file has is left out.
    pub fn take(files: &[PathBuf]) -> Census {
        let (read, failed) = side_by_side(files, |path| {
            let database = Database::open(path)?;
            check::small_tables(&database.connection).map_err(DbError::reading(path))?;
            let rows = rows_to_scan(&database.connection).map_err(DbError::reading(path))?;
            Ok((path.to_path_buf(), rows, Definitions::read_ranks(&database)?))
        });
        let mut census = Census { failed, ..Census::default() };
        let mut known: HashMap<(Rank, i64), PathBuf> = HashMap::new();
        for (path, rows, ranks) in read {
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
                    census.ranks.push(ranks);
                }
            }
        }
        census
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
    }

    /// All ranks of the files.
    pub fn infos(&self) -> Vec<&RankInfo> {
        self.ranks.iter().flatten().collect()
    }
}
