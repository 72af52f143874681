//! What a replay is in the middle of: ranks, threads, messages under way, collectives that members have come to.

use rustc_hash::FxHashMap;

use super::collective::Durations;
use super::conditions::Conditions;
use super::link::Links;
use super::network::{Network, Plan};
use super::outcome::{CallTime, RankOutcome, NOBODY};
use super::program::Program;
use super::queue::{EndpointRef, Notice, Queue, QueuedEvent};
use super::scenario::Progress;
use lapscope_trace::target::CallNumber;
use lapscope_trace::{Direction, Span, Trace, NONE};

/// Not yet.
pub(super) const NEVER: i64 = i64::MAX;

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

    pub fn trigger(&self) -> Trigger {
        Trigger { rank: self.flight, time: self.done - self.since_trigger.or_zero() }
    }
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

pub(super) const NO_TRIGGER: Trigger = Trigger { rank: NOBODY, time: NEVER };

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Computes; the next event is its next call.
    Computes,
    /// Waits for endpoints of its call.
    Waits,
    /// The next event is the return of its call.
    Leaves,
    Ended,
}

pub(super) struct ThreadState {
    pub rank: u32,
    pub number: u16,
    pub step: u32,
    pub phase: Phase,
    /// Place in `polls` of the program.
    pub poll: u32,
    pub entered: i64,
    /// The call that it is in.
    pub call: u32,
    pub endpoint: u32,
    pub cost: i64,
    pub late: i64,
    pub waiting: u32,
    pub release: i64,
    pub binding: (u32, Trigger),
    /// When the next event of it is due.
    pub due: i64,
    /// Computation that was done before its place, while looks found nothing, or, below 0, that is left to be done, as a look
    /// found something sooner; nanoseconds.
    pub ahead: i64,
}

impl ThreadState {
    pub fn new(rank: u32, number: u16) -> ThreadState {
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
            due: 0,
            ahead: 0,
        }
    }
}

/// A message under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub send: EndpointRef,
    pub receive: EndpointRef,
    pub plan: Plan,
    pub is_sent: bool,
    pub is_receiving: bool,
    /// The ready-to-send has been handled, and waits for the receive.
    pub is_announced: bool,
    /// A ready-to-receive was there before the send.
    pub is_invited: bool,
    /// A ready-to-send is, or will be, under way.
    pub is_rts_sent: bool,
    /// Who still needs it: its two ends together, and notices under way that it does not wait for.
    pub held: u8,
    /// Eager data are, or will be, there.
    pub arrives: i64,
    pub trigger: Trigger,
    /// Pipelined: wire time left, as of `moved`; what may still move without each host.
    pub remaining: i64,
    pub moved: i64,
    /// Until when it has what it shares with others.
    pub reserved: i64,
    pub buffered: [i64; 2],
    pub version: u32,
    pub finishes: i64,
}

impl Flight {
    pub fn new(send: EndpointRef, receive: EndpointRef, plan: Plan) -> Flight {
        Flight {
            send,
            receive,
            plan,
            is_sent: false,
            is_receiving: false,
            is_announced: false,
            is_invited: false,
            is_rts_sent: false,
            held: 1,
            arrives: 0,
            trigger: Trigger { rank: NOBODY, time: 0 },
            remaining: plan.wire,
            moved: 0,
            reserved: 0,
            buffered: [plan.buffered; 2],
            version: 0,
            finishes: i64::MAX,
        }
    }
}

/// One collective of a replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathering {
    pub entered: u32,
    pub last: Trigger,
    pub root: i64,
}

impl Default for Gathering {
    fn default() -> Gathering {
        Gathering { entered: 0, last: Trigger { rank: NOBODY, time: i64::MIN }, root: NEVER }
    }
}

pub(super) struct Engine<'a> {
    pub trace: &'a Trace,
    pub program: &'a Program,
    pub network: &'a Network,
    pub conditions: &'a Conditions,
    pub durations: &'a Durations,
    pub queue: Queue,
    pub ranks: Vec<RankState>,
    pub threads: Vec<ThreadState>,
    /// Number of each rank's first thread.
    pub first_thread: Vec<u32>,
    pub flights: Vec<Flight>,
    pub free_flights: Vec<u32>,
    pub links: Links,
    pub gatherings: Vec<Gathering>,
    /// By rank and number.
    pub awaited_calls: FxHashMap<(u32, CallNumber), AwaitedCall>,
    /// By rank and operation; messages alone.
    pub plans: Vec<Vec<Option<Plan>>>,
    pub steps: u64,
    pub is_async: bool,
}

impl<'a> Engine<'a> {
    pub fn new(
        trace: &'a Trace,
        program: &'a Program,
        network: &'a Network,
        conditions: &'a Conditions,
        durations: &'a Durations,
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

    /// Whether MPI handles on `rank` what arrives there.
    #[inline]
    pub fn is_inside(&self, rank: u32) -> bool {
        self.is_async || self.ranks[rank as usize].inside > 0
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

    pub fn finish(self) -> RankOutcome {
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
