//! Reads the big tables once, front to back.
//!
//! Requests are stored in the order of the calls that ended them, so the two tables are walked side by side; a join in
//! SQL would look every call up in its tree again. Rows out of that order (never written by the recorder, but a file
//! may have been edited) are looked up one by one and cost time, not correctness.

use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::check::{self, bad_row, locate};
use super::columns::FromRow;
use super::ids::{Ends, Ids};
use super::in_turn::file_bytes;
use super::query_row;
use super::rows::{BadColumn, Rows};
use crate::model::bounds::{LONGEST_NS, MOST_ROWS};
use crate::model::{CallRow, Count, Nanos, OperationRow, TallyRow};

/// Takes rows in the order of the file: all operations, then calls and requests, then tallies.
pub trait RowSink {
    fn operation(&mut self, operation: &OperationRow);
    /// Every call once, in id order.
    fn call(&mut self, call: &CallRow);
    /// Every request once, in id order, with the call that ended it.
    fn request(&mut self, request: &RequestRow, completion: Option<&CallRow>);
    fn tally(&mut self, tally: &TallyRow);
}

/// Takes no rows.
#[derive(Debug)]
pub struct NoSink;

impl RowSink for NoSink {
    fn operation(&mut self, _: &OperationRow) {}
    fn call(&mut self, _: &CallRow) {}
    fn request(&mut self, _: &RequestRow, _: Option<&CallRow>) {}
    fn tally(&mut self, _: &TallyRow) {}
}

crate::request_row! {
    /// What times are summed from.
    #[derive(Debug, Clone, Copy)]
    pub struct RequestRow {
        operation_id,
        /// `None`: never ended.
        completion_id,
        post_begin,
        post,
        /// Inside other MPI calls between post and completing call; `None` when another thread completed it.
        mpi,
        unsuccessful_tests,
    }
}

/// About how many rows [`scan`] will read: for a progress bar.
///
/// # Errors
/// What SQLite says when the tables are unreadable.
pub fn rows_to_scan(connection: &Connection) -> rusqlite::Result<u64> {
    Ok(rows_in(connection, "call")? + rows_in(connection, "request")?)
}

/// About how many rows a table has, by its ids: no more than the file has room for, as room is made for so many.
///
/// # Errors
/// As [`rows_to_scan`].
pub fn rows_in(connection: &Connection, table: &str) -> rusqlite::Result<u64> {
    const LEAST_BYTES: i64 = 8; // of a row
    let Ends { first, last } = Ends::read(connection, table)?;
    let most = file_bytes(connection).map_or(MOST_ROWS, |bytes| bytes / LEAST_BYTES);
    let most = most.min(MOST_ROWS);
    Ok((last.saturating_sub(first).clamp(-1, most) + 1) as u64)
}

/// Gives every row of the file's big tables to `sink`; `progress` is told now and then how many more rows were read.
///
/// # Errors
/// What SQLite says: a damaged file is found here at the latest.
pub fn scan(
    connection: &Connection,
    sink: &mut impl RowSink,
    progress: &(dyn Fn(u64) + Sync),
) -> rusqlite::Result<()> {
    scan_operations(connection, sink)?;
    let mut pair = (sink, Ticker::new(progress));
    scan_rows::<RequestRow, _>(
        connection,
        &mut pair,
        |(sink, ticker), call| {
            sink.call(call);
            ticker.tick();
        },
        |(sink, ticker), request, completion| {
            sink.request(&request, completion);
            ticker.tick();
            true
        },
    )?;
    scan_tallies(connection, pair.0)
}

