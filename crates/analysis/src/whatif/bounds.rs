//! The most that any cure of a run's communication can bring, for its report.

use serde::Serialize;

use super::fit::fit;
use super::standard::{ideal_network, perfect_progress};
use crate::reference::Reference;
use crate::replay::program::is_replayed;
use crate::replay::scenario::Scenario;
use crate::replay::{replay, Conditions, Durations, Program};
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
    /// With messages that move as soon as they can, whatever their ends do; `None`: not known.
    pub perfect_progress_ns: Option<Nanos>,
    /// With messages that take no time; `None`: not known.
    pub ideal_network_ns: Option<Nanos>,
    /// Whether the times of messages are fitted to the waits alone; then the run may become faster than these two.
    pub rests_on_waits: bool,
}

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
    let run_of = |scenario: &Scenario, conditions: &Conditions| {
        let network = fitted.network.with(scenario, has_network);
        let outcome = replay(trace, &program, &network, conditions, &durations);
        outcome.run_ns(trace).map(Nanos)
    };
    let recorded_ns = Nanos(trace.run_ns());
    let identity_ns = run_of(&Scenario::default(), &recorded)?;
    Some(Bounds {
        recorded_ns,
        identity_ns,
        identity_error: (identity_ns - recorded_ns).share_of(recorded_ns),
        base_ns: run_of(&Scenario::default(), &unrecorded)?,
        perfect_progress_ns: run_of(&perfect_progress(), &unrecorded),
        ideal_network_ns: run_of(&ideal_network(), &unrecorded),
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
