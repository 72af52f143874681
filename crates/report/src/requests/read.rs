//! Reads requests from a file and spells out those that are shown.

use std::collections::BTreeMap;

use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::row::ListedRow;
use super::top::Top;
use super::{is_wanted_call, Filter, Request, RequestRanking};
use lapscope_data::db::{scan_rows, Database, DbError, FileDefinitions};
use lapscope_data::model::{Bytes, CallRow, Kind, Nanos, Rank, RankKey};
use lapscope_data::places::{CallPathId, PlacesOfFile};

/// An `operation` row in full.
#[derive(Debug, Clone)]
struct FullOperation {
    rank: RankKey,
    call_id: i64,
    call_path_id: Option<i64>,
    communicator_id: Option<i64>,
    kind: String,
    bytes: u64,
    peer: Option<i64>,
    tag: Option<i64>,
    posted_peer: Option<i64>,
    posted_tag: Option<i64>,
    posted_bytes: u64,
    ended: Option<String>,
    receive_id: Option<i64>,
    init_call_id: Option<i64>,
}

const OPERATION_COLUMNS: &str =
    "id, rank, call_id, call_path_id, communicator_id, kind, bytes, peer, tag, posted_peer,
    posted_tag, posted_bytes, ended, receive_operation_id,
    (SELECT init.call_id FROM operation init WHERE init.id = operation.init_operation_id)";

fn read_operation(row: &rusqlite::Row<'_>) -> rusqlite::Result<FullOperation> {
    Ok(FullOperation {
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
        ended: row.get(12)?,
        receive_id: row.get(13)?,
        init_call_id: row.get(14)?,
    })
}

/// What order depends on, of an operation.
#[derive(Debug, Clone, Copy)]
struct RankingFields {
    bytes: u64,
    init_end: Nanos,
}

/// Reads the requests of one file. A program may make as many operations as requests, so of those only the ids and sizes
/// of the wanted ones are kept.
pub struct Requests<'a> {
    database: &'a Database,
    of_file: PlacesOfFile<'a>,
    definitions: &'a FileDefinitions,
    ranks: FxHashMap<RankKey, Rank>,
    /// When MPI_Init returned.
    init_ends: FxHashMap<RankKey, Nanos>,
    /// By operation id.
    wanted: FxHashMap<i64, RankingFields>,
    /// Something was counted in this file.
    has_counters: bool,
}

impl<'a> Requests<'a> {
    /// Requests that `filter` and `is_wanted_path` let through.
    ///
    /// # Errors
    /// [`DbError::Damaged`].
    pub fn new(
        database: &'a Database,
        of_file: PlacesOfFile<'a>,
        definitions: &'a FileDefinitions,
        filter: &Filter,
        is_wanted_path: impl Fn(Option<CallPathId>) -> bool,
    ) -> Result<Self, DbError> {
        let ranks: FxHashMap<RankKey, Rank> =
            definitions.ranks.iter().map(|info| (info.key, info.rank)).collect();
        let init_ends: FxHashMap<RankKey, Nanos> =
            definitions.ranks.iter().map(|info| (info.key, info.init_end)).collect();
        let read = || -> rusqlite::Result<FxHashMap<i64, RankingFields>> {
            let sql = format!("SELECT {OPERATION_COLUMNS} FROM operation");
            let mut statement = database.connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            let mut wanted = FxHashMap::default();
            while let Some(row) = rows.next()? {
                let operation = read_operation(row)?;
                let rank = rank_of(&ranks, operation.rank);
                let path = operation.call_path_id.and_then(|path| of_file.path(path));
                if is_wanted(&operation, rank, filter, of_file) && is_wanted_path(path) {
                    let init_end = init_ends.get(&operation.rank).copied().unwrap_or_default();
                    wanted.insert(row.get(0)?, RankingFields { bytes: operation.bytes, init_end });
                }
            }
            Ok(wanted)
        };
        let wanted = read().map_err(DbError::reading(&database.path))?;
        let has_counters =
            has_counters(&database.connection).map_err(DbError::reading(&database.path))?;
        Ok(Requests { database, of_file, definitions, ranks, init_ends, wanted, has_counters })
    }

