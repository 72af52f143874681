//! What happened on one rank, in order of time.

use std::cmp::Reverse;

use lapscope_data::model::Transfers;
use lapscope_trace::{BusySpan, Endpoint, Operation, RankTrace, RequestEnd, Trace, NONE};

use crate::event::{Event, EventKind};
use crate::lanes::FreeLines;
use crate::regions::{regions, Region};
use crate::shown::ShownWindows;

/// An MPI call: one that posted requests, completed some, blocked, or did something else.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    /// On the run's clock, nanoseconds.
    pub begin: i64,
    /// When the recording ended, of one that had not returned.
    pub end: i64,
    /// As [`lapscope_trace::Threads`] numbers them.
    pub thread: u16,
    /// Index into [`RankTrace::operations`].
    pub operation: u32,
    /// Requests that it completed.
    pub completed: u32,
    pub returned: bool,
}

impl Visit {
    /// That completed nothing, and returned.
    fn plain(thread: u16, operation: u32, (begin, end): (i64, i64)) -> Visit {
        Visit { begin, end, thread, operation, completed: 0, returned: true }
    }
}

/// A request, from the begin of its post to the end of the call that ended it.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime {
    /// Index into [`RankTrace::endpoints`].
    pub endpoint: u32,
    pub begin: i64,
    /// When the recording ended, of one that nothing ended.
    pub end: i64,
    /// In which line it is drawn: requests of one line follow one another.
    pub lane: u32,
    /// Nothing ended it.
    pub is_pending: bool,
}

/// A stretch in which a GPU worked.
#[derive(Debug, Clone, Copy)]
pub struct DeviceSpan {
    /// Index into the lanes of [`lapscope_trace::DeviceTime`].
    pub lane: u32,
    pub span: BusySpan,
}

/// A rank's part of the timeline.
#[derive(Debug)]
pub struct RankEvents<'a> {
    pub trace: &'a Trace,
    pub shown: &'a ShownWindows,
    pub place: usize,
    /// By begin.
    pub visits: Vec<Visit>,
    /// By begin.
    pub lifetimes: Vec<Lifetime>,
    /// What the program marked.
    pub regions: Vec<Region>,
    pub device_spans: Vec<DeviceSpan>,
    /// In order of time. Of one thread, and of the requests of one lane, what began last ends first.
    pub events: Vec<Event>,
    /// How many lines its requests take.
    pub lanes: u32,
    began: Lists,
    ended: Lists,
}

/// Some endpoints of every visit.
#[derive(Debug, Default)]
struct Lists {
    first: Vec<u32>,
    endpoints: Vec<u32>,
}

impl Lists {
    /// Takes pairs of a visit and an endpoint.
    fn from_pairs(visits: usize, mut pairs: Vec<(u32, u32)>) -> Lists {
        pairs.sort_unstable();
        let mut first = vec![0; visits + 1];
        for (visit, _) in &pairs {
            first[*visit as usize + 1] += 1;
        }
        for visit in 0..visits {
            first[visit + 1] += first[visit];
        }
        Lists { first, endpoints: pairs.into_iter().map(|(_, endpoint)| endpoint).collect() }
    }

    fn get(&self, visit: u32) -> &[u32] {
        let visit = visit as usize;
        &self.endpoints[self.first[visit] as usize..self.first[visit + 1] as usize]
    }
}

impl<'a> RankEvents<'a> {
    /// What is shown of the rank at `place`, whose rows `trace` has.
    pub fn collect(trace: &'a Trace, shown: &'a ShownWindows, place: usize) -> RankEvents<'a> {
        let rank = &trace.ranks[place];
        let mut found = PairedVisits::default();
        found.add_calls(rank, shown, place);
        found.add_posts(trace, shown, place);
        let Ordered { mut visits, began, ended } = found.in_order();
        let mut events = Vec::with_capacity(2 * visits.len() + 2 * rank.endpoints.len());
        let regions = regions(trace, shown, place, &mut events);
        for thread in 0..rank.threads.count() as u16 {
            nest(&mut visits, thread, &mut events);
        }
        let device_spans = device_spans(rank, shown, place, &mut events);
        let mut lifetimes = lifetimes(rank, shown, place);
        let lanes = live(&mut lifetimes, &mut events);
        events.sort_by_key(|event| event.at); // stretches in order are found and merged, and stay in theirs
        RankEvents {
            trace,
            shown,
            place,
            visits,
            lifetimes,
            regions,
            device_spans,
            events,
            lanes,
            began,
            ended,
        }
    }

    pub fn rank(&self) -> &'a RankTrace {
        &self.trace.ranks[self.place]
    }

    pub fn operation(&self, index: u32) -> &'a Operation {
        &self.rank().operations[index as usize]
    }

    /// The operation of an endpoint.
    pub fn operation_of(&self, endpoint: u32) -> &'a Operation {
        self.operation(self.rank().endpoints[endpoint as usize].operation)
    }

    /// What a visit posted, or what it is where it blocks: endpoints.
    pub fn began(&self, visit: u32) -> &[u32] {
        self.began.get(visit)
    }

    /// Requests that a visit ended: endpoints.
    pub fn ended(&self, visit: u32) -> &[u32] {
        self.ended.get(visit)
    }
}