/// Walks calls and requests side by side. `on_request` gets each request with the call that ended it, and says whether
/// to go on. What it gets is checked: times are in their range, and what rows refer to is there.
///
/// # Errors
/// What SQLite says while reading; [`super::check::BadValue`].
pub fn scan_rows<R: FromRow, S>(
    connection: &Connection,
    state: &mut S,
    mut on_call: impl FnMut(&mut S, &CallRow),
    mut on_request: impl FnMut(&mut S, R, Option<&CallRow>) -> bool,
) -> rusqlite::Result<()> {
    let operations = Ids::read(connection, "operation")?;
    let mut calls = CallCursor {
        connection,
        operations: &operations,
        rows: Rows::of_table(connection, "call", &CALL_COLUMNS)?,
        lookup: None,
        current: None,
        position: i64::MIN,
        read: 0,
        completed: 0,
        left_ns: most_ns(connection)?,
        last: None,
        last_of: FxHashMap::default(),
        is_looked_for: false,
    };
    let mut rows = Rows::of_table(connection, "request", R::COLUMNS)?;
    let mut read = 0;
    let mut ended = 0;
    while rows.step()? {
        let request = R::read(&rows)
            .map_err(|column| locate(connection, "request", read, rows.name(column)))?;
        let operation = request.operation_id();
        let refuse = |column, id: i64| bad_row(connection, "request", read, column, id.to_string());
        if !operations.contains(operation) {
            return Err(refuse("operation_id", operation));
        }
        let completion = match request.completion_id() {
            Some(id) => {
                let found = calls.seek(id, |call| on_call(state, call))?;
                Some(found.ok_or_else(|| refuse("completion_id", id))?)
            }
            None => None,
        };
        ended += u64::from(completion.is_some());
        calls.left_ns -= request.post().0;
        if calls.left_ns < 0 {
            return Err(calls.too_long());
        }
        if !on_request(state, request, completion.as_ref()) {
            return Ok(());
        }
        read += 1;
    }
    while let Some(call) = calls.next()? {
        on_call(state, &call);
    }
    check::complete(connection, "call", calls.read)?;
    check::complete(connection, "request", read)?;
    if calls.completed == ended || calls.completed > ended && check::leaves_out(connection, "main")?
    {
        return Ok(());
    }
    let wrong =
        if calls.completed > ended { "rows are missing" } else { "there are too many rows" };
    let why =
        format!("{wrong}: calls completed {} of them, and {ended} are there", calls.completed);
    Err(check::impossible("request", why))
}

const CALL_COLUMNS: [&str; 7] = [
    "id",
    "operation_id",
    "begin_ns",
    "duration_ns",
    "completed",
    "receive_operation_id",
    "thread_id",
];

fn read_call(row: &Rows<'_>) -> Result<CallRow, BadColumn> {
    Ok(CallRow {
        id: row.integer(0)?,
        operation_id: row.integer(1)?,
        begin: Nanos(row.time(2)?),
        duration: row.optional_time(3)?.map(Nanos),
        completed: row.count(4)?,
        receive_id: row.optional(5)?,
        thread_id: row.integer(6)?,
    })
}

/// Walks the call table; `position` is the id it stands at, `i64::MAX` behind the end.
struct CallCursor<'a> {
    connection: &'a Connection,
    operations: &'a Ids,
    rows: Rows<'a>,
    /// Once a row was out of order.
    lookup: Option<Rows<'a>>,
    current: Option<CallRow>,
    position: i64,
    /// Rows that were read.
    read: u64,
    /// Requests that these say they completed.
    completed: u64,
    /// What calls and posts may still take.
    left_ns: i64,
    /// The call before, and the last ones of the other threads: rows of a thread stand together.
    last: Option<CallRow>,
    last_of: FxHashMap<i64, CallRow>,
    /// A twin was looked for.
    is_looked_for: bool,
}

/// What the calls and posts of a file's ranks may take together.
fn most_ns(connection: &Connection) -> rusqlite::Result<i64> {
    let ranks: i64 = query_row(connection, "SELECT count(*) FROM rank", [], |row| row.get(0))?;
    Ok(LONGEST_NS.saturating_mul(ranks.max(1)))
}

