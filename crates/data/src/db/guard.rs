//! What a database may do to whoever reads it: nothing. It is data, and may be somebody else's; SQLite takes views, triggers,
//! functions in them and pages that lead in circles for granted.

use std::sync::OnceLock;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode};

use super::rules::{BIG_TABLES, TABLES};
use super::{Database, DbError};

/// Steps of SQLite's machine that reading may take: for each byte of the file, and besides. A row of `request` has 25 bytes
/// and takes 40 steps a pass; a command makes ten passes at the most. A view without an end in a small file ends in a second.
const STEPS_A_BYTE: u64 = 60;
const STEPS: u64 = 20_000_000;
/// Steps after which they are counted.
const EVERY: i32 = 100_000;
/// No text that lapscope writes is as long as that; a file may claim any length.
const LONGEST_VALUE: u64 = 16 << 20;

/// Takes from a connection what a file could do by being read.
///
/// # Errors
/// What SQLite says; it knows all of these since 3.31.
pub fn guard(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    // a page that claims to be of another kind is found when it is read, not when it misleads
    connection.execute_batch(
        "PRAGMA trusted_schema = off; PRAGMA cell_size_check = on; PRAGMA mmap_size = 0",
    )
}

/// Statements end when they have taken more steps than a file of `bytes` needs.
pub(super) fn limit_work(connection: &Connection, bytes: u64) {
    let longest = bytes.clamp(1 << 16, LONGEST_VALUE);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest as i32);
    let most = STEPS.saturating_add(bytes.saturating_mul(STEPS_A_BYTE));
    let mut taken = 0u64;
    connection.progress_handler(
        EVERY,
        Some(move || {
            taken += EVERY as u64;
            taken > most
        }),
    );
}

/// For statements of the user's own, which may be long: Ctrl-C is theirs.
pub fn unlimited(connection: &Connection) {
    connection.progress_handler(0, None::<fn() -> bool>);
}

/// Whether an error is the end that [`limit_work`] puts.
pub(super) fn is_stopped(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}

/// Where lapscope has tables, the file has tables, with columns that hold values and are not computed.
pub(super) fn only_tables(database: &Database) -> Result<(), DbError> {
    let Database { path, connection, .. } = database;
    match find_foreign(connection).map_err(DbError::reading(path))? {
        Some(what) => Err(DbError::Foreign { path: path.into(), what }),
        None => Ok(()),
    }
}

/// What a file has in place of a table.
fn find_foreign(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let sql =
        "SELECT lower(name), type, rootpage, sql FROM sqlite_schema WHERE type IN ('table', 'view')";
    let mut may_compute = false;
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    // columns of a virtual table would be asked of whatever implements it
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        if !names().any(|known| known == name) {
            continue;
        }
        let (kind, root): (String, Option<i64>) = (row.get(1)?, row.get(2)?);
        if kind != "table" || root.unwrap_or(0) <= 0 {
            return Ok(Some(format!("{name} is no table but a {kind} of another kind")));
        }
        let definition = row.get_ref(3)?.as_bytes_or_null()?;
        let Ok(definition) = std::str::from_utf8(definition.unwrap_or_default()) else {
            return Ok(Some(format!("the definition of {name} is damaged: it is no text")));
        };
        may_compute |= definition.is_empty() || may_have_computed_columns(definition);
    }
    if !may_compute {
        return Ok(None);
    }
    let mut statement = connection.prepare(computed_columns())?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (name, column): (String, String) = (row.get(0)?, row.get(1)?);
    Ok(Some(format!("column {column} of table {name} is computed")))
}

/// Whether a definition has the word AS outside of its comments, without which no column is computed. What is quoted otherwise than
/// as lapscope does may be anything.
fn may_have_computed_columns(sql: &str) -> bool {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    sql.lines().any(|line| {
        let words = line.split_once("--").map_or(line, |(words, _)| words);
        words.contains(['"', '`', '[', '*'])
            || words.matches('\'').count() % 2 == 1 // it goes on behind what looks like a comment
            || words.split(|letter| !is_of_word(letter)).any(|word| word.eq_ignore_ascii_case("as"))
    })
}

fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().chain(BIG_TABLES).map(|(name, _)| *name)
}

/// All in one statement, and asked where definitions leave it open: a file of a rank with few calls takes less time to read than to
/// ask of each table.
fn computed_columns() -> &'static str {
    static SQL: OnceLock<String> = OnceLock::new();
    SQL.get_or_init(|| {
        let names: Vec<String> = names().map(|name| format!("('{name}')")).collect();
        format!(
            "SELECT of.column1, x.name FROM (VALUES {}) of, pragma_table_xinfo(of.column1) x WHERE x.hidden <> 0 LIMIT 1",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_be_computed_where_the_word_stands_outside_of_comments() {
        let written = "CREATE TABLE call (  -- as it was\n  kind TEXT CHECK (kind IN ('a', 'b')),  -- 'as'\n  x INTEGER)";
        assert!(!may_have_computed_columns(written));
        for computed in
            ["x INTEGER AS (1)", "x TEXT DEFAULT '--', y as (2)", "x /* */", "'a\n--', y AS (3)"]
        {
            assert!(may_have_computed_columns(computed), "{computed}");
        }
    }
}
