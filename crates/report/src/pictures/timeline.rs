//! One stretch of time on some ranks: calls, lives of requests, and messages between them.

mod collect;
mod lanes;
mod spans;

pub use collect::{collect, TimelineWindow};

use serde::Serialize;

use lapscope_data::model::{Bytes, Nanos, Rank};
use lapscope_measure::overlap::sums::Cause;

/// A stretch in detail. Moments are nanoseconds since `begin_ns`.
#[derive(Debug, Serialize)]
pub struct Timeline {
    /// Since the first rank's MPI_Init returned.
    pub begin_ns: Nanos,
    pub length_ns: Nanos,
    /// Numbers of the first and the last step in it, from 1 on, where it is made of steps.
    pub steps: Option<(u64, u64)>,
    pub chosen: Chosen,
    pub ranks_chosen: RanksChosen,
    /// What was chosen held more calls than can be shown: this is the middle of it.
    pub is_shortened: bool,
    /// Functions and their call sites; spans, requests and messages name them by their place here.
    pub places: Vec<TimelineSite>,
    /// In the order of ranks.
    pub tracks: Vec<Track>,
    pub messages: Vec<Message>,
    /// Ranks of the run that are not shown.
    pub other_ranks: usize,
    /// Requests and messages that are not shown: those with the shortest lives, where there are too many.
    pub left_out_requests: u64,
    pub left_out_messages: u64,
    /// What is shorter was put together with its neighbours; 0: nothing was.
    pub resolution_ns: Nanos,
}

/// Why this stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    Asked,
    /// The step with most exposed time.
    CostliestStep,
    /// Around the one of many equal parts of the run that has most exposed time.
    CostliestSlice,
}

/// Why these ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RanksChosen {
    All,
    Asked,
    /// The rank with most exposed time, and those that it exchanged most messages with.
    Worst(Rank),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct TimelineSite {
    pub call: String,
    /// Function, file and line; empty where that is not known.
    pub site: String,
}

/// What one thread of a rank did.
#[derive(Debug, Serialize)]
pub struct Track {
    pub rank: Rank,
    /// In the order in which rows name them; 0 of ranks with one thread.
    pub thread: u16,
    pub host: String,
    /// In order, none within another.
    pub spans: Vec<CallSpan>,
    pub requests: Vec<RequestLife>,
    /// Lanes that its requests need, so that none covers another.
    pub lanes: u32,
    /// When a GPU of the rank computed, of its first thread: begin and end.
    pub gpu: Vec<(Nanos, Nanos)>,
}

/// One MPI call, or several short ones that follow each other closely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallSpan {
    pub begin_ns: Nanos,
    pub end_ns: Nanos,
    /// The place of the longest of its calls.
    pub place: u32,
    pub calls: u32,
    /// Inside MPI in it; all of it where it is one call.
    pub mpi_ns: Nanos,
    /// It posts, waits, or does something else.
    pub role: Role,
    /// What most of it was waiting for, where it waited or blocked.
    pub cause: Option<Cause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Makes requests.
    Post,
    /// Ends requests.
    Complete,
    /// Sends or receives, and returns when that is done.
    Block,
    Collective,
    Other,
}

/// The life of a request: from its post to the end of the call that completed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestLife {
    pub begin_ns: Nanos,
    /// `None`: not in this stretch, or never.
    pub end_ns: Option<Nanos>,
    pub place: u32,
    pub lane: u32,
    pub is_send: bool,
    pub peer: Option<Rank>,
    pub bytes: Bytes,
}

/// A message: from the begin of its send to the end of the call that completed its receive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Places in `tracks`.
    pub from: u32,
    pub to: u32,
    pub sent_ns: Nanos,
    pub received_ns: Nanos,
    pub bytes: Bytes,
}
