//! Single requests: which of them are wanted, and the costliest first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::db::{scan_rows, Database, DbError, Definitions, FromRow};
use crate::model::{CallPath, CallRow, Frame, Nanos, Rank};
use crate::symbols::{FrameName, NameFrames, Symbols};

/// Which requests are wanted; empty and `None` mean all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub ranks: Vec<i64>,
    /// Function names as the user typed them: "MPI_Isend" or "isend".
    pub calls: Vec<String>,
    pub kind: Option<&'static str>,
    pub peer: Option<i64>,
    pub tag: Option<i64>,
    pub min_bytes: Option<u64>,
    pub max_bytes: Option<u64>,
    pub ended: Option<&'static str>,
}

/// Whether a call's name is one of those that the user typed; any, when none was.
pub fn is_wanted_call(name: &str, wanted: &[String]) -> bool {
    let bare = |name: &str| name.to_ascii_lowercase().trim_start_matches("mpi_").to_owned();
    wanted.is_empty() || wanted.iter().any(|wanted| bare(wanted) == bare(name))
}

/// What to list first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Completion,
    Post,
    Window,
    Bytes,
    Polls,
    /// The earliest post first.
    Begin,
    /// As the files have them: by completing call.
    Stored,
}

/// Everything about one request; keys are documented in `docs/json.md`. Moments are since the rank's epoch.
#[derive(Debug, Clone, Serialize)]
pub struct Request {
    pub rank: Rank,
    pub id: i64,
    pub thread: i64,
    pub call: String,
    pub kind: String,
    pub bytes: u64,
    pub peer: Option<i64>,
    pub tag: Option<i64>,
    pub communicator: Option<String>,
    pub ended: Option<String>,
    pub post_begin_ns: Nanos,
    pub post_ns: Nanos,
    pub window_ns: Option<Nanos>,
    pub mpi_ns: Option<Nanos>,
    pub compute_ns: Option<Nanos>,
    pub completion_call: Option<String>,
    pub completion_begin_ns: Option<Nanos>,
    pub completion_ns: Option<Nanos>,
    pub completed_together: Option<u64>,
    pub outstanding_bytes: u64,
    pub polls: u64,
    pub first_poll_ns: Option<Nanos>,
    pub last_poll_ns: Option<Nanos>,
    pub last_incomplete_ns: Option<Nanos>,
    pub first_complete_ns: Option<Nanos>,
    pub posted_peer: Option<i64>,
    pub posted_tag: Option<i64>,
    pub posted_bytes: u64,
    pub injection_arm: Option<i64>,
    /// "function file:line" of the post and of the completing call; filled in by [`PlaceNames`].
    pub site: Option<String>,
    pub completion_site: Option<String>,
    /// Which of several files it is from; ids are that file's.
    #[serde(skip)]
    pub file: usize,
    #[serde(skip)]
    pub path_id: Option<i64>,
    #[serde(skip)]
    pub completion_path_id: Option<i64>,
}

/// Names the places of one file's call paths, each once.
pub struct PlaceNames<'a> {
    definitions: &'a Definitions,
    known: FxHashMap<i64, Option<String>>,
}

impl<'a> PlaceNames<'a> {
    pub fn new(definitions: &'a Definitions) -> Self {
        PlaceNames { definitions, known: FxHashMap::default() }
    }

    /// Fills in where a request was posted and where it ended.
    pub fn fill_in(&mut self, request: &mut Request, symbols: &mut Symbols) {
        request.site = self.place(request.path_id, symbols);
        request.completion_site = self.place(request.completion_path_id, symbols);
    }

    fn place(&mut self, path_id: Option<i64>, symbols: &mut Symbols) -> Option<String> {
        let id = path_id?;
        if let Some(place) = self.known.get(&id) {
            return place.clone();
        }
        let is_own = |frame: &&Frame| {
            let module = frame.module.map(|module| &self.definitions.modules[module as usize]);
            module.map_or(true, |module| !module.is_mpi())
        };
        let path = self.definitions.paths.get(&id);
        let frames = path.map_or(&[][..], |path| &path.frames);
        let frame = frames.iter().find(is_own).or(frames.first()).copied();
        let named = frame.map(|frame| self.name(frame, symbols));
        let place = named.and_then(|names| names.first().map(FrameName::short));
        self.known.insert(id, place.clone());
        place
    }

    fn name(&self, frame: Frame, symbols: &mut Symbols) -> Vec<FrameName> {
        let module =
            frame.module.map(|module| symbols.module(&self.definitions.modules[module as usize]));
        symbols.name(Frame { module, ..frame })
    }

