//! The event loop: threads go from step to step, messages from state to state.

use super::collective::Gathering;
use super::link::Links;
use super::message::{End, Flight, Notice};
use super::network::{Network, Plan};
use super::outcome::{CallTime, Outcome, RankOutcome, Stuck, NOBODY};
use super::program::{is_replayed, Action, Program, RECORDING_NS};
use super::queue::{Queue, What};
use super::scenario::{Progress, Protocol};
use crate::trace::{Direction, RequestEnd, Span, Trace, NONE};

/// Not yet.
pub(super) const NEVER: i64 = i64::MAX;

/// What a replay is made under besides its network.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// Of each rank: computation as a multiple of the recorded one.
    pub compute: Vec<f64>,
    /// Whether what recording took is left in.
    pub keeps_recording: bool,
}

impl Conditions {
    /// As recorded.
    pub fn as_recorded(ranks: usize) -> Conditions {
        Conditions { compute: vec![1.0; ranks], keeps_recording: true }
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

/// Replays a run. Time grows with its steps and messages, memory by about 24 bytes an endpoint and a call.
pub fn replay(
    trace: &Trace,
    program: &Program,
    network: &Network,
    conditions: &Conditions,
    durations: &super::collective::Durations,
) -> Outcome {
    let mut engine = Engine::new(trace, program, network, conditions, durations);
    engine.run();
    engine.finish()
}

/// One side of a message, or a part in a collective.
#[derive(Debug, Clone, Copy)]
pub(super) struct Half {
    pub posted: i64,
    pub done: i64,
    /// While it is under way the number of its flight; then whose rank triggered its end.
    pub flight: u32,
    /// Once it is done: from the trigger to that.
    pub since_trigger: Span,
}

impl Half {
    const NEW: Half =
        Half { posted: NEVER, done: NEVER, flight: NOBODY, since_trigger: Span::NONE };
}

/// A point on a rank's own time at which a chain of messages began, or went on because the rank came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trigger {
    pub rank: u32,
    pub time: i64,
}

pub(super) struct RankState {
    /// Threads inside MPI.
    pub inside: u32,
    /// When the last of them left.
    pub left: i64,
    /// How often the rank was inside.
    pub visit: u32,
    /// How far apart tests are while it computes; 0: there are none.
    pub period: i64,
    /// What arrived and was not looked at.
    pub inbox: Vec<Notice>,
    /// Pipelined messages that have begun to move.
    pub movers: Vec<u32>,
    pub is_tick_due: bool,
    pub halves: Vec<Half>,
    pub calls: Vec<CallTime>,
    other_calls: Vec<(i64, i64)>,
    compute: i64,
    overhead: i64,
    wait: i64,
    /// Of the first thread, and of all.
    first_end: i64,
    end: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Computes; the next event is its next call.
    Computes,
    /// Waits for endpoints of its call.
    Waits,
    /// The next event is the return of its call.
    Leaves,
    Ended,
}

struct ThreadState {
    rank: u32,
    number: u16,
    step: u32,
    phase: Phase,
    /// Place in `polls` of the program.
    poll: u32,
    entered: i64,
    /// Of the call that it is in.
    call: u32,
    endpoint: u32,
    cost: i64,
    late: i64,
    waiting: u32,
    release: i64,
    binding: (u32, Trigger),
}

const NO_TRIGGER: Trigger = Trigger { rank: NOBODY, time: NEVER };

pub(super) struct Engine<'a> {
    pub trace: &'a Trace,
    pub program: &'a Program,
    pub network: &'a Network,
    conditions: &'a Conditions,
    pub durations: &'a super::collective::Durations,
    pub queue: Queue,
    pub ranks: Vec<RankState>,
    threads: Vec<ThreadState>,
    /// Number of each rank's first thread.
    first_thread: Vec<u32>,
    pub flights: Vec<Flight>,
    pub free_flights: Vec<u32>,
    pub links: Links,
    pub gatherings: Vec<Gathering>,
    /// By rank and operation; messages alone.
    pub plans: Vec<Vec<Option<Plan>>>,
    steps: u64,
    is_async: bool,
}

