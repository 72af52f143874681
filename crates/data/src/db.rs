//! Opens runs: finds their files, checks that they are ours, reads definitions. Everything is read-only.
//!
//! Of files with few calls, opening is most of the time: each statement of its own locks the file and reads its first
//! page again, and each connection parses the schema. So one transaction spans all that is read of an open file, the
//! format is told from the first page before SQLite sees the file, whether tables are tables is asked of all of
//! them together, and a connection reads one file after the other (`in_turn`).

mod census;
pub mod check;
pub mod columns;
mod configuration;
mod copied;
mod counter_sums;
mod definitions;
mod guard;
pub mod ids;
mod in_turn;
mod leaves;
mod locate;
mod operations;
mod outcome;
mod request_memory;
mod rows;
pub mod rules;
mod samples;
mod scan;
mod small;
mod watches;

use std::path::{Path, PathBuf};

use rayon::iter::Either;
use rayon::prelude::*;
use rusqlite::{Connection, OpenFlags, Params, Row};
use thiserror::Error;

use crate::model::Rank;
use crate::store;
use check::BadValue;
use in_turn::{Idle, InTurn, NO_VERSION, VERSION_AT};

pub use census::Census;
pub use columns::FromRow;
pub use configuration::{
    cvars_of_first, environment_of_first, is_of_open_mpi, modules_of_first, settings_of_all,
    Configuration, SettingRow, ValuesByName,
};
pub use counter_sums::{read_counter_sums, CounterSum};
pub(crate) use definitions::collect;
pub use definitions::FileDefinitions;
pub use guard::{guard, unlimited};
pub use locate::{
    find_run, is_page, link_out, list_files, newer_sibling, parse_name, with_siblings, FileKey,
    RunFiles,
};
pub(crate) use operations::for_each_operation;
pub use operations::{
    has_counters, read_counters, scan_full_operations, FullOperation, OperationCache,
};
pub use outcome::{leaves_pending, FileOutcome, RankOutcome};
pub use request_memory::{has_request_memory, memory_of_request, read_request_memory};
pub use rows::{BadColumn, Rows};
pub use rules::{APPLICATION_ID, USER_VERSION};
pub use samples::{read_sample_posts, read_samplers, read_samples};
pub use scan::{rows_in, rows_to_scan, scan, scan_rows, scan_tallies, NoSink, RequestRow, RowSink};
pub use watches::{read_left_out, read_watchers, scan_watches};

/// Why a run, or one of its files, cannot be read.
#[derive(Debug, Error)]
pub enum DbError {
    #[error("no run directory (lapscope-*) with data here; name one, or record a run with: lapscope run -- mpirun -n 4 ./app")]
    NoRun,
    #[error("{0}: no such file or directory")]
    NotFound(PathBuf),
    #[error("{0}: no rank-*.db, node-*.db or rank-*.spool in it; a run directory is what `lapscope run` names when the program ends")]
    Empty(PathBuf),
    #[error("{0}: nothing was recorded of this run (LAPSCOPE_RECORD=off); what LAPSCOPE_INJECT=auto decided there: lapscope report {0}")]
    OnlyPages(PathBuf),
    #[error("{0}: not a lapscope database")]
    NotLapscope(PathBuf),
    #[error("{path}: format {found}, newer than format {USER_VERSION} that this lapscope reads; use the lapscope that recorded it, or a newer one")]
    Newer { path: PathBuf, found: i64 },
    #[error("{path}: format {found}, older than format {USER_VERSION} that this lapscope reads; use the lapscope that recorded it, or record the run again")]
    Older { path: PathBuf, found: i64 },
    #[error("{path}: damaged ({source}); if its spool is still there, delete this file and run: lapscope recover")]
    Damaged { path: PathBuf, source: rusqlite::Error },
    #[error("{0}: left in the middle of a change, which its journal beside it undoes: sqlite3 {0} 'PRAGMA quick_check' has it undone; where it may not be changed, of a copy of both")]
    Unfinished(PathBuf),
    #[error("{path}: {bad}. The file was changed or damaged; if its spool is still there, delete this file and run: lapscope recover")]
    BadValue { path: PathBuf, bad: BadValue },
    #[error("{path}: {what}, which lapscope never writes: the file was changed or made to mislead; if its spool is still there, delete this file and run: lapscope recover")]
    Foreign { path: PathBuf, what: String },
    #[error("{0}: reading it takes far more steps than a file of its size has rows: it was damaged or made to mislead; if its spool is still there, delete this file and run: lapscope recover")]
    Runaway(PathBuf),
    #[error("{path}: rank {rank} is in {first} already; keep one of the two in the directory")]
    RankTwice { path: PathBuf, rank: Rank, first: PathBuf },
    #[error("{0}: not a regular file")]
    NotRegular(PathBuf),
    #[error("{path}: a link to {target}, which is no file of the run directory: not read. {}", locate::instead(.path))]
    LinkOut { path: PathBuf, target: PathBuf },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    /// What another process said of it.
    #[error("{what}")]
    Elsewhere { path: PathBuf, what: String },
}

