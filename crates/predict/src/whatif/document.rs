//! What `lapscope whatif` says. Keys are documented in `docs/json.md`.

use serde::Serialize;

use super::fit::{ContentionFrom, LimitFrom};
use crate::replay::scenario::{Contention, Protocol, Scenario};
use lapscope_data::model::{Nanos, Rank};
use lapscope_data::symbols::FrameName;
use lapscope_measure::overlap::sums::OverlapTimes;
use lapscope_trace::problem::Problem;
use lapscope_trace::Locality;

/// One run under several scenarios.
#[derive(Debug, Serialize)]
pub struct WhatIf {
    pub json_version: u32,
    pub run: String,
    pub problems: Vec<Problem>,
    pub recorded: Recorded,
    pub model: Model,
    /// The run replayed with nothing changed: how far the model is off.
    pub identity: ScenarioResult,
    /// In the order in which they were asked for.
    pub scenarios: Vec<ScenarioResult>,
    /// What was asked of `--sweep`; empty without it.
    pub sweeps: Vec<Sweep>,
}

impl WhatIf {
    /// The error to reckon with, as a share of run times.
    pub fn error(&self) -> f64 {
        larger(self.identity.identity_error, self.model.held_out_error)
    }
}

/// The larger error: that of the replay of the run as it was, or that of calls that the model was not fitted to.
pub(super) fn larger(identity: f64, held_out: Option<f64>) -> f64 {
    held_out.unwrap_or(0.0).abs().max(identity.abs())
}

/// The run as it was.
#[derive(Debug, Clone, Serialize)]
pub struct Recorded {
    /// The command of the first rank, as in a report.
    pub command: String,
    pub mpi_library: String,
    pub ranks: usize,
    /// From the first return of MPI_Init to the last entry of MPI_Finalize.
    pub run_ns: Nanos,
    /// Exposed time, summed over ranks.
    pub exposed_ns: Nanos,
    pub exposed: OverlapTimes,
}

/// What the replay takes messages to do, as the run shows it.
#[derive(Debug, Clone, Serialize)]
pub struct Model {
    pub localities: Vec<LocalityModel>,
    pub contention: Contention,
    pub contention_from: ContentionFrom,
    /// [`Fitted::held_out_error`](super::fit::Fitted).
    pub held_out_error: Option<f64>,
    /// Events of the identity replay, and how long it took.
    pub events: u64,
    pub replay_ns: Nanos,
    /// Messages that were replayed, and requests and calls that keep their recorded durations: of unknown partners, windows, files.
    pub messages: u64,
    pub as_recorded: u64,
    /// What is not certain, and its sentences; these are empty until somebody writes them.
    #[serde(skip)]
    pub to_know: Vec<ReplayNote>,
    pub notes: Vec<String>,
}

/// What to know of a replay before its numbers are believed.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplayNote {
    /// Some ranks kept sums alone from some point on.
    SummedUp,
    /// No message went undisturbed, so that the network is fitted to the waits.
    FittedToWaits,
    /// Tests that were injected, and what they took of all ranks.
    Injected(Nanos),
    /// Calls were moved, over so much computation; of so many call sites nothing was seen.
    Moved { calls: u64, over: Nanos, unknown: usize },
    /// Of so many collectives of a call site so many were left out; so many stay, as their other members are not known.
    LeftOut { site: String, left_out: u64, collectives: u64, unknown: u64 },
    /// So many blocking collectives were taken for non-blocking ones.
    NonBlocking(u64),
    /// Waiting that is in no root cause.
    Untraced { share: f64, waiting: Nanos },
}

/// What the model has for messages between the ranks of a locality.
#[derive(Debug, Clone, Serialize)]
pub struct LocalityModel {
    pub locality: Locality,
    pub messages: u64,
    pub latency_ns: Nanos,
    /// The bandwidth of the largest messages; `None`: too few sizes.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// `None`: all messages are eager as far as the run shows.
    pub eager_limit_bytes: Option<u64>,
    pub eager_limit_from: LimitFrom,
    /// Above that limit.
    pub protocol: Protocol,
    /// Whether the run's waits tell this protocol from others.
    pub is_protocol_certain: bool,
}

/// A scenario and what it makes of the run.
#[derive(Debug, Clone, Serialize)]
pub struct ScenarioResult {
    /// The name in the scenario file, else the options.
    pub name: String,
    pub scenario: Scenario,
    /// `None`: the run never ends, see `deadlock`.
    pub run_ns: Option<Nanos>,
    /// The least and the most under networks that fit the run about as well; `None`: it has this one alone.
    pub run_low_ns: Option<Nanos>,
    pub run_high_ns: Option<Nanos>,
    /// Change of `run_ns`, as a share of the identity replay's run time; negative is faster.
    pub change: Option<f64>,
    /// `run_ns` of the identity replay against the recorded one, as a share of the recorded one, and the same of exposed time as a
    /// share of the recorded run time of all ranks: the error to reckon with.
    pub identity_error: f64,
    pub identity_exposed_error: f64,
    pub exposed_ns: Nanos,
    pub exposed: OverlapTimes,
    /// Where most of the exposed time is, or was in the identity replay.
    pub sites: Vec<SiteResult>,
    pub ranks: Vec<RankResult>,
    pub critical_path: Option<CriticalPath>,
    /// What waits are due to, the largest first.
    pub root_causes: Vec<RootCause>,
    pub deadlock: Option<Deadlock>,
    /// What this scenario could not change, and its sentences; these are empty until somebody writes them.
    #[serde(skip)]
    pub to_know: Vec<ReplayNote>,
    pub notes: Vec<String>,
}

