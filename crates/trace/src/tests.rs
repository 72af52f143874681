//! Runs made in memory, whose messages and clocks are known.

use super::endpoint::{Call, Endpoint, Span, NONE};
use super::lane::LaneKey;
use super::matching::{Contradiction, Matching};
use super::operation::{Direction, Operation, RequestEnd};
use super::presence::Presence;
use std::sync::Arc;

use super::{made_up, Clocks, Paired, RankTrace, Roster, Trace};
use lapscope_data::model::{Bytes, CallName, Kind, Mode, Needs, RankInfo};
use lapscope_data::places::SiteId;

/// A run under way to being written down. Moments are true ones, nanoseconds.
struct World {
    ranks: Vec<RankTrace>,
    lanes: Vec<LaneKey>,
}

fn info(rank: usize, host: &str) -> RankInfo {
    RankInfo { host: host.into(), ..made_up::info(rank) }
}

impl World {
    fn new(hosts: &[&str]) -> World {
        let mut names: Vec<&str> = Vec::new();
        let ranks = hosts.iter().enumerate().map(|(rank, host)| {
            if !names.contains(host) {
                names.push(host);
            }
            let node = names.iter().position(|name| name == host).unwrap_or(0) as u32;
            RankTrace { info: Some(info(rank, host).into()), node, ..RankTrace::default() }
        });
        World { ranks: ranks.collect(), lanes: Vec::new() }
    }

    fn lane(&mut self, key: LaneKey) -> u32 {
        let place = self.lanes.iter().position(|&lane| lane == key);
        place.unwrap_or_else(|| {
            self.lanes.push(key);
            self.lanes.len() - 1
        }) as u32
    }

    fn add(&mut self, rank: usize, operation: Operation, begin: i64, end: i64) {
        let trace = &mut self.ranks[rank];
        let index = trace.operations.len() as u32;
        trace.operations.push(operation);
        let call = trace.calls.len() as u32;
        let duration = end - begin;
        trace.calls.push(Call::new(begin, Some(duration), index, 1));
        trace.endpoints.push(Endpoint {
            begin,
            post: Span::new(0),
            window: Span::new(0),
            mpi: Span::new(0),
            outstanding: Span::new(0),
            operation: index,
            call,
            partner: NONE,
            observed: NONE,
        });
        trace.end = trace.end.max(end);
    }

    /// One half of a message, from the post to its completion.
    fn half(
        &mut self,
        direction: Direction,
        (source, destination, tag): (usize, usize, i64),
        bytes: u64,
        (begin, end): (i64, i64),
        ended: RequestEnd,
    ) {
        let lane = self.lane(LaneKey {
            comm: 0,
            source: source as u32,
            destination: destination as u32,
            tag,
            is_partitioned: false,
            is_collective: false,
        });
        let is_send = direction == Direction::Send;
        let (rank, peer) = if is_send { (source, destination) } else { (destination, source) };
        let operation = Operation {
            site: SiteId::default(),
            path: None,
            blocking_call: 0,
            kind: if is_send { Kind::Send } else { Kind::Recv },
            direction,
            mode: Mode::Standard,
            is_request: true,
            is_second_half: false,
            bytes: Bytes(bytes),
            peer: Some(peer as u32),
            tag: Some(tag),
            lane: if ended == RequestEnd::Cancelled { NONE } else { lane },
            is_wildcard: false,
            is_untraceable: false,
            comm: NONE,
            comm_size: 0,
            ended,
            is_tested: false,
        };
        self.add(rank, operation, begin, end);
    }

    fn message(
        &mut self,
        way: (usize, usize, i64),
        bytes: u64,
        sent: (i64, i64),
        received: (i64, i64),
    ) {
        self.half(Direction::Send, way, bytes, sent, RequestEnd::Completed);
        self.half(Direction::Receive, way, bytes, received, RequestEnd::Completed);
    }

    /// A barrier that its members enter at these moments, and leave 3 us after the last.
    fn barrier(&mut self, entered: &[i64]) {
        let lane = self.lane(LaneKey {
            comm: 0,
            source: NONE,
            destination: NONE,
            tag: 0,
            is_partitioned: false,
            is_collective: true,
        });
        let left = entered.iter().max().copied().unwrap_or(0) + 3_000;
        for (rank, &begin) in entered.iter().enumerate() {
            let operation = Operation {
                site: SiteId::default(),
                path: None,
                blocking_call: 1,
                kind: Kind::Collective,
                direction: Direction::Collective,
                mode: Mode::Standard,
                is_request: false,
                is_second_half: false,
                bytes: Bytes(0),
                peer: None,
                tag: None,
                lane,
                is_wildcard: false,
                is_untraceable: false,
                comm: NONE,
                comm_size: entered.len() as u32,
                ended: RequestEnd::Completed,
                is_tested: false,
            };
            self.add(rank, operation, begin, left);
        }
    }

    /// Lets the clock of a rank lead by `offset` ns at 0, and by `drift` ns more each ns.
    fn shift(&mut self, rank: usize, offset: f64, drift: f64) {
        let lead = |moment: i64| moment + (offset + drift * moment as f64) as i64;
        self.ranks[rank].map_moments(lead);
    }

