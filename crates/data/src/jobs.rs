//! The database of many jobs, which `schema/jobs.def` describes: records of nodes are imported, and jobs read by filter and order.
//! Any number of importers may write at once, also from several machines: every change is one transaction, which waits for those of
//! others. So rows of a record appear together, and of two versions of it the later stays.

mod import;
mod node;
mod query;
#[cfg(test)]
mod tests;
mod walk;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use rusqlite::{Connection, OpenFlags, Row, ToSql, TransactionBehavior};
use serde::Serialize;

use crate::db::guard;
pub use import::Imported;
pub use query::{GroupBy, JobFilter, JobGroup, JobOrder, JobPlace, PlaceKind};

include!(concat!(env!("OUT_DIR"), "/generated/jobs.rs"));

const SQL: &str = include_str!(concat!(env!("OUT_DIR"), "/generated/jobs.sql"));

/// What is looked for besides keys: jobs of an executable, and jobs since a moment.
const INDICES: &str = "CREATE INDEX job_by_executable ON job (executable);
    CREATE INDEX job_by_begin ON job (began_unix_ns);";

/// How long a transaction waits for those of others. Each takes a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(300);

/// A table's row.
pub trait JobTable: Sized + 'static {
    const NAME: &'static str;
    const CELLS: &'static [(&'static str, Cell<Self>)];
    /// # Errors
    /// A column is missing, or holds what it cannot.
    fn read(row: &Row<'_>) -> rusqlite::Result<Self>;
    fn values(&self) -> Vec<&dyn ToSql>;

    /// The statement that writes a row, over one of the same key.
    fn insert() -> String {
        let places = vec!["?"; Self::CELLS.len()].join(", ");
        format!("INSERT OR REPLACE INTO {} VALUES ({places})", Self::NAME)
    }

    /// The list of columns for SELECT.
    fn columns() -> String {
        Self::CELLS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

/// How a column is made of a row; `None`: NULL.
pub enum Cell<R> {
    Whole(fn(&R) -> Option<i64>),
    Real(fn(&R) -> Option<f64>),
    Word(fn(&R) -> Option<&str>),
}

/// An open file.
pub struct JobsDatabase {
    connection: Connection,
}

impl JobsDatabase {
    /// Opens a file to write, and makes it where it is not there: for its owner's eyes, as it has command lines of all users.
    ///
    /// # Errors
    /// It cannot be made, or is no such database.
    pub fn create(path: &Path) -> Result<JobsDatabase> {
        let name = || path.display().to_string();
        OpenOptions::new().append(true).create(true).mode(0o600).open(path).with_context(name)?;
        let mut database = JobsDatabase::open_as(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        database.lay_out().with_context(name)?;
        database.check(path)?;
        Ok(database)
    }

    /// Opens a file that is there, to read.
    ///
    /// # Errors
    /// It is not there, or no such database.
    pub fn open(path: &Path) -> Result<JobsDatabase> {
        if !path.exists() {
            bail!(
                "there is no {}: name folders of records to import (lapscope jobs DIR...), or another --database",
                path.display()
            );
        }
        let database = JobsDatabase::open_as(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        database.check(path)?;
        Ok(database)
    }

    fn open_as(path: &Path, flags: OpenFlags) -> Result<JobsDatabase> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags);
        let connection = connection.with_context(|| path.display().to_string())?;
        connection.busy_timeout(PATIENCE)?;
        guard(&connection)?;
        Ok(JobsDatabase { connection })
    }

    /// Makes the tables of an empty file; of those who come at once the first does.
    fn lay_out(&mut self) -> rusqlite::Result<()> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let tables: i64 =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables == 0 {
            transaction.execute_batch(SQL)?;
            transaction.execute_batch(INDICES)?;
        }
        transaction.commit()
    }

    fn check(&self, path: &Path) -> Result<()> {
        let number = |pragma: &str| {
            self.connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0))
        };
        let shown = path.display();
        if number("application_id").ok() != Some(JOBS_APPLICATION_ID) {
            bail!("{shown} is no database of jobs: name another --database");
        }
        let version = number("user_version")?;
        if version != JOBS_VERSION {
            bail!(
                "{shown} was made by another version of lapscope (format {version}, this one has {JOBS_VERSION}): name another \
                 --database, and import the records anew"
            );
        }
        Ok(())
    }
}
