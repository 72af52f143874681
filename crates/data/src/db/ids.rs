//! Which ids a table has: rows are numbered without gaps.

use rusqlite::Connection;
use rustc_hash::FxHashSet;

use super::query_row;

/// The first and the last id of a table; 1 and 0 when it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub first: i64,
    pub last: i64,
}

impl Ends {
    /// # Errors
    /// What SQLite says.
    pub fn read(connection: &Connection, table: &str) -> rusqlite::Result<Ends> {
        // two queries: SQLite looks both up in the tree, but goes through all rows for one that asks for both
        let sql = format!(
            "SELECT coalesce((SELECT min(id) FROM {table}), 1), coalesce((SELECT max(id) FROM {table}), 0)"
        );
        query_row(connection, &sql, [], |row| Ok(Ends { first: row.get(0)?, last: row.get(1)? }))
    }

    /// Whether so many rows leave no gap.
    pub fn holds(self, rows: u64) -> bool {
        i128::from(self.last) - i128::from(self.first) + 1 == i128::from(rows)
    }
}

/// Ids of a table. The recorder numbers rows without gaps, so that the first and the last tell all; the ids of files that
/// were put together otherwise are kept.
#[derive(Debug)]
pub struct Ids {
    first: i64,
    last: i64,
    others: Option<FxHashSet<i64>>,
}

impl Ids {
    /// # Errors
    /// What SQLite says.
    pub fn read(connection: &Connection, table: &str) -> rusqlite::Result<Ids> {
        let Ends { first, last } = Ends::read(connection, table)?;
        // counting looks at no row
        let count: i64 =
            query_row(connection, &format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        if (Ends { first, last }).holds(count as u64) {
            return Ok(Ids { first, last, others: None });
        }
        let mut statement = connection.prepare_cached(&format!("SELECT id FROM {table}"))?;
        let ids = statement.query_map([], |row| row.get(0))?;
        Ok(Ids { first, last, others: Some(ids.collect::<Result<_, _>>()?) })
    }

    pub fn ends(&self) -> (i64, i64) {
        (self.first, self.last)
    }

    /// Whether every id from the first to the last is there.
    pub fn are_dense(&self) -> bool {
        self.others.is_none()
    }

    #[inline]
    pub fn contains(&self, id: i64) -> bool {
        let within = self.first <= id && id <= self.last;
        within && self.others.as_ref().map_or(true, |ids| ids.contains(&id))
    }
}
