//! Kernels that run next to a wait and not beside it: behind it, as if the wait need only come later, or before the post, as if that
//! need only come earlier. Whether the kernel needs the message, or makes it, no record tells.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use lapscope_trace::RankTrace;

/// What exposed waits could have beside them so at most, nanoseconds. The same wait may be in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuMoves {
    /// By kernels between the wait and the next call of MPI.
    pub behind: i64,
    /// By kernels between the post and the call of MPI before it.
    pub before: i64,
}

impl GpuMoves {
    /// A wait for what was posted at `post`, until `end`; `exposed`: so long nothing was computed.
    pub(super) fn of_wait(rank: &RankTrace, post: i64, end: i64, exposed: i64) -> GpuMoves {
        if exposed <= 0 || rank.devices.lanes.is_empty() {
            return GpuMoves::default();
        }
        let next = rank.presence.next(end + 1).unwrap_or(rank.end);
        let left = rank.presence.left_before(post).unwrap_or(rank.init_end);
        GpuMoves {
            behind: rank.devices.computed_within(end, next).min(exposed),
            before: rank.devices.computed_within(left, post).min(exposed),
        }
    }
}

impl AddAssign for GpuMoves {
    fn add_assign(&mut self, other: GpuMoves) {
        self.behind = self.behind.saturating_add(other.behind);
        self.before = self.before.saturating_add(other.before);
    }
}
