//! Connections that read one file after the other.
//!
//! To parse a file's schema and to compile what is asked of it takes many times longer than to read few rows, and the files of a run
//! have one schema. So a connection that is done with a file gets the next one put beneath it. To SQLite that is a file which another
//! process has changed meanwhile. It learns of that by the change counter when a transaction begins
//! (<https://sqlite.org/fileformat2.html#file_change_counter>): after each change of files it is shown one that no file has, once.
//! What no counter tells, how a file is laid out and its schema, is compared here. A file with a journal is left to a connection of
//! its own, and so is one with another layout or schema.

mod files;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null_mut, NonNull};
use std::sync::Mutex;

use rusqlite::types::ValueRef;
use rusqlite::{ffi, Connection};

pub(super) use self::files::{file_bytes, NO_VERSION, VERSION_AT};
use self::files::{vfs, FilePiece, OpenFile};
use super::{query_row, read_header, Database, DbError, Header};

/// Statements that a connection keeps: about those that a command asks of a file.
const KEPT_STATEMENTS: usize = 100;

/// Databases that were read, whose connections can read others.
#[derive(Default)]
pub(super) struct Idle(Mutex<Vec<Database>>);

impl Idle {
    /// Opens a file as [`Database::open`] does.
    pub fn open(&self, path: &Path) -> Result<Database, DbError> {
        let header = read_header(path)?;
        header.check(path)?;
        if header.is_for_itself {
            return Database::open(path);
        }
        let idle = self.0.lock().ok().and_then(|mut idle| idle.pop());
        match idle.and_then(|idle| put_beneath(idle, path, &header)) {
            Some(database) => Ok(database),
            None => open_first(path, &header),
        }
    }

    /// Takes a database back of which all was read without an error.
    pub fn take_back(&self, database: Database) {
        let is_in_turn = database.in_turn.is_some();
        if is_in_turn && database.connection.execute_batch("COMMIT").is_ok() {
            if let Ok(mut idle) = self.0.lock() {
                idle.push(database);
            }
        }
    }
}

/// What is true of the file beneath a connection, and has to be of the next.
#[derive(Debug)]
pub(super) struct InTurn {
    layout: Vec<u8>,
    schema: Vec<u8>,
    /// What SQLite reads of a file for that; empty: not known yet.
    schema_at: Vec<FilePiece>,
    /// As long as the file is open; `None`: that is SQLite's own matter.
    name: Option<FileName>,
}

fn open_first(path: &Path, header: &Header) -> Result<Database, DbError> {
    let Some(vfs) = vfs() else { return Database::open(path) };
    let mut database = Database::open_by(path, header, vfs)?;
    let connection = &database.connection;
    connection.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
    let schema = read_schema(connection).map_err(DbError::reading(path))?;
    if !is_alone(header) {
        return Database::open(path);
    }
    database.in_turn =
        Some(InTurn { layout: header.layout.clone(), schema, schema_at: Vec::new(), name: None });
    Ok(database)
}

/// The database of another file, by the connection of one that was read; `None`: it has to be opened by another.
fn put_beneath(mut idle: Database, path: &Path, header: &Header) -> Option<Database> {
    let in_turn = idle.in_turn.as_mut().filter(|of| of.layout == header.layout)?;
    let (file, name) = (OpenFile::of(&idle.connection)?, FileName::new(path)?);
    let is_there = file.change(&name);
    in_turn.name = Some(name); // the one before was closed
    path.clone_into(&mut idle.path);
    if !is_there {
        return None;
    }
    idle.begin(header).ok()?;
    let is_same = has_same_schema(&mut idle, file).ok()?;
    (is_same && !file.is_new() && is_alone(header)).then_some(idle)
}

/// Whether the file of a connection has the schema of the one before. Where the bytes are the same that SQLite read there to tell it,
/// SQLite would tell the same.
fn has_same_schema(idle: &mut Database, file: OpenFile) -> rusqlite::Result<bool> {
    let Database { connection, in_turn: Some(known), .. } = idle else { return Ok(false) };
    if !known.schema_at.is_empty() {
        // it begins to read the file
        query_row(connection, "PRAGMA schema_version", [], |_| Ok(()))?;
        if known.schema_at.iter().all(|piece| file.has(piece)) {
            return Ok(true);
        }
    }
    file.note_pieces();
    let schema = read_schema(connection)?;
    let pieces = file.noted_pieces();
    if known.schema_at.is_empty() {
        known.schema_at = pieces;
    }
    Ok(known.schema == schema)
}

/// Whether nothing is beside a file that is read, of which nobody can begin to change pages.
fn is_alone(header: &Header) -> bool {
    header.beside.iter().all(|path| path.symlink_metadata().is_err())
}

/// All that a file says of its schema, as bytes.
fn read_schema(connection: &Connection) -> rusqlite::Result<Vec<u8>> {
    let mut all = Vec::new();
    let sql = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema";
    let mut statement = connection.prepare_cached(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            let number;
            let (kind, bytes): (u8, &[u8]) = match row.get_ref(column)? {
                ValueRef::Text(text) => (0, text),
                ValueRef::Integer(value) => {
                    number = value.to_ne_bytes();
                    (1, &number)
                }
                ValueRef::Null => (2, &[]),
                ValueRef::Blob(bytes) => (3, bytes),
                ValueRef::Real(value) => {
                    number = value.to_ne_bytes();
                    (4, &number)
                }
            };
            all.push(kind);
            all.extend(bytes.len().to_ne_bytes());
            all.extend(bytes);
        }
    }
    Ok(all)
}

