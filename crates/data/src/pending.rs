//! Rows that did not end when the recording did: requests, and calls that a process was inside of when it was killed.

use serde::Serialize;

use crate::db::{Database, DbError, FileDefinitions};
use crate::model::{Bytes, Nanos, RankKey};
use crate::places::{CallPathId, PlacesOfFile};

/// What it is that did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingKind {
    Call,
    Request,
}

/// A row that did not end.
#[derive(Debug, Clone)]
pub struct PendingRow {
    pub what: PendingKind,
    pub rank: RankKey,
    pub thread: i64,
    pub call: String,
    pub bytes: u64,
    pub peer: Option<i64>,
    pub tag: Option<i64>,
    pub posted_peer: Option<i64>,
    pub communicator: Option<String>,
    pub path: Option<CallPathId>,
    pub begin: Nanos,
}

/// Reads what did not end. A scan without names: only the rows found are joined.
///
/// # Errors
/// [`DbError::Damaged`].
pub fn read_pending(
    database: &Database,
    of_file: PlacesOfFile<'_>,
    definitions: &FileDefinitions,
) -> Result<Vec<PendingRow>, DbError> {
    let sql = "SELECT 1, o.rank, p.thread_id, o.call_id, o.bytes, o.peer, o.tag, o.posted_peer, o.communicator_id,
             o.call_path_id, p.post_begin_ns
      FROM request p CROSS JOIN operation o ON o.id = p.operation_id WHERE p.completion_id IS NULL
      UNION ALL
      SELECT 0, o.rank, p.thread_id, o.call_id, o.bytes, o.peer, o.tag, o.posted_peer, o.communicator_id,
             o.call_path_id, p.begin_ns
      FROM call p CROSS JOIN operation o ON o.id = p.operation_id WHERE p.duration_ns IS NULL";
    let read = || -> rusqlite::Result<Vec<PendingRow>> {
        let mut statement = database.connection.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| pending_row(row, of_file, definitions))?;
        rows.collect()
    };
    read().map_err(DbError::reading(&database.path))
}

fn pending_row(
    row: &rusqlite::Row<'_>,
    of_file: PlacesOfFile<'_>,
    definitions: &FileDefinitions,
) -> rusqlite::Result<PendingRow> {
    let call_id: i64 = row.get(3)?;
    let communicator: Option<i64> = row.get(8)?;
    Ok(PendingRow {
        what: if row.get(0)? { PendingKind::Request } else { PendingKind::Call },
        rank: row.get(1)?,
        thread: definitions.thread_numbers.get(&row.get(2)?).copied().unwrap_or(0),
        call: of_file.call_name(call_id),
        bytes: row.get::<_, Bytes>(4)?.0,
        peer: row.get(5)?,
        tag: row.get(6)?,
        posted_peer: row.get(7)?,
        communicator: communicator.and_then(|id| definitions.communicators.get(&id).cloned()),
        path: row.get::<_, Option<i64>>(9)?.and_then(|path| of_file.path(path)),
        begin: row.get(10)?,
    })
}
