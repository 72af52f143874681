//! Reads where the data of requests lay.

use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashMap;

use super::{query_row, Database, DbError};
use crate::model::MemoryKind;
use crate::schema::lacks;

/// Of every request by its id; empty where no accelerator's driver was in a process.
///
/// # Errors
/// What SQLite says while reading.
pub fn read_request_memory(
    connection: &Connection,
) -> rusqlite::Result<FxHashMap<i64, MemoryKind>> {
    if lacks(connection, "main", "request_memory")? {
        return Ok(FxHashMap::default());
    }
    let mut statement =
        connection.prepare_cached("SELECT request_id, memory FROM request_memory")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Whether there is any such request in a file.
///
/// # Errors
/// [`DbError::Damaged`].
pub fn has_request_memory(database: &Database) -> Result<bool, DbError> {
    let read = || match lacks(&database.connection, "main", "request_memory")? {
        true => Ok(false),
        false => {
            let sql = "SELECT EXISTS (SELECT 1 FROM request_memory)";
            query_row(&database.connection, sql, [], |row| row.get(0))
        }
    };
    read().map_err(DbError::reading(&database.path))
}

/// Of one request of a file that has some.
///
/// # Errors
/// [`DbError::Damaged`].
pub fn memory_of_request(database: &Database, id: i64) -> Result<Option<MemoryKind>, DbError> {
    let sql = "SELECT memory FROM request_memory WHERE request_id = ?1";
    let read = || -> rusqlite::Result<_> {
        let mut statement = database.connection.prepare_cached(sql)?;
        statement.query_row([id], |row| row.get(0)).optional()
    };
    read().map_err(DbError::reading(&database.path))
}
