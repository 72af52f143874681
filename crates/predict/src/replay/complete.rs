//! An endpoint is complete: the thread that waits for it, or would look for it, goes on.

use super::outcome::NOBODY;
use super::program::Action;
use super::queue::{EndpointRef, QueuedEvent};
use super::state::{Engine, Phase, Trigger};
use lapscope_trace::{Direction, Span, NONE};

/// What a step is to the computation around it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// A test: it says no of what is not complete, and the program goes on and looks again.
    Look,
    /// It waits for nobody, as far as one knows.
    Open,
    /// Nothing of what stands behind it can be done before.
    Wait,
}

impl Engine<'_> {
    /// `half` of `end` is complete at `time`, which may be later than now.
    pub fn complete(&mut self, end: EndpointRef, time: i64, trigger: Trigger) {
        let half = &mut self.ranks[end.rank as usize].halves[end.endpoint as usize];
        half.done = time;
        half.flight = trigger.rank;
        half.since_trigger = Span::new(time - trigger.time);
        let of_trace = &self.trace.ranks[end.rank as usize];
        let call = of_trace.endpoints[end.endpoint as usize].call;
        if call == NONE {
            return;
        }
        let number = u32::from(of_trace.threads.of_call(call));
        let thread = self.first_thread[end.rank as usize] + number;
        let is_async = self.is_async;
        let state = &mut self.threads[thread as usize];
        if is_async && state.phase == Phase::Computes {
            return self.look_sooner(thread, call);
        }
        if state.phase != Phase::Waits || state.call != call {
            return;
        }
        state.waiting -= 1;
        if time > state.release || (state.binding.0 == NOBODY && time >= state.release) {
            state.release = state.release.max(time);
            state.binding = (end.endpoint, trigger);
        }
        if state.waiting == 0 {
            self.release(thread);
        }
    }

    /// All that a thread looks for next may be complete. Where messages move by themselves a bound lets it look at once, and do
    /// later what it was computing.
    fn look_sooner(&mut self, thread: u32, call: u32) {
        let state = &self.threads[thread as usize];
        let rank = state.rank as usize;
        let (of_rank, of_trace) = (&self.program.ranks[rank], &self.trace.ranks[rank]);
        let steps = &of_rank.threads[state.number as usize].steps;
        let Some(Action::Call(place)) = steps.get(state.step as usize).map(|step| step.action())
        else {
            return;
        };
        let is_meant = of_rank.call_of(of_trace, place) == call;
        if !is_meant || self.passage(rank, Action::Call(place)) != Passage::Look {
            return;
        }
        let halves = &self.ranks[rank].halves;
        let done = of_rank.endpoints_of(of_trace, place).map(|it| halves[it as usize].done).max();
        let Some(done) = done.filter(|&done| done < state.due) else { return };
        let left = state.due - done;
        if state.number == 0 {
            self.ranks[rank].compute -= left;
        }
        let state = &mut self.threads[thread as usize];
        (state.due, state.ahead) = (done, state.ahead - left);
        self.queue.push(done, QueuedEvent::Resume(thread));
    }

    /// All that a thread waited for is, or will be, complete.
    pub fn release(&mut self, thread: u32) {
        let state = &mut self.threads[thread as usize];
        state.phase = Phase::Leaves;
        let leaves = (state.release + state.late).max(state.entered + state.cost);
        state.due = leaves;
        self.queue.push(leaves, QueuedEvent::Resume(thread));
    }

    pub fn passage(&self, rank: usize, action: Action) -> Passage {
        let place = match action {
            Action::Post(_) | Action::Start(_) | Action::Other(_) | Action::Never(_) => {
                return Passage::Open
            }
            Action::Loop(_) | Action::Finish(_) => return Passage::Wait,
            Action::Call(place) => place,
        };
        let of_trace = &self.trace.ranks[rank];
        let (mut looks, mut sends) = (true, true);
        for endpoint in self.program.ranks[rank].endpoints_of(of_trace, place) {
            let row = &of_trace.endpoints[endpoint as usize];
            let operation = &of_trace.operations[row.operation as usize];
            looks &= operation.is_tested;
            sends &= !operation.is_request && operation.direction == Direction::Send;
            if !looks && !sends {
                return Passage::Wait;
            }
        }
        if looks {
            Passage::Look
        } else {
            Passage::Open
        }
    }
}
