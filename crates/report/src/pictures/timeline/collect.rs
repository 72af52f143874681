//! Takes a stretch of some ranks out of a trace.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use super::{
    lanes, spans, CallSpan, Chosen, Message, RanksChosen, RequestLife, Role, Timeline,
    TimelineSite, Track,
};
use lapscope_data::model::{Nanos, Rank};
use lapscope_data::places::SiteId;
use lapscope_data::symbols::NameFrames;
use lapscope_measure::overlap::exposure::Exposure;
use lapscope_measure::overlap::witness::{Waited, Witness};
use lapscope_measure::overlap::{EagerLimits, Measuring};
use lapscope_measure::reference::Reference;
use lapscope_trace::{Direction, Endpoint, Half, Trace};

/// Most spans, requests and messages of a timeline, together with what a page may take in bytes.
const SPANS: usize = 8_000;
const REQUESTS: usize = 3_000;
const MESSAGES: usize = 3_000;

/// A stretch of time, moments on the run's clock; whose ranks are places in [`Trace::ranks`].
#[derive(Debug, Clone)]
pub struct TimelineWindow {
    pub begin: i64,
    pub end: i64,
    pub ranks: Vec<u32>,
    pub steps: Option<(u64, u64)>,
    pub chosen: Chosen,
    pub ranks_chosen: RanksChosen,
    /// Nobody asked for just this one: it may be shorter where it holds too much, and wider where it is no step and holds next to
    /// nothing.
    pub may_be_fitted: bool,
}

impl TimelineWindow {
    fn holds(&self, begin: i64, end: i64) -> bool {
        begin < self.end && end >= self.begin
    }
}

/// The stretch of these ranks, all of which `trace` has read in detail.
pub fn collect(
    trace: &Trace,
    window: TimelineWindow,
    (reference, eager): (&Reference, EagerLimits),
    names: &mut dyn NameFrames,
) -> Timeline {
    let (window, is_shortened) = fitted(trace, window);
    let zero = window.begin;
    let causes = causes(trace, &window, (reference, eager));
    let mut collector = Collector { trace, window: &window, places: SiteNumbers::default() };
    let mut tracks = Vec::new();
    let mut first_of_rank = FxHashMap::default();
    let mut requests = Vec::new();
    for &rank in &window.ranks {
        first_of_rank.insert(rank, tracks.len() as u32);
        for thread in 0..trace.ranks[rank as usize].threads.count() as u16 {
            let info = trace.ranks[rank as usize].info();
            let found = collector.spans(rank as usize, thread, &causes);
            requests.push(collector.requests(rank as usize, thread));
            tracks.push(Track {
                rank: info.rank,
                thread,
                host: info.host.clone(),
                spans: spans::outermost(found),
                requests: Vec::new(),
                lanes: 0,
                gpu: if thread == 0 { gpu(trace, &window, rank as usize) } else { Vec::new() },
            });
        }
    }
    let resolution = thin_out(&mut tracks, window.end - window.begin);
    let left_out_requests = keep_longest(&mut requests, REQUESTS);
    for (track, mut requests) in tracks.iter_mut().zip(requests) {
        let end = |request: &RequestLife| request.end_ns.map_or(i64::MAX, |end| end.0);
        let intervals: Vec<(i64, i64)> =
            requests.iter().map(|request| (request.begin_ns.0, end(request))).collect();
        let (lanes, count) = lanes::assign(&intervals);
        requests.iter_mut().zip(lanes).for_each(|(request, lane)| request.lane = lane);
        (track.requests, track.lanes) = (requests, count);
    }
    let mut messages = collector.messages(&first_of_rank);
    let left_out_messages = messages.len().saturating_sub(MESSAGES) as u64;
    messages.sort_by_key(|message| std::cmp::Reverse(message.bytes.0));
    messages.truncate(MESSAGES);
    messages.sort_by_key(|message| message.sent_ns);
    let first = trace.ranks.iter().map(|rank| rank.init_end).min().unwrap_or(0);
    Timeline {
        begin_ns: Nanos(zero - first),
        length_ns: Nanos(window.end - window.begin),
        steps: window.steps,
        chosen: window.chosen,
        ranks_chosen: window.ranks_chosen,
        is_shortened,
        places: collector.places.named(trace, names),
        tracks,
        messages,
        other_ranks: trace.ranks.len() - window.ranks.len(),
        left_out_requests,
        left_out_messages,
        resolution_ns: Nanos(resolution),
    }
}

