//! What is shown of a running job. Keys are documented in `docs/json.md`.

use serde::Serialize;

use lapscope_data::model::{Nanos, Rank};
use lapscope_data::state::{Condition, Unseen};
use lapscope_data::symbols::FrameName;

/// A job now, and what it did over the last seconds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Moment {
    /// Since 1970, by the clock of its processes.
    pub observed_ns: Nanos,
    /// Since the first of its ranks left MPI_Init.
    pub age_ns: Nanos,
    /// As the MPI names itself; empty: not known.
    pub mpi_library: String,
    /// The command line of rank 0; empty: not known.
    pub command: String,
    /// Ranks that MPI_COMM_WORLD has; `ranks` has those that are seen from here.
    pub world_size: i64,
    pub hosts: usize,
    /// Every rank has ended.
    pub is_over: bool,
    /// Between the last two looks.
    pub interval_ns: Nanos,
    /// What rates and shares are of: the last looks, as far as `--window` goes back.
    pub window_ns: Nanos,
    pub total: Pace,
    /// The rank that waits least by far, while the others wait: for it, most likely.
    pub awaited: Option<Rank>,
    pub ranks: Vec<RankPace>,
    /// The costliest first.
    pub sites: Vec<SitePace>,
    pub alerts: Vec<Alert>,
    pub unseen: Vec<Unseen>,
    /// The exposed share between two looks each, the latest last.
    pub exposed_shares: Vec<f64>,
}

/// What was done in the window, by the second of wall time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Pace {
    /// MPI calls that ended and were no unsuccessful tests.
    pub calls_per_s: f64,
    pub unsuccessful_tests_per_s: f64,
    pub injected_tests_per_s: f64,
    /// Sends that ended.
    pub messages_per_s: f64,
    /// Bytes a second of these sends.
    pub bytes_per_s: f64,
    /// Time in completing and blocking communication, of wall time.
    pub exposed_share: f64,
    /// Time in all recorded calls that have ended, of wall time.
    pub mpi_share: f64,
}

/// What a rank does, and did.
#[derive(Debug, Clone, Serialize)]
pub struct RankPace {
    pub rank: Rank,
    pub host: String,
    pub condition: Condition,
    /// It is stopped, by a signal or a debugger.
    pub is_stopped: bool,
    /// Since MPI_Init, without unsuccessful tests.
    pub calls: u64,
    #[serde(flatten)]
    pub pace: Pace,
    /// Since its last call ended.
    pub quiet_ns: Nanos,
    /// That one of its threads has been inside of for longest; `None`: it is outside of MPI.
    pub inside: Option<UnreturnedCall>,
}

/// A call that has not returned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnreturnedCall {
    pub call: String,
    pub site: Option<FrameName>,
    /// For so long.
    pub since_ns: Nanos,
}

/// A call at a place.
#[derive(Debug, Clone, Serialize)]
pub struct SitePace {
    pub call: String,
    pub site: Option<FrameName>,
    /// Summed over ranks, in the window.
    pub exposed_ns: Nanos,
    /// Share of the wall time of all ranks.
    pub exposed_share: f64,
    /// That returned in the window.
    pub calls: u64,
    /// Ranks that are inside of it now.
    pub ranks_inside: usize,
}

/// What somebody should look at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alert {
    pub kind: AlertKind,
    pub sentence: String,
    pub ranks: Vec<Rank>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// Killed, or ended without MPI_Finalize, while others go on.
    Dead,
    Stopped,
    /// No call of any rank has ended for so long.
    NoProgress,
    /// No call of these ranks has, while others go on.
    Quiet,
    /// Something is in [`Moment::unseen`].
    Unseen,
}
