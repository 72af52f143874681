//! Reads what a file says of watched buffers.

use rusqlite::{Connection, Row};

use super::{collect, Database};
use crate::model::{Count, Text, Watch, WatchLeftOut, Watcher};

/// The ranks that were asked to watch buffers, in the order of their keys.
///
/// # Errors
/// A value cannot be; what SQLite says while reading, as of all that follow.
pub fn read_watchers(database: &Database) -> rusqlite::Result<Vec<Watcher>> {
    let sql = "SELECT rank, problem, words, hit_ns, set_ns, spent_ns, other_cpu_ns FROM watcher
               ORDER BY rank";
    collect(database, sql, |row| {
        Ok(Watcher {
            rank: row.get(0)?,
            problem: row.get::<_, Option<Text>>(1)?.map(|Text(text)| text),
            words: row.get(2)?,
            hit: row.get(3)?,
            set: row.get(4)?,
            spent: row.get(5)?,
            other_cpu: row.get(6)?,
        })
    })
}

/// What they did not watch, by rank and reason.
///
/// # Errors
/// A value cannot be.
pub fn read_left_out(database: &Database) -> rusqlite::Result<Vec<WatchLeftOut>> {
    let sql = "SELECT rank, reason, buffers FROM watch_left_out ORDER BY rank, reason";
    collect(database, sql, |row| {
        Ok(WatchLeftOut {
            rank: row.get(0)?,
            reason: row.get::<_, Text>(1)?.0,
            buffers: row.get::<_, Count>(2)?.0,
        })
    })
}

/// Gives every watch to `on_watch`, in the order of ids: a long run has too many to hold them all.
///
/// # Errors
/// A value cannot be.
pub fn scan_watches(
    connection: &Connection,
    mut on_watch: impl FnMut(&Watch),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "SELECT operation_id, thread_id, side, begin_ns, edge_begin_ns, buffer_bytes, offset, result, away_ns,
                away_mpi_ns, hits, toucher, call_path_id, let_go, on_stack, sparse, copy_path_id
         FROM watch ORDER BY id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        on_watch(&watch(row)?);
    }
    Ok(())
}

fn watch(row: &Row<'_>) -> rusqlite::Result<Watch> {
    Ok(Watch {
        operation_id: row.get(0)?,
        thread_id: row.get(1)?,
        side: row.get(2)?,
        begin: row.get(3)?,
        edge_begin: row.get(4)?,
        buffer: row.get(5)?,
        offset: row.get(6)?,
        result: row.get(7)?,
        away: row.get(8)?,
        away_mpi: row.get(9)?,
        hits: row.get::<_, Count>(10)?.0,
        toucher: row.get(11)?,
        instruction_id: row.get(12)?,
        let_go: row.get(13)?,
        is_on_stack: row.get(14)?,
        is_sparse: row.get(15)?,
        copy_id: row.get(16)?,
    })
}

#[cfg(test)]
mod tests {
    use lapscope_fixture::{full, SECOND_TOUCH};

    use super::*;
    use crate::model::{Bytes, LetGo, Nanos, Side, Toucher, WatchResult};

    #[test]
    fn rows_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        full::write(directory.path());
        let database = Database::open(&directory.path().join("rank-0.db")).unwrap();
        let watchers = read_watchers(&database).unwrap();
        assert_eq!((watchers[0].words, watchers[0].spent), (4, Nanos(42_000)));
        assert_eq!(read_left_out(&database).unwrap()[0].buffers, 9);
        let mut watches = Vec::new();
        scan_watches(&database.connection, |watch| watches.push(*watch)).unwrap();
        let results: Vec<_> = watches.iter().map(|it| (it.side, it.result, it.toucher)).collect();
        let (program, mpi) = (Some(Toucher::Program), Some(Toucher::Mpi));
        let expected = [
            (Side::Send, WatchResult::Touched, program),
            (Side::Send, WatchResult::Touched, program),
            (Side::Send, WatchResult::Often, program),
            (Side::Receive, WatchResult::Touched, program),
            (Side::Receive, WatchResult::Untouched, None),
            (Side::Receive, WatchResult::Touched, mpi),
        ];
        assert_eq!(results, expected);
        assert_eq!(watches[0].away_outside_mpi(), Nanos(1_000));
        assert_eq!((watches[2].copy_id, watches[2].hits), (Some(SECOND_TOUCH), 8));
        let untouched = watches[4];
        assert_eq!((untouched.begin, untouched.edge_begin), (Nanos(2_800), Nanos(30_001)));
        assert_eq!((untouched.offset, untouched.buffer), (Bytes(992), Bytes(1_000)));
        assert_eq!((untouched.let_go, untouched.is_on_stack), (Some(LetGo::Reused), true));
        assert_eq!((untouched.instruction_id, untouched.is_sparse), (None, false));
    }
}
