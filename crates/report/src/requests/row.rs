//! What is read of `request`.

lapscope_data::request_row! {
    /// A `request` row in full.
    #[derive(Debug)]
    pub(super) struct ListedRow {
        id,
        operation_id,
        completion_id,
        thread_id,
        post_begin,
        post,
        mpi,
        outstanding_bytes,
        unsuccessful_tests,
        first_unsuccessful_test,
        last_unsuccessful_test,
        last_incomplete,
        first_complete,
        injection_arm,
    }
}
