//! Values from files are checked once, where they are read, and believed from there on: times that sums of them do not
//! overflow, ids of rows that exist, words that the schema has. A file with a value that cannot be is left out as a whole
//! and named: somebody or something has changed it, and its other values are no better.
//!
//! `lapscope sql` shows rows of big tables as they are: that is how one looks at a file that the other commands refuse.

use std::fmt;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

use super::copied::rule_of_rows;
use super::ids::Ends;
use super::query_row;
use super::rules::{conditions, describe, ColumnRule, BIG_TABLES, TABLES};
use super::small::SmallTables;
use crate::schema::lacks;

/// A value that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue {
    pub table: String,
    /// Key of the row; of tables without one, how many rows stand in front of it.
    pub row: String,
    pub column: String,
    pub value: String,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadValue { table, row, column, value } = self;
        if row.is_empty() {
            return write!(f, "table {table}: {value}");
        }
        write!(f, "table {table}, row {row}: {column} is {value}, ")?;
        f.write_str(&describe(table, column))
    }
}

impl std::error::Error for BadValue {}

impl From<BadValue> for rusqlite::Error {
    fn from(bad: BadValue) -> rusqlite::Error {
        // the one variant that carries an error of anybody's
        rusqlite::Error::ToSqlConversionFailure(Box::new(bad))
    }
}

/// The value that an error is about, when it is about one.
pub fn bad_value(error: &rusqlite::Error) -> Option<&BadValue> {
    match error {
        rusqlite::Error::ToSqlConversionFailure(error) => error.downcast_ref(),
        _ => None,
    }
}

/// A value as an error shows it.
pub fn shown(value: ValueRef<'_>) -> String {
    const LONGEST: usize = 40;
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            let short: String = text.chars().take(LONGEST).flat_map(char::escape_default).collect();
            format!("'{short}{}'", if text.chars().count() > LONGEST { "…" } else { "" })
        }
    }
}

/// SQL that is true of the rows of a table of `schema` that can be, for one pass over them in their order.
///
/// # Errors
/// What SQLite says of the tables that they refer to.
pub fn valid_row(connection: &Connection, schema: &str, table: &str) -> rusqlite::Result<String> {
    if let Some(rule) = rule_of_rows(connection, schema, table)? {
        return Ok(rule);
    }
    let rules = TABLES.iter().find(|(name, _)| *name == table);
    Ok(rules.map_or_else(|| "1".to_owned(), |(_, columns)| conditions(schema, columns).0))
}

/// The first row of a table that cannot be, as an error.
///
/// # Errors
/// What SQLite says; there is none.
pub fn first_bad_row(
    connection: &Connection,
    schema: &str,
    table: &str,
) -> rusqlite::Result<rusqlite::Error> {
    let (_, columns) = TABLES
        .iter()
        .chain(BIG_TABLES)
        .find(|(name, _)| *name == table)
        .ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let (all, first) = conditions(schema, columns);
    let key = columns[0].0;
    let sql =
        format!("SELECT {key}, {first}, * FROM {schema}.{table} WHERE ({all}) IS NOT TRUE LIMIT 1");
    connection.query_row(&sql, [], |row| of_row(table, row)).map(rusqlite::Error::from)
}

/// Checks every table but the big ones, whose rows are checked as they are read.
///
/// # Errors
/// [`BadValue`] for the first value that cannot be; what SQLite says of unreadable tables.
pub fn small_tables(connection: &Connection) -> rusqlite::Result<()> {
    let mut looked_at = SmallTables::default();
    for table in filled_tables(connection)? {
        // what SQLite cannot read here it says below, too
        if looked_at.are_plain(connection, table).unwrap_or(false) {
            continue;
        }
        match first_bad_row(connection, "main", table.0) {
            Ok(bad) => return Err(bad),
            Err(rusqlite::Error::QueryReturnedNoRows) => {}
            Err(error) => return Err(error),
        }
    }
    within_world(connection)?;
    once(connection)
}

/// The small tables that have rows, asked of all in one statement: most tables of most files have none.
fn filled_tables(
    connection: &Connection,
) -> rusqlite::Result<Vec<(&'static str, &'static [ColumnRule])>> {
    let mut there = Vec::new();
    for &table in TABLES {
        if !lacks(connection, "main", table.0)? {
            there.push(table);
        }
    }
    let each: Vec<String> =
        there.iter().map(|(table, _)| format!("EXISTS (SELECT 1 FROM {table})")).collect();
    let sql = format!("SELECT {}", each.join(", "));
    let are_filled: Vec<bool> =
        query_row(connection, &sql, [], |row| (0..there.len()).map(|at| row.get(at)).collect())?;
    let filled = there.into_iter().zip(are_filled).filter(|(_, is_filled)| *is_filled);
    Ok(filled.map(|(table, _)| table).collect())
}

/// The key, the column's name, and then all columns.
fn of_row(table: &str, row: &Row<'_>) -> rusqlite::Result<BadValue> {
    let column: String = row.get(1)?;
    let at = (2..row.as_ref().column_count())
        .find(|&at| row.as_ref().column_name(at).is_ok_and(|name| name == column));
    Ok(BadValue {
        table: table.to_owned(),
        row: shown(row.get_ref(0)?),
        value: shown(row.get_ref(at.unwrap_or(1))?),
        column,
    })
}

