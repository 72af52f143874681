//! What a replay is made under besides its network.

use super::program::{Program, RECORDING_NS};
use super::scenario::Scenario;

/// How much computation there is, and whether what recording took is left in.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// Computation of each rank as a multiple of the recorded one.
    pub compute: Vec<f64>,
    /// Whether what recording took is left in.
    pub keeps_recording: bool,
}

impl Conditions {
    /// As recorded.
    pub fn as_recorded(ranks: usize) -> Conditions {
        Conditions { compute: vec![1.0; ranks], keeps_recording: true }
    }

    /// Without what recording took, at the scenario's speed, and evened out where it asks for that.
    pub fn under(scenario: &Scenario, program: &Program) -> Conditions {
        let slower = 1.0 / scenario.cpu.unwrap_or(1.0);
        let compute = match scenario.balance {
            true => program.even_load().into_iter().map(|factor| factor * slower).collect(),
            false => vec![slower; program.ranks.len()],
        };
        Conditions { compute, keeps_recording: false }
    }

    /// What a recorded computation of a rank takes, nanoseconds.
    #[inline]
    pub fn gap(&self, rank: usize, recorded: i64) -> i64 {
        let gap = match self.keeps_recording {
            true => recorded,
            false => (recorded - RECORDING_NS).max(0),
        };
        scaled(gap, self.compute[rank])
    }
}

fn scaled(ns: i64, times: f64) -> i64 {
    if times == 1.0 {
        ns
    } else {
        (ns as f64 * times).round() as i64
    }
}