    fn finish(mut self) -> (Trace, Clocks, Matching) {
        let name = |name: &str, needs| CallName {
            role: "BLOCK".into(),
            needs,
            ..CallName::unknown(name.into())
        };
        for rank in &mut self.ranks {
            let calls = rank.calls.iter().map(|call| (call.begin, call.begin + call.duration));
            rank.presence = Presence::new(calls.collect());
        }
        let blocking_calls = vec![name("MPI_Send", None), name("MPI_Barrier", Some(Needs::All))];
        let trace = Trace { ranks: self.ranks, blocking_calls, ..Trace::default() };
        let mut trace = trace;
        let everybody = (0..trace.ranks.len() as u32).collect();
        let communicators = [((1, 0, 0), everybody)].into();
        trace.roster = Arc::new(Roster::of_communicators(communicators));
        let trace = Paired::match_messages(trace, self.lanes, &[(1, 0, 0)]).settle();
        let (clocks, matching) = (trace.clocks.clone(), trace.matching.clone());
        (trace, clocks, matching)
    }
}

fn partners(trace: &Trace, rank: usize) -> Vec<Option<(usize, usize)>> {
    let partner = |half| trace.partner(&half).map(|other| (other.rank, other.index));
    trace.halves(rank).map(partner).collect()
}

#[test]
fn messages_match_in_the_order_of_their_posts() {
    let mut world = World::new(&["a", "a"]);
    let way = (0, 1, 5);
    for (number, bytes) in [(0i64, 10), (1, 20)] {
        world.half(Direction::Send, way, bytes, (number * 100, 900), RequestEnd::Completed);
    }
    world.half(Direction::Send, (0, 1, 6), 7, (50, 60), RequestEnd::Completed);
    // completed, and so recorded, the other way around
    world.half(Direction::Receive, way, 20, (500, 800), RequestEnd::Completed);
    world.half(Direction::Receive, way, 10, (400, 850), RequestEnd::Completed);
    world.half(Direction::Receive, way, 10, (300, 310), RequestEnd::Cancelled);
    let (trace, clocks, matching) = world.finish();
    assert_eq!(partners(&trace, 0), [Some((1, 1)), Some((1, 0)), None]);
    assert_eq!(partners(&trace, 1), [Some((0, 1)), Some((0, 0)), None]);
    assert_eq!((matching.messages, matching.unmatched_sends, matching.doubtful), (2, 1, 0));
    assert_eq!((matching.examples.len(), matching.examples[0].tag), (1, 6));
    assert_eq!(clocks.clocks, 1);
}

#[test]
fn behind_a_contradiction_nothing_is_guessed() {
    let mut world = World::new(&["a", "a"]);
    for number in 0..4 {
        let begin = number * 100_000;
        let received = if number == 2 { 77 } else { 10 };
        world.half(Direction::Send, (0, 1, 1), 10, (begin, begin + 10), RequestEnd::Completed);
        world.half(
            Direction::Receive,
            (0, 1, 1),
            received,
            (begin, begin + 9),
            RequestEnd::Completed,
        );
    }
    let (trace, _, matching) = world.finish();
    assert_eq!((matching.messages, matching.doubtful), (2, 4));
    assert_eq!(matching.examples[0].contradiction, Some(Contradiction::Bytes));
    assert_eq!(partners(&trace, 1)[2..], [None, None]);
}

/// Messages both ways, and a barrier now and then: what a run of a second has.
fn busy_run(hosts: &[&str]) -> World {
    let mut world = World::new(hosts);
    for number in 0..1_000i64 {
        let begin = number * 1_000_000;
        let delay = 1_500 + number * 7_919 % 40_000;
        let (a, b) = if number % 2 == 0 { (0, 1) } else { (1, 0) };
        world.message((a, b, 0), 8, (begin, begin + 500), (begin - 9_000, begin + delay));
        if number % 10 == 5 {
            world.barrier(&[begin + 300_000, begin + 300_000 + number * 31 % 20_000]);
        }
    }
    world
}

#[test]
fn shifted_clocks_are_brought_back() {
    for (hosts, offset, drift) in [
        (["a", "b"], 0.0, 0.0),
        (["a", "b"], 5e6, 1e-4),
        (["a", "b"], -3e7, -2e-4),
        (["a", "a"], 5e6, 0.0),
        (["a", "a"], -3e7, 1e-4),
    ] {
        let (truth, _, _) = busy_run(&["a", "a"]).finish();
        let mut world = busy_run(&hosts);
        world.shift(1, offset, drift);
        let (trace, clocks, matching) = world.finish();
        let case = format!("{hosts:?} {offset} {drift}: {clocks:?}");
        assert_eq!((matching.messages, matching.doubtful, clocks.clocks), (1_000, 0, 2), "{case}");
        for (half, true_half) in trace.halves(1).zip(truth.halves(1)) {
            let error = (half.post_begin - true_half.post_begin).abs();
            assert!(error < 5_000, "{case}: {error} ns off at {}", true_half.post_begin);
            assert_eq!(
                trace.awaited(&half).map(|(_, rank)| rank),
                truth.awaited(&true_half).map(|(_, rank)| rank)
            );
        }
        let split: &[String] = if hosts[1] == "a" { &["a".to_owned()] } else { &[] };
        assert_eq!(clocks.split_nodes, split, "{case}");
    }
}

#[test]
fn ranks_of_one_node_keep_their_clock() {
    let (trace, clocks, _) = busy_run(&["a", "a"]).finish();
    assert_eq!((clocks.clocks, clocks.corrections.len()), (1, 0));
    assert_eq!(trace.halves(0).next().map(|half| half.post_begin), Some(0));
}

#[test]
fn the_last_to_enter_a_barrier_is_found() {
    let mut world = World::new(&["a", "a", "a"]);
    world.barrier(&[100, 5_000, 300]);
    let (trace, _, _) = world.finish();
    for rank in 0..3 {
        let half = trace.half(rank, 0);
        assert_eq!(trace.awaited(&half), Some((5_000, 1)));
    }
}
