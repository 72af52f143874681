//! The event loop: threads go from step to step, messages from state to state.

use super::collective::Durations;
use super::conditions::Conditions;
use super::network::Network;
use super::outcome::{Outcome, Stuck};
use super::program::{Action, Program};
use super::queue::QueuedEvent;
use super::replayed::is_replayed;
use super::state::{Engine, Phase, RankState, ThreadState, NEVER};
use lapscope_trace::Trace;

/// Replays a run. Time grows with its steps and messages, memory by about 24 bytes an endpoint and a call.
pub fn replay(
    trace: &Trace,
    program: &Program,
    network: &Network,
    conditions: &Conditions,
    durations: &Durations,
) -> Outcome {
    let mut engine = Engine::new(trace, program, network, conditions, durations);
    engine.run();
    engine.finish()
}

impl Engine<'_> {
    fn run(&mut self) {
        for thread in 0..self.threads.len() as u32 {
            let rank = self.threads[thread as usize].rank;
            self.compute(thread, self.trace.ranks[rank as usize].init_end);
        }
        while let Some((time, what)) = self.queue.pop() {
            match what {
                QueuedEvent::Resume(thread) => self.resume(thread, time),
                QueuedEvent::Notice(notice) => self.arrive(notice, time),
                QueuedEvent::Finish { flight, version } => {
                    self.finish_moving(flight, version, time)
                }
                QueuedEvent::Tick { rank, visit } => self.tick(rank, visit, time),
            }
        }
    }

    fn finish(self) -> Outcome {
        let mut stuck: Vec<Stuck> = Vec::new();
        for state in self.threads.iter().filter(|state| state.phase == Phase::Waits) {
            let first = self.first_unfinished(state);
            stuck.push(Stuck {
                rank: state.rank,
                thread: state.number,
                since: state.entered,
                call: state.call,
                endpoint: first,
            });
        }
        stuck.sort_by_key(|stuck| (stuck.since, stuck.rank));
        let ranks = self.ranks.into_iter().map(RankState::finish).collect();
        let conditions = self.conditions.clone();
        Outcome { ranks, conditions, events: self.queue.made(), steps: self.steps, stuck }
    }

    fn first_unfinished(&self, state: &ThreadState) -> u32 {
        let of_trace = &self.trace.ranks[state.rank as usize];
        let halves = &self.ranks[state.rank as usize].halves;
        let of_rank = &self.program.ranks[state.rank as usize];
        let step = of_rank.threads[state.number as usize].steps[state.step as usize];
        let (Action::Call(place) | Action::Loop(place) | Action::Finish(place)) = step.action()
        else {
            return state.endpoint;
        };
        let mut endpoints = of_rank.endpoints_of(of_trace, place);
        let unfinished = endpoints.find(|&endpoint| {
            let row = &of_trace.endpoints[endpoint as usize];
            let operation = &of_trace.operations[row.operation as usize];
            halves[endpoint as usize].done == NEVER && is_replayed(self.trace, row, operation)
        });
        unfinished.unwrap_or(state.endpoint)
    }
}