impl DbError {
    /// Turns what SQLite says while reading `path` into an error that names the file.
    pub fn reading(path: &Path) -> impl Fn(rusqlite::Error) -> DbError + '_ {
        move |source| match check::bad_value(&source) {
            Some(bad) => DbError::BadValue { path: path.into(), bad: bad.clone() },
            None if guard::is_stopped(&source) => DbError::Runaway(path.into()),
            // nothing here changes a file: SQLite wants to undo what somebody has begun
            None if source.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly) => {
                DbError::Unfinished(path.into())
            }
            None => DbError::Damaged { path: path.into(), source },
        }
    }

    /// The format of a file that another lapscope has written.
    pub fn other_format(&self) -> Option<i64> {
        match self {
            DbError::Newer { found, .. } | DbError::Older { found, .. } => Some(*found),
            _ => None,
        }
    }

    /// The file that could not be read; `None` where it is not about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            DbError::NoRun => None,
            DbError::NotFound(path)
            | DbError::Empty(path)
            | DbError::OnlyPages(path)
            | DbError::NotLapscope(path)
            | DbError::Runaway(path)
            | DbError::Unfinished(path)
            | DbError::NotRegular(path)
            | DbError::Newer { path, .. }
            | DbError::Older { path, .. }
            | DbError::Damaged { path, .. }
            | DbError::BadValue { path, .. }
            | DbError::Foreign { path, .. }
            | DbError::RankTwice { path, .. }
            | DbError::LinkOut { path, .. }
            | DbError::Elsewhere { path, .. }
            | DbError::Io { path, .. } => Some(path),
        }
    }
}

/// A database open for reading.
#[derive(Debug)]
pub struct Database {
    pub path: PathBuf,
    pub connection: Connection,
    /// Where the connection may read other files.
    in_turn: Option<InTurn>,
}

impl Database {
    /// Opens `path` read-only and checks that it is a lapscope database of this format, whose tables are tables. Statements
    /// end where they take more than a file of its size can need.
    ///
    /// # Errors
    /// [`DbError`] naming the file: not found, not ours, of another format, or damaged.
    pub fn open(path: &Path) -> Result<Database, DbError> {
        let header = read_header(path)?;
        header.check(path)?;
        Database::open_by(path, &header, store::vfs())
    }

    /// By one of SQLite's ways to files.
    fn open_by(path: &Path, header: &Header, vfs: &str) -> Result<Database, DbError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags_and_vfs(path, flags, vfs)
            .map_err(DbError::reading(path))?;
        guard(&connection).map_err(DbError::reading(path))?;
        let database = Database { path: path.into(), connection, in_turn: None };
        database.begin(header).map_err(DbError::reading(path))?;
        guard::only_tables(&database)?;
        Ok(database)
    }

    /// Each statement of its own would lock the file and look for its journal: most of what a small file costs.
    fn begin(&self, header: &Header) -> rusqlite::Result<()> {
        guard::limit_work(&self.connection, header.bytes);
        self.connection.execute_batch("BEGIN")
    }
}

/// What the first page of a file says of it (<https://sqlite.org/fileformat2.html#the_database_header>).
struct Header {
    /// Size of the whole file.
    bytes: u64,
    application_id: i64,
    user_version: i64,
    /// How its pages are laid out: what SQLite knows of a file without asking again.
    layout: Vec<u8>,
    /// What SQLite puts beside it while it is changed, and says there how it goes on, or goes back.
    beside: [PathBuf; 3],
    /// Whether some of it is there, or would be where the file is written to a log, or SQLite could not tell the file from another.
    is_for_itself: bool,
}

impl Header {
    fn check(&self, path: &Path) -> Result<(), DbError> {
        let (path, found) = (path.into(), self.user_version);
        if self.application_id != APPLICATION_ID {
            return Err(DbError::NotLapscope(path));
        }
        match found.cmp(&USER_VERSION) {
            std::cmp::Ordering::Less => Err(DbError::Older { path, found }),
            std::cmp::Ordering::Greater => Err(DbError::Newer { path, found }),
            std::cmp::Ordering::Equal => Ok(()),
        }
    }
}

