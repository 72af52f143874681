//! What the ranks of a job do at one moment, and what they had done by then: read from the spools of running processes, from
//! those that dead ones left, and from databases.
//!
//! Indices are of the job: the same call, call path and communicator have the same index on all ranks.
//!
//! A state has no rows, but what can be held against what other ranks did: how many messages went to whom with which
//! tag, how many came, and the latest collectives of each communicator in the order in which they began. Whatever makes
//! that incomplete (a bounded recording, damage, a peer that is not known) makes `is_whole` false, and then nothing is
//! concluded from what is missing. Tests hold the states of spools and of databases against each other.

mod database;
mod definitions;
mod elsewhere;
mod fresh;
mod header;
mod history;
mod intern;
mod lanes;
mod layout;
mod live;
mod loaded;
mod locks;
mod merge;
pub(crate) mod names;
mod observer;
mod pulse;
mod rank;
mod records;
mod seen;
mod spool;
mod stream;
mod system;
mod tables;
mod tell;
#[cfg(test)]
mod tests;
mod translate;
mod watched;

use serde::{Deserialize, Serialize};

pub use loaded::{before_init, Loaded};
pub use observer::Observer;
pub use pulse::{Beat, Pulse};
pub use seen::{
    SeenBy, SeenCall, SeenCalls, SeenCount, SeenInjection, SeenOperation, SeenRequests, Sink,
};
pub use system::{state_of as state_of_thread, words_of};

use crate::model::{CallName, CallPath, Kind, Module, Nanos, Rank};

/// A job at a moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobState {
    /// The command line of one of its ranks, and its MPI as that names itself; empty: not known.
    pub command: String,
    pub mpi_library: String,
    /// Frames of `paths` index into this.
    pub modules: Vec<Module>,
    pub paths: Vec<CallPath>,
    pub calls: Vec<CallName>,
    pub communicators: Vec<Communicator>,
    /// In the order of ranks and lives; of several lives of a rank the last.
    pub ranks: Vec<RankState>,
    /// Ranks, or nodes, of which nothing can be read from here.
    pub unseen: Vec<Unseen>,
}

/// A rank, or node, of which nothing can be read from here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// `rank-3`, `node-host`: as its file in the run directory is called.
    pub file: String,
    /// Where it is; empty: not known.
    pub host: String,
    /// Why, as a sentence, with the way out.
    pub why: String,
}

/// A communicator, or the group of a window or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Communicator {
    /// As the program named it; empty: not named.
    pub name: String,
    /// The world by whose ranks its members are numbered: [`Rank::world`].
    pub world: i64,
    /// What it is known by on all of its ranks: `struct spool_comm`.
    pub identity: u64,
    pub ordinal: u32,
    pub is_inter: bool,
    pub members: Members,
}

/// World ranks of a communicator's members; of both groups of an inter-communicator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Members {
    /// The world's ranks, so many of them; each has its world rank as its rank.
    World(u32),
    /// By rank in the communicator: the local group, and behind it the remote one, as the first rank has them.
    Listed(Vec<u32>),
    Unknown,
}

/// What can be told of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    Runs,
    /// It runs, and has entered MPI_Finalize.
    Finalizing,
    /// MPI_Finalize was reached, and the recording is over.
    Finalized,
    Aborted,
    /// It has ended without MPI_Finalize.
    Exited,
    /// It ended without a chance to say so, or was killed.
    Killed,
    /// It may still run where it cannot be seen from here.
    Unknown,
}

impl Condition {
    /// Whether its process is seen to run.
    pub fn runs(self) -> bool {
        matches!(self, Condition::Runs | Condition::Finalizing)
    }

    /// Whether it will never do anything in MPI any more.
    pub fn is_over(self) -> bool {
        self == Condition::Finalized || self.is_early_end()
    }

    /// Whether it has ended before it reached MPI_Finalize.
    pub fn is_early_end(self) -> bool {
        matches!(self, Condition::Aborted | Condition::Exited | Condition::Killed)
    }
}

/// What a rank does. Moments are since its epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankState {
    pub rank: Rank,
    pub life: i64,
    pub world_size: i64,
    pub host: String,
    pub pid: i64,
    /// 0 single to 3 multiple.
    pub thread_level: i64,
    pub condition: Condition,
    /// The epoch, since 1970.
    pub epoch_unix_ns: i64,
    /// When MPI_Init returned.
    pub init_end: Nanos,
    /// When this was read. Of what has ended, when it had at the latest.
    pub now: Nanos,
    /// The last moment of which something was recorded.
    pub last_record: Nanos,
    pub threads: Vec<ThreadState>,
    /// Threads of the process that never called MPI, the MPI library's own among them, where any thread may call it.
    pub other_threads: Vec<SystemState>,
    /// Requests that are under way.
    pub requests: Vec<OpenRequest>,
    pub history: History,
}

/// What a thread does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadState {
    /// 0 is the thread that called MPI_Init.
    pub number: u32,
    /// The operating system's number of it.
    pub tid: i64,
    /// MPI calls that it made, unsuccessful tests included, and how many these are: what is more is progress.
    pub calls: u64,
    pub unsuccessful_tests: u64,
    /// Inside recorded MPI calls, without the one that is open.
    pub mpi: Nanos,
    /// The last of these, as posted; `None`: there was none, or it is not known.
    #[serde(default)]
    pub unsuccessful: Option<OpenOperation>,
    /// The call that it is inside of; `None`: it is outside of MPI, or in a call that only begins something.
    pub open: Option<OpenCall>,
    /// What it did last in MPI, where that is known.
    pub last: Option<LastCall>,
    /// What the operating system says of it; `None`: it has ended, or runs elsewhere.
    pub system: Option<SystemState>,
}

