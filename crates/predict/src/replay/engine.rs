//! The event loop: threads go from step to step, messages from state to state.

use rustc_hash::FxHashMap;

use super::collective::Gathering;
use super::link::Links;
use super::message::{EndpointRef, Flight, Notice};
use super::network::{Network, Plan};
use super::outcome::{CallTime, Outcome, RankOutcome, Stuck, NOBODY};
use super::program::{is_replayed, Action, Program, RECORDING_NS};
use super::queue::{Queue, QueuedEvent};
use super::scenario::{Progress, Scenario};
use super::thread::{Phase, ThreadState};
use lapscope_trace::target::CallNumber;
use lapscope_trace::{Direction, Span, Trace, NONE};

/// Not yet.
pub(super) const NEVER: i64 = i64::MAX;

/// What a replay is made under besides its network.
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
    pub other_calls: Vec<(i64, i64)>,
    pub compute: i64,
    pub overhead: i64,
    pub wait: i64,
    /// The end of the first thread, and of all.
    pub first_end: i64,
    pub end: i64,
}

/// A call that one-sided calls of other ranks wait for.
#[derive(Debug, Default)]
pub(super) struct AwaitedCall {
    pub has_begun: bool,
    pub askers: Vec<EndpointRef>,
}

pub(super) struct Engine<'a> {
    pub trace: &'a Trace,
    pub program: &'a Program,
    pub network: &'a Network,
    pub conditions: &'a Conditions,
    pub durations: &'a super::collective::Durations,
    pub queue: Queue,
    pub ranks: Vec<RankState>,
    pub threads: Vec<ThreadState>,
    /// Number of each rank's first thread.
    first_thread: Vec<u32>,
    pub flights: Vec<Flight>,
    pub free_flights: Vec<u32>,
    pub links: Links,
    pub gatherings: Vec<Gathering>,
    /// By rank and number.
    pub awaited_calls: FxHashMap<(u32, CallNumber), AwaitedCall>,
    /// By rank and operation; messages alone.
    pub plans: Vec<Vec<Option<Plan>>>,
    pub steps: u64,
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
        let calls = trace.awaited_targets.iter().filter_map(|it| Some((it.rank, it.call?)));
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
            awaited_calls: calls.map(|key| (key, AwaitedCall::default())).collect(),
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
                QueuedEvent::Resume(thread) => self.resume(thread, time),
                QueuedEvent::Notice(notice) => self.arrive(notice, time),
                QueuedEvent::Finish { flight, version } => {
                    self.finish_moving(flight, version, time)
                }
                QueuedEvent::Tick { rank, visit } => self.tick(rank, visit, time),
            }
        }
    }

    pub fn enter(&mut self, rank: u32, time: i64) {
        let state = &mut self.ranks[rank as usize];
        state.inside += 1;
        if state.inside == 1 {
            state.visit += 1;
            // a test of the computation that ends here will not be made
            state.is_tick_due = false;
            self.look(rank, time);
        }
    }

    pub fn leave(&mut self, rank: u32, time: i64) {
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
        self.queue.push(state.left + tests * state.period, QueuedEvent::Tick { rank, visit });
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

fn scaled(ns: i64, times: f64) -> i64 {
    if times == 1.0 {
        ns
    } else {
        (ns as f64 * times).round() as i64
    }
}

fn plans(trace: &Trace, network: &Network, rank: usize) -> Vec<Option<Plan>> {
    let operations = trace.ranks[rank].operations.iter();
    let plan = |operation: &lapscope_trace::Operation| {
        let peer = operation
            .peer
            .filter(|_| matches!(operation.direction, Direction::Send | Direction::Receive))?;
        let locality = trace.locality(rank, peer as usize);
        Some(network.plan(locality, operation.bytes.0, operation.mode))
    };
    operations.map(plan).collect()
}

impl Half {
    pub fn trigger(&self) -> Trigger {
        Trigger { rank: self.flight, time: self.done - self.since_trigger.or_zero() }
    }
}

impl RankState {
    fn new(rank: &lapscope_trace::RankTrace) -> RankState {
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
