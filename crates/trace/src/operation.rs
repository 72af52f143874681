//! What the rows of a rank have in common, as analyses need it.

use serde::{Deserialize, Serialize};

use lapscope_data::model::{Bytes, Kind, Mode};
use lapscope_data::places::{CallPathId, SiteId};

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Direction {
    Send,
    Receive,
    Collective,
    /// Windows, files, generalized requests, and calls that communicate nothing.
    None,
}

/// One row of `operation`, with numbers of the run in place of ids of the file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Operation {
    /// Where it was posted, or blocked.
    pub site: SiteId,
    pub path: Option<CallPathId>,
    /// Index into [`super::Trace::blocking_calls`]: the blocking call that does the same, as MPI_Allreduce for MPI_Iallreduce
    /// and MPI_Allreduce_init.
    pub blocking_call: u32,
    pub kind: Kind,
    pub direction: Direction,
    pub mode: Mode,
    /// Whether it makes a request.
    pub is_request: bool,
    /// The receiving half of an operation that also sends, which is the first half.
    pub is_second_half: bool,
    pub bytes: Bytes,
    /// Index into [`super::Trace::ranks`] of the peer or of the root.
    pub peer: Option<u32>,
    pub tag: Option<i64>,
    /// Which other operations it is matched with; [`super::NONE`] where nothing is to be matched.
    pub(super) lane: u32,
    /// A receive from any source.
    pub is_wildcard: bool,
    /// A message whose peer or tag is not known.
    pub is_untraceable: bool,
    /// Index into [`super::Trace::communicators`]; [`super::NONE`] where it has none.
    pub comm: u32,
    /// Processes in the communicator of a collective, its remote group included.
    pub comm_size: u32,
    pub ended: RequestEnd,
    /// Completed by a test, not by a call that waits.
    pub is_tested: bool,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestEnd {
    /// Waited or tested for, or a blocking call.
    Completed,
    Freed,
    Cancelled,
    Failed,
    Pending,
}

impl RequestEnd {
    pub(super) fn parse(text: Option<&str>) -> RequestEnd {
        match text {
            Some("freed") => RequestEnd::Freed,
            Some("cancelled") => RequestEnd::Cancelled,
            Some("failed") => RequestEnd::Failed,
            Some("pending") => RequestEnd::Pending,
            _ => RequestEnd::Completed,
        }
    }
}

impl Operation {
    /// A standard, synchronous, buffered or ready send; not a partitioned one, whose parts go by themselves.
    #[inline]
    pub fn is_send(&self) -> bool {
        self.direction == Direction::Send && self.mode != Mode::Partitioned
    }
}
