//! Who is told of every record that an [`super::Observer`] reads, once.

use crate::model::{Kind, Nanos, Rank, RequestEnded};

/// Is told of what ranks did, of each rank's thread in the order of ending.
pub trait Sink {
    /// Whether it wants to know: where nobody does, spools are read side by side.
    fn is_interested(&self) -> bool {
        true
    }
    fn call(&mut self, _seen: &SeenCall) {}
    fn request(&mut self, _seen: &SeenRequest) {}
    /// What was only counted: unsuccessful tests, and what was left out.
    fn counted(&mut self, _seen: &SeenCount) {}
    fn injected(&mut self, _seen: &SeenInjection) {}
}

/// Ignores all.
impl Sink for () {
    fn is_interested(&self) -> bool {
        false
    }
}

/// Who did it. Moments are since the epoch of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenBy {
    pub rank: Rank,
    pub life: i64,
    /// The epoch, since 1970.
    pub epoch_unix_ns: i64,
    /// [`super::ThreadState::number`].
    pub thread: u32,
}

/// What was communicated. Indices are those of [`super::JobState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenOperation {
    pub call: u32,
    pub kind: Kind,
    pub path: Option<u32>,
    pub communicator: Option<u32>,
    /// World rank: of receives the source.
    pub peer_world: Option<i64>,
    pub tag: i64,
    /// That went over.
    pub bytes: u64,
}

/// A call that returned and has a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenCall {
    pub by: SeenBy,
    pub operation: SeenOperation,
    /// The receiving half of what also sends.
    pub receive: Option<SeenOperation>,
    pub begin: Nanos,
    pub end: Nanos,
}

/// A request that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenRequest {
    /// The thread is that which ended it.
    pub by: SeenBy,
    /// The thread that posted it.
    pub posted_by: u32,
    pub operation: SeenOperation,
    pub receive: Option<SeenOperation>,
    pub ended: RequestEnded,
    pub post_begin: Nanos,
    pub post_end: Nanos,
    /// Begin of the call that ended it.
    pub completion_begin: Nanos,
    pub completion_end: Nanos,
    pub unsuccessful_tests: u64,
}

/// What came to a row of `tally` since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenCount {
    pub by: SeenBy,
    pub call: u32,
    pub path: Option<u32>,
    /// Unsuccessful tests; otherwise calls or requests that were left out.
    pub is_unsuccessful: bool,
    pub count: u64,
    pub bytes: u64,
    pub inside: Nanos,
}

/// What came to a row of `injection` since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenInjection {
    pub by: SeenBy,
    pub call: u32,
    pub path: Option<u32>,
    pub requests: u64,
    pub tests: u64,
    /// Tests that found the request complete.
    pub found: u64,
    /// Inside these tests.
    pub inside: Nanos,
    pub interrupts: u64,
}
