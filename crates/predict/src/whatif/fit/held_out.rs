//! How far the model is off where it was not fitted: of half of the calls, under a model of the other half.

use super::Fitting;
use crate::replay::scenario::Contention;
use crate::replay::{Network, Outcome};
use lapscope_trace::stats::scramble;
use lapscope_trace::Locality;

/// Calls of each rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    All,
    /// Drawn at random, always the same ones: a pattern of calls that repeats must not divide them.
    Half,
}

impl Calls {
    pub fn has(self, place: usize) -> bool {
        self == Calls::All || scramble(place as u64) % 2 == 0
    }
}

impl Fitting<'_> {
    /// Computes [`Fitted::held_out_error`]; what messages share is known from all of the run.
    pub(super) fn held_out_error(
        &self,
        unfitted: &Network,
        contention: Contention,
        present: &[Locality],
    ) -> Option<f64> {
        let mut network = Network { contention, ..unfitted.clone() };
        let fitting = Fitting { of: Calls::Half, ..*self };
        for &locality in present {
            fitting.choose_protocol(&mut network, locality);
        }
        fitting.correct_times(&mut network);
        fitting.correct_collectives(&mut network, self.trace);
        self.error_of_other_half(&self.replay(&network))
    }

    fn error_of_other_half(&self, outcome: &Outcome) -> Option<f64> {
        const FEWEST: usize = 20;
        let (mut all, mut held_out, mut difference, mut calls) = (0, 0, 0, 0);
        for (rank, replayed) in self.trace.ranks.iter().zip(&outcome.ranks) {
            for (place, (call, time)) in rank.calls.iter().zip(&replayed.calls).enumerate() {
                let Some(duration) = time.duration.get() else { continue };
                all += call.duration;
                if !Calls::Half.has(place) {
                    held_out += call.duration;
                    difference += duration - call.duration;
                    calls += 1;
                }
            }
        }
        let run: i64 = self.trace.ranks.iter().map(|rank| rank.end - rank.init_end).sum();
        (calls >= FEWEST && held_out > 0 && run > 0)
            .then(|| difference as f64 / held_out as f64 * all as f64 / run as f64)
    }
}
