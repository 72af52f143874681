//! What a launch asks of each file that it left: how much is there, and how its ranks ended.

use super::Database;
use crate::model::{Full, Rank, Text};

/// What a file holds, in short.
#[derive(Debug)]
pub struct FileOutcome {
    pub requests: u64,
    pub calls: u64,
    pub ranks: Vec<RankOutcome>,
    /// Whether one of the worlds has started another.
    pub has_spawned: bool,
}

/// How a rank ended.
#[derive(Debug)]
pub struct RankOutcome {
    pub rank: Rank,
    pub world_size: i64,
    /// Records that were lost.
    pub lost: u64,
    /// Why rows became sums, where they did.
    pub summarized: Option<Full>,
    /// `rank.ended`.
    pub ended: String,
    pub job: String,
    pub mpi_abi: String,
    pub mpi_library: String,
}

impl FileOutcome {
    /// # Errors
    /// What SQLite says of a damaged file.
    pub fn read(database: &Database) -> rusqlite::Result<FileOutcome> {
        let connection = &database.connection;
        // max(id) is a look-up where count(*) would read everything; ids have no gaps
        let last = |table: &str| -> rusqlite::Result<u64> {
            let sql = format!("SELECT coalesce(max(id), 0) FROM {table}");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(|last| last as u64)
        };
        let spawned = "SELECT EXISTS (SELECT 1 FROM communicator WHERE kind = 'inter' AND name LIKE 'MPI_Comm_spawn%')";
        Ok(FileOutcome {
            requests: last("request")?,
            calls: last("call")?,
            ranks: read_ranks(database)?,
            has_spawned: connection.query_row(spawned, [], |row| row.get(0))?,
        })
    }
}

fn read_ranks(database: &Database) -> rusqlite::Result<Vec<RankOutcome>> {
    let sql = "SELECT world, world_rank, world_size, lost_records, summarized, ended, job, mpi_abi, mpi_library FROM rank";
    super::collect(database, sql, |row| {
        let text = |at| row.get::<_, Text>(at).map(|text| text.0);
        Ok(RankOutcome {
            rank: Rank { world: row.get(0)?, number: row.get(1)? },
            world_size: row.get(2)?,
            lost: row.get::<_, i64>(3)?.max(0) as u64,
            summarized: Full::from_number(row.get(4)?),
            ended: row.get(5)?,
            job: text(6)?,
            mpi_abi: text(7)?,
            mpi_library: text(8)?,
        })
    })
}

/// Whether a rank of the file was inside of a call at its end, or had requests under way.
///
/// # Errors
/// What SQLite says of a damaged file.
pub fn leaves_pending(database: &Database) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM call WHERE duration_ns IS NULL)
                   OR EXISTS (SELECT 1 FROM request WHERE completion_id IS NULL)";
    database.connection.query_row(sql, [], |row| row.get(0))
}
