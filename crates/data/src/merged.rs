//! The files of several ranks as one database: copied together (`lapscope export sqlite`), or side by side under views that
//! look as one (`lapscope sql`).

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context};
use rusqlite::{Connection, OpenFlags};

use crate::db::check;
use crate::db::ids::Ends;
use crate::db::{guard, Database, DbError, FileDefinitions};
use crate::model::{Rank, RankInfo};
use crate::schema::{self, ColumnsThere, Offsets, Relation, SCHEMA_SQL, SHARED, VIEWS_SQL};
use crate::store;

mod kept;
mod together;

pub use together::{open_together, Together};

/// Copies `files` into the new database `output`, which appears whole or not at all. `progress` is told how many rows
/// were copied.
///
/// Files with rows that cannot be are left out; returns why.
///
/// # Errors
/// `output` exists or cannot be written; no file can be read, or one is of another job or format.
pub fn merge(
    files: &[PathBuf],
    output: &Path,
    progress: &dyn Fn(u64),
) -> anyhow::Result<Vec<DbError>> {
    if output.symlink_metadata().is_ok() {
        bail!("{} exists already; name another with --output", output.display());
    }
    let ranks = check(files)?;
    let part = with_suffix(output, ".part");
    let _ = std::fs::remove_file(&part); // what an earlier merge left half done
    let create =
        || std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
    create().with_context(|| part.display().to_string())?;
    let result = copy_all(files, &ranks, &part, progress).and_then(|left_out| {
        publish(&part, output).with_context(|| output.display().to_string()).map(|()| left_out)
    });
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

/// All of this format, of one job, and no rank twice. Says what to add to the keys of each file's ranks.
fn check(files: &[PathBuf]) -> anyhow::Result<Vec<i64>> {
    let mut first: Option<(String, &Path)> = None;
    let mut seen = HashSet::new();
    let mut ranks_of_files = Vec::with_capacity(files.len());
    for path in files {
        let ranks = FileDefinitions::read_ranks(&Database::open(path)?)?;
        for info in &ranks {
            // a spool that was cut may have lost the name of its job
            if info.job.is_empty() {
                continue;
            }
            let (job, first) = first.get_or_insert_with(|| (info.job.clone(), path));
            if *job != info.job {
                bail!(
                    "{} and {} are of different runs; a file holds the ranks of one",
                    first.display(),
                    path.display()
                );
            }
        }
        for info in &ranks {
            if !seen.insert((info.rank, info.life)) {
                bail!("{}: rank {} is in another of the files already", path.display(), info.rank);
            }
        }
        ranks_of_files.push(ranks);
    }
    Ok(rank_offsets(&ranks_of_files))
}

/// Ranks of the first world keep their number as key. Those of other worlds and further lives, which have the same
/// numbers, get keys behind them; so does a file of many ranks whose keys others have already.
fn rank_offsets(files: &[Vec<RankInfo>]) -> Vec<i64> {
    let is_first = |info: &RankInfo| info.rank.world == Rank::FIRST_WORLD && info.life == 1;
    let all = files.iter().flatten();
    let largest =
        all.map(|info| info.key.0.max(if is_first(info) { info.world_size - 1 } else { 0 }));
    let mut free = largest.max().map_or(0, |key| key.saturating_add(1));
    let mut used = HashSet::new();
    let mut offset = |ranks: &Vec<RankInfo>| {
        let keys = || ranks.iter().map(|info| info.key.0);
        let stays = (ranks.len() > 1 || ranks.iter().all(is_first))
            && keys().all(|key| !used.contains(&key));
        let least = keys().min().unwrap_or(0);
        let offset = if stays { 0 } else { free - least };
        free = free.max(keys().max().map_or(0, |key| key + offset + 1));
        used.extend(keys().map(|key| key + offset));
        offset
    };
    files.iter().map(&mut offset).collect()
}

fn copy_all(
    files: &[PathBuf],
    ranks: &[i64],
    output: &Path,
    progress: &dyn Fn(u64),
) -> anyhow::Result<Vec<DbError>> {
    let connection = Connection::open_with_flags_and_vfs(
        output,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI,
        store::vfs(),
    )?;
    guard(&connection)?;
    // Nobody sees the file before it is whole, so nothing needs to survive a crash; but what was copied of a file goes again
    // when a row of it cannot be. Large pages are fewer to fill and to write.
    connection.execute_batch(
        "PRAGMA page_size = 16384; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF",
    )?;
    connection.execute_batch(SCHEMA_SQL)?;
    connection.execute_batch(VIEWS_SQL)?;
    let relations = schema::relations()?;
    let tables: Vec<&Relation> =
        relations.iter().filter(|relation| relation.kind == "table").collect();
    let mut offsets = Offsets::default();
    let mut left_out = Vec::new();
    for (path, &rank) in files.iter().zip(ranks) {
        attach(&connection, path, "source")?;
        let current = offsets.with_rank(rank);
        let copied = copy(&connection, &tables, &current, progress)
            .and_then(|()| offsets.behind(&connection, "source"));
        match copied {
            Ok(next) => {
                connection.execute_batch("COMMIT")?;
                offsets = next;
            }
            Err(error) => {
                // the disk may be full, too; then nothing else can be copied either
                if is_of_output(&error) {
                    return Err(error).with_context(|| output.display().to_string());
                }
                connection.execute_batch("ROLLBACK")?;
                left_out.push(DbError::reading(path)(error));
            }
        }
        connection.execute_batch("DETACH source")?;
    }
    if left_out.len() == files.len() {
        return Err(left_out.swap_remove(0).into());
    }
    connection.close().map_err(|(_, error)| error)?;
    Ok(left_out)
}

/// Whether an error says that the output cannot be written.
fn is_of_output(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, DiskFull, ReadOnly, SystemIoFailure};
    let code = error.sqlite_error_code();
    code.is_some_and(|code| [CannotOpen, DiskFull, ReadOnly, SystemIoFailure].contains(&code))
}

