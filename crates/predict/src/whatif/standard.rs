//! Scenarios that bound what can be gained of a run.

use crate::replay::scenario::{Bandwidth, Latency, Progress, Scenario, Scope};

/// Messages move as soon as they can, whatever their ends do meanwhile.
pub fn perfect_progress() -> Scenario {
    let name = Some("perfect progress".to_owned());
    Scenario { name, progress: Some(Progress::Async), ..Scenario::default() }
}

/// Messages take no time, wherever they go and whatever their ends do; waits for who has not come are left.
pub fn ideal_network() -> Scenario {
    Scenario {
        name: Some("ideal network".to_owned()),
        latency: Some(Latency::Nanoseconds(0.0)),
        bandwidth: Some(Bandwidth::Infinite),
        progress: Some(Progress::Async),
        on: Some(Scope::All),
        ..Scenario::default()
    }
}

/// Every rank computes as long as the mean of all.
pub fn balanced_load() -> Scenario {
    Scenario { name: Some("balanced load".to_owned()), balance: true, ..Scenario::default() }
}

/// What is answered where nothing is asked: the most that each kind of cure can bring.
pub fn all() -> Vec<Scenario> {
    vec![perfect_progress(), ideal_network(), balanced_load()]
}
