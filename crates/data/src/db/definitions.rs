//! The small tables of a file: who the ranks are, what ids of the big tables mean. Places are [`crate::places`].

use serde::{Deserialize, Serialize};

use std::collections::HashMap;

use rusqlite::Row;

use super::{query_row, Database, DbError};
use crate::model::{
    CopiedSends, Count, DeviceRecorder, Full, Processor, Rank, RankInfo, RankKey, Text,
};
use crate::schema::lacks;
use crate::secrets;

/// Who a file's ranks, threads and communicators are.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FileDefinitions {
    /// In the order of rank and life; never empty.
    pub ranks: Vec<RankInfo>,
    /// `thread.number` by `thread.id`.
    pub thread_numbers: HashMap<i64, i64>,
    /// `communicator.name` by `communicator.id`.
    pub communicators: HashMap<i64, String>,
    /// Ranks in which more than one thread made MPI calls.
    pub threaded_ranks: u64,
}

impl FileDefinitions {
    /// Reads the definitions of an open database.
    ///
    /// # Errors
    /// [`DbError::Damaged`] when a table is missing or unreadable.
    pub fn read(database: &Database) -> Result<FileDefinitions, DbError> {
        read_all(database).map_err(DbError::reading(&database.path))
    }

    /// Reads who the ranks are, alone.
    ///
    /// # Errors
    /// As [`FileDefinitions::read`]; there are none.
    pub fn read_ranks(database: &Database) -> Result<Vec<RankInfo>, DbError> {
        let ranks = ranks_of(database).map_err(DbError::reading(&database.path))?;
        match ranks.is_empty() {
            true => Err(DbError::reading(&database.path)(rusqlite::Error::QueryReturnedNoRows)),
            false => Ok(ranks),
        }
    }

    /// The ranks by what other rows call them.
    pub fn ranks_by_key(&self) -> HashMap<RankKey, &RankInfo> {
        self.ranks.iter().map(|info| (info.key, info)).collect()
    }
}

fn read_all(database: &Database) -> rusqlite::Result<FileDefinitions> {
    let mut definitions = FileDefinitions {
        ranks: ranks_of(database)?,
        threaded_ranks: count_threaded(database)?,
        ..FileDefinitions::default()
    };
    definitions.thread_numbers =
        collect(database, "SELECT id, number FROM thread", |row| Ok((row.get(0)?, row.get(1)?)))?;
    definitions.communicators = collect(database, "SELECT id, name FROM communicator", |row| {
        Ok((row.get(0)?, row.get::<_, Text>(1)?.0))
    })?;
    if definitions.ranks.is_empty() {
        return Err(rusqlite::Error::QueryReturnedNoRows);
    }
    Ok(definitions)
}

