//! The small tables of a file: who the ranks are, what the ids of the big tables mean.

use std::collections::HashMap;

use rusqlite::Row;

use super::{Database, DbError};
use crate::model::{
    CallName, CallPath, Count, Frame, Full, Module, Processor, Rank, RankInfo, RankKey, Text,
};
use crate::secrets;

/// Everything in a file but operations, calls, requests and tallies.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// In the order of rank and life; never empty.
    pub ranks: Vec<RankInfo>,
    /// `thread.number` by `thread.id`.
    pub thread_numbers: HashMap<i64, i64>,
    /// By `call_name.id`.
    pub calls: HashMap<i64, CallName>,
    /// Frames of `paths` index into this.
    pub modules: Vec<Module>,
    /// By `call_path.id`.
    pub paths: HashMap<i64, CallPath>,
    /// `communicator.name` by `communicator.id`.
    pub communicators: HashMap<i64, String>,
    /// Ranks in which more than one thread made MPI calls.
    pub threaded_ranks: u64,
}

impl Definitions {
    /// Reads the definitions of an open database.
    ///
    /// # Errors
    /// [`DbError::Damaged`] when a table is missing or unreadable.
    pub fn read(database: &Database) -> Result<Definitions, DbError> {
        read_all(database).map_err(DbError::reading(&database.path))
    }

    /// Reads who the ranks are, alone.
    ///
    /// # Errors
    /// As [`Definitions::read`]; there are none.
    pub fn read_ranks(database: &Database) -> Result<Vec<RankInfo>, DbError> {
        let ranks: Vec<RankInfo> =
            collect(database, RANK_SQL, rank_info).map_err(DbError::reading(&database.path))?;
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

fn read_all(database: &Database) -> rusqlite::Result<Definitions> {
    let mut definitions = Definitions {
        ranks: collect(database, RANK_SQL, rank_info)?,
        threaded_ranks: count_threaded(database)?,
        ..Definitions::default()
    };
    definitions.thread_numbers =
        collect(database, "SELECT id, number FROM thread", |row| Ok((row.get(0)?, row.get(1)?)))?;
    definitions.calls = collect(database, CALL_NAME_SQL, |row| Ok((row.get(0)?, call_name(row)?)))?;
    definitions.communicators = collect(database, "SELECT id, name FROM communicator", |row| {
        Ok((row.get(0)?, row.get::<_, Text>(1)?.0))
    })?;
    read_paths(database, &mut definitions)?;
    if definitions.ranks.is_empty() {
        return Err(rusqlite::Error::QueryReturnedNoRows);
    }
    Ok(definitions)
}

fn collect<T, C: FromIterator<T>>(
    database: &Database,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<C> {
    database.connection.prepare(sql)?.query_map([], read)?.collect()
}

const RANK_SQL: &str = "SELECT rank, world, world_rank, life, world_size, host, pid, command, executable, mpi_abi, mpi_library,
  mpi_standard, thread_level, lapscope_version, job, epoch_unix_ns, init_end_ns, end_ns, ended, lost_records,
  unknown_requests, summarized,
  (SELECT coalesce(sum(remote_size), 0) FROM communicator
   WHERE communicator.rank = rank.rank AND comm_rank = 0 AND kind = 'inter' AND name LIKE 'MPI_Comm_spawn%'),
  coalesce((SELECT CAST(value AS INTEGER) FROM option
   WHERE option.rank = rank.rank AND name = 'damaged_pieces' AND source = 'conversion'), 0),
  run_ns, wait_ns, online
  FROM rank LEFT JOIN processor USING (rank) ORDER BY world, world_rank, life";

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
        summarized: Full::of(row.get(21)?),
        spawned: row.get(22)?,
        damaged_pieces: row.get::<_, Count>(23)?.0,
        processor: match row.get(24)? {
            Some(run) => Some(Processor { run, wait: row.get(25)?, online: row.get(26)? }),
            None => None,
        },
    })
}

const CALL_NAME_SQL: &str =
    "SELECT id, name, family, role, usual_kind, transfers, mode, counted, needs, completes, blocking
  FROM call_name";

fn call_name(row: &Row<'_>) -> rusqlite::Result<CallName> {
    let text = |column| row.get::<_, Text>(column).map(|Text(text)| text);
    Ok(CallName {
        name: text(1)?,
        family: text(2)?,
        role: text(3)?,
        kind: row.get(4)?,
        transfers: row.get(5)?,
        mode: row.get(6)?,
        counted: row.get(7)?,
        needs: row.get(8)?,
        completes: row.get(9)?,
        blocking: text(10)?,
    })
}

fn count_threaded(database: &Database) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM (SELECT rank FROM thread WHERE calls > 0 GROUP BY rank HAVING count(*) > 1)";
    database.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|count| count as u64)
}

fn read_paths(database: &Database, definitions: &mut Definitions) -> rusqlite::Result<()> {
    let modules: Vec<(i64, Module)> =
        collect(database, "SELECT id, path, build_id FROM module ORDER BY id", |row| {
            let [path, build_id] = [row.get(1)?, row.get(2)?].map(|Text(text)| text);
            Ok((row.get(0)?, Module { path, build_id }))
        })?;
    let index: HashMap<i64, u32> =
        modules.iter().enumerate().map(|(index, (id, _))| (*id, index as u32)).collect();
    definitions.modules = modules.into_iter().map(|(_, module)| module).collect();
    definitions.paths = collect(database, "SELECT id, truncated FROM call_path", |row| {
        Ok((row.get(0)?, CallPath { truncated: row.get(1)?, ..CallPath::default() }))
    })?;
    let mut statement = database.connection.prepare(
        "SELECT call_path_id, module_id, address FROM frame ORDER BY call_path_id, depth",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let module = row.get::<_, Option<i64>>(1)?.and_then(|id| index.get(&id).copied());
        let frame = Frame { module, address: row.get::<_, i64>(2)? as u64, level: 0 };
        definitions.paths.entry(row.get(0)?).or_default().frames.push(frame);
    }
    Ok(())
}
