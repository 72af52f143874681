//! The files of several ranks as one database: copied together (`lapscope merge`), or side by side under views that
//! look as one (`lapscope sql`).

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use crate::db::{check, guard, Database, DbError, Definitions};
use crate::model::{Rank, RankInfo};
use crate::schema::{self, Offsets, Relation, SCHEMA_SQL, SHARED, VIEWS_SQL};
use crate::store;

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
        let ranks = Definitions::read_ranks(&Database::open(path)?)?;
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
    // when a row of it cannot be.
    connection.execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")?;
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
    for table in tables {
        let there = |of: &str| -> rusqlite::Result<i64> {
            let sql = format!("SELECT count(*) FROM {of}");
            connection.query_row(&sql, [], |row| row.get(0))
        };
        let verb =
            if SHARED.contains(&table.name.as_str()) { "INSERT OR IGNORE" } else { "INSERT" };
        let columns = table.column_names();
        let sql = format!(
            "{verb} INTO main.{name} ({into}) SELECT {from} FROM source.{name} WHERE {valid}",
            name = table.name,
            into = columns.join(", "),
            from = offsets.select_list(&table.name, &columns),
            valid = check::valid_row("source", &table.name),
        );
        let copied = connection.execute(&sql, [])?;
        let is_shared = SHARED.contains(&table.name.as_str());
        if !is_shared && copied as i64 != there(&format!("source.{}", table.name))? {
            return Err(check::first_bad_row(connection, "source", &table.name)?);
        }
        if ["call", "request"].contains(&table.name.as_str()) {
            check::complete(connection, &format!("source.{}", table.name), copied as u64)?;
        }
        progress(copied as u64);
    }
    Ok(())
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
/// together first, into a file under TMPDIR; `copying` is told before that.
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
    let directory = tempfile::Builder::new().prefix("lapscope-merged-").tempdir()?;
    let copy = directory.path().join("merged.db");
    copying(&copy);
    let left_out = merge(files, &copy, progress)?;
    let connection = Database::open(&copy)?.connection;
    Ok(Together { connection, left_out, incomplete: Vec::new(), _copy: Some(directory) })
}

/// Why a file has fewer rows than it should. It is shown all the same: a query is how one looks at what is wrong.
fn rows_missing(connection: &Connection, schema: &str, path: &Path) -> Option<DbError> {
    let missing = |table: &str| {
        let table = format!("{schema}.{table}");
        let sql = format!("SELECT count(*) FROM {table}"); // counts pages' rows, looks at none
        let rows: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
        check::complete(connection, &table, rows as u64)
    };
    let found = ["call", "request"].into_iter().map(missing).find_map(Result::err);
    found.map(|error| DbError::reading(path)(error))
}

