//! Reads what a file says of samples: at which instructions threads were found computing.

use rusqlite::Row;

use super::{collect, query_row, Database};
use crate::model::{Count, SamplePost, SampleRow, SampledThread, Sampler, Text};
use crate::schema::lacks;

/// Whether a rank of the file was asked to take samples.
///
/// # Errors
/// What SQLite says while reading, as of all that follow.
pub fn was_asked_to_sample(database: &Database) -> rusqlite::Result<bool> {
    if lacks(&database.connection, "main", "sampler")? {
        return Ok(false);
    }
    query_row(&database.connection, "SELECT EXISTS (SELECT 1 FROM sampler)", [], |row| row.get(0))
}

/// The ranks that were asked to, in the order of their keys.
///
/// # Errors
/// A value cannot be.
pub fn read_samplers(database: &Database) -> rusqlite::Result<Vec<Sampler>> {
    let sql = "SELECT rank, problem, by_signal, rate_hz, other_threads, lost, left_out FROM sampler ORDER BY rank";
    collect(database, sql, |row| {
        Ok(Sampler {
            rank: row.get(0)?,
            problem: row.get::<_, Option<Text>>(1)?.map(|Text(text)| text),
            by_signal: row.get(2)?,
            rate_hz: row.get::<_, Count>(3)?.0,
            other_threads: row.get::<_, Count>(4)?.0,
            lost: row.get::<_, Count>(5)?.0,
            left_out: row.get::<_, Count>(6)?.0,
        })
    })
}

/// All samples, in the order of their ids: few instructions compute.
///
/// # Errors
/// A value cannot be.
pub fn read_samples(database: &Database) -> rusqlite::Result<Vec<SampleRow>> {
    let sql = "SELECT id, rank, thread = 'caller', call_path_id, count FROM sample ORDER BY id";
    collect(database, sql, |row| {
        Ok(SampleRow {
            id: row.get(0)?,
            rank: row.get(1)?,
            thread: sampled_thread(row)?,
            instruction_id: row.get(3)?,
            count: row.get::<_, Count>(4)?.0,
        })
    })
}

fn sampled_thread(row: &Row<'_>) -> rusqlite::Result<SampledThread> {
    let is_caller: bool = row.get(2)?;
    Ok(if is_caller { SampledThread::Caller } else { SampledThread::Other })
}

/// What was under way while samples were taken, in the order of their ids.
///
/// # Errors
/// A value cannot be.
pub fn read_sample_posts(database: &Database) -> rusqlite::Result<Vec<SamplePost>> {
    let sql = "SELECT sample_id, call_id, call_path_id FROM sample_post ORDER BY sample_id";
    collect(database, sql, |row| {
        Ok(SamplePost { sample_id: row.get(0)?, call_id: row.get(1)?, call_path_id: row.get(2)? })
    })
}

#[cfg(test)]
mod tests {
    use lapscope_fixture::{full, SECOND_TOUCH};

    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        full::write(directory.path());
        let database = Database::open(&directory.path().join("rank-0.db")).unwrap();
        assert!(was_asked_to_sample(&database).unwrap());
        let samplers = read_samplers(&database).unwrap();
        assert_eq!((samplers[0].rate_hz, samplers[0].problem.as_deref()), (199, None));
        let samples = read_samples(&database).unwrap();
        let counts: Vec<_> = samples.iter().map(|it| (it.count, it.thread)).collect();
        let (caller, other) = (SampledThread::Caller, SampledThread::Other);
        assert_eq!(counts, [(80, caller), (40, caller), (240, other), (1, caller)]);
        assert_eq!(samples[0].instruction_id, SECOND_TOUCH);
        let posts = read_sample_posts(&database).unwrap();
        let paths: Vec<_> = posts.iter().map(|it| (it.sample_id, it.call_path_id)).collect();
        assert_eq!(paths[..3], [(1, Some(1)), (1, Some(2)), (2, Some(1))]);
        assert_eq!(paths.len(), 6, "the last sample has none");
    }
}