pub(crate) fn collect<T, C: FromIterator<T>>(
    database: &Database,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<C> {
    database.connection.prepare_cached(sql)?.query_map([], read)?.collect()
}

const RANK_SQL: &str = "SELECT rank, world, world_rank, life, world_size, host, pid, command, executable, mpi_abi, mpi_library,
  mpi_standard, thread_level, lapscope_version, job, epoch_unix_ns, init_end_ns, end_ns, ended, lost_records,
  unknown_requests, summarized,
  (SELECT coalesce(sum(remote_size), 0) FROM communicator
   WHERE communicator.rank = rank.rank AND comm_rank = 0 AND kind = 'inter' AND name LIKE 'MPI_Comm_spawn%'),
  coalesce((SELECT CAST(value AS INTEGER) FROM option
   WHERE option.rank = rank.rank AND name = 'damaged_pieces' AND source = 'conversion'), 0),
  coalesce((SELECT CAST(value AS INTEGER) FROM option
   WHERE option.rank = rank.rank AND name = 'lost_marks' AND source = 'conversion'), 0),
  coalesce((SELECT CAST(value AS INTEGER) FROM option
   WHERE option.rank = rank.rank AND name = 'cut_paths' AND source = 'conversion'), 0),
  run_ns, wait_ns, online, gone_ns,
  limit_bytes, problem, sends, bytes, at_once, no_memory, datatype, most_bytes, at_finalize, failed,
  (SELECT value FROM option WHERE option.rank = rank.rank AND name = 'accelerator' AND source = 'recorded'),
  (SELECT value FROM option WHERE option.rank = rank.rank AND name = 'device_buffers' AND source = 'recorded'),
  (SELECT value FROM environment WHERE environment.rank = rank.rank AND name = 'CUDA_INJECTION64_PATH'),
  coalesce((SELECT CAST(value AS INTEGER) FROM option
   WHERE option.rank = rank.rank AND name = 'device_sends' AND source = 'recorded'), 0),
  EXISTS (SELECT 1 FROM option WHERE option.rank = rank.rank AND name = 'cuda' AND value = 'unused' AND source = 'recorded')
  FROM rank LEFT JOIN processor USING (rank) LEFT JOIN copied_sends USING (rank) ORDER BY world, world_rank, life";

fn ranks_of(database: &Database) -> rusqlite::Result<Vec<RankInfo>> {
    let mut ranks: Vec<RankInfo> = collect(database, RANK_SQL, rank_info)?;
    if !lacks(&database.connection, "main", "device_recorder")? {
        let sql = "SELECT rank, source, problem, resolution_ns, lost,
          EXISTS (SELECT 1 FROM device_busy WHERE device_busy.rank = device_recorder.rank) FROM device_recorder";
        let mut recorders: HashMap<RankKey, DeviceRecorder> =
            collect(database, sql, device_recorder)?;
        for rank in &mut ranks {
            rank.device_recorder = recorders.remove(&rank.key);
            if rank.device_recorder.is_some() {
                // it was CUDA that loaded the plugin; the rank may have died before it looked for drivers
                rank.accelerator.get_or_insert_with(|| "libcuda".to_owned());
            }
        }
    }
    Ok(ranks)
}

fn rank_info(row: &Row<'_>) -> rusqlite::Result<RankInfo> {
    Ok(RankInfo {
        key: row.get(0)?,
        rank: Rank { world: row.get(1)?, number: row.get(2)? },
        life: row.get(3)?,
        world_size: row.get(4)?,
        host: row.get::<_, Text>(5)?.0,
        pid: row.get(6)?,
        command: secrets::hide_in_command(&row.get::<_, Text>(7)?.0),
        executable: row.get::<_, Text>(8)?.0,
        mpi_abi: row.get::<_, Text>(9)?.0,
        mpi_library: row.get::<_, Text>(10)?.0,
        mpi_standard: row.get::<_, Text>(11)?.0,
        thread_level: row.get(12)?,
        lapscope_version: row.get::<_, Text>(13)?.0,
        job: row.get::<_, Text>(14)?.0,
        epoch_unix_ns: row.get(15)?,
        init_end: row.get(16)?,
        end: row.get(17)?,
        ended: row.get(18)?,
        lost_records: row.get::<_, Count>(19)?.0,
        unknown_requests: row.get::<_, Count>(20)?.0,
        summarized: Full::from_number(row.get(21)?),
        spawned: row.get(22)?,
        damaged_pieces: row.get::<_, Count>(23)?.0,
        lost_marks: row.get::<_, Count>(24)?.0,
        cut_paths: row.get::<_, Count>(25)?.0,
        processor: match row.get(26)? {
            Some(run) => Some(Processor { run, wait: row.get(27)?, online: row.get(28)? }),
            None => None,
        },
        gone: row.get(29)?,
        copied_sends: copied_sends(row)?,
        accelerator: row.get::<_, Option<Text>>(40)?.map(|text| text.0),
        device_buffers: row.get::<_, Option<Text>>(41)?.map(|text| text.0),
        cuda_unused: row.get(44)?,
        cuda_injection: row.get::<_, Option<Text>>(42)?.map(|text| text.0),
        device_recorder: None,
    })
}

fn device_recorder(row: &Row<'_>) -> rusqlite::Result<(RankKey, DeviceRecorder)> {
    let recorder = DeviceRecorder {
        source: row.get::<_, Text>(1)?.0,
        problem: row.get::<_, Option<Text>>(2)?.map(|text| text.0),
        resolution: row.get(3)?,
        lost: row.get::<_, Count>(4)?.0,
        has_rows: row.get(5)?,
    };
    Ok((row.get(0)?, recorder))
}

fn copied_sends(row: &Row<'_>) -> rusqlite::Result<Option<CopiedSends>> {
    let Some(limit) = row.get(30)? else { return Ok(None) };
    let count = |column| row.get::<_, Count>(column).map(|count| count.0);
    Ok(Some(CopiedSends {
        problem: row.get::<_, Option<Text>>(31)?.map(|text| text.0),
        limit,
        sends: count(32)?,
        bytes: row.get(33)?,
        at_once: count(34)?,
        no_memory: count(35)?,
        datatype: count(36)?,
        device: count(43)?,
        most: row.get(37)?,
        at_finalize: count(38)?,
        failed: count(39)?,
    }))
}

fn count_threaded(database: &Database) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM (SELECT rank FROM thread WHERE calls > 0 GROUP BY rank HAVING count(*) > 1)";
    query_row(&database.connection, sql, [], |row| row.get::<_, i64>(0)).map(|count| count as u64)
}
