//! The big tables of a database, summed up by rank.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use super::super::lanes::Times;
use super::super::tables::{Begun, CollectiveOrder};
use super::tables::Tables;
use crate::db::check::impossible;
use crate::db::{collect, BadColumn, Database};
use crate::model::Count;

/// By the key of the rank.
#[derive(Debug, Default)]
pub struct StateRows {
    ranks: HashMap<i64, Done>,
}

/// What a rank did.
#[derive(Debug, Default)]
pub struct Done {
    pub threads: Vec<ThreadRow>,
    /// When it was seen to be gone.
    pub gone: Option<i64>,
    /// Calls that returned, by operation, and halves of them that received.
    pub calls: FxHashMap<i64, Times>,
    /// Requests that ended, by operation.
    pub ended: FxHashMap<i64, Times>,
    /// Calls that never returned.
    pub open: Vec<OpenCallRow>,
    /// Requests that never ended, by begin.
    pub requests: Vec<OpenRequestRow>,
    /// By communicator.
    pub orders: FxHashMap<i64, CollectiveOrder>,
    /// By thread: end and operation of what it did last.
    pub last: FxHashMap<u32, (i64, i64)>,
    /// Something that the rank did has no row.
    pub is_cut: bool,
}

#[derive(Debug)]
pub struct ThreadRow {
    pub number: u32,
    pub tid: i64,
    pub mpi: i64,
    pub calls: u64,
    pub tests: u64,
}

#[derive(Debug)]
pub struct OpenCallRow {
    pub operation: i64,
    pub thread: u32,
    pub begin: i64,
    /// Requests, and whether they are certainly those that it was given.
    pub waits: Vec<(i64, bool)>,
}

#[derive(Debug)]
pub struct OpenRequestRow {
    pub id: i64,
    pub operation: i64,
    pub thread: u32,
    pub begin: i64,
    pub tests: u64,
    /// Since its begin.
    pub last_test: Option<i64>,
    pub is_seen_complete: bool,
}

/// Key of the rank, and number.
type ThreadNumbers = HashMap<i64, (i64, u32)>;

impl StateRows {
    pub fn done(&self, rank: i64) -> &Done {
        static NOTHING: std::sync::OnceLock<Done> = std::sync::OnceLock::new();
        self.ranks.get(&rank).unwrap_or_else(|| NOTHING.get_or_init(Done::default))
    }

    pub fn read(
        database: &Database,
        tables: &Tables,
        has_history: bool,
    ) -> rusqlite::Result<StateRows> {
        let mut rows = StateRows::default();
        let threads = rows.read_threads(database)?;
        if has_history {
            rows.read_calls(database, tables, &threads)?;
            rows.read_requests(database, tables, &threads)?;
        }
        rows.read_cuts(database)?;
        for done in rows.ranks.values_mut() {
            done.requests.sort_by_key(|row| (row.begin, row.thread));
        }
        Ok(rows)
    }

    fn rank(&mut self, rank: i64) -> &mut Done {
        self.ranks.entry(rank).or_default()
    }

    fn read_threads(&mut self, database: &Database) -> rusqlite::Result<ThreadNumbers> {
        let tests: HashMap<i64, u64> = collect(
            database,
            "SELECT thread_id, sum(count) FROM tally WHERE reason = 'unsuccessful_test' GROUP BY thread_id",
            |row| Ok((row.get(0)?, row.get::<_, Count>(1)?.0)),
        )?;
        let sql = "SELECT id, rank, number, tid, mpi_ns, calls FROM thread ORDER BY rank, number";
        let rows: Vec<(i64, i64, ThreadRow)> = collect(database, sql, |row| {
            let id: i64 = row.get(0)?;
            let thread = ThreadRow {
                number: row.get(2)?,
                tid: row.get(3)?,
                mpi: row.get(4)?,
                calls: row.get::<_, Count>(5)?.0,
                tests: tests.get(&id).copied().unwrap_or(0),
            };
            Ok((id, row.get(1)?, thread))
        })?;
        let mut of = ThreadNumbers::new();
        for (id, rank, thread) in rows {
            of.insert(id, (rank, thread.number));
            self.rank(rank).threads.push(thread);
        }
        Ok(of)
    }