/// A view for each relation of the schema. Those of the schema that are views themselves are evaluated in each file and
/// then put together: a join within a file finds its rows by id, one over all files could not.
fn side_by_side(connection: &Connection, files: &[PathBuf], ranks: &[i64]) -> anyhow::Result<()> {
    let mut offsets = Vec::with_capacity(files.len());
    let mut next = Offsets::default();
    for (index, (path, &rank)) in files.iter().zip(ranks).enumerate() {
        let name = format!("file{index}");
        attach(connection, path, &name)?;
        offsets.push(next.with_rank(rank));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of one rank with a send, whose ids are the same in every file.
    fn file(directory: &Path, rank: i64, life: i64, job: &str) -> PathBuf {
        file_of_world(directory, 1, rank, life, job)
    }

    fn file_of_world(directory: &Path, world: i64, rank: i64, life: i64, job: &str) -> PathBuf {
        let path = directory.join(format!("world-{world}-rank-{rank}-{life}.db"));
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(SCHEMA_SQL).unwrap();
        connection.execute_batch(VIEWS_SQL).unwrap();
        let sql = format!(
            "INSERT INTO rank VALUES ({rank}, {world}, {rank}, {life}, 2, 'h', 1, 'c', '/c', 'openmpi', 'l', '3.1', 0, '0', '{job}',
                                      0, 0, 'tsc', 1, 9, 'finalize', 0, 0, 0, 0);
             INSERT INTO call_name VALUES (0, 'MPI_Isend', 'POINT_TO_POINT', 'POST'),
                                          (1, 'MPI_Wait', 'POINT_TO_POINT', 'COMPLETE');
             INSERT INTO thread VALUES (1, {rank}, 0, 7, 5, 2);
             INSERT INTO operation VALUES (1, {rank}, 0, NULL, NULL, 'send', {rank} + 10, 1, 0, 1, 0, 8, 'waited', NULL, NULL),
                                          (2, {rank}, 1, NULL, NULL, 'other', 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL);
             INSERT INTO call VALUES (1, 2, 1, 4, 2, NULL, NULL, 1, NULL);
             INSERT INTO request VALUES (1, 1, 1, 1, 1, 1, 0, 0, 0, NULL, NULL, NULL, NULL, NULL);"
        );
        connection.execute_batch(&sql).unwrap();
        path
    }

    fn rows(connection: &Connection) -> Vec<(i64, i64, i64, i64, String)> {
        let sql =
            "SELECT id, rank, bytes, completion_id, completion_call FROM requests ORDER BY id";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        });
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn side_by_side_and_merged_are_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let files = [file(directory.path(), 0, 1, "j"), file(directory.path(), 1, 1, "j")];
        let expected = [(1, 0, 10, 1, "MPI_Wait".to_owned()), (2, 1, 11, 2, "MPI_Wait".to_owned())];
        let together = open_together(&files, &|_| (), &|_| ()).unwrap();
        assert_eq!(rows(&together.connection), expected);
        let output = directory.path().join("all.db");
        merge(&files, &output, &|_| ()).unwrap();
        assert_eq!(rows(&Database::open(&output).unwrap().connection), expected);
        let again = merge(&files, &output, &|_| ()).unwrap_err().to_string();
        assert!(again.contains("exists already"), "{again}");
    }

    #[test]
    fn a_second_life_has_a_key_behind_all_ranks() {
        let directory = tempfile::tempdir().unwrap();
        let files = [file(directory.path(), 1, 1, "j"), file(directory.path(), 1, 2, "j")];
        let together = open_together(&files, &|_| (), &|_| ()).unwrap();
        let ranks: Vec<i64> = rows(&together.connection).iter().map(|row| row.1).collect();
        assert_eq!(ranks, [1, 2]);
    }

    #[test]
    fn worlds_have_keys_behind_all_ranks_of_the_first_however_files_are_merged() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let of = |world, rank| file_of_world(directory.path(), world, rank, 1, "j");
        let files = [of(1, 0), of(1, 1), of(2, 0), of(2, 1), of(3, 1)];
        merge(&files[1..4], &path("some.db"), &|_| ()).unwrap();
        merge(&[path("some.db"), files[4].clone(), files[0].clone()], &path("all.db"), &|_| ())
            .unwrap();
        let sql = "SELECT group_concat(rank || '=' || world || ':' || world_rank || ' sends ' || bytes, ', ')
                   FROM (SELECT * FROM rank JOIN requests USING (rank) ORDER BY rank)";
        let ranks = |connection: &Connection| -> String {
            connection.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        let expected =
            "0=1:0 sends 10, 1=1:1 sends 11, 2=2:0 sends 10, 3=2:1 sends 11, 4=3:1 sends 11";
        assert_eq!(ranks(&Database::open(&path("all.db")).unwrap().connection), expected);
        assert_eq!(ranks(&open_together(&files, &|_| (), &|_| ()).unwrap().connection), expected);
    }

    #[test]
    fn more_files_than_can_be_attached_are_copied_together() {
        let directory = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> =
            (0..130).map(|rank| file(directory.path(), rank, 1, "j")).collect();
        let copied = std::cell::Cell::new(false);
        let together = open_together(&files, &|_| copied.set(true), &|_| ()).unwrap();
        assert!(copied.get(), "SQLite attaches 125 files at the most");
        assert_eq!(rows(&together.connection).len(), 130);
    }

    #[test]
    fn different_runs_and_ranks_twice_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let first = file(directory.path(), 0, 1, "j");
        let refused = |second: PathBuf| {
            let output = directory.path().join("out.db");
            merge(&[first.clone(), second], &output, &|_| ()).unwrap_err().to_string()
        };
        assert!(refused(file(other.path(), 1, 1, "k")).contains("different runs"));
        assert!(refused(file(other.path(), 0, 1, "j")).contains("rank 0 is in another"));
    }
}
