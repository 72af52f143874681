//! Several files as one database without a copy: side by side, under views that look as one.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::kept::{self, Copy};
use super::{attach, check};
use crate::db::check::complete_file;
use crate::db::{guard, Database, DbError};
use crate::schema::{self, Offsets, SHARED};

/// Several files open as one database.
pub struct Together {
    pub connection: Connection,
    /// Why some files are not in it.
    pub left_out: Vec<DbError>,
    /// Files in which rows are missing.
    pub incomplete: Vec<DbError>,
    /// Where they were copied together because there are too many to attach; goes when this goes.
    _copy: Option<tempfile::TempDir>,
}

/// Opens `files` for reading, as one database with the names of the schema. More than SQLite can attach are copied
/// together, once: into a file under TMPDIR, which later calls find again; `copying` is told before that.
///
/// # Errors
/// As [`merge`].
pub fn open_together(
    files: &[PathBuf],
    copying: &dyn Fn(&Path),
    progress: &dyn Fn(u64),
) -> anyhow::Result<Together> {
    let ranks = check(files)?;
    if let [file] = files {
        let database = Database::open(file)?;
        let incomplete = rows_missing(&database.connection, "main", file).into_iter().collect();
        let connection = database.connection;
        add_missing_columns(&connection)?;
        return Ok(Together { connection, left_out: Vec::new(), incomplete, _copy: None });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_MEMORY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(":memory:", flags)?;
    guard(&connection)?;
    if files.len() <= connection.limit(Limit::SQLITE_LIMIT_ATTACHED).max(0) as usize {
        side_by_side(&connection, files, &ranks)?;
        let missing = |(index, path): (usize, &PathBuf)| {
            rows_missing(&connection, &format!("file{index}"), path)
        };
        let incomplete = files.iter().enumerate().filter_map(missing).collect();
        connection.execute_batch("PRAGMA query_only = on")?;
        return Ok(Together { connection, left_out: Vec::new(), incomplete, _copy: None });
    }
    let Copy { path, left_out, goes_with } = kept::copy(files, copying, progress)?;
    let connection = Database::open(&path)?.connection;
    Ok(Together { connection, left_out, incomplete: Vec::new(), _copy: goes_with })
}

/// Tables that came after the file was written, or to which columns came, stand behind views that have them: without rows, with NULL.
fn add_missing_columns(connection: &Connection) -> rusqlite::Result<()> {
    let there = schema::columns_there(connection, "main")?;
    for relation in schema::relations()? {
        let (name, columns) = (&relation.name, relation.column_names());
        let lacks = |has: &HashSet<String>| columns.iter().any(|column| !has.contains(column));
        let is_missing = schema::lacks(connection, "main", name)?;
        if is_missing || there.get(name).is_some_and(lacks) {
            let select = Offsets::default().select(&relation, "main", &there);
            connection.execute_batch(&format!("CREATE TEMP VIEW {name} AS {select}"))?;
        }
    }
    Ok(())
}

/// Why a file has fewer rows than it should. It is shown all the same: a query is how one looks at what is wrong.
fn rows_missing(connection: &Connection, schema: &str, path: &Path) -> Option<DbError> {
    complete_file(connection, schema).err().map(DbError::reading(path))
}

/// A view for each relation of the schema. Those of the schema that are views themselves are evaluated in each file and
/// then put together: a join within a file finds its rows by id, one over all files could not.
fn side_by_side(connection: &Connection, files: &[PathBuf], ranks: &[i64]) -> anyhow::Result<()> {
    let mut offsets = Vec::with_capacity(files.len());
    let mut next = Offsets::default();
    for (index, (path, &rank)) in files.iter().zip(ranks).enumerate() {
        let name = format!("file{index}");
        attach(connection, path, &name)?;
        offsets.push((next.with_rank(rank), schema::columns_there(connection, &name)?));
        next = next.behind(connection, &name)?;
    }
    for relation in schema::relations()? {
        let is_shared = SHARED.contains(&relation.name.as_str());
        let parts: Vec<String> = offsets
            .iter()
            .enumerate()
            .take(if is_shared { 1 } else { files.len() })
            .map(|(index, (offsets, there))| {
                offsets.select(&relation, &format!("file{index}"), there)
            })
            .collect();
        let sql = format!("CREATE TEMP VIEW {} AS {}", relation.name, parts.join(" UNION ALL "));
        connection.execute_batch(&sql)?;
    }
    Ok(())
}
