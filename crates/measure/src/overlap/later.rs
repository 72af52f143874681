//! What a rank computed behind a test that completed a request.

use lapscope_trace::{Half, RankTrace};

/// The moments at which a rank can have needed what a test completed: the program goes on behind a test as if it had said no, to
/// the next call that is none, at the latest.
pub(super) struct Later<'a> {
    rank: &'a RankTrace,
    /// Begins of posts, waits and blocking calls, in order; empty where no test completed anything.
    calls: Vec<i64>,
}

impl<'a> Later<'a> {
    pub fn new(rank: &'a RankTrace) -> Later<'a> {
        let is_tested = |operation: u32| rank.operations[operation as usize].is_tested;
        let mut calls = Vec::new();
        if rank.operations.iter().any(|operation| operation.is_tested) {
            let mut is_test = vec![false; rank.calls.len()];
            for endpoint in &rank.endpoints {
                if let Some(it) = is_test.get_mut(endpoint.call as usize) {
                    *it |= is_tested(endpoint.operation);
                }
            }
            let others = rank.calls.iter().zip(is_test).filter(|(_, is_test)| !is_test);
            calls.extend(rank.endpoints.iter().map(|endpoint| endpoint.begin));
            calls.extend(others.map(|(call, _)| call.begin));
            calls.sort_unstable();
        }
        Later { rank, calls }
    }

    /// Nanoseconds outside MPI from the test that completed the request to the next call that is no test; 0 where it was no
    /// test.
    pub fn compute(&self, half: &Half<'_>) -> i64 {
        let Some(end) = half.completion_end.filter(|_| half.operation.is_tested) else { return 0 };
        let next = self.calls.get(self.calls.partition_point(|&begin| begin < end));
        self.rank.presence.outside(end, next.copied().unwrap_or(self.rank.end))
    }
}
