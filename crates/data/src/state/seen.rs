//! Who is told of what came to the records that an [`super::Observer`] reads, once.

use crate::model::{Kind, Nanos, Rank};

/// Is told of what ranks did.
pub trait Sink {
    /// Whether it wants to know: where nobody does, spools are read side by side.
    fn is_interested(&self) -> bool {
        true
    }
    /// A call that may have been open at the last look: of each thread in the order of ending, before [`Sink::calls`].
    fn call(&mut self, _seen: &SeenCall) {}
    /// All other calls of an operation.
    fn calls(&mut self, _seen: &SeenCalls) {}
    fn requests(&mut self, _seen: &SeenRequests) {}
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

/// Whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenBy {
    pub rank: Rank,
    pub life: i64,
}

/// What was communicated. Indices are those of [`super::JobState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenOperation {
    pub call: u32,
    pub kind: Kind,
    pub path: Option<u32>,
    /// That went over.
    pub bytes: u64,
}

/// A call that returned and has a row. Moments are since the epoch of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenCall {
    pub by: SeenBy,
    /// [`super::ThreadState::number`].
    pub thread: u32,
    pub operation: SeenOperation,
    pub begin: Nanos,
    pub end: Nanos,
}

/// Calls that returned and have rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenCalls {
    pub by: SeenBy,
    pub operation: SeenOperation,
    pub count: u64,
    pub inside: Nanos,
}

/// Requests that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenRequests {
    pub by: SeenBy,
    pub operation: SeenOperation,
    pub count: u64,
}

/// What came to a row of `tally` since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenCount {
    pub by: SeenBy,
    pub thread: u32,
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
