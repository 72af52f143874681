//! Samples: rows of `sampler`, `sample` and `sample_post`.

use super::RankKey;

/// A rank that was asked to take samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampler {
    pub rank: RankKey,
    pub problem: Option<String>,
    pub by_signal: bool,
    pub rate_hz: u64,
    pub other_threads: u64,
    pub lost: u64,
    pub left_out: u64,
}

/// Whose instruction it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampledThread {
    /// A thread that calls MPI, outside of it.
    Caller,
    /// One that never does, while one that does was outside.
    Other,
}

/// How often a thread was found at an instruction while the same was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRow {
    pub id: i64,
    pub rank: RankKey,
    pub thread: SampledThread,
    pub instruction_id: i64,
    pub count: u64,
}

/// A site whose requests were under way meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePost {
    pub sample_id: i64,
    pub call_id: i64,
    pub call_path_id: Option<i64>,
}