    fn read_calls(
        &mut self,
        database: &Database,
        tables: &Tables,
        threads: &ThreadNumbers,
    ) -> rusqlite::Result<()> {
        let waits = read_waits(database)?;
        let sql = "SELECT operation_id, thread_id, begin_ns, duration_ns, receive_operation_id, id FROM call";
        let mut rows = crate::db::Rows::new(&database.connection, sql)?;
        while rows.step()? {
            let read = || {
                let (operation, thread, begin) =
                    (rows.integer(0)?, rows.integer(1)?, rows.time(2)?);
                let (duration, receive) = (rows.optional_time(3)?, rows.optional(4)?);
                Ok((operation, thread, begin, duration, receive, rows.integer(5)?))
            };
            let bad = |column: BadColumn| impossible("call", rows.name(column));
            let (operation, thread, begin, duration, receive, id) = read().map_err(bad)?;
            let Some(&(rank, thread)) = threads.get(&thread) else { continue };
            let done = self.rank(rank);
            let Some(duration) = duration else {
                let waits = waits.get(&id).cloned().unwrap_or_default();
                done.open.push(OpenCallRow { operation, thread, begin, waits });
                continue;
            };
            count(&mut done.calls, operation, begin);
            if let Some(receive) = receive {
                count(&mut done.calls, receive, begin);
            }
            done.gather(tables, operation, begin);
            let last = done.last.entry(thread).or_default();
            *last = (*last).max((begin + duration, operation));
        }
        Ok(())
    }

    fn read_requests(
        &mut self,
        database: &Database,
        tables: &Tables,
        threads: &ThreadNumbers,
    ) -> rusqlite::Result<()> {
        let sql =
            "SELECT operation_id, completion_id, post_begin_ns, thread_id, unsuccessful_tests,
                   last_unsuccessful_test_ns, first_complete_ns, id, post_ns FROM request";
        let mut rows = crate::db::Rows::new(&database.connection, sql)?;
        while rows.step()? {
            let read = || {
                let row = OpenRequestRow {
                    operation: rows.integer(0)?,
                    begin: rows.time(2)?,
                    thread: 0,
                    tests: rows.count(4)?,
                    last_test: rows.optional_time(5)?,
                    is_seen_complete: rows.optional(6)?.is_some(),
                    id: rows.integer(7)?,
                };
                Ok((row, rows.optional(1)?.is_some(), rows.integer(3)?, rows.time(8)?))
            };
            let bad = |column: BadColumn| impossible("request", rows.name(column));
            let (row, is_over, thread, post) = read().map_err(bad)?;
            let Some(&(rank, thread)) = threads.get(&thread) else { continue };
            let done = self.rank(rank);
            done.gather(tables, row.operation, row.begin);
            if is_over {
                count(&mut done.ended, row.operation, row.begin);
                continue;
            }
            let last = done.last.entry(thread).or_default();
            *last = (*last).max((row.begin + post, row.operation));
            done.requests.push(OpenRequestRow { thread, ..row });
        }
        Ok(())
    }

    /// What is missing from the rows.
    fn read_cuts(&mut self, database: &Database) -> rusqlite::Result<()> {
        let sql = "SELECT rank FROM left_out JOIN operation ON operation.id = operation_id
                   UNION SELECT rank FROM mark WHERE level = 0";
        let ranks: Vec<i64> = collect(database, sql, |row| row.get(0))?;
        for rank in ranks {
            self.rank(rank).is_cut = true;
        }
        let sql = "SELECT rank, gone_ns FROM rank WHERE gone_ns IS NOT NULL";
        let gone: Vec<(i64, i64)> = collect(database, sql, |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (rank, gone) in gone {
            self.rank(rank).gone = Some(gone);
        }
        Ok(())
    }
}

impl Done {
    fn gather(&mut self, tables: &Tables, operation: i64, begin: i64) {
        let Some(row) = tables.operations.get(&operation).filter(|row| tables.gathers(row)) else {
            return;
        };
        if let (Some(comm), Ok(operation)) = (row.communicator_id, u32::try_from(operation)) {
            let begun = Begun { begin: begin as u64, operation };
            self.orders.entry(comm).or_default().insert(begun);
        }
    }
}

fn count(table: &mut FxHashMap<i64, Times>, operation: i64, begin: i64) {
    let times = table.entry(operation).or_insert(Times { count: 0, last: 0 });
    times.count += 1;
    times.last = times.last.max(begin as u64);
}

fn read_waits(database: &Database) -> rusqlite::Result<HashMap<i64, Vec<(i64, bool)>>> {
    let sql = "SELECT call_row_id, request_id, certain FROM open_wait";
    let rows: Vec<(i64, i64, bool)> =
        collect(database, sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut waits: HashMap<i64, Vec<(i64, bool)>> = HashMap::new();
    for (call, request, certain) in rows {
        waits.entry(call).or_default().push((request, certain));
    }
    Ok(waits)
}
