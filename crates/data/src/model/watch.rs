//! Rows about watched buffers: `watcher`, `watch_left_out`, `watch`. schema/README.md defines their times.

use super::checked_words::checked_words;
use super::{Bytes, Nanos, RankKey};

checked_words! {
    /// Which half of a buffer's life was watched; `watch.side`.
    Side {
        /// From the end of one send of the buffer to the post of the next, for writes.
        Send = "send",
        /// From the completion of a receive on, for any access.
        Receive = "receive",
    }

    /// What became of a watched word; `watch.result`.
    WatchResult {
        /// `away` is the time between the edge and the touch.
        Touched = "touched",
        /// `away` is how long the word was watched: the time to its touch is at least that.
        Untouched = "untouched",
        /// Written more often than was watched for: the time from the last write to the post is at most `away`.
        Often = "often",
    }

    /// Who touched a word; `watch.toucher`.
    Toucher {
        Program = "program",
        /// A call of MPI that the program made.
        Mpi = "mpi",
    }

    /// Why an untouched word of a received buffer was no longer watched; `watch.let_go`.
    LetGo {
        /// Another call took the buffer.
        Reused = "reused",
        /// MPI_Finalize.
        Ended = "ended",
        /// It was watched long enough.
        Late = "late",
        /// The function that had it on its stack returned.
        Stack = "stack",
    }
}

/// A row of `watcher`: a rank that was asked to watch buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watcher {
    pub rank: RankKey,
    /// Why it watched nothing, or stopped.
    pub problem: Option<String>,
    /// That a thread could watch at once.
    pub words: i64,
    /// What an access to a watched word costs the program.
    pub hit: Option<Nanos>,
    /// What watching a word, and letting it go, costs.
    pub set: Option<Nanos>,
    pub spent: Nanos,
    /// CPU time of threads on which nothing was watched; `None`: not known.
    pub other_cpu: Option<Nanos>,
}

/// A row of `watch_left_out`: buffers that were sent or received and not watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchLeftOut {
    pub rank: RankKey,
    /// A word of schema/README.md; later versions may have others.
    pub reason: String,
    pub buffers: u64,
}

/// A row of `watch`: a word of a buffer. Ids are those of its file, moments since the epoch of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    pub operation_id: i64,
    pub thread_id: i64,
    pub side: Side,
    /// `request.post_begin_ns`, or `call.begin_ns` of a blocking call, on that thread.
    pub begin: Nanos,
    /// Sends: `begin`; receives: when the call that completed it returned.
    pub edge_begin: Nanos,
    /// From the first byte of the buffer to its last.
    pub buffer: Bytes,
    /// Where the word is in the buffer.
    pub offset: Bytes,
    pub result: WatchResult,
    /// Between the edge and the touch; a bound of it unless it was touched.
    pub away: Nanos,
    /// How much of it the thread was inside MPI.
    pub away_mpi: Nanos,
    /// Accesses that were seen.
    pub hits: u64,
    pub toucher: Option<Toucher>,
    /// `call_path.id` of the instruction that touched, or of the MPI call in which that was.
    pub instruction_id: Option<i64>,
    pub let_go: Option<LetGo>,
    pub is_on_stack: bool,
    /// The datatype has gaps: words are of the first and the last bytes of its elements only.
    pub is_sparse: bool,
    /// `call_path.id` of the instruction that copied the word of the buffer: what it copied to or from was watched.
    pub copy_id: Option<i64>,
}

impl Watch {
    /// What the program had to itself of [`Watch::away`].
    pub fn away_outside_mpi(&self) -> Nanos {
        self.away - self.away_mpi
    }
}
