//! Words in columns, as the database and JSON have them.

use lapscope_data::model::{Ended, Full, Kind, Mode};
use lapscope_trace::{Locality, Operation, RequestEnd};

pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Send => "send",
        Kind::Recv => "recv",
        Kind::Collective => "collective",
        Kind::Rma => "rma",
        Kind::Io => "io",
        Kind::Generalized => "generalized",
        Kind::Other => "other",
    }
}

pub fn locality(locality: Locality) -> &'static str {
    match locality {
        Locality::SelfRank => "self",
        Locality::Node => "node",
        Locality::Network => "network",
    }
}

/// How a request ended.
pub fn request_ended(operation: &Operation) -> &'static str {
    match operation.ended {
        RequestEnd::Completed if operation.is_tested => "tested",
        RequestEnd::Completed => "waited",
        RequestEnd::Freed => "freed",
        RequestEnd::Cancelled => "cancelled",
        RequestEnd::Failed => "failed",
        RequestEnd::Pending => "pending",
    }
}

/// `None` of one that a later version may know.
pub fn mode(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Standard => Some("standard"),
        Mode::Synchronous => Some("synchronous"),
        Mode::Buffered => Some("buffered"),
        Mode::Ready => Some("ready"),
        Mode::Partitioned => Some("partitioned"),
        Mode::Other => None,
    }
}

/// How a rank's recording ended.
pub fn rank_ended(ended: Ended) -> &'static str {
    match ended {
        Ended::Finalize => "finalize",
        Ended::Abort => "abort",
        Ended::Exit => "exit",
        Ended::Killed => "killed",
    }
}

pub fn summarized(full: Full) -> &'static str {
    match full {
        Full::MaxMb => "max_mb",
        Full::Disk => "disk",
        Full::FileSize => "file_size",
        Full::Asked => "asked",
        Full::JobRecord => "job_record",
    }
}
