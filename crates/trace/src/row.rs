//! A row of the table `request` as a trace takes it.

use super::endpoint::Observation;
use lapscope_data::db::{BadColumn, FromRow, Rows};
use lapscope_data::model::{Nanos, RequestRow};

/// The columns of `request` that a trace keeps.
pub(super) struct TraceRow {
    pub operation_id: i64,
    pub completion_id: Option<i64>,
    pub post_begin: i64,
    pub post: i64,
    pub mpi: Option<i64>,
    pub outstanding: i64,
    pub observation: Option<Observation>,
    pub thread_id: i64,
}

impl FromRow for TraceRow {
    const COLUMNS: &'static str =
        "operation_id, completion_id, post_begin_ns, post_ns, mpi_ns, outstanding_bytes, unsuccessful_tests, \
         first_complete_ns, first_unsuccessful_test_ns, last_unsuccessful_test_ns, last_incomplete_ns, thread_id";

    fn read(row: &Rows<'_>) -> Result<Self, BadColumn> {
        let (unsuccessful_tests, first_complete) = (row.count(6)?, row.optional_time(7)?);
        let observation = if unsuccessful_tests > 0 || first_complete.is_some() {
            Some(Observation {
                unsuccessful_tests,
                first_unsuccessful_test: row.optional_time(8)?,
                last_unsuccessful_test: row.optional_time(9)?,
                last_incomplete: row.optional_time(10)?,
                first_complete,
            })
        } else {
            None
        };
        Ok(TraceRow {
            operation_id: row.integer(0)?,
            completion_id: row.optional(1)?,
            post_begin: row.time(2)?,
            post: row.time(3)?,
            mpi: row.optional_time(4)?,
            outstanding: row.bytes(5)? as i64,
            observation,
            thread_id: row.integer(11)?,
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
            unsuccessful_tests: self
                .observation
                .map_or(0, |observation| observation.unsuccessful_tests),
        }
    }
}
