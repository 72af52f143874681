//! What each thread of each rank does, one step after the other, with computation as it was recorded in between.

use rayon::prelude::*;

use super::late::Usual;
use super::looks::Looks;
use super::replayed::is_replayed;
use lapscope_data::model::Mode;
use lapscope_trace::{Direction, Endpoint, Operation, RankTrace, RequestEnd, Span, Trace, NONE};

/// The most that a call which waits for nothing takes for each request, nanoseconds: more is not overhead.
const MOST_OVERHEAD: i64 = 1_000;
/// What recording takes a call, nanoseconds: half of what `docs/measurements.md` says of a request, its post and its share of the
/// completing call together. It passes between the calls.
pub const RECORDING_NS: i64 = 45;

/// A run as steps.
#[derive(Debug, Default)]
pub struct Program {
    /// In the order of [`Trace::ranks`].
    pub ranks: Vec<RankProgram>,
    /// What a completing call takes for each request when all are complete, nanoseconds.
    pub overhead: i64,
    /// Whether it is all of the run.
    pub is_whole: bool,
}

/// The steps of a rank.
#[derive(Debug, Clone, Default)]
pub struct RankProgram {
    pub threads: Vec<ThreadProgram>,
    /// Endpoints in the order of the calls that completed them; empty: that is their own order.
    order: Vec<u32>,
}

/// The steps of a thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadProgram {
    pub steps: Vec<Step>,
    /// Computation behind the last step.
    pub rest: i64,
    /// Tests in computation: the step behind it, and the time from one to the next.
    pub polls: Vec<(u32, i64)>,
}

/// Computation, and the call behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Outside MPI, before the call.
    pub gap: Span,
    /// What the call takes without waiting; of blocking sends and of what has its recorded duration, all of that.
    pub cost: Span,
    /// What the rank lost in the call for want of a processor when it had nothing to wait for; see [`super::late`].
    pub late: Span,
    what: u32,
}

/// What a step calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Posts an endpoint.
    Post(u32),
    /// Communicates or completes; the place of the first of its endpoints, see [`RankProgram::endpoints_of`].
    Call(u32),
    /// A loop of tests that ends when what it completes, or receives, is complete; likewise.
    Loop(u32),
    /// Begins a blocking collective that is waited for later, see [`super::nonblocking`].
    Start(u32),
    /// Waits for it.
    Finish(u32),
    /// Has its recorded duration: an index into [`RankTrace::calls`], or, from their number on, into [`RankTrace::other_calls`].
    Other(u32),
    /// Is not made, see [`super::thinned`]; the place of its first endpoint.
    Never(u32),
}

const KIND_SHIFT: u32 = 29;
const INDEX: u32 = (1 << KIND_SHIFT) - 1;

impl Step {
    pub fn new(gap: i64, action: Action, cost: i64) -> Step {
        let what = match action {
            Action::Post(endpoint) => endpoint,
            Action::Call(place) => 1 << KIND_SHIFT | place,
            Action::Loop(place) => 2 << KIND_SHIFT | place,
            Action::Start(place) => 3 << KIND_SHIFT | place,
            Action::Finish(place) => 4 << KIND_SHIFT | place,
            Action::Other(call) => 5 << KIND_SHIFT | call,
            Action::Never(place) => 6 << KIND_SHIFT | place,
        };
        Step { gap: Span::new(gap), cost: Span::new(cost), late: Span::new(0), what }
    }

    pub fn late(self, late: i64) -> Step {
        Step { late: Span::new(late), ..self }
    }

    #[inline]
    pub fn action(&self) -> Action {
        let index = self.what & INDEX;
        match self.what >> KIND_SHIFT {
            0 => Action::Post(index),
            1 => Action::Call(index),
            2 => Action::Loop(index),
            3 => Action::Start(index),
            4 => Action::Finish(index),
            5 => Action::Other(index),
            _ => Action::Never(index),
        }
    }
}

impl RankProgram {
    /// Computation of the first thread, nanoseconds.
    pub fn compute(&self) -> i64 {
        self.threads.first().map_or(0, |thread| {
            thread.rest + thread.steps.iter().map(|step| step.gap.or_zero()).sum::<i64>()
        })
    }