/// Visits with the pairs of them and their endpoints, in the order in which rows have them.
#[derive(Default)]
struct PairedVisits {
    visits: Vec<Visit>,
    began: Vec<(u32, u32)>,
    ended: Vec<(u32, u32)>,
}

/// Visits by begin.
struct Ordered {
    visits: Vec<Visit>,
    began: Lists,
    ended: Lists,
}

impl PairedVisits {
    fn add_calls(&mut self, rank: &RankTrace, shown: &ShownWindows, place: usize) {
        self.visits.reserve(rank.calls.len() + rank.other_calls.len());
        let mut numbers = vec![NONE; rank.calls.len()];
        for ((index, call), number) in (0..).zip(&rank.calls).zip(&mut numbers) {
            let end =
                if call.returned() { call.begin + call.duration } else { rank.end.max(call.begin) };
            if shown.touches(place, call.begin, end) {
                *number = self.visits.len() as u32;
                self.visits.push(Visit {
                    begin: call.begin,
                    end,
                    thread: rank.threads.of_call(index),
                    operation: call.operation,
                    completed: call.completed(),
                    returned: call.returned(),
                });
            }
        }
        for call in &rank.other_calls {
            let end = call.begin + call.duration;
            if shown.touches(place, call.begin, end) {
                let (thread, operation) = (call.thread, call.operation);
                let begin = call.begin;
                self.visits.push(Visit::plain(thread, operation, (begin, end)));
            }
        }
        for (index, endpoint) in (0..).zip(&rank.endpoints) {
            let Some(&number) = numbers.get(endpoint.call as usize).filter(|&&it| it != NONE)
            else {
                continue;
            };
            match rank.operations[endpoint.operation as usize].is_request {
                true => self.ended.push((number, index)),
                false => self.began.push((number, index)),
            }
        }
    }

    /// One call posts all requests of an MPI_Startall, which share its time, and both halves of an MPI_Isendrecv.
    fn add_posts(&mut self, trace: &Trace, shown: &ShownWindows, place: usize) {
        let rank = &trace.ranks[place];
        let posted = |&(_, endpoint): &(u32, &Endpoint)| {
            let end = endpoint.begin + endpoint.post.or_zero();
            let is_request = rank.operations[endpoint.operation as usize].is_request;
            is_request && shown.touches(place, endpoint.begin, end)
        };
        let all = (0..).zip(&rank.endpoints).filter(posted);
        let key = |(index, endpoint): (u32, &Endpoint)| {
            (rank.threads.of_endpoint(index), endpoint.begin, index)
        };
        let mut posts: Vec<(u16, i64, u32)> = all.map(key).collect();
        posts.sort_unstable();
        let first = self.visits.len();
        for (thread, begin, index) in posts {
            let endpoint = &rank.endpoints[index as usize];
            let (operation, end) = (endpoint.operation, begin + endpoint.post.or_zero());
            let last = self.visits[first..].last_mut().filter(|last| last.thread == thread);
            match last.filter(|last| is_one_call(trace, rank, last, (begin, operation))) {
                Some(last) => last.end = last.end.max(end),
                None => self.visits.push(Visit::plain(thread, operation, (begin, end))),
            }
            self.began.push((self.visits.len() as u32 - 1, index));
        }
    }

