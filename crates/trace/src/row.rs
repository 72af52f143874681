//! A row of the table `request` as a trace takes it.

use super::endpoint::Observation;
use lapscope_data::db::RequestRow;
use lapscope_data::model::{MemoryKind, Nanos};
use lapscope_data::request_row;

request_row! {
    /// What a trace keeps.
    pub(super) struct TraceRow {
        id,
        operation_id,
        completion_id,
        post_begin,
        post,
        mpi,
        outstanding_bytes,
        unsuccessful_tests,
        first_complete,
        first_unsuccessful_test,
        last_unsuccessful_test,
        last_incomplete,
        thread_id,
    }
}

impl TraceRow {
    /// What tests saw of it, where there were any, and where its data lay, where that is known.
    pub fn observation(&self, memory: Option<MemoryKind>) -> Option<Observation> {
        let is_seen = self.unsuccessful_tests > 0 || self.first_complete.is_some();
        let is_seen = is_seen || memory.is_some();
        let ns = |time: Option<Nanos>| time.map(|time| time.0);
        is_seen.then(|| Observation {
            unsuccessful_tests: self.unsuccessful_tests,
            first_unsuccessful_test: ns(self.first_unsuccessful_test),
            last_unsuccessful_test: ns(self.last_unsuccessful_test),
            last_incomplete: ns(self.last_incomplete),
            first_complete: ns(self.first_complete),
            memory,
        })
    }

    /// What sums are made of.
    pub fn summable(&self) -> RequestRow {
        RequestRow {
            operation_id: self.operation_id,
            completion_id: self.completion_id,
            post_begin: self.post_begin,
            post: self.post,
            mpi: self.mpi,
            unsuccessful_tests: self.unsuccessful_tests,
        }
    }
}
