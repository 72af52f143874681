//! The most that any cure of a run's communication can bring, for its report.

use serde::Serialize;

use super::fit::fit;
use super::standard::{ideal_network, perfect_progress};
use crate::reference::Reference;
use crate::replay::program::is_replayed;
use crate::replay::scenario::Scenario;
use crate::replay::{replay, Conditions, Durations, Network, Program};
use crate::thresholds::Thresholds;
use crate::trace::{Direction, Locality, RankTrace, Trace};
use lapscope_data::model::Nanos;

/// Run times of replays; keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// From the first return of MPI_Init to the last entry of MPI_Finalize.
    pub recorded_ns: Nanos,
    /// The run replayed with nothing changed.
    pub identity_ns: Nanos,
    /// Of `identity_ns` against `recorded_ns`, as a share of the latter: the error to reckon with.
    pub identity_error: f64,
    /// The same without what recording took: what the next two are compared with.
    pub base_ns: Nanos,
    /// With messages that move as soon as they can, whatever their ends do; `None`: not known, as where the replay is off by more
    /// than [`MOST_ERROR`].
    pub perfect_progress_ns: Option<Nanos>,
    /// The same where messages share more of their way than the run needs to show; `None`: that is all that they may share.
    pub perfect_progress_high_ns: Option<Nanos>,
    /// The same with messages that take no time; `None`: not known.
    pub ideal_network_ns: Option<Nanos>,
    /// Whether the times of messages are fitted to the waits alone; then the run may become faster than these two.
    pub rests_on_waits: bool,
}

/// A replay that is further from the record, as a share of it, is no ground for a prediction.
pub const MOST_ERROR: f64 = 0.05;

/// Runs with more endpoints are not replayed for a report: that takes longer than all the rest of it.
const MOST_ENDPOINTS: usize = 2_000_000;

/// Whether a report would wait for its bounds longer than for all the rest of it.
pub fn is_too_large(trace: &Trace) -> bool {
    trace.ranks.iter().map(|rank| rank.endpoints.len()).sum::<usize>() > MOST_ENDPOINTS
}

/// Replays a run as it was, with perfect progress, and with an ideal network. `None`: nothing of it can be replayed, or it does
/// not end when it is replayed as it was.
pub fn bounds(trace: &Trace, reference: &Reference, thresholds: &Thresholds) -> Option<Bounds> {
    let program = Program::new(trace);
    let durations = Durations::of(trace);
    let fitted = fit(trace, &program, reference, thresholds, &durations);
    let has_messages = fitted.messages.iter().any(|&messages| messages > 0);
    if !has_messages && !trace.ranks.iter().any(|rank| has_nonblocking_collectives(trace, rank)) {
        return None;
    }
    let recorded = Conditions::as_recorded(trace.ranks.len());
    let unrecorded = Conditions { keeps_recording: false, ..recorded.clone() };
    let has_network = fitted.messages[Locality::Network as usize] > 0;
    let under = |network: &Network, scenario: &Scenario, conditions: &Conditions| {
        let network = network.with(scenario, has_network);
        let outcome = replay(trace, &program, &network, conditions, &durations);
        outcome.run_ns(trace).map(Nanos)
    };
    let run_of =
        |scenario: &Scenario, conditions: &Conditions| under(&fitted.network, scenario, conditions);
    let recorded_ns = Nanos(trace.run_ns());
    let identity_ns = run_of(&Scenario::default(), &recorded)?;
    let identity_error = (identity_ns - recorded_ns).share_of(recorded_ns);
    let predicted = |scenario: &Scenario| {
        (identity_error.abs() <= MOST_ERROR).then(|| run_of(scenario, &unrecorded)).flatten()
    };
    let progress = predicted(&perfect_progress());
    let others = fitted.others.iter().filter(|_| progress.is_some());
    let others = others.filter_map(|other| under(other, &perfect_progress(), &unrecorded));
    let all: Vec<Nanos> = progress.into_iter().chain(others).collect();
    let (least, most) = (all.iter().min().copied(), all.iter().max().copied());
    Some(Bounds {
        recorded_ns,
        identity_ns,
        identity_error,
        base_ns: run_of(&Scenario::default(), &unrecorded)?,
        perfect_progress_ns: least,
        perfect_progress_high_ns: most.filter(|_| most > least),
        ideal_network_ns: predicted(&ideal_network()),
        rests_on_waits: fitted.rests_on_waits(),
    })
}

/// Whether non-blocking collectives of a rank are replayed.
fn has_nonblocking_collectives(trace: &Trace, rank: &RankTrace) -> bool {
    rank.endpoints.iter().any(|endpoint| {
        let operation = &rank.operations[endpoint.operation as usize];
        operation.is_request
            && operation.direction == Direction::Collective
            && is_replayed(trace, endpoint, operation)
    })
}

impl Bounds {
    /// What a scenario with that run time saves, as a share of the run time; negative: it is slower.
    pub fn gain(&self, run_ns: Nanos) -> f64 {
        (self.base_ns - run_ns).share_of(self.base_ns)
    }
}