    fn counters_of(&self, request: i64) -> rusqlite::Result<Option<BTreeMap<String, i64>>> {
        if !self.has_counters {
            return Ok(None);
        }
        let sql = "SELECT c.name, k.value FROM request_counter k
                   JOIN request r ON r.id = k.request_id JOIN operation o ON o.id = r.operation_id
                   JOIN counter c ON c.rank = o.rank AND c.number = k.number WHERE k.request_id = ?1";
        let mut statement = self.database.connection.prepare_cached(sql)?;
        let values = statement.query_map([request], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let values: BTreeMap<_, _> = values.collect::<rusqlite::Result<_>>()?;
        Ok((!values.is_empty()).then_some(values))
    }

    /// Hands out every request in the order of the file, until `take` says no more.
    ///
    /// # Errors
    /// [`DbError::Damaged`].
    pub fn read(&self, mut take: impl FnMut(Request) -> bool) -> Result<(), DbError> {
        let mut operations = OperationCache::new(&self.database.connection);
        let on_request =
            |result: &mut rusqlite::Result<()>, row: ListedRow, call: Option<&CallRow>| {
                if !self.wanted.contains_key(&row.operation_id) {
                    return true;
                }
                match self.spell_out(&row, call, &mut operations) {
                    Ok(request) => take(request),
                    Err(error) => {
                        *result = Err(error);
                        false
                    }
                }
            };
        let mut result = Ok(());
        scan_rows(&self.database.connection, &mut result, |_, _| {}, on_request)
            .and(result)
            .map_err(DbError::reading(&self.database.path))
    }

    /// The first `limit` requests in `order`, each with its weight in it, and how many there were. `limit` 0 means all.
    ///
    /// # Errors
    /// [`DbError::Damaged`].
    pub fn top(
        &self,
        order: RequestRanking,
        limit: usize,
    ) -> Result<(Vec<(i64, Request)>, u64), DbError> {
        let mut top = Top::new(order, limit);
        let on_request = |top: &mut Top, row: ListedRow, call: Option<&CallRow>| {
            if let Some(&RankingFields { bytes, init_end }) = self.wanted.get(&row.operation_id) {
                top.add(row, call.copied(), bytes, init_end);
            }
            true
        };
        scan_rows(&self.database.connection, &mut top, |_, _| {}, on_request)
            .map_err(DbError::reading(&self.database.path))?;
        let (kept, found) = top.into_sorted();
        let mut operations = OperationCache::new(&self.database.connection);
        let requests = kept.into_iter().map(|(weight, row, call)| {
            Ok((weight, self.spell_out(&row, call.as_ref(), &mut operations)?))
        });
        let requests: rusqlite::Result<Vec<_>> = requests.collect();
        Ok((requests.map_err(DbError::reading(&self.database.path))?, found))
    }

    fn spell_out(
        &self,
        row: &ListedRow,
        call: Option<&CallRow>,
        operations: &mut OperationCache<'_>,
    ) -> rusqlite::Result<Request> {
        let completing = match call {
            Some(call) => Some(operations.get(call.operation_id)?),
            None => None,
        };
        let completion_call =
            completing.as_ref().map(|operation| self.of_file.call_name(operation.call_id));
        let path_of = |operation: &FullOperation| self.of_file.path(operation.call_path_id?);
        let completion_path = completing.as_ref().and_then(path_of);
        let operation = operations.get(row.operation_id)?;
        let received = operation.receive_id.map(|id| operations.get(id)).transpose()?;
        let path = path_of(&operation);
        let name = |id| self.of_file.call_name(id);
        let window = call.map(|call| call.begin - row.post_begin - row.post);
        let communicator = operation.communicator_id;
        let rank = rank_of(&self.ranks, operation.rank);
        let init_end = self.init_ends.get(&operation.rank).copied().unwrap_or_default();
        Ok(Request {
            rank,
            id: row.id,
            thread: self.definitions.thread_numbers.get(&row.thread_id).copied().unwrap_or(0),
            call: name(operation.call_id),
            init_call: operation.init_call_id.map(name),
            kind: operation.kind,
            bytes: operation.bytes,
            peer: operation.peer.map(|peer| rank.neighbor(peer)),
            tag: operation.tag,
            receive_bytes: received.as_ref().map(|half| half.bytes),
            receive_peer: received
                .as_ref()
                .and_then(|half| half.peer)
                .map(|peer| rank.neighbor(peer)),
            receive_tag: received.and_then(|half| half.tag),
            communicator: communicator
                .and_then(|id| self.definitions.communicators.get(&id).cloned()),
            ended: operation.ended,
            post_begin_ns: row.post_begin,
            post_begin_after_init_ns: row.post_begin - init_end,
            post_ns: row.post,
            overlap_window_ns: window,
            mpi_ns: row.mpi,
            compute_ns: window.zip(row.mpi).map(|(window, mpi)| window - mpi),
            completion_call,
            completion_begin_ns: call.map(|call| call.begin),
            completion_begin_after_init_ns: call.map(|call| call.begin - init_end),
            completion_ns: call.and_then(|call| call.duration),
            completed_together: call.map(|call| call.completed),
            outstanding_bytes: row.outstanding_bytes.0,
            unsuccessful_tests: row.unsuccessful_tests,
            first_unsuccessful_test_ns: row.observed[0],
            last_unsuccessful_test_ns: row.observed[1],
            last_incomplete_ns: row.observed[2],
            first_complete_ns: row.observed[3],
            posted_peer: operation.posted_peer,
            posted_tag: operation.posted_tag,
            posted_bytes: operation.posted_bytes,
            injection_arm: row.injection_arm,
            counters: self.counters_of(row.id)?,
            site: None,
            completion_site: None,
            path,
            completion_path,
        })
    }
}

fn has_counters(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM counter WHERE problem IS NULL)";
    connection.query_row(sql, [], |row| row.get(0))
}

