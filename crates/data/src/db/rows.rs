//! Rows of integers, taken from SQLite without what rusqlite asks for with every value: on the big tables that takes longer
//! than to read them.

use std::ffi::{c_int, CStr};
use std::ptr::{null_mut, NonNull};

use rusqlite::{ffi, Connection, Error};

use super::leaves::{Leaves, Next};
use crate::model::bounds::{LONGEST_NS, MOST, MOST_BYTES};

/// The rows of a query whose columns hold integers or NULL.
pub struct Rows<'c> {
    /// Null as long as `leaves` are there: to compile it takes longer than to read few rows.
    statement: *mut ffi::sqlite3_stmt,
    connection: &'c Connection,
    /// As long as they can tell.
    leaves: Option<Leaves<'c>>,
    /// Rows that they gave.
    given: i64,
    table: Option<WholeTable>,
}

/// What is read of a table from its first row to its last.
#[derive(Debug, Clone, Copy)]
struct WholeTable {
    name: &'static str,
    columns: &'static [&'static str],
}

/// The column, counted from 0, with a value that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadColumn(pub c_int);

impl<'c> Rows<'c> {
    /// # Errors
    /// What SQLite says of the query.
    pub fn new(connection: &'c Connection, sql: &str) -> rusqlite::Result<Rows<'c>> {
        let mut rows =
            Rows { statement: null_mut(), connection, leaves: None, given: 0, table: None };
        rows.prepare(sql)?;
        Ok(rows)
    }

    fn prepare(&mut self, sql: &str) -> rusqlite::Result<()> {
        let (connection, mut statement) = (self.connection, null_mut());
        let length = c_int::try_from(sql.len()).map_err(|_| Error::InvalidQuery)?;
        // SAFETY: the connection is open, `sql` has `length` bytes, and `statement` is written before the call returns.
        let code = unsafe {
            let (handle, text) = (connection.handle(), sql.as_ptr().cast());
            ffi::sqlite3_prepare_v2(handle, text, length, &mut statement, null_mut())
        };
        if code != ffi::SQLITE_OK || statement.is_null() {
            return Err(failure(connection, code));
        }
        self.statement = statement;
        Ok(())
    }

    /// All rows of a table that has a column `id`, in the order of it.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn of_table(
        connection: &'c Connection,
        name: &'static str,
        columns: &'static [&'static str],
    ) -> rusqlite::Result<Rows<'c>> {
        match Leaves::of(connection, name, columns)? {
            None => Rows::by_sqlite(connection, name, columns),
            leaves => {
                let table = Some(WholeTable { name, columns });
                Ok(Rows { statement: null_mut(), connection, leaves, given: 0, table })
            }
        }
    }

    pub(super) fn by_sqlite(
        connection: &'c Connection,
        name: &'static str,
        columns: &'static [&'static str],
    ) -> rusqlite::Result<Rows<'c>> {
        let table = WholeTable { name, columns };
        let mut rows = Rows::new(connection, &table.rows_behind())?;
        rows.begin_with(0)?;
        Ok(rows)
    }

    /// Goes to the next row; `false` behind the last.
    ///
    /// # Errors
    /// What SQLite says while reading.
    pub fn step(&mut self) -> rusqlite::Result<bool> {
        let Some(leaves) = &mut self.leaves else { return self.step_by_sqlite() };
        match leaves.step() {
            Next::Row => {
                self.given += 1;
                Ok(true)
            }
            Next::End => Ok(false),
            Next::Unknown => {
                self.leaves = None;
                self.prepare(&self.table.map(WholeTable::rows_behind).unwrap_or_default())?;
                self.begin_with(self.given)?;
                self.step_by_sqlite()
            }
        }
    }

    fn step_by_sqlite(&mut self) -> rusqlite::Result<bool> {
        // SAFETY: the statement lives as long as `self`.
        match unsafe { ffi::sqlite3_step(self.statement) } {
            ffi::SQLITE_ROW => Ok(true),
            ffi::SQLITE_DONE => Ok(false),
            code => Err(failure(self.connection, code)),
        }
    }

    /// Begins anew, with `value` for the query's one parameter.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn begin_with(&mut self, value: i64) -> rusqlite::Result<()> {
        // SAFETY: as in `step`. What reset returns is the error of the last step, which was reported then.
        let code = unsafe {
            ffi::sqlite3_reset(self.statement);
            ffi::sqlite3_bind_int64(self.statement, 1, value)
        };
        match code {
            ffi::SQLITE_OK => Ok(()),
            code => Err(failure(self.connection, code)),
        }
    }

    /// The name of a column of the query.
    pub fn name(&self, BadColumn(column): BadColumn) -> String {
        let known = self.table.and_then(|table| table.columns.get(column as usize));
        if let Some(name) = known {
            return (*name).to_owned();
        }
        // SAFETY: as in `step`; the name is copied before anything else is asked of the statement.
        unsafe {
            let name = ffi::sqlite3_column_name(self.statement, column);
            NonNull::new(name.cast_mut()).map_or_else(String::new, |name| {
                CStr::from_ptr(name.as_ptr()).to_string_lossy().into()
            })
        }
    }

    /// # Errors
    /// It is neither an integer nor NULL.
    #[inline]
    pub fn optional(&self, column: c_int) -> Result<Option<i64>, BadColumn> {
        match &self.leaves {
            Some(leaves) => Ok(leaves.value(column as usize)),
            None => self.optional_by_sqlite(column),
        }
    }

    fn optional_by_sqlite(&self, column: c_int) -> Result<Option<i64>, BadColumn> {
        let statement = self.statement;
        // SAFETY: as in `step`. For columns that are not there, and where there is no row, the value is NULL. It is one that nobody
        // else may change meanwhile, as a connection is used by one thread at a time.
        unsafe {
            let value = ffi::sqlite3_column_value(statement, column);
            match ffi::sqlite3_value_type(value) {
                ffi::SQLITE_INTEGER => Ok(Some(ffi::sqlite3_value_int64(value))),
                ffi::SQLITE_NULL => Ok(None),
                _ => Err(BadColumn(column)),
            }
        }
    }

    /// # Errors
    /// It is no integer.
    #[inline]
    pub fn integer(&self, column: c_int) -> Result<i64, BadColumn> {
        self.optional(column)?.ok_or(BadColumn(column))
    }

    #[inline]
    fn within(&self, column: c_int, most: i64) -> Result<i64, BadColumn> {
        let value = self.integer(column)?;
        (0..=most).contains(&value).then_some(value).ok_or(BadColumn(column))
    }

    /// Nanoseconds.
    ///
    /// # Errors
    /// It is none that can be, as for all that follow.
    #[inline]
    pub fn time(&self, column: c_int) -> Result<i64, BadColumn> {
        self.within(column, LONGEST_NS)
    }

    #[inline]
    pub fn optional_time(&self, column: c_int) -> Result<Option<i64>, BadColumn> {
        match self.optional(column)? {
            Some(time) if !(0..=LONGEST_NS).contains(&time) => Err(BadColumn(column)),
            time => Ok(time),
        }
    }

    #[inline]
    pub fn count(&self, column: c_int) -> Result<u64, BadColumn> {
        self.within(column, MOST).map(|count| count as u64)
    }

    #[inline]
    pub fn bytes(&self, column: c_int) -> Result<u64, BadColumn> {
        self.within(column, MOST_BYTES).map(|bytes| bytes as u64)
    }
}

