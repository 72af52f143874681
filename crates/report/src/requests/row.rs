//! What is read of `request`.

use lapscope_data::db::{BadColumn, FromRow, Rows};
use lapscope_data::model::{Bytes, Nanos};

/// A `request` row in full.
#[derive(Debug)]
pub(super) struct ListedRow {
    pub id: i64,
    pub operation_id: i64,
    pub completion_id: Option<i64>,
    pub thread_id: i64,
    pub post_begin: Nanos,
    pub post: Nanos,
    pub mpi: Option<Nanos>,
    pub outstanding_bytes: Bytes,
    pub unsuccessful_tests: u64,
    pub observed: [Option<Nanos>; 4],
    pub injection_arm: Option<i64>,
}

impl FromRow for ListedRow {
    const COLUMNS: &'static str = "id, operation_id, completion_id, thread_id, post_begin_ns, post_ns, mpi_ns,
        outstanding_bytes, unsuccessful_tests, first_unsuccessful_test_ns, last_unsuccessful_test_ns, last_incomplete_ns, first_complete_ns, injection_arm";

    fn read(row: &Rows<'_>) -> Result<Self, BadColumn> {
        let time = |column| row.optional_time(column).map(|time| time.map(Nanos));
        Ok(ListedRow {
            id: row.integer(0)?,
            operation_id: row.integer(1)?,
            completion_id: row.optional(2)?,
            thread_id: row.integer(3)?,
            post_begin: Nanos(row.time(4)?),
            post: Nanos(row.time(5)?),
            mpi: time(6)?,
            outstanding_bytes: Bytes(row.bytes(7)?),
            unsuccessful_tests: row.count(8)?,
            observed: [time(9)?, time(10)?, time(11)?, time(12)?],
            injection_arm: row.optional(13)?,
        })
    }

    fn operation_id(&self) -> i64 {
        self.operation_id
    }

    fn completion_id(&self) -> Option<i64> {
        self.completion_id
    }

    fn post_ns(&self) -> i64 {
        self.post.0
    }
}
