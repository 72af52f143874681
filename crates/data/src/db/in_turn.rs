//! Connections that read one file after the other.
//!
//! To parse a file's schema and to compile what is asked of it takes many times longer than to read few rows, and the files of a run
//! have one schema. So a connection that is done with a file gets the next one put beneath it. To SQLite that is a file which another
//! process has changed meanwhile. It learns of that by the change counter when a transaction begins
//! (<https://sqlite.org/fileformat2.html#file_change_counter>): after each change of files it is shown one that no file has, once.
//! What no counter tells, how a file is laid out and its schema, is compared here. A file with a journal is left to a connection of
//! its own, and so is one with another layout or schema.

use std::ffi::{c_int, c_void, CString};
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut, NonNull};
use std::sync::{Mutex, OnceLock};

use rusqlite::types::ValueRef;
use rusqlite::{ffi, Connection};

use super::{read_header, Database, DbError, Header};
use crate::store;

/// A version that no file has to have: SQLite is shown it where the file is another.
pub(super) const NO_VERSION: [u8; 16] = [0xff; 16];
/// Where a file has its own: the change counter and what SQLite compares with it.
pub(super) const VERSION_AT: std::ops::Range<usize> = 24..40;

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
    database.in_turn = Some(InTurn { layout: header.layout.clone(), schema, name: None });
    Ok(database)
}

/// The database of another file, by the connection of one that was read; `None`: it has to be opened by another.
fn put_beneath(mut idle: Database, path: &Path, header: &Header) -> Option<Database> {
    let in_turn = idle.in_turn.as_mut().filter(|of| of.layout == header.layout)?;
    let (file, name) = (file_of(&idle.connection)?, FileName::new(path)?);
    let is_there = change_file(file, &name);
    in_turn.name = Some(name); // the one before was closed
    path.clone_into(&mut idle.path);
    if !is_there {
        return None;
    }
    idle.begin(header).ok()?;
    let schema = read_schema(&idle.connection).ok()?;
    let is_same = idle.in_turn.as_ref().is_some_and(|of| of.schema == schema);
    (is_same && !is_new(file) && is_alone(header)).then_some(idle)
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

/// SQLite's way to files whose files can be changed for others. It starts with what SQLite wants to have of it.
#[repr(C)]
struct Vfs {
    vfs: ffi::sqlite3_vfs,
    base: *mut ffi::sqlite3_vfs,
    methods: OnceLock<Methods>,
}

/// What SQLite does with a file: all but `read` as ever.
struct Methods {
    all: ffi::sqlite3_io_methods,
    read: unsafe extern "C" fn(*mut ffi::sqlite3_file, *mut c_void, c_int, i64) -> c_int,
}

// SAFETY: filled once, and read from then on; SQLite's own does the same.
unsafe impl Send for Vfs {}
unsafe impl Sync for Vfs {}

const NAME: &std::ffi::CStr = c"lapscope-in-turn";

fn the_vfs() -> Option<&'static Vfs> {
    static VFS: OnceLock<Option<Box<Vfs>>> = OnceLock::new();
    let fill = || {
        let name = CString::new(store::vfs()).ok()?;
        // SAFETY: a text that ends with a zero. What is found is never let go of.
        let base = NonNull::new(unsafe { ffi::sqlite3_vfs_find(name.as_ptr()) })?.as_ptr();
        // SAFETY: it is a VFS, and plain data.
        let mut vfs = unsafe { std::ptr::read(base) };
        vfs.zName = NAME.as_ptr();
        vfs.pNext = null_mut();
        // behind a file stands whether it is new
        vfs.szOsFile += size_of::<u64>() as c_int;
        vfs.xOpen = Some(open);
        vfs.xAccess = Some(is_nowhere);
        Some(Box::new(Vfs { vfs, base, methods: OnceLock::new() }))
    };
    VFS.get_or_init(fill).as_deref()
}

/// Its name, when SQLite knows it.
fn vfs() -> Option<&'static str> {
    static IS_KNOWN: OnceLock<bool> = OnceLock::new();
    let make_known = || {
        let Some(ours) = the_vfs() else { return false };
        let ours = std::ptr::from_ref(&ours.vfs).cast_mut();
        // SAFETY: it lives as long as the process; SQLite alone changes it from here on.
        unsafe { ffi::sqlite3_vfs_register(ours, 0) == ffi::SQLITE_OK }
    };
    IS_KNOWN.get_or_init(make_known).then(|| NAME.to_str().ok()).flatten()
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let Some((ours, open)) = the_vfs().and_then(|ours| Some((ours, (*ours.base).xOpen?))) else {
        return ffi::SQLITE_CANTOPEN;
    };
    let code = open(ours.base, name, file, flags, out);
    if code == ffi::SQLITE_OK && flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        let methods = ours.methods.get_or_init(|| Methods::of(&*(*file).pMethods));
        (*file).pMethods = &methods.all;
        *newness(ours, file) = 0;
    }
    code
}