    /// The paths that have `text` in a function or file name.
    pub fn paths_mentioning(&self, text: &str, symbols: &mut Symbols) -> HashSet<i64> {
        let mut mentions = |path: &CallPath| {
            let mut frames = path.frames.iter();
            frames.any(|&frame| self.name(frame, symbols).iter().any(|name| name.mentions(text)))
        };
        let paths = self.definitions.paths.iter();
        paths.filter(|(_, path)| mentions(path)).map(|(id, _)| *id).collect()
    }
}

/// An `operation` row in full.
#[derive(Debug, Clone)]
struct Operation {
    rank: Rank,
    call_id: i64,
    path_id: Option<i64>,
    communicator_id: Option<i64>,
    kind: String,
    bytes: u64,
    peer: Option<i64>,
    tag: Option<i64>,
    posted_peer: Option<i64>,
    posted_tag: Option<i64>,
    posted_bytes: u64,
    ended: Option<String>,
}

/// A `request` row in full.
struct Row {
    id: i64,
    operation_id: i64,
    completion_id: Option<i64>,
    thread_id: i64,
    post_begin: Nanos,
    post: Nanos,
    mpi: Option<Nanos>,
    outstanding_bytes: i64,
    polls: i64,
    observed: [Option<Nanos>; 4],
    injection_arm: Option<i64>,
}

impl FromRow for Row {
    const COLUMNS: &'static str = "id, operation_id, completion_id, thread_id, post_begin_ns, post_ns, mpi_ns,
        outstanding_bytes, polls, first_poll_ns, last_poll_ns, last_incomplete_ns, first_complete_ns, injection_arm";

    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Row {
            id: row.get(0)?,
            operation_id: row.get(1)?,
            completion_id: row.get(2)?,
            thread_id: row.get(3)?,
            post_begin: row.get(4)?,
            post: row.get(5)?,
            mpi: row.get(6)?,
            outstanding_bytes: row.get(7)?,
            polls: row.get(8)?,
            observed: [row.get(9)?, row.get(10)?, row.get(11)?, row.get(12)?],
            injection_arm: row.get(13)?,
        })
    }

    fn completion_id(&self) -> Option<i64> {
        self.completion_id
    }
}

/// Reads the requests of one file.
pub struct Requests<'a> {
    database: &'a Database,
    definitions: &'a Definitions,
    operations: FxHashMap<i64, Operation>,
}

impl<'a> Requests<'a> {
    /// # Errors
    /// [`DbError::Damaged`].
    pub fn new(database: &'a Database, definitions: &'a Definitions) -> Result<Self, DbError> {
        let operations = read_operations(database).map_err(DbError::reading(&database.path))?;
        Ok(Requests { database, definitions, operations })
    }

    /// Hands out every request that `filter` and `is_wanted_path` let through, in the order of the file, until `take`
    /// says no more. A path is asked about once.
    ///
    /// # Errors
    /// [`DbError::Damaged`].
    pub fn read(
        &self,
        filter: &Filter,
        mut is_wanted_path: impl FnMut(Option<i64>) -> bool,
        mut take: impl FnMut(Request) -> bool,
    ) -> Result<(), DbError> {
        let wanted: FxHashMap<i64, &Operation> = self
            .operations
            .iter()
            .filter(|(_, operation)| self.is_wanted(operation, filter))
            .filter(|(_, operation)| is_wanted_path(operation.path_id))
            .map(|(id, operation)| (*id, operation))
            .collect();
        let on_request = |(): &mut (), row: Row, completion: Option<&CallRow>| {
            let Some(operation) = wanted.get(&row.operation_id) else { return true };
            take(self.spell_out(&row, operation, completion))
        };
        scan_rows(&self.database.connection, &mut (), |(), _| {}, on_request)
            .map_err(DbError::reading(&self.database.path))
    }

    fn is_wanted(&self, operation: &Operation, filter: &Filter) -> bool {
        let is_call = || is_wanted_call(&self.call_name(operation.call_id), &filter.calls);
        (filter.ranks.is_empty() || filter.ranks.contains(&operation.rank.0))
            && filter.kind.map_or(true, |kind| operation.kind == kind)
            && (filter.peer.is_none() || operation.peer == filter.peer)
            && (filter.tag.is_none() || operation.tag == filter.tag)
            && filter.min_bytes.map_or(true, |least| operation.bytes >= least)
            && filter.max_bytes.map_or(true, |most| operation.bytes <= most)
            && (filter.ended.is_none() || operation.ended.as_deref() == filter.ended)
            && is_call()
    }

    fn call_name(&self, id: i64) -> String {
        let call = self.definitions.calls.get(&id);
        call.map_or_else(|| format!("call {id}"), |call| call.name.clone())
    }

