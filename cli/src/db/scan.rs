//! Reads the big tables once, front to back.
//!
//! Requests are stored in the order of the calls that ended them, so the two tables are walked side by side; a join in
//! SQL would look every call up in its tree again. Rows out of that order (never written by the recorder, but a file
//! may have been edited) are looked up one by one and cost time, not correctness.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, Rows};

use crate::model::{CallRow, OperationRow, RequestRow, TallyRow};

/// Takes rows in the order of the file: all operations, then calls and requests, then tallies.
pub trait RowSink {
    fn operation(&mut self, operation: &OperationRow);
    /// Every call once, in id order.
    fn call(&mut self, call: &CallRow);
    /// Every request once, in id order, with the call that ended it.
    fn request(&mut self, request: &RequestRow, completion: Option<&CallRow>);
    fn tally(&mut self, tally: &TallyRow);
}

/// A row type that knows its columns of `request`.
pub trait FromRow: Sized {
    /// Columns as SQL, in the order that [`FromRow::read`] takes them.
    const COLUMNS: &'static str;
    /// # Errors
    /// A column is not of the type that the schema declares.
    fn read(row: &Row<'_>) -> rusqlite::Result<Self>;
    fn completion_id(&self) -> Option<i64>;
}

impl FromRow for RequestRow {
    const COLUMNS: &'static str =
        "operation_id, completion_id, post_begin_ns, post_ns, mpi_ns, polls";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(RequestRow {
            operation_id: row.get(0)?,
            completion_id: row.get(1)?,
            post_begin: row.get(2)?,
            post: row.get(3)?,
            mpi: row.get(4)?,
            polls: row.get::<_, i64>(5)? as u64,
        })
    }

    fn completion_id(&self) -> Option<i64> {
        self.completion_id
    }
}

/// About how many rows [`scan`] will read: for a progress bar.
///
/// # Errors
/// What SQLite says when the tables are unreadable.
pub fn rows_to_scan(connection: &Connection) -> rusqlite::Result<u64> {
    let last = |table: &str| -> rusqlite::Result<i64> {
        let sql = format!("SELECT coalesce(max(id) - min(id) + 1, 0) FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0))
    };
    Ok((last("call")? + last("request")?).max(0) as u64)
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
/// to go on.
///
/// # Errors
/// What SQLite says while reading.
pub fn scan_rows<R: FromRow, S>(
    connection: &Connection,
    state: &mut S,
    mut on_call: impl FnMut(&mut S, &CallRow),
    mut on_request: impl FnMut(&mut S, R, Option<&CallRow>) -> bool,
) -> rusqlite::Result<()> {
    let mut call_statement =
        connection.prepare(&format!("SELECT {CALL_COLUMNS} FROM call ORDER BY id"))?;
    let mut calls =
        CallCursor { rows: call_statement.query([])?, current: None, position: i64::MIN };
    let mut lookup =
        connection.prepare_cached(&format!("SELECT {CALL_COLUMNS} FROM call WHERE id = ?1"))?;
    let mut statement =
        connection.prepare(&format!("SELECT {} FROM request ORDER BY id", R::COLUMNS))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let request = R::read(row)?;
        let completion = match request.completion_id() {
            Some(id) => calls.seek(id, &mut lookup, |call| on_call(state, call))?,
            None => None,
        };
        if !on_request(state, request, completion.as_ref()) {
            return Ok(());
        }
    }
    while let Some(call) = calls.next()? {
        on_call(state, &call);
    }
    Ok(())
}

const CALL_COLUMNS: &str =
    "id, operation_id, thread_id, begin_ns, duration_ns, completed, receive_operation_id";

fn read_call(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    Ok(CallRow {
        id: row.get(0)?,
        operation_id: row.get(1)?,
        thread_id: row.get(2)?,
        begin: row.get(3)?,
        duration: row.get(4)?,
        completed: row.get::<_, i64>(5)? as u64,
        receive_id: row.get(6)?,
    })
}

/// Walks the call table; `position` is the id it stands at, `i64::MAX` behind the end.
struct CallCursor<'a> {
    rows: Rows<'a>,
    current: Option<CallRow>,
    position: i64,
}

impl CallCursor<'_> {
    fn next(&mut self) -> rusqlite::Result<Option<CallRow>> {
        self.current = self.rows.next()?.map(read_call).transpose()?;
        self.position = self.current.map_or(i64::MAX, |call| call.id);
        Ok(self.current)
    }

    /// The call `id`; calls that are passed on the way are shown to `passed`.
    fn seek(
        &mut self,
        id: i64,
        lookup: &mut CachedStatement<'_>,
        mut passed: impl FnMut(&CallRow),
    ) -> rusqlite::Result<Option<CallRow>> {
        while self.position < id {
            if let Some(call) = self.next()? {
                passed(&call);
            }
        }
        match self.current {
            Some(call) if call.id == id => Ok(Some(call)),
            _ => lookup.query_row([id], read_call).optional(),
        }
    }
}

/// Gives every operation to `sink`.
///
/// # Errors
/// What SQLite says while reading.
pub fn scan_operations(
    connection: &Connection,
    sink: &mut (impl RowSink + ?Sized),
) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare("SELECT id, rank, call_id, path_id, kind, bytes, receive_operation_id FROM operation ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        sink.operation(&OperationRow {
            id: row.get(0)?,
            rank: row.get(1)?,
            call_id: row.get(2)?,
            path_id: row.get(3)?,
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
    let mut statement = connection.prepare(
        "SELECT rank, call_id, path_id, reason = 'poll', size_class, count, bytes, inside_ns, completion_ns,
                mpi_ns, window_ns FROM tally",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        sink.tally(&TallyRow {
            rank: row.get(0)?,
            call_id: row.get(1)?,
            path_id: row.get(2)?,
            is_poll: row.get(3)?,
            size_class: row.get(4)?,
            count: row.get::<_, i64>(5)? as u64,
            bytes: row.get(6)?,
            inside: row.get(7)?,
            completion: row.get(8)?,
            mpi: row.get(9)?,
            window: row.get(10)?,
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
