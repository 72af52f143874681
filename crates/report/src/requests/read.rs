//! Reads requests from a file and spells out those that are shown.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::row::ListedRow;
use super::top::Top;
use super::{is_wanted_call, Filter, Request, RequestRanking};
use lapscope_data::db::{
    has_counters, has_request_memory, memory_of_request, read_counters, scan_full_operations,
    scan_rows, Database, DbError, FileDefinitions, FullOperation, OperationCache,
};
use lapscope_data::model::{CallRow, Nanos, Rank, RankKey};
use lapscope_data::places::{CallPathId, PlacesOfFile};

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
    /// It is known where the data of requests lay.
    has_memory: bool,
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
        let mut wanted = FxHashMap::default();
        scan_full_operations(database, |operation| {
            let rank = rank_of(&ranks, operation.rank);
            let path = operation.call_path_id.and_then(|path| of_file.path(path));
            if is_wanted(&operation, rank, filter, of_file) && is_wanted_path(path) {
                let init_end = init_ends.get(&operation.rank).copied().unwrap_or_default();
                wanted.insert(operation.id, RankingFields { bytes: operation.bytes, init_end });
            }
        })?;
        let has_counters = has_counters(database)?;
        let has_memory = has_request_memory(database)?;
        Ok(Requests {
            database,
            of_file,
            definitions,
            ranks,
            init_ends,
            wanted,
            has_counters,
            has_memory,
        })
    }

    fn counters_of(&self, request: i64) -> Result<Option<BTreeMap<String, i64>>, DbError> {
        if !self.has_counters {
            return Ok(None);
        }
        let values = read_counters(self.database, request)?;
        Ok((!values.is_empty()).then_some(values))
    }

    /// Hands out every request in the order of the file, until `take` says no more.
    ///
    /// # Errors
    /// [`DbError::Damaged`].
    pub fn read(&self, mut take: impl FnMut(Request) -> bool) -> Result<(), DbError> {
        let mut operations = OperationCache::new(self.database);
        let on_request =
            |result: &mut Result<(), DbError>, row: ListedRow, call: Option<&CallRow>| {
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
            .map_err(DbError::reading(&self.database.path))
            .and(result)
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
        let mut operations = OperationCache::new(self.database);
        let requests = kept.into_iter().map(|(weight, row, call)| {
            Ok((weight, self.spell_out(&row, call.as_ref(), &mut operations)?))
        });
        Ok((requests.collect::<Result<_, DbError>>()?, found))
    }

    fn spell_out(
        &self,
        row: &ListedRow,
        call: Option<&CallRow>,
        operations: &mut OperationCache<'_>,
    ) -> Result<Request, DbError> {
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
            first_unsuccessful_test_ns: row.first_unsuccessful_test,
            last_unsuccessful_test_ns: row.last_unsuccessful_test,
            last_incomplete_ns: row.last_incomplete,
            first_complete_ns: row.first_complete,
            posted_peer: operation.posted_peer,
            posted_tag: operation.posted_tag,
            posted_bytes: operation.posted_bytes,
            injection_arm: row.injection_arm,
            memory: match self.has_memory {
                true => memory_of_request(self.database, row.id)?,
                false => None,
            },
            counters: self.counters_of(row.id)?,
            site: None,
            completion_site: None,
            path,
            completion_path,
        })
    }
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
        && filter.kind.map_or(true, |kind| operation.kind == kind)
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