fn within_world(connection: &Connection) -> rusqlite::Result<()> {
    let sql =
        "SELECT rank, world_rank, world_size FROM rank WHERE world_rank >= world_size LIMIT 1";
    let found = query_row(connection, sql, [], |row| {
        let (key, rank, size): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(BadValue {
            table: "rank".to_owned(),
            row: key.to_string(),
            column: "world_rank".to_owned(),
            value: format!("{rank} of {size}"),
        })
    });
    found.optional()?.map_or(Ok(()), |bad| Err(bad.into()))
}

/// A rank is once in a file.
fn once(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "SELECT max(rank), world_rank FROM rank GROUP BY world, world_rank, life HAVING count(*) > 1 LIMIT 1";
    let found = query_row(connection, sql, [], |row| {
        Ok(BadValue {
            table: "rank".to_owned(),
            row: shown(row.get_ref(0)?),
            column: "world_rank".to_owned(),
            value: format!("{}, as in another row", shown(row.get_ref(1)?)),
        })
    });
    found.optional()?.map_or(Ok(()), |bad| Err(bad.into()))
}

/// Whether as many rows were read as have ids: rows are numbered without gaps, and a page that lost some of its rows is no
/// less a page to SQLite.
///
/// # Errors
/// [`BadValue`] where some are missing; what SQLite says.
pub fn complete(connection: &Connection, table: &str, read: u64) -> rusqlite::Result<()> {
    let Ends { first, last } = Ends::read(connection, table)?;
    if (Ends { first, last }).holds(read) {
        return Ok(());
    }
    let why = format!("rows are missing: ids are {first} to {last}, and {read} rows are there");
    let name = table.rsplit('.').next().unwrap_or(table); // of an attached file
    Err(impossible(name, why))
}

/// Whether a file that is not read row by row has all its calls and requests, as far as few rows tell it.
///
/// # Errors
/// As [`complete`].
pub fn complete_file(connection: &Connection, schema: &str) -> rusqlite::Result<()> {
    for table in ["call", "request"] {
        let table = format!("{schema}.{table}");
        let sql = format!("SELECT count(*) FROM {table}"); // counts pages' rows, looks at none
        let rows: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
        complete(connection, &table, rows as u64)?;
    }
    ends_agree(connection, schema)
}

/// Whether the first and the last call that completed requests are those that the first and the last of these name: what has
/// no gaps may lack an end.
///
/// # Errors
/// As [`complete`].
pub fn ends_agree(connection: &Connection, schema: &str) -> rusqlite::Result<()> {
    if leaves_out(connection, schema)? {
        return Ok(());
    }
    for (which, order) in [("first", "id"), ("last", "id DESC")] {
        let sql = format!(
            "SELECT (SELECT id FROM {schema}.call WHERE completed > 0 ORDER BY {order} LIMIT 1), \
             (SELECT completion_id FROM {schema}.request WHERE completion_id NOT NULL ORDER BY {order} LIMIT 1)"
        );
        let ended: [Option<i64>; 2] =
            connection.query_row(&sql, [], |row| Ok([row.get(0)?, row.get(1)?]))?;
        let [call, request] = ended.map(|id| id.map_or("none".to_owned(), |id| id.to_string()));
        if call != request {
            let why = format!(
                "rows are missing: the {which} call that completed some is {call}, and of those that are there {request}"
            );
            return Err(impossible("request", why));
        }
    }
    Ok(())
}

/// Whether requests of a rank may be in its tally alone.
///
/// # Errors
/// What SQLite says.
pub fn leaves_out(connection: &Connection, schema: &str) -> rusqlite::Result<bool> {
    let said = format!(
        "SELECT EXISTS (SELECT 1 FROM {schema}.detail) OR EXISTS (SELECT 1 FROM {schema}.left_out)"
    );
    query_row(connection, &said, [], |row| row.get(0))
}

/// An error about a table as a whole.
pub fn impossible(table: &str, why: String) -> rusqlite::Error {
    let bad =
        BadValue { table: table.to_owned(), row: String::new(), column: String::new(), value: why };
    bad.into()
}

/// An error about `column` of row number `before` of a big table, counted in the order of ids.
pub fn locate(
    connection: &Connection,
    table: &str,
    before: u64,
    column: String,
) -> rusqlite::Error {
    let sql = format!("SELECT {column} FROM {table} ORDER BY id LIMIT 1 OFFSET {before}");
    let value = connection.query_row(&sql, [], |row| row.get_ref(0).map(shown));
    bad_row(connection, table, before, column, value.unwrap_or_else(|_| "?".to_owned()))
}

/// As [`locate`], where the value is known.
pub fn bad_row(
    connection: &Connection,
    table: &str,
    before: u64,
    column: impl Into<String>,
    value: impl Into<String>,
) -> rusqlite::Error {
    let sql = format!("SELECT id FROM {table} ORDER BY id LIMIT 1 OFFSET {before}");
    let id = connection.query_row(&sql, [], |row| row.get::<_, i64>(0));
    let row = id.map_or_else(|_| format!("behind {before} others"), |id| id.to_string());
    BadValue { table: table.to_owned(), row, column: column.into(), value: value.into() }.into()
}