impl Methods {
    fn of(base: &ffi::sqlite3_io_methods) -> Methods {
        // SAFETY: plain data.
        let mut all = unsafe { std::ptr::read(base) };
        let read = all.xRead.expect("every file can be read");
        all.xRead = Some(read_or_differ);
        Methods { all, read }
    }
}

/// Of journals and the like: there is none, which was looked for.
unsafe extern "C" fn is_nowhere(
    _: *mut ffi::sqlite3_vfs,
    _: *const std::ffi::c_char,
    _: c_int,
    is_there: *mut c_int,
) -> c_int {
    *is_there = 0;
    ffi::SQLITE_OK
}

/// Behind a file of ours: whether nobody has looked at its change counter.
unsafe fn newness(ours: &Vfs, file: *mut ffi::sqlite3_file) -> *mut u64 {
    file.cast::<u8>().add((*ours.base).szOsFile as usize).cast()
}

fn is_new(file: *mut ffi::sqlite3_file) -> bool {
    // SAFETY: it was opened by `open`.
    the_vfs().is_some_and(|ours| unsafe { *newness(ours, file) } != 0)
}

/// As SQLite reads; but where it asks whether another process has changed the file, a new one has been.
unsafe extern "C" fn read_or_differ(
    file: *mut ffi::sqlite3_file,
    bytes: *mut c_void,
    count: c_int,
    at: i64,
) -> c_int {
    const VERSION: (i64, c_int) = (VERSION_AT.start as i64, NO_VERSION.len() as c_int);
    let Some(ours) = the_vfs() else { return ffi::SQLITE_IOERR_READ };
    if (at, count) == VERSION && std::mem::take(&mut *newness(ours, file)) != 0 {
        bytes.cast::<[u8; NO_VERSION.len()]>().write(NO_VERSION);
        return ffi::SQLITE_OK;
    }
    match ours.methods.get() {
        Some(methods) => (methods.read)(file, bytes, count, at),
        None => ffi::SQLITE_IOERR_READ,
    }
}

/// The open file of a connection.
fn file_of(connection: &Connection) -> Option<*mut ffi::sqlite3_file> {
    let mut file: *mut ffi::sqlite3_file = null_mut();
    let into = std::ptr::from_mut(&mut file).cast();
    // SAFETY: the connection is open, and `file` is written before the call returns.
    let code = unsafe {
        let (handle, which) = (connection.handle(), c"main".as_ptr());
        ffi::sqlite3_file_control(handle, which, ffi::SQLITE_FCNTL_FILE_POINTER, into)
    };
    (code == ffi::SQLITE_OK && !file.is_null()).then_some(file)
}

/// Bytes of the file of a connection; `None`: it has none.
pub(super) fn file_bytes(connection: &Connection) -> Option<i64> {
    let file = file_of(connection)?;
    let mut bytes = 0;
    // SAFETY: the connection has it open, or it has no methods.
    unsafe {
        let size = (*file).pMethods.as_ref()?.xFileSize?;
        (size(file, &mut bytes) == ffi::SQLITE_OK).then_some(bytes)
    }
}

/// Closes a file of ours, which no transaction reads, and opens another in its place. Whether that could be opened.
fn change_file(file: *mut ffi::sqlite3_file, name: &FileName) -> bool {
    let Some(ours) = the_vfs() else { return false };
    let flags = ffi::SQLITE_OPEN_READONLY | ffi::SQLITE_OPEN_MAIN_DB;
    // SAFETY: the file is open. Without methods it is to SQLite one that is closed. The name lives as long as the file is open.
    unsafe {
        if let Some(close) = (*(*file).pMethods).xClose {
            close(file);
        }
        (*file).pMethods = null();
        let vfs = std::ptr::from_ref(&ours.vfs).cast_mut();
        let is_open = open(vfs, name.0.as_ptr(), file, flags, &mut 0) == ffi::SQLITE_OK;
        if is_open {
            *newness(ours, file) = 1;
        }
        is_open
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
    }

    #[test]
    fn a_file_of_another_kind_is_read_by_another_connection() {
        let other_schema = "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'host ', 'host  ') WHERE name = 'rank'";
        let other_places = "CREATE TABLE mine (x); DROP TABLE mine; DROP VIEW IF EXISTS calls";
        let other_pages = "PRAGMA page_size = 8192; VACUUM";
        for other in [other_schema, other_places, other_pages, "PRAGMA journal_mode = wal"] {
            let (_directory, paths) = files(&["", other, "", ""]);
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