/// Twice as long, around its middle, until most ranks do something in it, and then half as long until there is not too much.
fn fitted(trace: &Trace, mut window: TimelineWindow) -> (TimelineWindow, bool) {
    /// Calls of each rank that show what goes on: posts, computation, waits.
    const ENOUGH: usize = 20;
    if !window.may_be_fitted {
        return (window, false);
    }
    let (first, last) = (trace.begin(), trace.begin() + trace.run_ns());
    let calls = |window: &TimelineWindow| -> (usize, usize) {
        let of_rank = |&rank: &u32| {
            let rank = &trace.ranks[rank as usize];
            let calls = rank.calls.iter().filter(|call| window.holds(call.begin, call.begin));
            let is_post = |post: &&Endpoint| {
                rank.operations[post.operation as usize].is_request
                    && window.holds(post.begin, post.begin)
            };
            (calls.count(), rank.endpoints.iter().filter(is_post).count())
        };
        let both = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
        window.ranks.iter().map(of_rank).fold((0, 0), both)
    };
    let enough = ENOUGH * window.ranks.len();
    let is_little = |(calls, posts): (usize, usize)| calls + posts < enough;
    let is_much = |(calls, posts): (usize, usize)| {
        calls + posts > SPANS || posts > REQUESTS || calls > MESSAGES
    };
    // a step is shown as it is
    let may_be_wider = window.chosen == Chosen::CostliestSlice;
    while may_be_wider && is_little(calls(&window)) && (window.begin > first || window.end < last) {
        let half = (window.end - window.begin).max(2) / 2;
        window.begin = (window.begin - half).max(first);
        window.end = (window.end + half).min(last);
    }
    let mut is_shortened = false;
    while is_much(calls(&window)) && window.end - window.begin > 1_000 {
        let quarter = (window.end - window.begin) / 4;
        (window.begin, window.end) = (window.begin + quarter, window.end - quarter);
        is_shortened = true;
    }
    (window, is_shortened)
}

/// What calls of one rank waited for, by their places in [`lapscope_trace::RankTrace::calls`].
struct WaitCauses<'a> {
    window: &'a TimelineWindow,
    rank: u32,
    /// The begin of the first call that reaches into the window.
    earliest: i64,
    calls: FxHashMap<(u32, u32), Exposure>,
}

impl Witness for WaitCauses<'_> {
    fn call(&mut self, waited: &Waited<'_>) {
        let begin = waited.half.completion_begin.unwrap_or(waited.half.post_begin);
        let end = waited.half.completion_end.unwrap_or(begin);
        if let Some(call) = waited.half.call.filter(|_| self.window.holds(begin, end)) {
            self.calls.insert((self.rank, call), waited.exposed);
        }
    }

    fn looks_at(&self, begin: i64) -> bool {
        begin < self.window.end && begin >= self.earliest
    }
}

fn causes(
    trace: &Trace,
    window: &TimelineWindow,
    (reference, eager): (&Reference, EagerLimits),
) -> FxHashMap<(u32, u32), Exposure> {
    let ranks: Vec<Rank> =
        window.ranks.iter().map(|&place| trace.ranks[place as usize].info().rank).collect();
    let witness = |rank: usize| {
        let calls = trace.ranks[rank].calls.iter();
        let inside = calls.filter(|call| window.holds(call.begin, call.begin + call.duration));
        let earliest = inside.map(|call| call.begin).min().unwrap_or(window.end);
        WaitCauses { window, rank: rank as u32, earliest, calls: FxHashMap::default() }
    };
    let measuring = Measuring { trace, reference, eager, ranks: &ranks, progress: &|_| () };
    let (_, witnesses) = measuring.tell(witness);
    witnesses.into_iter().flat_map(|witness| witness.calls).collect()
}

