//! What a part of a call's time is laid to, and where.

use serde::{Deserialize, Serialize};

use lapscope_data::places::SiteId;

/// What has the same cure at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Finding {
    /// Nobody entered MPI in the computation in front of this completing call.
    Test(SiteId),
    /// This wait could be part of a later one.
    WaitTogether(SiteId, SiteId),
    /// This wait for sends could come behind that call, the last that completes receives, and computation on the way there.
    WaitBehind(SiteId, SiteId),
    /// Waiting for a receive that was posted late, there.
    LateReceive(SiteId, SiteId),
    /// Waiting for another rank's call behind its computation, there, which needs none of that.
    LateCall(SiteId, SiteId),
    /// Waiting for a send or for a member of a collective.
    Late(SiteId),
    /// A one-sided call that waits until its target is inside MPI, or a receive until the sender of a copy is.
    Target(SiteId),
    /// A send that blocks until its receiver is there.
    Blocking(SiteId),
    /// Transferring, without computation beside it.
    Nothing(SiteId),
    /// Transferring, much longer than alone or with computation enough beside it.
    Slow(SiteId),
    Posts(SiteId),
    /// Waiting that a later wait could save: it could come behind more of the computation.
    WaitLater(SiteId),
    /// Waiting for sends that could be posted earlier, there.
    PostEarlier(SiteId),
    /// Waiting with idle GPUs, right before kernels are started.
    KernelsBehind(SiteId),
    /// Waiting with idle GPUs for what was posted, there, right after kernels.
    KernelsBefore(SiteId, SiteId),
    /// Ranks that could have run and had no processor, wherever they waited.
    NoProcessor,
}

impl Finding {
    pub fn sites(&self) -> [Option<SiteId>; 2] {
        match *self {
            Finding::WaitTogether(a, b)
            | Finding::WaitBehind(a, b)
            | Finding::LateReceive(a, b)
            | Finding::LateCall(a, b)
            | Finding::KernelsBefore(a, b) => [Some(a), Some(b)],
            Finding::Test(a)
            | Finding::Late(a)
            | Finding::Target(a)
            | Finding::Blocking(a)
            | Finding::Nothing(a)
            | Finding::Slow(a)
            | Finding::Posts(a)
            | Finding::WaitLater(a)
            | Finding::PostEarlier(a)
            | Finding::KernelsBehind(a) => [Some(a), None],
            Finding::NoProcessor => [None, None],
        }
    }
}