fn copy(
    connection: &Connection,
    tables: &[&Relation],
    offsets: &Offsets,
    progress: &dyn Fn(u64),
) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN")?;
    let there = schema::columns_there(connection, "source")?;
    for table in tables {
        progress(copy_table(connection, table, offsets, &there)?);
    }
    check::ends_agree(connection, "source")
}

/// Copies the rows of `source` that can be, which must be all. Returns how many there are.
fn copy_table(
    connection: &Connection,
    table: &Relation,
    offsets: &Offsets,
    columns_there: &ColumnsThere,
) -> rusqlite::Result<u64> {
    let name = table.name.as_str();
    if schema::lacks(connection, "source", name)? {
        return Ok(0);
    }
    let source = format!("source.{name}");
    let is_shared = SHARED.contains(&name);
    let there: i64 =
        connection.query_row(&format!("SELECT count(*) FROM {source}"), [], |row| row.get(0))?;
    let mut columns = table.column_names();
    if ["call", "request"].contains(&name) {
        check::complete(connection, &source, there as u64)?;
        // Their ids count up from 1, and so does SQLite where it is not told any, in less time.
        let continues =
            Ends::read(connection, &format!("main.{name}"))?.last == offsets.offset(name);
        if continues && Ends::read(connection, &source)?.first == 1 {
            columns.retain(|column| column != "id");
        }
    }
    let sql = format!(
        "{verb} INTO main.{name} ({into}) SELECT {from} FROM {source} WHERE {valid}",
        verb = if is_shared { "INSERT OR IGNORE" } else { "INSERT" },
        into = columns.join(", "),
        from = offsets.select_list(name, &columns, columns_there),
        valid = check::valid_row(connection, "source", name)?,
    );
    let copied = connection.execute(&sql, [])? as i64;
    if !is_shared && copied != there {
        return Err(match check::first_bad_row(connection, "source", name) {
            Ok(bad) => bad,
            Err(rusqlite::Error::QueryReturnedNoRows) => {
                check::impossible(name, "ids do not count up".to_owned())
            }
            Err(error) => error,
        });
    }
    Ok(copied as u64)
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
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let mut uri = String::from("file://");
    for &byte in path.as_os_str().as_bytes() {
        if plain(byte) {
            uri.push(char::from(byte));
        } else {
            uri += &format!("%{byte:02x}"); // names of files are bytes, of no encoding
        }
    }
    Ok(format!("{uri}?mode=ro&vfs={}", store::vfs()))
}

#[cfg(test)]
mod tests;