/// A name as SQLite's files want it.
#[derive(Debug)]
struct FileName(NonNull<std::ffi::c_char>);

// SAFETY: memory of SQLite's, used by who has it.
unsafe impl Send for FileName {}

impl FileName {
    fn new(path: &Path) -> Option<FileName> {
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        let (name, nothing) = (name.as_ptr(), c"".as_ptr());
        // SAFETY: texts that end with a zero, which are copied; there are no parameters.
        let name = unsafe { ffi::sqlite3_create_filename(name, nothing, nothing, 0, null_mut()) };
        NonNull::new(name.cast_mut()).map(FileName)
    }
}

impl Drop for FileName {
    fn drop(&mut self) {
        // SAFETY: made by `new`; its file was closed before.
        unsafe { ffi::sqlite3_free_filename(self.0.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use lapscope_fixture::tables::Rank;
    use tempfile::TempDir;

    use super::*;

    /// Files that were made alike, of which each says something else.
    fn files(changes: &[&str]) -> (TempDir, Vec<std::path::PathBuf>) {
        let directory = tempfile::tempdir().unwrap();
        let one = |(number, change): (usize, &&str)| {
            let place = directory.path().join(number.to_string());
            std::fs::create_dir(&place).unwrap();
            let host = &format!("host{number}");
            Rank { host, ..Rank::plain(0) }.write(&place, |_| ());
            let path = place.join("rank-0.db");
            if !change.is_empty() {
                Connection::open(&path).unwrap().execute_batch(change).unwrap();
            }
            path
        };
        let all = changes.iter().enumerate().map(one).collect();
        (directory, all)
    }

    /// The host that each file names, and by how many connections they were read.
    fn read(paths: &[std::path::PathBuf]) -> (Vec<String>, usize) {
        let idle = Idle::default();
        let mut connections = std::collections::HashSet::new();
        let one = |path: &std::path::PathBuf| {
            let database = idle.open(path).unwrap();
            // SAFETY: it is compared, nothing else.
            connections.insert(unsafe { database.connection.handle() } as usize);
            let mut statement =
                database.connection.prepare_cached("SELECT host FROM rank").unwrap();
            let host = statement.query_row([], |row| row.get(0)).unwrap();
            drop(statement);
            idle.take_back(database);
            host
        };
        let hosts = paths.iter().map(one).collect();
        (hosts, connections.len())
    }

    const HOSTS: [&str; 4] = ["host0", "host1", "host2", "host3"];

    #[test]
    fn files_of_one_schema_are_read_by_one_connection() {
        let (_directory, paths) = files(&["", "", "", ""]);
        let counter = |path| std::fs::read(path).unwrap()[24..28].to_vec();
        assert_eq!(counter(&paths[0]), counter(&paths[1]), "SQLite could not tell them apart");
        let (hosts, connections) = read(&paths);
        assert_eq!(hosts, HOSTS);
        assert!(connections == 1 || vfs().is_none(), "{connections}");
        // nor does it matter how large they are, or that pages of the schema hold what was there before
        let large = "UPDATE rank SET command = printf('%.*c', 400000, 'x')";
        let gone = "CREATE TABLE mine (x); DROP TABLE mine; PRAGMA schema_version = 0";
        for other in [large, gone] {
            let (_directory, paths) = files(&["", "", other, ""]);
            let (hosts, _) = read(&paths);
            assert_eq!(hosts, HOSTS, "{other}");
        }
    }

    #[test]
    fn a_file_of_another_kind_is_read_by_another_connection() {
        let other_schema = "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'host ', 'host  ') WHERE name = 'rank'";
        let other_places = "CREATE TABLE mine (x); DROP TABLE mine; DROP VIEW IF EXISTS calls";
        let other_pages = "PRAGMA page_size = 8192; VACUUM";
        let others = [other_schema, other_places, other_pages, "PRAGMA journal_mode = wal"];
        for (other, place) in others.into_iter().flat_map(|other| [(other, 1), (other, 2)]) {
            let mut changes = [""; HOSTS.len()];
            changes[place] = other;
            let (_directory, paths) = files(&changes);
            let (hosts, connections) = read(&paths);
            assert_eq!(hosts, HOSTS, "{other}");
            assert!(connections > 1, "{other}");
        }
    }

    #[test]
    fn a_journal_is_left_to_a_connection_of_its_own() {
        let (_directory, paths) = files(&["", "", ""]);
        let idle = Idle::default();
        idle.take_back(idle.open(&paths[0]).unwrap());
        let beside = |path: &Path| Path::new(&format!("{}-journal", path.display())).to_path_buf();
        std::fs::write(beside(&paths[1]), "").unwrap();
        let opened = idle.open(&paths[1]).unwrap();
        assert!(opened.in_turn.is_none());
        assert!(idle.open(&paths[2]).unwrap().in_turn.is_some() || vfs().is_none());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused_and_the_next_is_read() {
        let (_directory, paths) = files(&["", "", ""]);
        let mut bytes = std::fs::read(&paths[1]).unwrap();
        bytes[100..].fill(0x5a);
        std::fs::write(&paths[1], bytes).unwrap();
        let idle = Idle::default();
        idle.take_back(idle.open(&paths[0]).unwrap());
        assert!(matches!(idle.open(&paths[1]), Err(DbError::Damaged { .. })));
        std::fs::remove_file(&paths[1]).unwrap();
        assert!(matches!(idle.open(&paths[1]), Err(DbError::NotFound(_))));
        assert_eq!(read(&paths[2..]).0, ["host2"]);
    }
}