    /// By begin; of those that begin at once the one around the others comes first.
    fn in_order(self) -> Ordered {
        let mut order: Vec<u32> = (0..self.visits.len() as u32).collect();
        order.sort_by_key(|&index| {
            let visit = &self.visits[index as usize];
            (visit.begin, visit.end > visit.begin, Reverse(visit.end))
        });
        let mut numbers = vec![0; order.len()];
        for (number, &index) in (0..).zip(&order) {
            numbers[index as usize] = number;
        }
        let renumber = |pairs: Vec<(u32, u32)>| {
            let new = |(visit, endpoint): (u32, u32)| (numbers[visit as usize], endpoint);
            Lists::from_pairs(order.len(), pairs.into_iter().map(new).collect())
        };
        let (began, ended) = (renumber(self.began), renumber(self.ended));
        let visits = order.iter().map(|&index| self.visits[index as usize]).collect();
        Ordered { visits, began, ended }
    }
}

/// Shares of a call's time follow one another, but for what moments are rounded by, nanoseconds.
const ROUNDED: i64 = 2;

/// Whether a request that an operation posted at `begin` was posted by the last call, too.
fn is_one_call(
    trace: &Trace,
    rank: &RankTrace,
    last: &Visit,
    (begin, operation): (i64, u32),
) -> bool {
    if last.begin == begin {
        return true;
    }
    let (operation, before) =
        (&rank.operations[operation as usize], &rank.operations[last.operation as usize]);
    begin <= last.end + ROUNDED
        && operation.site == before.site
        && trace.call_of(operation).transfers == Some(Transfers::Started)
}

/// Adds when the calls of a thread begin and end. One that would end behind the call that it is in, as clocks may have it, ends
/// with that.
fn nest(visits: &mut [Visit], thread: u16, events: &mut Vec<Event>) {
    let mut open: Vec<(i64, u32)> = Vec::new();
    for (index, visit) in (0..).zip(visits.iter_mut()) {
        if visit.thread != thread {
            continue;
        }
        while let Some(&(end, inner)) = open.last().filter(|(end, _)| *end <= visit.begin) {
            events.push(Event { at: end, what: EventKind::Leave(inner) });
            open.pop();
        }
        if let Some(&(end, _)) = open.last() {
            visit.end = visit.end.min(end);
        }
        events.push(Event { at: visit.begin, what: EventKind::Enter(index) });
        open.push((visit.end, index));
    }
    for (end, inner) in open.into_iter().rev() {
        events.push(Event { at: end, what: EventKind::Leave(inner) });
    }
}

/// One lane after the other; those of a lane are disjoint.
fn device_spans(
    rank: &RankTrace,
    shown: &ShownWindows,
    place: usize,
    events: &mut Vec<Event>,
) -> Vec<DeviceSpan> {
    let mut all = Vec::new();
    for (lane, of_lane) in (0..).zip(&rank.devices.lanes) {
        for &span in of_lane.spans.iter().filter(|it| shown.touches(place, it.begin, it.end)) {
            let index = all.len() as u32;
            events.push(Event { at: span.begin, what: EventKind::DeviceBegins(index) });
            events.push(Event { at: span.end, what: EventKind::DeviceEnds(index) });
            all.push(DeviceSpan { lane, span });
        }
    }
    all
}

fn lifetimes(rank: &RankTrace, shown: &ShownWindows, place: usize) -> Vec<Lifetime> {
    let mut lifetimes = Vec::new();
    for (index, endpoint) in (0..).zip(&rank.endpoints) {
        let operation = &rank.operations[endpoint.operation as usize];
        if !operation.is_request || operation.is_second_half {
            continue;
        }
        let post_end = endpoint.begin + endpoint.post.or_zero();
        let call = rank.calls.get(endpoint.call as usize);
        let end = call.filter(|call| call.returned()).map(|call| call.begin + call.duration);
        let end = end.unwrap_or(rank.end).max(post_end);
        if shown.touches(place, endpoint.begin, end) {
            let is_pending = call.is_none() || operation.ended == RequestEnd::Pending;
            let begin = endpoint.begin;
            lifetimes.push(Lifetime { endpoint: index, begin, end, lane: 0, is_pending });
        }
    }
    lifetimes.sort_by_key(|lifetime| lifetime.begin);
    lifetimes
}