    /// Endpoints of the call of [`Action::Call`]: those that it completes, or its own.
    #[inline]
    pub fn endpoints_of<'a>(
        &'a self,
        rank: &'a RankTrace,
        place: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        let call = rank.endpoints[self.at(place) as usize].call;
        (place..rank.endpoints.len() as u32)
            .map(|place| self.at(place))
            .take_while(move |&endpoint| rank.endpoints[endpoint as usize].call == call)
    }

    #[inline]
    fn at(&self, place: u32) -> u32 {
        self.order.get(place as usize).copied().unwrap_or(place)
    }

    /// The call of [`Action::Call`]: its index in [`RankTrace::calls`].
    #[inline]
    pub fn call_of(&self, rank: &RankTrace, place: u32) -> u32 {
        rank.endpoints[self.at(place) as usize].call
    }
}

impl Program {
    /// # Panics
    /// Never for a trace that was read: it has fewer than 2^29 endpoints, and calls, a rank.
    pub fn new(trace: &Trace) -> Program {
        let overhead = overhead(trace);
        let usual = Usual::measure(trace);
        let rank = |place| Builder::new(trace, place, overhead, &usual).build();
        let ranks = (0..trace.ranks.len()).into_par_iter().map(rank).collect();
        Program { ranks, overhead, is_whole: true }
    }

    /// Of each rank: what makes its computation as long as the mean of all, as a multiple of the recorded one.
    pub(super) fn even_load(&self) -> Vec<f64> {
        let own: Vec<i64> = self.ranks.iter().map(|rank| rank.compute()).collect();
        let mean = own.iter().sum::<i64>() as f64 / own.len().max(1) as f64;
        own.into_iter().map(|own| if own > 0 { mean / own as f64 } else { 1.0 }).collect()
    }

    /// Whether each rank computes enough that to make that longer says what it would be: where a rank does hardly anything but wait
    /// nobody knows when it would do work of the others.
    pub fn may_be_evened(&self) -> bool {
        /// The most that computation may be made longer, as a multiple.
        const MOST: f64 = 4.0;
        let computes = |(rank, factor): (&RankProgram, f64)| rank.compute() > 0 && factor <= MOST;
        self.ranks.iter().zip(self.even_load()).all(computes)
    }

    /// The first part of each thread, about `steps` together. Waits whose partners are cut off never end.
    pub fn beginning(&self, steps: usize) -> Program {
        let all = self.steps();
        let share = |length: usize| match all > steps {
            true => (length as u64 * steps as u64 / all as u64) as usize,
            false => length,
        };
        let thread = |thread: &ThreadProgram| {
            let kept = share(thread.steps.len());
            let polls = thread.polls.iter().filter(|poll| (poll.0 as usize) < kept);
            ThreadProgram {
                steps: thread.steps[..kept].to_vec(),
                rest: if kept == thread.steps.len() { thread.rest } else { 0 },
                polls: polls.copied().collect(),
            }
        };
        let rank = |rank: &RankProgram| RankProgram {
            threads: rank.threads.iter().map(thread).collect(),
            order: rank.order.clone(),
        };
        let ranks = self.ranks.iter().map(rank).collect();
        Program { ranks, overhead: self.overhead, is_whole: all <= steps }
    }

    /// All steps.
    pub fn steps(&self) -> usize {
        let threads = self.ranks.iter().flat_map(|rank| &rank.threads);
        threads.map(|thread| thread.steps.len()).sum()
    }
}

/// The tenth of completing calls that is quickest waits for nothing.
fn overhead(trace: &Trace) -> i64 {
    const ENOUGH: usize = 100_000;
    let calls = trace.ranks.iter().flat_map(|rank| &rank.calls);
    let of_one = calls
        .filter(|call| call.completed() > 0 && call.returned())
        .map(|call| call.duration / i64::from(call.completed()));
    let mut of_one: Vec<i64> = of_one.take(ENOUGH).collect();
    if of_one.is_empty() {
        return 0;
    }
    let tenth = of_one.len() / 10;
    (*of_one.select_nth_unstable(tenth).1).min(MOST_OVERHEAD)
}

/// What there is to do in one rank, on its way to steps.
struct Builder<'a> {
    trace: &'a Trace,
    /// In [`Trace::ranks`].
    place: usize,
    rank: &'a RankTrace,
    overhead: i64,
    usual: &'a Usual,
    order: Vec<u32>,
    /// By call: the place of its first endpoint.
    first: Vec<u32>,
}