/// A damaged file may have rows of no rank.
fn rank_of(ranks: &FxHashMap<RankKey, Rank>, key: RankKey) -> Rank {
    ranks.get(&key).copied().unwrap_or(Rank::of_first_world(key.0))
}

fn is_wanted(
    operation: &FullOperation,
    rank: Rank,
    filter: &Filter,
    of_file: PlacesOfFile<'_>,
) -> bool {
    let peer = operation.peer.map(|peer| rank.neighbor(peer));
    (filter.ranks.is_empty() || filter.ranks.contains(&rank))
        && filter.kind.map_or(true, |kind| Kind::parse(&operation.kind) == kind)
        && (filter.peer.is_none() || peer == filter.peer)
        && (filter.tag.is_none() || operation.tag == filter.tag)
        && filter.min_bytes.map_or(true, |least| operation.bytes >= least)
        && filter.max_bytes.map_or(true, |most| operation.bytes <= most)
        && filter.ended.map_or(true, |ended| operation.ended.as_deref() == Some(ended.word()))
        && (filter.calls.is_empty() || {
            let calls = [Some(operation.call_id), operation.init_call_id];
            let mut names = calls.into_iter().flatten().map(|id| of_file.call_name(id));
            names.any(|name| is_wanted_call(&name, &filter.calls))
        })
}

/// Operations looked up one by one; the last ones are remembered, since most programs use few again and again.
struct OperationCache<'a> {
    connection: &'a Connection,
    known: FxHashMap<i64, FullOperation>,
}

impl<'a> OperationCache<'a> {
    const MOST: usize = 1 << 16;

    fn new(connection: &'a Connection) -> Self {
        OperationCache { connection, known: FxHashMap::default() }
    }

    fn get(&mut self, id: i64) -> rusqlite::Result<FullOperation> {
        if let Some(operation) = self.known.get(&id) {
            return Ok(operation.clone());
        }
        let sql = format!("SELECT {OPERATION_COLUMNS} FROM operation WHERE id = ?1");
        let operation = self.connection.prepare_cached(&sql)?.query_row([id], read_operation)?;
        if self.known.len() == Self::MOST {
            self.known.clear();
        }
        self.known.insert(id, operation.clone());
        Ok(operation)
    }
}