/// Adds when requests begin and end, and finds their lanes; how many these are.
fn live(lifetimes: &mut [Lifetime], events: &mut Vec<Event>) -> u32 {
    let mut lanes = FreeLines::default();
    for (index, lifetime) in (0..).zip(lifetimes.iter_mut()) {
        while let Some((at, ended)) = lanes.ended(lifetime.begin) {
            events.push(Event { at, what: EventKind::Ended(ended) });
        }
        lifetime.lane = lanes.begin(index, lifetime.end);
        events.push(Event { at: lifetime.begin, what: EventKind::Posted(index) });
    }
    while let Some((at, ended)) = lanes.ended(i64::MAX) {
        events.push(Event { at, what: EventKind::Ended(ended) });
    }
    lanes.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_data::model::{Needs, RankList};
    use lapscope_trace::script::{Act, Message, Script};

    /// As `Enter` and `Leave` of visits that are named by when they began.
    fn told(events: &RankEvents<'_>) -> Vec<String> {
        let began = |visit: u32| events.visits[visit as usize].begin;
        let words = |event: &Event| match event.what {
            EventKind::Enter(visit) => Some(format!("{} ({}", event.at, began(visit))),
            EventKind::Leave(visit) => Some(format!("{} {})", event.at, began(visit))),
            _ => None,
        };
        events.events.iter().filter_map(words).collect()
    }

    fn script() -> Script {
        let mut script = Script::new(2);
        for (rank, peer) in [(0, 1), (1, 0)] {
            let sent = Message::new(peer, 7, 1_000);
            script
                .act(rank, Act::Isend(sent))
                .act(rank, Act::Compute(10))
                .act(rank, Act::Irecv(sent));
            script.act(rank, Act::Compute(500)).act(rank, Act::Wait(vec![0, 1]));
            script.act(rank, Act::Collective(Needs::All, 0)).act(rank, Act::Other(50));
        }
        script
    }

    #[test]
    fn calls_and_requests_come_in_order_of_time() {
        let trace = script().trace();
        let shown = ShownWindows::new(&trace, &RankList::All, None);
        let rank = RankEvents::collect(&trace, &shown, 0);
        // posts of 100 ns, 10 ns between them, 500 ns of computation, 200 ns for two requests, a collective, something else
        let expected = [
            "0 (0",
            "100 0)",
            "110 (110",
            "210 110)",
            "710 (710",
            "910 710)",
            "910 (910",
            "1010 910)",
            "1010 (1010",
            "1060 1010)",
        ];
        assert_eq!(told(&rank), expected);
        assert_eq!(rank.lanes, 2);
        let lives: Vec<_> = rank.lifetimes.iter().map(|it| (it.begin, it.end, it.lane)).collect();
        assert_eq!(lives, [(0, 910, 0), (110, 910, 1)]);
        assert_eq!((rank.began(0).len(), rank.ended(2).len(), rank.began(3).len()), (1, 2, 1));
        let sorted = rank.events.windows(2).all(|pair| pair[0].at <= pair[1].at);
        assert!(sorted, "{:?}", rank.events);
    }

    #[test]
    fn both_ends_of_a_message_tell_the_same_of_it() {
        let trace = script().trace();
        let ends = |shown: &ShownWindows| {
            let of_rank = |rank| trace.halves(rank).map(|half| shown.message(&trace, &half));
            let mut ids: Vec<u64> = (0..2).flat_map(of_rank).flatten().map(|it| it.id).collect();
            ids.sort_unstable();
            ids
        };
        let all = ShownWindows::new(&trace, &RankList::All, None);
        let ids = ends(&all);
        assert_eq!(ids.len(), 4);
        assert!(ids[0] == ids[1] && ids[2] == ids[3] && ids[1] != ids[2], "{ids:?}");
        // rank 1 is shown from its wait on: its send is not, what it receives is
        let some = ShownWindows::new(&trace, &RankList::All, Some(&[(0, 5_000), (710, 5_000)]));
        assert_eq!(ends(&some).len(), 2);
        let rank = RankEvents::collect(&trace, &some, 1);
        assert_eq!((rank.visits.len(), rank.lifetimes.len()), (3, 2), "requests reach into it");
    }

    #[test]
    fn calls_of_threads_are_apart_and_clocks_that_disagree_are_bent() {
        let mut script = Script::new(1);
        script.acts[0] = vec![vec![Act::Other(100)], vec![Act::Compute(40), Act::Other(20)]];
        let mut trace = script.trace();
        let shown = ShownWindows::new(&trace, &RankList::All, None);
        assert_eq!(
            told(&RankEvents::collect(&trace, &shown, 0)),
            ["0 (0", "40 (40", "60 40)", "100 0)"]
        );
        // on one thread, and longer than what it is in
        for call in &mut trace.ranks[0].other_calls {
            (call.thread, call.duration) = (0, 100);
        }
        assert_eq!(
            told(&RankEvents::collect(&trace, &shown, 0)),
            ["0 (0", "40 (40", "100 40)", "100 0)"]
        );
    }
}
