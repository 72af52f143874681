//! Communicators, windows and files.

use rusqlite::Connection;

use super::{collect, for_each};
use lapscope_data::model::RankKey;

/// A row of `communicator`.
pub(crate) struct CommunicatorRow {
    pub id: i64,
    pub identity: i64,
    pub ordinal: i64,
    /// Ranks of both groups.
    pub size: u32,
}

pub(crate) fn communicators(connection: &Connection) -> rusqlite::Result<Vec<CommunicatorRow>> {
    let sql = "SELECT id, identity, ordinal, size + remote_size FROM communicator";
    collect(connection, sql, [], |row| {
        let size = row.get::<_, i64>(3)?.max(0) as u32;
        Ok(CommunicatorRow { id: row.get(0)?, identity: row.get(1)?, ordinal: row.get(2)?, size })
    })
}

/// Gives the rank and the name of each to `take`.
pub(crate) fn communicator_names(
    connection: &Connection,
    mut take: impl FnMut(RankKey, &str),
) -> rusqlite::Result<()> {
    for_each(connection, "SELECT rank, name FROM communicator", [], |row| {
        take(row.get(0)?, row.get_ref(1)?.as_str().unwrap_or_default());
        Ok(())
    })
}