/// SQLite opens anything and complains at the first query, and an empty file is to it an empty database. A FIFO would hold
/// it for ever, also one with the name of the file's journal.
fn read_header(path: &Path) -> Result<Header, DbError> {
    use std::io::{ErrorKind, Read};
    const BYTES: usize = 100;
    const USER_VERSION_AT: usize = 60;
    const APPLICATION_ID_AT: usize = 68;
    const VERSIONS_AT: std::ops::Range<usize> = 18..20;
    const WITH_LOG: u8 = 2;
    /// Sizes of pages, versions and fractions; counter and format of the schema; whether pages move, and the encoding of texts.
    const LAYOUT_AT: [std::ops::Range<usize>; 3] = [16..24, 40..48, 52..60];
    let io = |source| DbError::Io { path: path.into(), source };
    let mut file = crate::files::open_regular(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => DbError::NotFound(path.into()),
        ErrorKind::InvalidInput => DbError::NotRegular(path.into()),
        _ => io(error),
    })?;
    // SQLite follows links to the file, and from there on none
    let is_link = path.symlink_metadata().is_ok_and(|facts| facts.is_symlink());
    let real = is_link.then(|| path.canonicalize().ok()).flatten();
    let real = real.as_deref().unwrap_or(path);
    let beside = ["-journal", "-wal", "-shm"].map(|suffix| {
        let mut beside = real.as_os_str().to_owned();
        beside.push(suffix);
        PathBuf::from(beside)
    });
    let mut has_beside = false;
    for path in &beside {
        let Ok(facts) = path.symlink_metadata() else { continue };
        if !facts.is_file() {
            return Err(DbError::NotRegular(path.clone()));
        }
        has_beside = true;
    }
    let mut header = [0u8; BYTES];
    match file.read_exact(&mut header) {
        Ok(()) if header.starts_with(b"SQLite format 3\0") => {}
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(io(error)),
        _ => return Err(DbError::NotLapscope(path.into())),
    }
    let number = |at: usize| {
        let mut bytes = [0u8; 4];
        bytes.copy_from_slice(&header[at..at + 4]);
        i64::from(i32::from_be_bytes(bytes))
    };
    Ok(Header {
        bytes: file.metadata().map_err(io)?.len(),
        application_id: number(APPLICATION_ID_AT),
        user_version: number(USER_VERSION_AT),
        layout: LAYOUT_AT.into_iter().flat_map(|range| header[range].to_vec()).collect(),
        beside,
        is_for_itself: has_beside
            || header[VERSIONS_AT].contains(&WITH_LOG)
            || header[VERSION_AT] == NO_VERSION,
    })
}

/// As rusqlite has it, by a statement that the connection keeps.
pub(crate) fn query_row<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.prepare_cached(sql)?.query_row(parameters, read)
}

/// The answers for the files that could be read, in the order of the files, and why the others could not.
#[derive(Debug)]
pub struct PerFile<T> {
    pub read: Vec<T>,
    pub failed: Vec<DbError>,
}

/// Runs `work` on every database, as many at a time as there are processors.
///
/// # Errors
/// The first file's error when no file could be read.
pub fn for_each_file<T, F>(paths: &[PathBuf], work: F) -> Result<PerFile<T>, DbError>
where
    T: Send,
    F: Fn(&Database, FileDefinitions) -> Result<T, DbError> + Sync,
{
    let (read, mut failed) =
        side_by_side(paths, |database| work(database, FileDefinitions::read(database)?));
    if read.is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0));
    }
    Ok(PerFile { read, failed })
}

/// What `one` makes of every file, in their order, and why of some it makes nothing. A thread has one file open at a time:
/// `one` must not give work to other threads, or its own would begin another file meanwhile.
pub(crate) fn side_by_side<T: Send>(
    paths: &[PathBuf],
    one: impl Fn(&Database) -> Result<T, DbError> + Sync,
) -> (Vec<T>, Vec<DbError>) {
    let idle = Idle::default();
    let read = |path: &PathBuf| {
        let database = idle.open(path)?;
        let read = one(&database)?;
        idle.take_back(database);
        Ok(read)
    };
    paths.par_iter().with_max_len(1).partition_map(|path| match read(path) {
        Ok(value) => Either::Left(value),
        Err(error) => Either::Right(error),
    })
}