/// A call that a thread is inside of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    pub operation: OpenOperation,
    pub begin: Nanos,
    /// What calls that end requests wait for.
    pub waits: Option<Waits>,
}

/// What a call that ends requests waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Places in [`RankState::requests`].
    pub requests: Vec<u32>,
    /// How many handles it was given, null ones among them.
    pub handles: u32,
    /// Whether these are all active requests that it was given. Where the program has moved its handles that is not known, and
    /// `requests` are those of the thread.
    pub is_certain: bool,
}

/// What an open call or request communicates, as posted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOperation {
    /// Index into [`JobState::calls`].
    pub call: u32,
    pub kind: Kind,
    /// Index into [`JobState::paths`].
    pub path: Option<u32>,
    /// Index into [`JobState::communicators`].
    pub communicator: Option<u32>,
    /// As the program gave it, in the communicator: -1 MPI_ANY_SOURCE, -2 MPI_PROC_NULL, -3 none, -4 this rank as MPI_ROOT. Of
    /// collectives the root.
    pub peer: i64,
    /// World rank of the peer; `None`: there is none, or it is not known.
    pub peer_world: Option<i64>,
    /// -1 MPI_ANY_TAG, -3 none.
    pub tag: i64,
    /// 0 of calls that have not returned: it is not asked for before.
    pub bytes: u64,
    /// The receiving half of what also sends.
    pub receive: Option<Box<OpenOperation>>,
    /// The call that made a persistent request whose activation it is, as MPI_Send_init.
    pub made_by: Option<u32>,
}

/// A request that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRequest {
    pub operation: OpenOperation,
    /// That posted it.
    pub thread: u32,
    pub begin: Nanos,
    pub unsuccessful_tests: u32,
    /// Valid with unsuccessful tests.
    pub last_unsuccessful_test: Nanos,
    /// MPI_Cancel was called on it.
    pub is_cancelled: bool,
    /// A test has found it complete and did not end it.
    pub is_seen_complete: bool,
    /// Partitions of a partitioned send; `None`: it is none, or that is not known.
    pub partitions: Option<Partitions>,
}

/// How far a partitioned send is that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partitions {
    pub all: u32,
    /// Made ready so far; at most 65,535 are counted.
    pub ready: u32,
}

impl Partitions {
    /// How many are still to be made ready.
    pub fn missing(self) -> u32 {
        let is_counted = self.ready < u32::from(u16::MAX);
        if is_counted {
            self.all.saturating_sub(self.ready)
        } else {
            0
        }
    }
}

/// What a thread did last in MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCall {
    pub call: u32,
    pub path: Option<u32>,
    /// When it returned.
    pub end: Nanos,
}

/// What the operating system says of a thread: proc_pid_stat(5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemState {
    /// R runs, S sleeps, D waits for a disk, T stopped, t traced, Z dead.
    pub state: char,
    /// On a processor so far, user and system.
    pub processor: Nanos,
    /// Where in the kernel it sleeps; empty: not told.
    pub sleeps_in: String,
    /// Whether it sleeps for a time that it has said, as far as that is told.
    pub wakes_by_itself: bool,
    /// How often it has gone to sleep so far.
    pub sleeps: u64,
    /// How long it had been there by then.
    pub age: Nanos,
}

/// What a rank had done by then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Sends that have ended, from the rank's side, in no order.
    pub sent: Vec<Lane>,
    /// Receives that have ended, as they came.
    pub received: Vec<Lane>,
    pub collectives: Vec<Sequence>,
    /// Locks of windows that it has taken and not released.
    #[serde(default)]
    pub locks: Vec<Lock>,
    /// Messages and collectives that returned an error, so that what they did is not known.
    #[serde(default)]
    pub failed: Vec<Failed>,
    /// Whether all is in these: nothing was lost, damaged, or only summed up.
    pub is_whole: bool,
}

/// A lock of a window's memory at one rank, or of all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lock {
    /// The window's group.
    pub communicator: u32,
    /// World rank of the target; `None`: MPI_Win_lock_all.
    pub target_world: Option<i64>,
}

/// Calls from one place that returned an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub call: u32,
    pub path: Option<u32>,
    pub count: u64,
}

/// Messages of one communicator, peer and tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    pub communicator: u32,
    /// World rank.
    pub peer_world: i64,
    pub tag: i64,
    /// Partitioned messages match among themselves.
    pub is_partitioned: bool,
    pub count: u64,
    /// Bytes of the last of them.
    pub bytes: u64,
    /// Of all of them.
    pub all_bytes: u64,
}

/// Collectives of a communicator in the order in which the rank began them: those that have ended, and non-blocking ones that were
/// begun; not the blocking one that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    pub communicator: u32,
    pub count: u64,
    /// The latest, at most [`Sequence::KEPT`], the last one last.
    pub last: Vec<Collective>,
}

impl Sequence {
    pub const KEPT: usize = 1024;
}

/// A collective that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collective {
    pub call: u32,
    /// As [`OpenOperation::peer`].
    pub root: i64,
    /// As [`OpenOperation::peer_world`].
    pub root_world: Option<i64>,
    pub bytes: u64,
    pub path: Option<u32>,
}

impl RankState {
    /// Calls that did something: a rank of which this grows goes on.
    pub fn progress(&self) -> u64 {
        let of = |thread: &ThreadState| thread.calls.saturating_sub(thread.unsuccessful_tests);
        self.threads.iter().map(of).sum()
    }

    /// Whether it will never do anything in MPI any more.
    pub fn is_over(&self) -> bool {
        self.condition.is_over()
    }

    /// Whether its threads may call MPI at the same time: MPI_THREAD_MULTIPLE.
    pub fn is_multithreaded(&self) -> bool {
        const MULTIPLE: i64 = 3;
        self.thread_level >= MULTIPLE
    }
}