    fn spell_out(&self, row: &Row, operation: &Operation, call: Option<&CallRow>) -> Request {
        let window = call.map(|call| call.begin - row.post_begin - row.post);
        let completing = call.and_then(|call| self.operations.get(&call.operation_id));
        let communicator = operation.communicator_id;
        Request {
            rank: operation.rank,
            id: row.id,
            thread: self.definitions.thread_numbers.get(&row.thread_id).copied().unwrap_or(0),
            call: self.call_name(operation.call_id),
            kind: operation.kind.clone(),
            bytes: operation.bytes,
            peer: operation.peer,
            tag: operation.tag,
            communicator: communicator
                .and_then(|id| self.definitions.communicators.get(&id).cloned()),
            ended: operation.ended.clone(),
            post_begin_ns: row.post_begin,
            post_ns: row.post,
            window_ns: window,
            mpi_ns: row.mpi,
            compute_ns: window.zip(row.mpi).map(|(window, mpi)| window - mpi),
            completion_call: completing.map(|operation| self.call_name(operation.call_id)),
            completion_begin_ns: call.map(|call| call.begin),
            completion_ns: call.and_then(|call| call.duration),
            completed_together: call.map(|call| call.completed),
            outstanding_bytes: row.outstanding_bytes as u64,
            polls: row.polls as u64,
            first_poll_ns: row.observed[0],
            last_poll_ns: row.observed[1],
            last_incomplete_ns: row.observed[2],
            first_complete_ns: row.observed[3],
            posted_peer: operation.posted_peer,
            posted_tag: operation.posted_tag,
            posted_bytes: operation.posted_bytes,
            injection_arm: row.injection_arm,
            site: None,
            completion_site: None,
            file: 0,
            path_id: operation.path_id,
            completion_path_id: completing.and_then(|operation| operation.path_id),
        }
    }
}

fn read_operations(database: &Database) -> rusqlite::Result<FxHashMap<i64, Operation>> {
    let mut statement = database.connection.prepare(
        "SELECT id, rank, call_id, path_id, communicator_id, kind, bytes, peer, tag, posted_peer, posted_tag,
                posted_bytes, ended FROM operation",
    )?;
    let rows = statement.query_map([], |row| {
        let operation = Operation {
            rank: row.get(1)?,
            call_id: row.get(2)?,
            path_id: row.get(3)?,
            communicator_id: row.get(4)?,
            kind: row.get(5)?,
            bytes: row.get::<_, i64>(6)? as u64,
            peer: row.get(7)?,
            tag: row.get(8)?,
            posted_peer: row.get(9)?,
            posted_tag: row.get(10)?,
            posted_bytes: row.get::<_, i64>(11)? as u64,
            ended: row.get(12)?,
        };
        Ok((row.get(0)?, operation))
    })?;
    rows.collect()
}

/// Keeps the first `limit` requests in an order, in memory for just these.
#[derive(Debug)]
pub struct Top {
    order: Order,
    limit: usize,
    /// The worst of those kept is on top.
    heap: BinaryHeap<Reverse<Ranked>>,
    seen: u64,
}

#[derive(Debug)]
struct Ranked {
    weight: i64,
    /// Earlier rows win ties.
    row: Reverse<(i64, u64)>,
    request: Request,
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.weight, self.row).cmp(&(other.weight, other.row))
    }
}

impl Top {
    /// `limit` 0 keeps all.
    pub fn new(order: Order, limit: usize) -> Self {
        let limit = if limit == 0 { usize::MAX } else { limit };
        Top { order, limit, heap: BinaryHeap::new(), seen: 0 }
    }

    pub fn add(&mut self, request: Request) {
        self.seen += 1;
        let ns = |time: Option<Nanos>| time.map_or(-1, |time| time.0);
        let weight = match self.order {
            Order::Completion => ns(request.completion_ns),
            Order::Post => request.post_ns.0,
            Order::Window => ns(request.window_ns),
            Order::Bytes => request.bytes as i64,
            Order::Polls => request.polls as i64,
            Order::Begin => -request.post_begin_ns.0,
            Order::Stored => 0,
        };
        let row = Reverse((request.rank.0, self.seen));
        self.heap.push(Reverse(Ranked { weight, row, request }));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    /// Joins what was kept of file number `file`.
    pub fn merge(&mut self, file: usize, other: Top) {
        let seen = self.seen + other.seen;
        for Reverse(mut ranked) in other.heap {
            ranked.request.file = file;
            self.heap.push(Reverse(ranked));
            if self.heap.len() > self.limit {
                self.heap.pop();
            }
        }
        self.seen = seen;
    }

    /// The kept requests, best first, and how many there were.
    pub fn into_sorted(self) -> (Vec<Request>, u64) {
        // Ascending by `Reverse` is descending by weight.
        let sorted = self.heap.into_sorted_vec();
        (sorted.into_iter().map(|Reverse(ranked)| ranked.request).collect(), self.seen)
    }
}
