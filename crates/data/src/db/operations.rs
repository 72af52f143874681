//! Operations in full, one after the other or those that are asked for, and what was counted in a request.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Database, DbError};
use crate::model::{Bytes, Kind, RankKey, Text};

/// An `operation` row in full.
#[derive(Debug, Clone)]
pub struct FullOperation {
    pub id: i64,
    pub rank: RankKey,
    pub call_id: i64,
    pub call_path_id: Option<i64>,
    pub communicator_id: Option<i64>,
    pub kind: Kind,
    pub bytes: u64,
    pub peer: Option<i64>,
    pub tag: Option<i64>,
    pub posted_peer: Option<i64>,
    pub posted_tag: Option<i64>,
    pub posted_bytes: u64,
    pub ended: Option<String>,
    pub receive_id: Option<i64>,
    /// The operation that made a persistent request, and its call.
    pub init_id: Option<i64>,
    pub init_call_id: Option<i64>,
}

const OPERATION_COLUMNS: &str =
    "id, rank, call_id, call_path_id, communicator_id, kind, bytes, peer, tag, posted_peer,
    posted_tag, posted_bytes, ended, receive_operation_id, init_operation_id,
    (SELECT init.call_id FROM operation init WHERE init.id = operation.init_operation_id)";

fn read_operation(row: &rusqlite::Row<'_>) -> rusqlite::Result<FullOperation> {
    Ok(FullOperation {
        id: row.get(0)?,
        rank: row.get(1)?,
        call_id: row.get(2)?,
        call_path_id: row.get(3)?,
        communicator_id: row.get(4)?,
        kind: row.get(5)?,
        bytes: row.get::<_, Bytes>(6)?.0,
        peer: row.get(7)?,
        tag: row.get(8)?,
        posted_peer: row.get(9)?,
        posted_tag: row.get(10)?,
        posted_bytes: row.get::<_, Bytes>(11)?.0,
        ended: row.get::<_, Option<Text>>(12)?.map(|Text(word)| word),
        receive_id: row.get(13)?,
        init_id: row.get(14)?,
        init_call_id: row.get(15)?,
    })
}

/// Gives every operation of a file to `take`.
///
/// # Errors
/// [`DbError::Damaged`], as for all that follow.
pub fn scan_full_operations(
    database: &Database,
    take: impl FnMut(FullOperation),
) -> Result<(), DbError> {
    for_each_operation(database, take).map_err(DbError::reading(&database.path))
}

/// As [`scan_full_operations`], for those who name the file themselves.
pub(crate) fn for_each_operation(
    database: &Database,
    mut take: impl FnMut(FullOperation),
) -> rusqlite::Result<()> {
    let sql = format!("SELECT {OPERATION_COLUMNS} FROM operation");
    let mut statement = database.connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(read_operation(row)?);
    }
    Ok(())
}

/// Whether something was counted in a file.
///
/// # Errors
/// As [`scan_full_operations`].
pub fn has_counters(database: &Database) -> Result<bool, DbError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM counter WHERE problem IS NULL)";
    let read = database.connection.query_row(sql, [], |row| row.get(0));
    read.map_err(DbError::reading(&database.path))
}

/// What was counted in a request, by the counters' names.
///
/// # Errors
/// As [`scan_full_operations`].
pub fn read_counters(database: &Database, request: i64) -> Result<BTreeMap<String, i64>, DbError> {
    let sql = "SELECT c.name, k.value FROM request_counter k
               JOIN request r ON r.id = k.request_id JOIN operation o ON o.id = r.operation_id
               JOIN counter c ON c.rank = o.rank AND c.number = k.number WHERE k.request_id = ?1";
    let read = || -> rusqlite::Result<_> {
        let mut statement = database.connection.prepare_cached(sql)?;
        let values = statement.query_map([request], |row| Ok((row.get(0)?, row.get(1)?)))?;
        values.collect()
    };
    read().map_err(DbError::reading(&database.path))
}

/// Operations looked up one by one; the last ones are remembered, since most programs use few again and again.
#[derive(Debug)]
pub struct OperationCache<'a> {
    database: &'a Database,
    known: FxHashMap<i64, FullOperation>,
}

impl<'a> OperationCache<'a> {
    const MOST: usize = 1 << 16;

    pub fn new(database: &'a Database) -> Self {
        OperationCache { database, known: FxHashMap::default() }
    }

    /// # Errors
    /// As [`scan_full_operations`].
    pub fn get(&mut self, id: i64) -> Result<FullOperation, DbError> {
        if let Some(operation) = self.known.get(&id) {
            return Ok(operation.clone());
        }
        let sql = format!("SELECT {OPERATION_COLUMNS} FROM operation WHERE id = ?1");
        let statement = self.database.connection.prepare_cached(&sql);
        let operation = statement
            .and_then(|mut statement| statement.query_row([id], read_operation))
            .map_err(DbError::reading(&self.database.path))?;
        if self.known.len() == Self::MOST {
            self.known.clear();
        }
        self.known.insert(id, operation.clone());
        Ok(operation)
    }
}