impl CallCursor<'_> {
    fn next(&mut self) -> rusqlite::Result<Option<CallRow>> {
        let before = self.read;
        self.current = match self.rows.step()? {
            true => Some(read_call(&self.rows).map_err(|column| {
                locate(self.connection, "call", before, self.rows.name(column))
            })?),
            false => None,
        };
        if let Some(call) = self.current {
            self.read += 1;
            self.completed = self.completed.saturating_add(call.completed);
            self.left_ns -= call.duration.map_or(0, |duration| duration.0);
            if self.left_ns < 0 {
                return Err(self.too_long());
            }
            self.check(&call, before)?;
        }
        self.position = self.current.map_or(i64::MAX, |call| call.id);
        Ok(self.current)
    }

    fn too_long(&self) -> rusqlite::Error {
        let why = "calls and posts take more than 2^56 ns, 2 years, for each rank";
        check::impossible("call", why.to_owned())
    }

    /// Pages that are in the table twice would show its rows over and over.
    fn check(&mut self, call: &CallRow, before: u64) -> rusqlite::Result<()> {
        let refuse =
            |column, id: i64| Err(bad_row(self.connection, "call", before, column, id.to_string()));
        if call.id <= self.position {
            return refuse("id", call.id);
        }
        if !self.operations.contains(call.operation_id) {
            return refuse("operation_id", call.operation_id);
        }
        if let Some(id) = call.receive_id.filter(|id| !self.operations.contains(*id)) {
            return refuse("receive_operation_id", id);
        }
        self.check_order(call)
    }

    /// Within a thread rows are in the order in which its calls ended. Where that goes back, rows may be there twice, or the
    /// clock went back: a twin is looked for once, as it takes a reading of all.
    fn check_order(&mut self, call: &CallRow) -> rusqlite::Result<()> {
        let Some(duration) = call.duration else { return Ok(()) };
        let last = match self.last.replace(*call) {
            Some(last) if last.thread_id == call.thread_id => Some(last),
            other => {
                self.last_of.extend(other.map(|last| (last.thread_id, last)));
                self.last_of.remove(&call.thread_id)
            }
        };
        let Some(last) = last else { return Ok(()) };
        let end = |call: &CallRow| call.begin.0.saturating_add(call.duration.unwrap_or_default().0);
        if end(call) > end(&last) || std::mem::replace(&mut self.is_looked_for, true) {
            return Ok(());
        }
        let twins =
            "SELECT min(id) FROM call WHERE (thread_id, begin_ns, duration_ns) = (?1, ?2, ?3)";
        let values = (call.thread_id, call.begin.0, duration.0);
        let twin: i64 = self.connection.query_row(twins, values, |row| row.get(0))?;
        if twin == call.id {
            return Ok(());
        }
        let why = format!("rows are there twice: {twin} and {} are of one call", call.id);
        Err(check::impossible("call", why))
    }

    /// The call `id`; calls that are passed on the way are shown to `passed`.
    fn seek(
        &mut self,
        id: i64,
        mut passed: impl FnMut(&CallRow),
    ) -> rusqlite::Result<Option<CallRow>> {
        while self.position < id {
            if let Some(call) = self.next()? {
                passed(&call);
            }
        }
        match self.current {
            Some(call) if call.id == id => Ok(Some(call)),
            _ => self.look_up(id),
        }
    }

    fn look_up(&mut self, id: i64) -> rusqlite::Result<Option<CallRow>> {
        if self.lookup.is_none() {
            let sql = format!("SELECT {} FROM call WHERE id = ?1", CALL_COLUMNS.join(", "));
            self.lookup = Some(Rows::new(self.connection, &sql)?);
        }
        let Some(lookup) = &mut self.lookup else { return Ok(None) };
        lookup.begin_with(id)?;
        if !lookup.step()? {
            return Ok(None);
        }
        let refuse = |column| {
            let why = format!("{} of row {id} cannot be", lookup.name(column));
            check::impossible("call", why)
        };
        read_call(lookup).map(Some).map_err(refuse)
    }
}

/// Gives every operation to `sink`.
fn scan_operations(connection: &Connection, sink: &mut impl RowSink) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare_cached("SELECT id, rank, call_id, call_path_id, kind, bytes, receive_operation_id FROM operation ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        sink.operation(&OperationRow {
            id: row.get(0)?,
            rank: row.get(1)?,
            call_id: row.get(2)?,
            call_path_id: row.get(3)?,
            kind: row.get(4)?,
            bytes: row.get(5)?,
            receive_id: row.get(6)?,
        });
    }
    Ok(())
}

/// Gives every tally to `sink`.
///
/// # Errors
/// What SQLite says while reading.
pub fn scan_tallies(
    connection: &Connection,
    sink: &mut (impl RowSink + ?Sized),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT rank, call_id, call_path_id, reason = 'unsuccessful_test', size_class, count, bytes, inside_ns, exposed_ns,
                mpi_ns, overlap_window_ns FROM tally",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        sink.tally(&TallyRow {
            rank: row.get(0)?,
            call_id: row.get(1)?,
            call_path_id: row.get(2)?,
            is_unsuccessful: row.get(3)?,
            size_class: row.get(4)?,
            count: row.get::<_, Count>(5)?.0,
            bytes: row.get(6)?,
            inside: row.get(7)?,
            completion: row.get(8)?,
            mpi: Nanos(row.get(9)?), // of several, as the next: may be negative
            window: Nanos(row.get(10)?),
        });
    }
    Ok(())
}

/// Reports progress every so many rows: an atomic addition for each row would cost more than the row.
struct Ticker<'a> {
    progress: &'a (dyn Fn(u64) + Sync),
    rows: u64,
}

impl<'a> Ticker<'a> {
    const EVERY: u64 = 1 << 16;

    fn new(progress: &'a (dyn Fn(u64) + Sync)) -> Self {
        Ticker { progress, rows: 0 }
    }

    fn tick(&mut self) {
        self.rows += 1;
        if self.rows % Self::EVERY == 0 {
            (self.progress)(Self::EVERY);
        }
    }
}
