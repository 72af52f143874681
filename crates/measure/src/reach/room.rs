//! How far calls can be moved, for whoever moves them.

use rustc_hash::FxHashMap;

use lapscope_data::places::SiteId;

/// Computation that a call can be moved over, by the call site that sends or receives, nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct MoveRoom {
    /// From the completing call to the first touch of what was received.
    pub first_touch: FxHashMap<SiteId, i64>,
    /// From the last write of what is sent to its post.
    pub last_write: FxHashMap<SiteId, i64>,
}