/// A call to be made: when, and of which list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    begin: i64,
    kind: ItemKind,
    index: u32,
}

/// What an item does: how long it took, and what of that is no waiting, nanoseconds.
struct Made {
    action: Action,
    duration: i64,
    cost: i64,
    /// The replay knows what it waits for.
    waits: bool,
}

impl Made {
    fn as_recorded(action: Action, duration: i64) -> Made {
        Made { action, duration, cost: duration, waits: false }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ItemKind {
    Post,
    Call,
    Other,
}

impl<'a> Builder<'a> {
    fn new(trace: &'a Trace, place: usize, overhead: i64, usual: &'a Usual) -> Builder<'a> {
        let rank = &trace.ranks[place];
        let call = |&index: &u32| rank.endpoints[index as usize].call;
        let all = 0..rank.endpoints.len() as u32;
        let mut order = Vec::new();
        // files have them in that order, unless somebody edited them
        let calls = rank.endpoints.iter().map(|endpoint| endpoint.call);
        if calls.clone().zip(calls.skip(1)).any(|(a, b)| a > b) {
            order = all.clone().collect();
            order.sort_by_key(call);
        }
        let mut first = vec![NONE; rank.calls.len()];
        for place in all.rev() {
            let endpoint = order.get(place as usize).copied().unwrap_or(place);
            if let Some(first) = first.get_mut(call(&endpoint) as usize) {
                *first = place;
            }
        }
        Builder { trace, place, rank, overhead, usual, order, first }
    }

    fn build(self) -> RankProgram {
        let threads = self.rank.threads.count() as u16;
        let threads = (0..threads).map(|thread| self.thread(thread)).collect();
        RankProgram { threads, order: self.order }
    }

    fn items(&self, thread: u16) -> Vec<Item> {
        let RankTrace { endpoints, operations, calls, other_calls, threads, .. } = self.rank;
        let posts = (0..).zip(endpoints).filter(|&(index, endpoint)| {
            operations[endpoint.operation as usize].is_request
                && threads.of_endpoint(index) == thread
        });
        let posts = posts.map(|(index, endpoint)| Item {
            begin: endpoint.begin,
            kind: ItemKind::Post,
            index,
        });
        let calls = (0..).zip(calls).filter(|&(index, _)| threads.of_call(index) == thread);
        let calls =
            calls.map(|(index, call)| Item { begin: call.begin, kind: ItemKind::Call, index });
        let others = (0..).zip(other_calls).filter(|(_, call)| call.thread == thread);
        let others =
            others.map(|(index, call)| Item { begin: call.begin, kind: ItemKind::Other, index });
        let mut items: Vec<Item> = posts.chain(calls).chain(others).collect();
        items.sort_unstable();
        items
    }

    fn thread(&self, thread: u16) -> ThreadProgram {
        let mut program = ThreadProgram::default();
        let mut looks = Looks::default();
        let mut cursor = self.rank.init_end;
        // in a loop of tests that the next call ends
        let mut awaited = 0;
        for item in self.items(thread) {
            if item.begin >= self.rank.end {
                break;
            }
            let Made { mut action, duration, cost, waits } = self.call(item);
            let mut begin = item.begin;
            if let Action::Post(endpoint) = action {
                looks.post(self.trace.half(self.place, endpoint as usize), &self.rank.presence);
            }
            if let Action::Loop(place) = action {
                begin = self.loop_begin(place).unwrap_or(begin).max(cursor).min(begin);
            }
            // a call that began before the last one ended is a further request of that one, as of MPI_Startall
            let mut gap = (begin - cursor).max(0);
            let polled = looks.polled(cursor, begin);
            match action {
                Action::Call(place) | Action::Loop(place) if waits => {
                    gap -= polled;
                    if polled + awaited > 0 {
                        action = Action::Loop(place);
                    }
                    awaited = 0;
                }
                // as a probe that found what the loop waited for
                Action::Other(_) => {
                    let (_, looked) = match item.kind {
                        ItemKind::Other => self.probed(item.index),
                        _ => (0, 0),
                    };
                    gap = (gap - polled - looked).max(0);
                    awaited += polled;
                }
                _ => gap += std::mem::take(&mut awaited),
            }
            let end = item.begin + duration;
            let inside = (end - cursor.max(item.begin)).max(0);
            if let Some(period) = looks.period(cursor, begin) {
                program.polls.push((program.steps.len() as u32, period));
            }
            let late = self.late(action).min(inside);
            program.steps.push(Step::new(gap, action, cost.min(inside)).late(late));
            cursor = cursor.max(end);
        }
        program.rest = if thread == 0 { (self.rank.end - cursor).max(0) + awaited } else { 0 };
        program.steps.shrink_to_fit();
        program
    }

    fn late(&self, action: Action) -> i64 {
        let (Action::Call(place) | Action::Loop(place)) = action else { return 0 };
        let endpoint = self.order.get(place as usize).copied().unwrap_or(place);
        let call = &self.rank.calls[self.rank.endpoints[endpoint as usize].call as usize];
        self.usual.lost(self.trace, self.rank, call, self.endpoints(place))
    }

    fn call(&self, item: Item) -> Made {
        let index = item.index as usize;
        match item.kind {
            ItemKind::Post => {
                let post = self.rank.endpoints[index].post.or_zero();
                Made::as_recorded(Action::Post(item.index), post)
            }
            ItemKind::Other => {
                let duration = self.rank.other_calls[index].duration;
                let number = self.rank.calls.len() as u32 + item.index;
                let (waited, _) = self.probed(item.index);
                Made {
                    cost: duration - waited,
                    ..Made::as_recorded(Action::Other(number), duration)
                }
            }
            ItemKind::Call => self.completing(item),
        }
    }

    /// What one of the other calls, if it is a probe, waited for a message, and the loop of probes before it: the replay waits where
    /// the message is received.
    fn probed(&self, number: u32) -> (i64, i64) {
        let probes = &self.rank.message_waits;
        let Ok(at) = probes.binary_search_by_key(&number, |probe| probe.number) else {
            return (0, 0);
        };
        let probe = &probes[at];
        match probe.message {
            NONE => (0, 0),
            _ if self.trace.is_look(self.place, probe) => (0, probe.waited),
            _ => (probe.waited, 0),
        }
    }

    fn completing(&self, item: Item) -> Made {
        let call = &self.rank.calls[item.index as usize];
        let place = self.first[item.index as usize];
        if place == NONE || !call.returned() {
            let until = if call.returned() { call.begin + call.duration } else { self.rank.end };
            return Made::as_recorded(Action::Other(item.index), (until - call.begin).max(0));
        }
        let endpoints = self.endpoints(place);
        let mut is_known = true;
        let mut is_loop = true;
        let mut is_sending = true;
        for (endpoint, operation) in endpoints {
            is_known &= is_replayed(self.trace, endpoint, operation)
                || operation.ended == RequestEnd::Freed;
            is_loop &= operation.is_tested;
            is_sending &= !operation.is_request
                && operation.direction == Direction::Send
                && operation.mode != Mode::Synchronous;
        }
        let is_loop = is_loop && self.loop_begin(place).is_some();
        let waits = is_known && !is_sending;
        let cost = match waits {
            true => call.duration.min(self.overhead * i64::from(call.completed().max(1))),
            false => call.duration,
        };
        let action = if is_loop { Action::Loop(place) } else { Action::Call(place) };
        Made { action, duration: call.duration, cost, waits }
    }

    fn endpoints(&self, place: u32) -> impl Iterator<Item = (&'a Endpoint, &'a Operation)> + '_ {
        let rank = self.rank;
        let at = move |place: u32| {
            let index = self.order.get(place as usize).copied().unwrap_or(place);
            &rank.endpoints[index as usize]
        };
        let call = at(place).call;
        let endpoints = (place..rank.endpoints.len() as u32).map(at);
        endpoints
            .take_while(move |endpoint| endpoint.call == call)
            .map(move |endpoint| (endpoint, &rank.operations[endpoint.operation as usize]))
    }

    /// When the loop of tests began that ended with this call; `None`: its tests are too far apart to be one that waits.
    fn loop_begin(&self, place: u32) -> Option<i64> {
        let loops =
            self.endpoints(place).filter_map(|(endpoint, _)| self.rank.polled_since(endpoint));
        loops.min()
    }
}
