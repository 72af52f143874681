//! The most that any cure of a run's communication can bring, for its report.

use serde::Serialize;

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
    /// With messages that move as soon as they can, whatever their ends do; `None`: not known.
    pub perfect_progress_ns: Option<Nanos>,
    /// With messages that take no time; `None`: not known.
    pub ideal_network_ns: Option<Nanos>,
}

impl Bounds {
    /// What a scenario with that run time saves, as a share of the replayed run time; negative: it is slower.
    pub fn gain(&self, run_ns: Nanos) -> f64 {
        (self.identity_ns - run_ns).share_of(self.identity_ns)
    }
}