impl WholeTable {
    /// All rows but the first so many.
    fn rows_behind(self) -> String {
        let WholeTable { name, columns } = self;
        format!("SELECT {} FROM {name} ORDER BY id LIMIT -1 OFFSET ?1", columns.join(", "))
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `prepare`, or null, and used by nobody from here on.
        unsafe { ffi::sqlite3_finalize(self.statement) };
    }
}

/// What SQLite says of the last call that failed.
fn failure(connection: &Connection, code: c_int) -> Error {
    // SAFETY: the connection is open; the text is copied before anything else is asked of it.
    let text = unsafe {
        CStr::from_ptr(ffi::sqlite3_errmsg(connection.handle())).to_string_lossy().into_owned()
    };
    Error::SqliteFailure(ffi::Error::new(code), Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_integers_in_their_range_or_named() {
        let connection = Connection::open_in_memory().unwrap();
        let mut rows = Rows::new(
            &connection,
            "SELECT 7, NULL, 'x' AS word, 2.5, -1, 1 << 60 AS long UNION ALL SELECT 8, 9, 1, 1, 1, 1",
        )
        .unwrap();
        assert!(rows.step().unwrap());
        assert_eq!((rows.integer(0), rows.optional(1)), (Ok(7), Ok(None)));
        assert_eq!((rows.integer(1), rows.optional(2)), (Err(BadColumn(1)), Err(BadColumn(2))));
        assert_eq!((rows.integer(3), rows.time(4)), (Err(BadColumn(3)), Err(BadColumn(4))));
        assert_eq!((rows.time(5), rows.optional_time(5)), (Err(BadColumn(5)), Err(BadColumn(5))));
        assert_eq!((rows.bytes(5), rows.count(5)), (Ok(1 << 60), Err(BadColumn(5))));
        assert_eq!(rows.name(BadColumn(2)), "word");
        assert!(rows.step().unwrap());
        assert_eq!((rows.integer(0), rows.optional(1)), (Ok(8), Ok(Some(9))));
        assert!(!rows.step().unwrap());
    }

    #[test]
    fn a_query_is_asked_again_with_another_value() {
        let connection = Connection::open_in_memory().unwrap();
        let mut rows = Rows::new(&connection, "SELECT ?1 + 1").unwrap();
        for value in [1, 41] {
            rows.begin_with(value).unwrap();
            assert!(rows.step().unwrap());
            assert_eq!(rows.integer(0), Ok(value + 1));
        }
        assert!(Rows::new(&connection, "SELECT nothing").is_err());
        assert!(Rows::new(&connection, "").is_err());
    }
}
