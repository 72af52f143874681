//! A row of the table `request` as a trace takes it.

use rusqlite::Row;

use super::endpoint::Observation;
use crate::db::FromRow;
use crate::model::{Bytes, Count, Nanos, RequestRow};

/// The columns of `request` that a trace keeps.
pub(super) struct TraceRow {
    pub operation_id: i64,
    pub completion_id: Option<i64>,
    pub post_begin: i64,
    pub post: i64,
    pub mpi: Option<i64>,
    pub outstanding: i64,
    pub observation: Option<Observation>,
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<i64>> {
    Ok(row.get::<_, Option<Nanos>>(column)?.map(|time| time.0))
}

impl FromRow for TraceRow {
    const COLUMNS: &'static str =
        "operation_id, completion_id, post_begin_ns, post_ns, mpi_ns, outstanding_bytes, polls, \
         first_complete_ns, first_poll_ns, last_poll_ns, last_incomplete_ns";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (Count(polls), first_complete) = (row.get(6)?, time(row, 7)?);
        let observation = if polls > 0 || first_complete.is_some() {
            Some(Observation {
                polls,
                first_poll: time(row, 8)?,
                last_poll: time(row, 9)?,
                last_incomplete: time(row, 10)?,
                first_complete,
            })
        } else {
            None
        };
        Ok(TraceRow {
            operation_id: row.get(0)?,
            completion_id: row.get(1)?,
            post_begin: row.get::<_, Nanos>(2)?.0,
            post: row.get::<_, Nanos>(3)?.0,
            mpi: time(row, 4)?,
            outstanding: row.get::<_, Bytes>(5)?.0 as i64,
            observation,
        })
    }

    fn operation_id(&self) -> i64 {
        self.operation_id
    }

    fn completion_id(&self) -> Option<i64> {
        self.completion_id
    }

    fn post_ns(&self) -> i64 {
        self.post
    }
}

impl TraceRow {
    /// What sums are made of.
    pub fn summable(&self) -> RequestRow {
        RequestRow {
            operation_id: self.operation_id,
            completion_id: self.completion_id,
            post_begin: Nanos(self.post_begin),
            post: Nanos(self.post),
            mpi: self.mpi.map(Nanos),
            polls: self.observation.map_or(0, |observation| observation.polls),
        }
    }
}