impl<'a> Engine<'a> {
    fn new(
        trace: &'a Trace,
        program: &'a Program,
        network: &'a Network,
        conditions: &'a Conditions,
        durations: &'a super::collective::Durations,
    ) -> Engine<'a> {
        let mut threads = Vec::new();
        let mut first_thread = Vec::new();
        for (rank, of_rank) in (0..).zip(&program.ranks) {
            first_thread.push(threads.len() as u32);
            let numbers = 0..of_rank.threads.len() as u16;
            threads.extend(numbers.map(|number| ThreadState::new(rank, number)));
        }
        let plans = (0..trace.ranks.len()).map(|rank| plans(trace, network, rank)).collect();
        let nodes = trace.ranks.iter().map(|rank| rank.node).collect();
        Engine {
            trace,
            program,
            network,
            conditions,
            durations,
            queue: Queue::default(),
            ranks: trace.ranks.iter().map(RankState::new).collect(),
            threads,
            first_thread,
            flights: Vec::new(),
            free_flights: Vec::new(),
            links: Links::new(network.contention, nodes),
            gatherings: vec![Gathering::default(); trace.collectives.len()],
            plans,
            steps: 0,
            is_async: network.progress == Progress::Async,
        }
    }

    fn run(&mut self) {
        for thread in 0..self.threads.len() as u32 {
            let rank = self.threads[thread as usize].rank;
            self.compute(thread, self.trace.ranks[rank as usize].init_end);
        }
        while let Some((time, what)) = self.queue.pop() {
            match what {
                What::Resume(thread) => self.resume(thread, time),
                What::Notice(notice) => self.arrive(notice, time),
                What::Finish { flight, version } => self.finish_moving(flight, version, time),
                What::Tick { rank, visit } => self.tick(rank, visit, time),
            }
        }
    }

    /// Begins the computation in front of a thread's next step.
    fn compute(&mut self, thread: u32, time: i64) {
        let state = &mut self.threads[thread as usize];
        let rank = state.rank as usize;
        let program = &self.program.ranks[rank].threads[state.number as usize];
        let step = program.steps.get(state.step as usize);
        let recorded = step.map_or(program.rest, |step| step.gap.or_zero());
        let gap = self.conditions.gap(rank, recorded);
        state.phase = Phase::Computes;
        self.ranks[rank].period = period_of(state, program, self.network.progress);
        if state.number == 0 {
            self.ranks[rank].compute += gap;
        }
        self.queue.push(time + gap, What::Resume(thread));
    }

    fn resume(&mut self, thread: u32, time: i64) {
        match self.threads[thread as usize].phase {
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
        self.enter(rank, time);
        let state = &mut self.threads[thread as usize];
        (state.entered, state.cost, state.late) = (time, step.cost.or_zero(), step.late.or_zero());
        (state.release, state.waiting) = (time, 0);
        (state.call, state.binding) = (NONE, (NOBODY, NO_TRIGGER));
        match step.action() {
            Action::Post(endpoint) => self.post(rank, endpoint, time),
            Action::Call(place) | Action::Loop(place) => self.await_all(thread, place, time),
            Action::Other(_) => {}
        }
        if self.threads[thread as usize].waiting == 0 {
            self.release(thread);
        } else {
            self.threads[thread as usize].phase = Phase::Waits;
        }
    }

    /// Posts what a blocking call communicates, and looks at what is not complete yet.
    fn await_all(&mut self, thread: u32, place: u32, time: i64) {
        let rank = self.threads[thread as usize].rank;
        let (program, trace) = (self.program, self.trace);
        let (of_rank, of_trace) = (&program.ranks[rank as usize], &trace.ranks[rank as usize]);
        let call = of_rank.call_of(of_trace, place);
        self.threads[thread as usize].call = call;
        self.adapt_cost(thread, place);
        for endpoint in of_rank.endpoints_of(of_trace, place) {
            let operation =
                &of_trace.operations[of_trace.endpoints[endpoint as usize].operation as usize];
            if !operation.is_request {
                self.post(rank, endpoint, time);
            }
        }
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
            Protocol::Eager if plan.was_eager => return,
            Protocol::Eager => overhead + copied as i64,
            _ => overhead,
        };
        let state = &mut self.threads[thread as usize];
        state.cost = state.cost.min(most);
    }

    /// All that a thread waited for is, or will be, complete.
    fn release(&mut self, thread: u32) {
        let state = &mut self.threads[thread as usize];
        state.phase = Phase::Leaves;
        let leaves = (state.release + state.late).max(state.entered + state.cost);
        self.queue.push(leaves, What::Resume(thread));
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

    fn enter(&mut self, rank: u32, time: i64) {
        let state = &mut self.ranks[rank as usize];
        state.inside += 1;
        if state.inside == 1 {
            state.visit += 1;
            // a test of the computation that ends here will not be made
            state.is_tick_due = false;
            self.look(rank, time);
        }
    }

    fn leave(&mut self, rank: u32, time: i64) {
        let state = &mut self.ranks[rank as usize];
        state.inside -= 1;
        if state.inside == 0 && !self.is_async {
            state.left = time;
            if !state.movers.is_empty() {
                self.host_left(rank, time);
            }
        }
    }

    /// Whether MPI handles on `rank` what arrives there.
    #[inline]
    pub fn is_inside(&self, rank: u32) -> bool {
        self.is_async || self.ranks[rank as usize].inside > 0
    }

    /// Handles what has arrived.
    fn look(&mut self, rank: u32, time: i64) {
        if !self.ranks[rank as usize].inbox.is_empty() {
            let mut inbox = std::mem::take(&mut self.ranks[rank as usize].inbox);
            for notice in inbox.drain(..) {
                self.handle(notice, time, false);
            }
            // nothing arrives while it is handled
            self.ranks[rank as usize].inbox = inbox;
        }
        // where progress is asynchronous they have not stopped
        if !self.is_async && !self.ranks[rank as usize].movers.is_empty() {
            self.host_came(rank, time);
        }
    }

    /// A rank that computes has something to look at: its next test will.
    pub fn expect_tick(&mut self, rank: u32, time: i64) {
        let state = &mut self.ranks[rank as usize];
        if state.period == 0 || state.is_tick_due || state.inside > 0 {
            return;
        }
        state.is_tick_due = true;
        let tests = (time - state.left) / state.period + 1;
        let visit = state.visit;
        self.queue.push(state.left + tests * state.period, What::Tick { rank, visit });
    }

    fn tick(&mut self, rank: u32, visit: u32, time: i64) {
        let state = &mut self.ranks[rank as usize];
        if state.inside > 0 || state.visit != visit {
            return;
        }
        state.is_tick_due = false;
        self.look(rank, time);
        let state = &self.ranks[rank as usize];
        if !state.movers.is_empty() || !state.inbox.is_empty() {
            self.expect_tick(rank, time);
        }
    }

    /// `half` of `end` is complete at `time`, which may be later than now.
    pub fn complete(&mut self, end: End, time: i64, trigger: Trigger) {
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
        let state = &mut self.threads[thread as usize];
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
        let (Action::Call(place) | Action::Loop(place)) = step.action() else {
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

fn scaled(ns: i64, times: f64) -> i64 {
    if times == 1.0 {
        ns
    } else {
        (ns as f64 * times).round() as i64
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

fn plans(trace: &Trace, network: &Network, rank: usize) -> Vec<Option<Plan>> {
    let operations = trace.ranks[rank].operations.iter();
    let plan = |operation: &crate::trace::Operation| {
        let peer = operation
            .peer
            .filter(|_| matches!(operation.direction, Direction::Send | Direction::Receive))?;
        let locality = trace.locality(rank, peer as usize);
        Some(network.plan(locality, operation.bytes.0, operation.mode))
    };
    operations.map(plan).collect()
}

impl Half {
    fn trigger(&self) -> Trigger {
        Trigger { rank: self.flight, time: self.done - self.since_trigger.or_zero() }
    }
}

impl ThreadState {
    fn new(rank: u32, number: u16) -> ThreadState {
        ThreadState {
            rank,
            number,
            step: 0,
            phase: Phase::Computes,
            poll: 0,
            entered: 0,
            call: NONE,
            endpoint: NONE,
            cost: 0,
            late: 0,
            waiting: 0,
            release: 0,
            binding: (NOBODY, NO_TRIGGER),
        }
    }
}

impl RankState {
    fn new(rank: &crate::trace::RankTrace) -> RankState {
        RankState {
            inside: 0,
            left: rank.init_end,
            visit: 0,
            period: 0,
            inbox: Vec::new(),
            movers: Vec::new(),
            is_tick_due: false,
            halves: vec![Half::NEW; rank.endpoints.len()],
            calls: vec![CallTime::NEVER; rank.calls.len()],
            other_calls: Vec::new(),
            compute: 0,
            overhead: 0,
            wait: 0,
            first_end: i64::MAX,
            end: rank.init_end,
        }
    }

    fn finish(self) -> RankOutcome {
        RankOutcome {
            posted: self.halves.iter().map(|half| half.posted).collect(),
            calls: self.calls,
            other_calls: self.other_calls,
            end: self.end,
            compute: self.compute,
            overhead: self.overhead,
            wait: self.wait + (self.end - self.first_end).max(0),
        }
    }
}
