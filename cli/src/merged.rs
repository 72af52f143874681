//! The files of several ranks as one database: copied together (`lapscope merge`), or side by side under views that
//! look as one (`lapscope sql`).

use std::collections::HashSet;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use crate::db::Database;
use crate::schema::{self, Offsets, Relation, SCHEMA_SQL, SHARED, VIEWS_SQL};

/// Copies `files` into the new database `output`, which appears whole or not at all. `progress` is told how many rows
/// were copied.
///
/// # Errors
/// `output` exists or cannot be written; a file cannot be read, or is of another job or format.
pub fn merge(files: &[PathBuf], output: &Path, progress: &dyn Fn(u64)) -> anyhow::Result<()> {
    if output.symlink_metadata().is_ok() {
        bail!("{} exists already; name another with --output", output.display());
    }
    check(files)?;
    let part = with_suffix(output, ".part");
    let _ = std::fs::remove_file(&part); // what an earlier merge left half done
    let create =
        || std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
    create().with_context(|| part.display().to_string())?;
    let result = copy_all(files, &part, progress)
        .and_then(|()| publish(&part, output).with_context(|| output.display().to_string()));
    if result.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    result
}

/// link() does not overwrite what another process may have put there meanwhile.
fn publish(part: &Path, output: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(part, output) {
        Ok(()) => std::fs::remove_file(part),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(error),
        Err(_) => std::fs::rename(part, output), // a file system without hard links
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// All of this format, of one job, and no rank twice.
fn check(files: &[PathBuf]) -> anyhow::Result<()> {
    let mut job: Option<(String, &Path)> = None;
    let mut seen = HashSet::new();
    for path in files {
        let database = Database::open(path)?;
        let mut statement = database.connection.prepare("SELECT job, rank, life FROM rank")?;
        let ranks = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        for rank in ranks {
            let (its_job, rank, life): (String, i64, i64) =
                rank.with_context(|| path.display().to_string())?;
            match &job {
                Some((job, first)) if *job != its_job => bail!(
                    "{} and {} are of different runs; a file holds the ranks of one",
                    first.display(),
                    path.display()
                ),
                Some(_) => {}
                None => job = Some((its_job, path)),
            }
            if !seen.insert((rank, life)) {
                bail!("{}: rank {rank} is in another of the files already", path.display());
            }
        }
    }
    Ok(())
}

fn copy_all(files: &[PathBuf], output: &Path, progress: &dyn Fn(u64)) -> anyhow::Result<()> {
    let connection = Connection::open_with_flags(
        output,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI,
    )?;
    // Nobody sees the file before it is whole, so nothing needs to survive a crash.
    connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
    connection.execute_batch(SCHEMA_SQL)?;
    connection.execute_batch(VIEWS_SQL)?;
    let relations = schema::relations()?;
    let tables: Vec<&Relation> =
        relations.iter().filter(|relation| relation.kind == "table").collect();
    let mut offsets = Offsets::default();
    for path in files {
        attach(&connection, path, "source")?;
        let current = offsets.with_life(&connection, "source")?;
        copy(&connection, &tables, &current, progress)
            .with_context(|| path.display().to_string())?;
        offsets = offsets.behind(&connection, "source")?;
        connection.execute_batch("DETACH source")?;
    }
    connection.close().map_err(|(_, error)| error.into())
}

fn copy(
    connection: &Connection,
    tables: &[&Relation],
    offsets: &Offsets,
    progress: &dyn Fn(u64),
) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN")?;
    for table in tables {
        let verb =
            if SHARED.contains(&table.name.as_str()) { "INSERT OR IGNORE" } else { "INSERT" };
        let columns = table.column_names();
        let sql = format!(
            "{verb} INTO main.{name} ({into}) SELECT {from} FROM source.{name}",
            name = table.name,
            into = columns.join(", "),
            from = offsets.select_list(&table.name, &columns)
        );
        progress(connection.execute(&sql, [])? as u64);
    }
    connection.execute_batch("COMMIT")
}

fn attach(connection: &Connection, path: &Path, name: &str) -> anyhow::Result<()> {
    let uri = read_only_uri(path)?;
    connection
        .execute(&format!("ATTACH ?1 AS {name}"), [uri])
        .with_context(|| path.display().to_string())?;
    Ok(())
}

fn read_only_uri(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path)?;
    let text = path.to_str().with_context(|| format!("{}: not in UTF-8", path.display()))?;
    let text = text.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Ok(format!("file://{text}?mode=ro"))
}

/// Several files open as one database.
pub struct Together {
    pub connection: Connection,
    /// Where they were copied together because there are too many to attach; goes when this goes.
    _copy: Option<tempfile::TempDir>,
}

/// Opens `files` for reading, as one database with the names of the schema. More than SQLite can attach are copied
/// together first, into a file under TMPDIR; `copying` is told before that.
///
/// # Errors
/// As [`merge`].
pub fn open_together(
    files: &[PathBuf],
    copying: &dyn Fn(&Path),
    progress: &dyn Fn(u64),
) -> anyhow::Result<Together> {
    check(files)?;
    if let [file] = files {
        return Ok(Together { connection: Database::open(file)?.connection, _copy: None });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_MEMORY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(":memory:", flags)?;
    if files.len() <= connection.limit(Limit::SQLITE_LIMIT_ATTACHED).max(0) as usize {
        side_by_side(&connection, files)?;
        connection.execute_batch("PRAGMA query_only = on")?;
        return Ok(Together { connection, _copy: None });
    }
    let directory = tempfile::Builder::new().prefix("lapscope-merged-").tempdir()?;
    let copy = directory.path().join("merged.db");
    copying(&copy);
    merge(files, &copy, progress)?;
    Ok(Together { connection: Database::open(&copy)?.connection, _copy: Some(directory) })
}

/// A view for each relation of the schema. Those of the schema that are views themselves are evaluated in each file and
/// then put together: a join within a file finds its rows by id, one over all files could not.
fn side_by_side(connection: &Connection, files: &[PathBuf]) -> anyhow::Result<()> {
    let mut offsets = Vec::with_capacity(files.len());
    let mut next = Offsets::default();
    for (index, path) in files.iter().enumerate() {
        let name = format!("file{index}");
        attach(connection, path, &name)?;
        offsets.push(next.with_life(connection, &name)?);
        next = next.behind(connection, &name)?;
    }
    for relation in schema::relations()? {
        let columns = relation.column_names();
        let is_shared = SHARED.contains(&relation.name.as_str());
        let parts: Vec<String> = offsets
            .iter()
            .enumerate()
            .take(if is_shared { 1 } else { files.len() })
            .map(|(index, offsets)| {
                let list = offsets.select_list(&relation.name, &columns);
                format!("SELECT {list} FROM file{index}.{}", relation.name)
            })
            .collect();
        let sql = format!("CREATE TEMP VIEW {} AS {}", relation.name, parts.join(" UNION ALL "));
        connection.execute_batch(&sql)?;
    }
    Ok(())
}
