//! Communicators, windows and files.

use rusqlite::Connection;

use super::collect;
use lapscope_data::model::RankKey;

/// A row of `communicator`.
pub(crate) struct CommunicatorRow {
    pub id: i64,
    pub rank: RankKey,
    /// The program's, or of the call that made it.
    pub name: String,
    pub identity: i64,
    pub ordinal: i64,
    /// Ranks of both groups.
    pub size: u32,
}

pub(crate) fn communicators(connection: &Connection) -> rusqlite::Result<Vec<CommunicatorRow>> {
    let sql = "SELECT id, rank, name, identity, ordinal, size + remote_size FROM communicator";
    collect(connection, sql, [], |row| {
        Ok(CommunicatorRow {
            id: row.get(0)?,
            rank: row.get(1)?,
            name: row.get_ref(2)?.as_str().unwrap_or_default().to_owned(),
            identity: row.get(3)?,
            ordinal: row.get(4)?,
            size: row.get::<_, i64>(5)?.max(0) as u32,
        })
    })
}