/// Exposed time of one call site.
#[derive(Debug, Clone, Serialize)]
pub struct SiteResult {
    pub call: String,
    pub site: Option<FrameName>,
    /// Recorded, in the identity replay, and in this scenario.
    pub recorded_ns: Nanos,
    pub identity_ns: Nanos,
    pub exposed_ns: Nanos,
}

/// One rank.
#[derive(Debug, Clone, Serialize)]
pub struct RankResult {
    pub rank: Rank,
    pub run_ns: Nanos,
    /// Outside MPI.
    pub compute_ns: Nanos,
    /// In MPI without waiting: posts, copies, and what has its recorded duration.
    pub overhead_ns: Nanos,
    pub wait_ns: Nanos,
}

/// The longest chain of what depends on each other: only what is on it makes the run shorter.
#[derive(Debug, Clone, Serialize)]
pub struct CriticalPath {
    pub length_ns: Nanos,
    pub compute_ns: Nanos,
    pub overhead_ns: Nanos,
    /// Messages and collectives on their way.
    pub communication_ns: Nanos,
    pub by_rank: Vec<PathRank>,
    /// The largest first.
    pub by_site: Vec<PathSite>,
}

#[derive(Debug, Clone, Serialize)]
pub struct PathRank {
    pub rank: Rank,
    pub ns: Nanos,
    pub share: f64,
}

/// A stretch of the path: computation behind one call and before the next, a call, or a transfer.
#[derive(Debug, Clone, Serialize)]
pub struct PathSite {
    pub kind: PathKind,
    /// Computation: the call before it; `None`: MPI_Init. Else the call itself.
    pub call: Option<String>,
    pub site: Option<FrameName>,
    /// Computation: the call behind it; `None`: MPI_Finalize.
    pub next_call: Option<String>,
    pub next_site: Option<FrameName>,
    pub ns: Nanos,
    pub share: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    Computation,
    Overhead,
    Communication,
}

/// What others waited for meanwhile.
#[derive(Debug, Clone, Serialize)]
pub struct RootCause {
    pub rank: Rank,
    /// What that rank did, as in [`PathSite`].
    #[serde(flatten)]
    pub what: PathSite,
    /// Waiting of all ranks, summed, that is due to it, and of how many ranks.
    pub delayed_ns: Nanos,
    pub delayed_ranks: usize,
}

/// Why a scenario never ends.
#[derive(Debug, Clone, Serialize)]
pub struct Deadlock {
    /// Ranks that wait for each other in a circle, each for the next and the last for the first; empty: there is none, some rank
    /// waits for one that is done.
    pub cycle: Vec<Blocked>,
    /// All ranks that do not go on.
    pub blocked: usize,
    /// Since the run's begin.
    pub at_ns: Nanos,
    #[serde(skip)]
    pub standstill: Standstill,
    /// One sentence; empty until somebody writes it.
    pub says: String,
}

/// What a replay that does not end shows.
#[derive(Debug, Clone)]
pub enum Standstill {
    Circle {
        /// Whose record has gaps, so that nothing follows for the program.
        gaps: Option<Rank>,
        /// A receive from any source is in it, which might match otherwise.
        is_wildcard: bool,
    },
    /// A rank waits for what another one's record does not have; no deadlock, as far as is known.
    Missing { blocked: Box<Blocked>, other: Option<(Rank, RecordEnd)> },
}

/// Why the end of a rank's record need not be the end of what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordEnd {
    Gaps,
    SummedUp,
    Killed,
    Aborted,
    Exited,
    /// It is, and has nothing of what is waited for.
    Whole,
}

/// What a rank that does not go on waits for the other one to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerAction {
    Receive,
    Send,
    /// That it takes part in a collective.
    Part,
}

/// A rank that does not go on.
#[derive(Debug, Clone, Serialize)]
pub struct Blocked {
    pub rank: Rank,
    pub call: String,
    pub site: Option<FrameName>,
    /// Whom it waits for.
    pub waits_for: Vec<Rank>,
    /// Size of the message that it waits for.
    pub bytes: Option<u64>,
    pub tag: Option<i64>,
    #[serde(skip)]
    pub awaits: PeerAction,
}

/// Run time against a knob.
#[derive(Debug, Clone, Serialize)]
pub struct Sweep {
    /// `bandwidth`, `latency`, `eager-limit`, `cpu`, `progress`.
    pub knob: String,
    pub points: Vec<SweepPoint>,
}

#[derive(Debug, Clone, Serialize)]
pub struct SweepPoint {
    /// As it was typed.
    pub value: String,
    /// In the knob's base unit (ns, bytes a second, bytes, a factor), for an axis; infinite (`null` in JSON) without a limit.
    pub number: f64,
    /// `None`: it deadlocks.
    pub run_ns: Option<Nanos>,
    pub exposed_ns: Option<Nanos>,
}
