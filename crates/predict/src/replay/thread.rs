//! A thread on its way through its steps: computation, calls, and waits for what they complete.
//!
//! A test that finds nothing in the replay does not wait: the program computes what stands between it and its next
//! wait, looks again, and has that much less to compute after it. Where messages move by themselves it is made when
//! there is something to see, and what it computed before is computed after the answer: a bound has to allow for tests
//! that come as often as one likes.

use super::complete::Passage;
use super::outcome::{CallTime, NOBODY};
use super::program::Action;
use super::queue::QueuedEvent;
use super::replayed::is_replayed;
use super::scenario::{Progress, Protocol};
use super::state::{Engine, Phase, ThreadState, NEVER, NO_TRIGGER};
use lapscope_trace::{Direction, RequestEnd, Span, NONE};

/// Tests of one computation that are replayed one by one: more of them see what moves no sooner to speak of.
const MOST_LOOKS: i64 = 4_096;

impl Engine<'_> {
    /// Begins the computation in front of a thread's next step.
    pub fn compute(&mut self, thread: u32, time: i64) {
        let state = &mut self.threads[thread as usize];
        let rank = state.rank as usize;
        let program = &self.program.ranks[rank].threads[state.number as usize];
        let step = program.steps.get(state.step as usize);
        let recorded = step.map_or(program.rest, |step| step.gap.or_zero());
        let gap = self.conditions.gap(rank, recorded);
        state.phase = Phase::Computes;
        let period = period_of(state, program, self.network.progress);
        self.ranks[rank].period = if period > 0 { period.max(gap / MOST_LOOKS) } else { 0 };
        let (ahead, number) = (state.ahead, state.number);
        // what a look found is answered first
        let is_owed = ahead < 0
            && step.map_or(true, |step| self.passage(rank, step.action()) != Passage::Open);
        let done = if ahead > 0 { gap.min(ahead) } else { 0 };
        let owed = if is_owed { -ahead } else { 0 };
        let of_rank = &mut self.ranks[rank];
        if number == 0 {
            of_rank.compute += gap + owed;
            of_rank.wait -= done;
        }
        let state = &mut self.threads[thread as usize];
        state.ahead += owed - done;
        state.due = time + gap - done + owed;
        self.queue.push(state.due, QueuedEvent::Resume(thread));
    }

    pub fn resume(&mut self, thread: u32, time: i64) {
        let state = &self.threads[thread as usize];
        if state.due != time {
            return; // it looked sooner
        }
        match state.phase {
            Phase::Computes => self.call(thread, time),
            Phase::Leaves => self.leave_call(thread, time),
            Phase::Waits | Phase::Ended => {}
        }
    }

    /// Enters the call of a thread's step.
    fn call(&mut self, thread: u32, time: i64) {
        let state = &self.threads[thread as usize];
        let rank = state.rank;
        let program = &self.program.ranks[rank as usize].threads[state.number as usize];
        let Some(step) = program.steps.get(state.step as usize).copied() else {
            return self.end_thread(thread, time);
        };
        self.steps += 1;
        if let Action::Never(place) = step.action() {
            return self.pass_by(thread, place, time);
        }
        self.enter(rank, time);
        let state = &mut self.threads[thread as usize];
        (state.entered, state.cost, state.late) = (time, step.cost.or_zero(), step.late.or_zero());
        (state.release, state.waiting) = (time, 0);
        (state.call, state.binding) = (NONE, (NOBODY, NO_TRIGGER));
        if !self.awaited_calls.is_empty() {
            self.begin_awaited(rank, step.action(), time);
        }
        match step.action() {
            Action::Post(endpoint) => self.post(rank, endpoint, time),
            Action::Call(place) | Action::Loop(place) => self.await_all(thread, place, time),
            Action::Start(place) => self.post_own(rank, place, time),
            Action::Finish(place) => self.look_at_all(thread, place, time),
            Action::Other(_) | Action::Never(_) => {}
        }
        if self.threads[thread as usize].waiting == 0 {
            self.release(thread);
        } else {
            self.threads[thread as usize].phase = Phase::Waits;
        }
    }

    fn begin_awaited(&mut self, rank: u32, action: Action, time: i64) {
        match action {
            Action::Call(place) => self.begin_call(rank, self.call_of(rank, place), time),
            Action::Other(call) => self.begin_call(rank, call, time),
            Action::Post(_)
            | Action::Loop(_)
            | Action::Start(_)
            | Action::Finish(_)
            | Action::Never(_) => {}
        }
    }

    /// Goes on behind a call that is not made: to the analyses one that took no time, outside MPI.
    fn pass_by(&mut self, thread: u32, place: u32, time: i64) {
        let rank = self.threads[thread as usize].rank;
        let (program, trace) = (self.program, self.trace);
        let (of_program, of_trace) = (&program.ranks[rank as usize], &trace.ranks[rank as usize]);
        let of_rank = &mut self.ranks[rank as usize];
        for endpoint in of_program.endpoints_of(of_trace, place) {
            let half = &mut of_rank.halves[endpoint as usize];
            (half.posted, half.done, half.flight) = (time, time, NOBODY);
        }
        let call = of_program.call_of(of_trace, place) as usize;
        of_rank.calls[call] = CallTime { begin: time, duration: Span::new(0), ..CallTime::NEVER };
        self.threads[thread as usize].step += 1;
        self.compute(thread, time);
    }

    /// Posts what a blocking call communicates, and looks at what is not complete yet.
    fn await_all(&mut self, thread: u32, place: u32, time: i64) {
        let rank = self.threads[thread as usize].rank;
        self.adapt_cost(thread, place);
        self.threads[thread as usize].call = self.call_of(rank, place);
        self.post_own(rank, place, time);
        self.look_at_all(thread, place, time);
    }

    fn call_of(&self, rank: u32, place: u32) -> u32 {
        let of_trace = &self.trace.ranks[rank as usize];
        self.program.ranks[rank as usize].call_of(of_trace, place)
    }

    /// What a blocking call communicates itself.
    fn post_own(&mut self, rank: u32, place: u32, time: i64) {
        let (program, trace) = (self.program, self.trace);
        let (of_rank, of_trace) = (&program.ranks[rank as usize], &trace.ranks[rank as usize]);
        for endpoint in of_rank.endpoints_of(of_trace, place) {
            let operation =
                &of_trace.operations[of_trace.endpoints[endpoint as usize].operation as usize];
            if !operation.is_request {
                self.post(rank, endpoint, time);
            }
        }
    }

    /// What of a call is not complete yet.
    fn look_at_all(&mut self, thread: u32, place: u32, time: i64) {
        let rank = self.threads[thread as usize].rank;
        self.threads[thread as usize].call = self.call_of(rank, place);
        let (program, trace) = (self.program, self.trace);
        let (of_rank, of_trace) = (&program.ranks[rank as usize], &trace.ranks[rank as usize]);
        for endpoint in of_rank.endpoints_of(of_trace, place) {
            let row = &of_trace.endpoints[endpoint as usize];
            let operation = &of_trace.operations[row.operation as usize];
            if operation.ended == RequestEnd::Freed || !is_replayed(trace, row, operation) {
                continue;
            }
            if operation.direction == Direction::Collective && operation.is_request {
                self.catch_up(rank, endpoint, time);
            }
            let half = self.ranks[rank as usize].halves[endpoint as usize];
            let state = &mut self.threads[thread as usize];
            if half.done == NEVER {
                state.waiting += 1;
                state.endpoint = endpoint;
            } else if half.done > state.release {
                state.release = half.done;
                state.binding = (endpoint, half.trigger());
            }
        }
    }

    /// A blocking send that goes another way than it was recorded does not take what it took.
    fn adapt_cost(&mut self, thread: u32, place: u32) {
        let state = &self.threads[thread as usize];
        let of_rank = &self.program.ranks[state.rank as usize];
        let of_trace = &self.trace.ranks[state.rank as usize];
        let Some(endpoint) = of_rank.endpoints_of(of_trace, place).next() else { return };
        let index = of_trace.endpoints[endpoint as usize].operation;
        let operation = &of_trace.operations[index as usize];
        let is_replayed =
            is_replayed(self.trace, &of_trace.endpoints[endpoint as usize], operation);
        if operation.is_request || operation.direction != Direction::Send || !is_replayed {
            return;
        }
        let Some(plan) = self.plans[state.rank as usize][index as usize] else { return };
        let copied = operation.bytes.0 as f64 * self.network.copy_per_byte;
        let overhead = self.program.overhead;
        let most = match plan.protocol {
            _ if plan.is_copied => return,
            Protocol::Eager if plan.was_eager => return,
            Protocol::Eager => overhead + copied as i64,
            _ => overhead,
        };
        let state = &mut self.threads[thread as usize];
        state.cost = state.cost.min(most);
    }

    fn leave_call(&mut self, thread: u32, time: i64) {
        let state = &mut self.threads[thread as usize];
        let rank = state.rank;
        let of_rank = &mut self.ranks[rank as usize];
        let program = &self.program.ranks[rank as usize].threads[state.number as usize];
        if state.number == 0 {
            let overhead = state.cost.min(time - state.entered);
            of_rank.overhead += overhead;
            of_rank.wait += time - state.entered - overhead;
        }
        let action = program.steps[state.step as usize].action();
        if let Action::Other(_) = action {
            of_rank.other_calls.push((state.entered, time));
        }
        let waited = (state.release - state.entered - state.cost).max(0);
        if state.call != NONE {
            let is_loop = matches!(action, Action::Loop(_));
            // what a loop of tests waits is not inside the test that ends it
            let begin = if is_loop { state.release.max(state.entered) } else { state.entered };
            let (endpoint, trigger) = match state.release > state.entered + state.cost {
                true => state.binding,
                // what it did itself took longer
                false => (state.binding.0, NO_TRIGGER),
            };
            of_rank.calls[state.call as usize] = CallTime {
                begin: begin.min(time),
                duration: Span::new(time - begin),
                since_trigger: match trigger.rank {
                    NOBODY => Span::NONE,
                    _ => Span::new(time - trigger.time),
                },
                trigger: trigger.rank,
                endpoint,
            };
        }
        state.step += 1;
        if waited > 0 || state.ahead > 0 {
            let passage = self.passage(rank as usize, action);
            let state = &mut self.threads[thread as usize];
            match passage {
                // what stands before the next wait can be done before what this look waits for
                Passage::Look => state.ahead += waited,
                Passage::Open => {}
                Passage::Wait => state.ahead = 0,
            }
        }
        self.leave(rank, time);
        self.compute(thread, time);
    }

    fn end_thread(&mut self, thread: u32, time: i64) {
        let state = &mut self.threads[thread as usize];
        state.phase = Phase::Ended;
        let rank = state.rank;
        let of_rank = &mut self.ranks[rank as usize];
        of_rank.end = of_rank.end.max(time);
        if state.number == 0 {
            of_rank.first_end = time;
            // MPI_Finalize goes on with what was not complete
            self.enter(rank, time);
        }
    }
}

/// How far apart tests are in the computation that a thread begins; 0: there are none.
fn period_of(
    state: &mut ThreadState,
    program: &super::program::ThreadProgram,
    progress: Progress,
) -> i64 {
    while program.polls.get(state.poll as usize).is_some_and(|poll| poll.0 < state.step) {
        state.poll += 1;
    }
    let polls = program.polls.get(state.poll as usize);
    let own = polls.filter(|poll| poll.0 == state.step).map_or(0, |poll| poll.1);
    match progress {
        Progress::Every(ns) => ns as i64,
        Progress::Inside | Progress::Async => own,
    }
}