/// Pauses that are narrower than a line of the picture are drawn over.
fn gpu(trace: &Trace, window: &TimelineWindow, rank: usize) -> Vec<(Nanos, Nanos)> {
    const LINES: i64 = 2_000;
    let narrow = (window.end - window.begin) / LINES;
    let moment = |at: i64| Nanos(at.clamp(window.begin, window.end) - window.begin);
    let mut drawn: Vec<(Nanos, Nanos)> = Vec::new();
    for (begin, end) in trace.ranks[rank].devices.computing() {
        if !window.holds(begin, end) {
            continue;
        }
        let (begin, end) = (moment(begin), moment(end));
        match drawn.last_mut().filter(|last| begin.0 - last.1 .0 <= narrow) {
            Some(last) => last.1 = end,
            None => drawn.push((begin, end)),
        }
    }
    drawn
}

struct Collector<'a> {
    trace: &'a Trace,
    window: &'a TimelineWindow,
    places: SiteNumbers,
}

impl Collector<'_> {
    fn spans(
        &mut self,
        rank: usize,
        thread: u16,
        causes: &FxHashMap<(u32, u32), Exposure>,
    ) -> Vec<CallSpan> {
        let trace = self.trace;
        let ranked = &trace.ranks[rank];
        let mut spans = Vec::new();
        for (index, call) in (0..).zip(&ranked.calls) {
            let end = if call.returned() { call.begin + call.duration } else { ranked.end };
            if ranked.threads.of_call(index) != thread || !self.window.holds(call.begin, end) {
                continue;
            }
            let operation = &ranked.operations[call.operation as usize];
            let role = match operation.direction {
                Direction::Collective => Role::Collective,
                Direction::Send | Direction::Receive => Role::Block,
                Direction::None if call.completed() > 0 => Role::Complete,
                Direction::None => Role::Other,
            };
            let cause = causes.get(&(rank as u32, index)).and_then(Exposure::cause);
            spans.push(self.span((call.begin, end), operation.site, role, cause));
        }
        for call in ranked.other_calls.iter().filter(|call| call.thread == thread) {
            let end = call.begin + call.duration;
            if self.window.holds(call.begin, end) {
                let site = ranked.operations[call.operation as usize].site;
                spans.push(self.span((call.begin, end), site, Role::Other, None));
            }
        }
        for (index, endpoint) in (0..).zip(&ranked.endpoints) {
            let operation = &ranked.operations[endpoint.operation as usize];
            let end = endpoint.begin + endpoint.post.or_zero();
            let is_post = operation.is_request && !operation.is_second_half;
            if is_post
                && ranked.threads.of_endpoint(index) == thread
                && self.window.holds(endpoint.begin, end)
            {
                spans.push(self.span((endpoint.begin, end), operation.site, Role::Post, None));
            }
        }
        spans
    }

    fn span(
        &mut self,
        (begin, end): (i64, i64),
        site: SiteId,
        role: Role,
        cause: Option<lapscope_measure::overlap::sums::Cause>,
    ) -> CallSpan {
        CallSpan {
            begin_ns: Nanos(begin - self.window.begin),
            end_ns: Nanos(end - self.window.begin),
            place: self.places.number(site),
            calls: 1,
            mpi_ns: Nanos(end - begin),
            role,
            cause,
        }
    }

    /// In the order of their posts.
    fn requests(&mut self, rank: usize, thread: u16) -> Vec<RequestLife> {
        let trace = self.trace;
        let ranked = &trace.ranks[rank];
        let mut requests = Vec::new();
        for half in trace.halves(rank) {
            if !half.operation.is_request || half.operation.is_second_half {
                continue;
            }
            let end = half.completion_end.unwrap_or(ranked.end);
            if ranked.threads.of_endpoint(half.index as u32) != thread
                || !self.window.holds(half.post_begin, end)
            {
                continue;
            }
            let peer = half.operation.peer.map(|peer| trace.ranks[peer as usize].info().rank);
            requests.push(RequestLife {
                begin_ns: Nanos(half.post_begin - self.window.begin),
                end_ns: half.completion_end.map(|end| Nanos(end - self.window.begin)),
                place: self.places.number(half.operation.site),
                lane: 0,
                is_send: half.operation.direction == Direction::Send,
                peer,
                bytes: half.bytes(),
            });
        }
        requests.sort_by_key(|request| request.begin_ns);
        requests
    }

    /// Those between ranks that are shown.
    fn messages(&self, tracks: &FxHashMap<u32, u32>) -> Vec<Message> {
        let trace = self.trace;
        let mut messages = Vec::new();
        for &rank in &self.window.ranks {
            let sends = trace.halves(rank as usize);
            for send in sends.filter(|half| half.operation.direction == Direction::Send) {
                let Some(receive) = trace.partner(&send) else { continue };
                messages.extend(self.message(&send, &receive, tracks));
            }
        }
        messages
    }

    fn message(
        &self,
        send: &Half<'_>,
        receive: &Half<'_>,
        tracks: &FxHashMap<u32, u32>,
    ) -> Option<Message> {
        let received = receive.completion_end?;
        if !self.window.holds(send.post_begin, received) {
            return None;
        }
        let track = |half: &Half<'_>| {
            let of_rank = &self.trace.ranks[half.rank];
            let thread = match half.operation.is_request {
                true => of_rank.threads.of_endpoint(half.index as u32),
                false => half.call.map_or(0, |call| of_rank.threads.of_call(call)),
            };
            tracks.get(&(half.rank as u32)).map(|&first| first + u32::from(thread))
        };
        Some(Message {
            from: track(send)?,
            to: track(receive)?,
            sent_ns: Nanos(send.post_begin - self.window.begin),
            received_ns: Nanos(received - self.window.begin),
            bytes: send.bytes(),
        })
    }
}

/// Joins what is too short to be seen until few enough spans are left; returns what is too short.
fn thin_out(tracks: &mut [Track], length: i64) -> i64 {
    let count = |tracks: &[Track]| tracks.iter().map(|track| track.spans.len()).sum::<usize>();
    if count(tracks) <= SPANS {
        return 0;
    }
    let mut resolution = (length / 4_000).max(1);
    loop {
        tracks.iter_mut().for_each(|track| track.spans = spans::join(&track.spans, resolution));
        if count(tracks) <= SPANS || resolution > length {
            return resolution;
        }
        resolution *= 2;
    }
}

/// Keeps the requests with the longest lives; returns how many were let go.
fn keep_longest(requests: &mut [Vec<RequestLife>], most: usize) -> u64 {
    let all: usize = requests.iter().map(Vec::len).sum();
    if all <= most {
        return 0;
    }
    let life =
        |request: &RequestLife| request.end_ns.map_or(i64::MAX, |end| end.0 - request.begin_ns.0);
    let mut lives: Vec<i64> = requests.iter().flatten().map(life).collect();
    let (_, &mut shortest, _) = lives.select_nth_unstable_by(most - 1, |a, b| b.cmp(a));
    for requests in &mut *requests {
        requests.retain(|request| life(request) >= shortest);
    }
    // of equally long ones there may be too many: those that go lie evenly among those that stay
    let over = requests.iter().map(Vec::len).sum::<usize>().saturating_sub(most);
    let equal = requests.iter().flatten().filter(|request| life(request) == shortest).count();
    let mut seen = 0;
    for requests in &mut *requests {
        requests.retain(|request| {
            let is_equal = life(request) == shortest;
            let goes = is_equal && (seen + 1) * over / equal > seen * over / equal;
            seen += usize::from(is_equal);
            !goes
        });
    }
    (all - most) as u64
}

/// Call sites by number; several of one name are one.
#[derive(Default)]
struct SiteNumbers {
    numbers: HashMap<SiteId, u32>,
    sites: Vec<SiteId>,
}

impl SiteNumbers {
    fn number(&mut self, site: SiteId) -> u32 {
        *self.numbers.entry(site).or_insert_with(|| {
            self.sites.push(site);
            (self.sites.len() - 1) as u32
        })
    }

    fn named(&self, trace: &Trace, names: &mut dyn NameFrames) -> Vec<TimelineSite> {
        let place = |&site: &SiteId| {
            let frame = trace.places.site(site).frame;
            let name = frame.and_then(|frame| names.name(frame).into_iter().next());
            TimelineSite {
                call: trace.places.call(site).name.clone(),
                site: name.map_or_else(String::new, |name| name.short()),
            }
        };
        self.sites.iter().map(place).collect()
    }
}
