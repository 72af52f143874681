//! What holds of every replay, and what only of some: where control messages are handled in calls alone, a call that ends earlier
//! may miss one that it would have handled, and where messages share a link, one that comes earlier may go first. So "faster is
//! never slower" holds of progress that does not depend on calls, without contention, and with a way that does not depend on who
//! comes first.

use std::collections::{BTreeMap, BTreeSet};

use super::random;
use super::*;
use lapscope_trace::script::{Act, Message, Script};
use lapscope_trace::Direction;

const SEEDS: std::ops::Range<u64> = 0..150;

/// Every program, protocol, progress and contention.
fn all(mut check: impl FnMut(&Trace, &Network, &Outcome, &str)) {
    let progress = [Progress::Inside, Progress::Async, Progress::Every(3_000.0)];
    let contention = [Contention::None, Contention::Rank, Contention::Node, Contention::Shared];
    for seed in SEEDS {
        let trace = random::script(seed).trace();
        for protocol in RENDEZVOUS {
            let progress = progress[seed as usize % progress.len()];
            let contention = contention[(seed as usize / 3) % contention.len()];
            let network = with(&network(protocol, progress), contention);
            let name = format!("seed {seed}, {protocol}, {progress}, {contention}");
            check(&trace, &network, &run(&trace, &network), &name);
        }
    }
}

fn ends(outcome: &Outcome) -> Vec<i64> {
    outcome.ranks.iter().map(|rank| rank.end).collect()
}

/// No rank ends later than in `slow`.
fn assert_no_later(fast: &Outcome, slow: &Outcome, name: &str) {
    for (fast, slow) in ends(fast).into_iter().zip(ends(slow)) {
        assert!(fast <= slow, "{name}: {fast} is later than {slow}");
    }
}

#[test]
fn safe_programs_end_under_every_protocol() {
    all(|trace, _, outcome, name| {
        assert!(outcome.stuck.is_empty(), "{name}: {:?}", outcome.stuck);
        for (rank, recorded) in outcome.ranks.iter().zip(&trace.ranks) {
            let made = rank.calls.iter().filter(|call| call.begin != i64::MAX).count();
            assert_eq!(made, recorded.calls.len(), "{name}");
            assert!(rank.posted.iter().all(|&posted| posted != i64::MAX), "{name}");
        }
    });
}

#[test]
fn nothing_is_received_before_it_was_sent() {
    all(|trace, network, outcome, name| {
        for rank in 0..trace.ranks.len() {
            for half in trace.halves(rank) {
                let Some(send) = trace.partner(&half) else { continue };
                if half.operation.direction != Direction::Receive {
                    continue;
                }
                let sent = outcome.ranks[send.rank].posted[send.index];
                let call = half.call.expect("completed") as usize;
                let received = outcome.ranks[rank].calls[call].end();
                let locality = trace.locality(rank, send.rank);
                let plan = network.plan(locality, half.bytes().0, send.operation.mode);
                let takes = plan.latency + plan.wire;
                let bytes = half.bytes().0;
                assert!(received - sent >= takes, "{name}: {bytes} in {}", received - sent);
            }
        }
    });
}

#[test]
fn a_collective_ends_for_nobody_before_those_came_whom_it_needs() {
    all(|trace, _, outcome, name| {
        for rank in 0..trace.ranks.len() {
            for half in trace.halves(rank) {
                let Some(collective) = trace.collective(&half) else { continue };
                let needs = trace.blocking_calls[collective.blocking_call as usize].needs;
                let posted = |rank: usize, index: usize| outcome.ranks[rank].posted[index];
                let call = half.call.expect("completed") as usize;
                let left = outcome.ranks[rank].calls[call].end();
                for member in trace.members(&half) {
                    let is_root = |rank| collective.root == Some(rank as u32);
                    let is_needed = match needs {
                        Some(lapscope_data::model::Needs::All) => true,
                        Some(lapscope_data::model::Needs::Root) => is_root(member.rank),
                        _ => is_root(rank),
                    };
                    let came = posted(member.rank, member.index);
                    assert!(!is_needed || left >= came, "{name}: {left} before {came}");
                }
            }
        }
    });
}

#[test]
fn time_is_conserved_on_each_rank() {
    all(|trace, _, outcome, name| {
        for (rank, recorded) in outcome.ranks.iter().zip(&trace.ranks) {
            let parts = rank.compute + rank.overhead + rank.wait;
            assert_eq!(parts, rank.end - recorded.init_end, "{name}");
            assert!(rank.wait >= 0 && rank.overhead >= 0, "{name}");
        }
    });
}

/// Bytes are nanoseconds on this network's wire: what of a run they need, where a node's ranks share one medium.
fn busiest_link(trace: &Trace) -> i64 {
    let mut busy: BTreeMap<u32, i64> = BTreeMap::new();
    for rank in 0..trace.ranks.len() {
        let sends = trace.halves(rank).filter(|it| it.operation.direction == Direction::Send);
        for receive in sends.filter_map(|send| trace.partner(&send)) {
            let nodes = [rank, receive.rank].map(|rank| trace.ranks[rank].node);
            let nodes: BTreeSet<u32> = nodes.into_iter().filter(|_| receive.rank != rank).collect();
            for node in nodes {
                *busy.entry(node).or_default() += receive.bytes().0 as i64;
            }
        }
    }
    busy.into_values().max().unwrap_or(0)
}

fn assert_no_shorter_than_its_link(trace: &Trace, outcome: &Outcome, name: &str) {
    let begin = trace.ranks.iter().map(|rank| rank.init_end).min().unwrap();
    let takes = ends(outcome).into_iter().max().unwrap() - begin;
    let most = busiest_link(trace);
    assert!(takes >= most, "{name}: {takes} of {most}");
}

#[test]
fn no_run_is_shorter_than_its_busiest_link() {
    all(|trace, network, outcome, name| {
        if network.contention == Contention::Shared {
            assert_no_shorter_than_its_link(trace, outcome, name);
        }
    });
}

/// Messages both ways that begin to move, stand still while both ranks compute, and go on: one after the other.
#[test]
fn what_stood_still_queues_again() {
    const BYTES: u64 = 100_000;
    const COMPUTATION: i64 = 300_000;
    /// What moves before, in MPI and as far as it is buffered.
    const BEFORE: i64 = 10_000 + 2_000;
    const ROUNDS: usize = 5;
    let mut script = Script::new(2);
    for (round, rank) in (0..ROUNDS).flat_map(|round| [(round, 0), (round, 1)]) {
        let message = Message::new(1 - rank, round as i64, BYTES);
        let begun = [Act::Irecv(message), Act::Isend(message), Act::Other(10_000)];
        let ends = [Act::Compute(COMPUTATION), Act::Wait(vec![2 * round, 2 * round + 1])];
        begun.into_iter().chain(ends).for_each(|act| {
            script.act(rank, act);
        });
    }
    let trace = script.trace();
    let network = network(Protocol::Pipeline, Progress::Inside);
    let takes = |contention| ends(&run(&trace, &with(&network, contention)))[0];
    let least = |messages: i64| ROUNDS as i64 * (COMPUTATION + messages * BYTES as i64 - BEFORE);
    assert!((least(1)..least(2)).contains(&takes(Contention::Rank)));
    assert!(takes(Contention::Shared) >= least(2));
}

#[test]
fn two_replays_are_equal() {
    all(|trace, network, outcome, name| {
        assert_eq!(format!("{outcome:?}"), format!("{:?}", run(trace, network)), "{name}");
    });
}

/// Checks protocols whose way depends on the message alone.
fn fixed_ways(mut check: impl FnMut(&Trace, &Network, &str)) {
    for seed in SEEDS {
        let trace = random::script(seed).trace();
        for protocol in &RENDEZVOUS[..3] {
            let name = format!("seed {seed}, {protocol}");
            check(&trace, &network(*protocol, Progress::Async), &name);
        }
    }
}

#[test]
fn a_faster_network_slows_nothing_where_progress_is_asynchronous() {
    fixed_ways(|trace, network, name| {
        let as_it_is = run(trace, network);
        let quick = each(network, |it| it.latency = 300.0);
        assert_no_later(&run(trace, &quick), &as_it_is, name);
        let wide = each(network, |it| it.gap_per_byte = 0.2);
        assert_no_later(&run(trace, &wide), &as_it_is, name);
    });
}

#[test]
fn a_faster_network_slows_nothing_where_all_is_eager() {
    for seed in SEEDS {
        let trace = random::script(seed).trace();
        let inside = network(Protocol::Eager, Progress::Inside);
        let eager = each(&inside, |it| (it.eager_limit, it.progress_limit) = (u64::MAX, u64::MAX));
        // synchronous sends are not eager whatever the limit
        if trace.ranks.iter().any(|rank| {
            rank.operations.iter().any(|it| it.mode == lapscope_data::model::Mode::Synchronous)
        }) {
            continue;
        }
        let quick = each(&eager, |it| (it.latency, it.gap_per_byte) = (300.0, 0.2));
        assert_no_later(&run(&trace, &quick), &run(&trace, &eager), &format!("seed {seed}"));
    }
}

#[test]
fn a_higher_eager_limit_delays_no_receiver_where_progress_is_asynchronous() {
    fixed_ways(|trace, network, name| {
        let limit =
            |bytes| each(network, |it| (it.eager_limit, it.progress_limit) = (bytes, bytes));
        let of = |bytes| run(trace, &limit(bytes));
        assert_no_later(&of(5_000), &of(0), name);
        assert_no_later(&of(u64::MAX), &of(5_000), name);
    });
}

#[test]
fn asynchronous_progress_is_the_fastest() {
    fixed_ways(|trace, network, name| {
        let asynchronous = run(trace, network);
        for progress in [Progress::Inside, Progress::Every(500.0), Progress::Every(20_000.0)] {
            let slower = Network { progress, ..network.clone() };
            assert_no_later(&asynchronous, &run(trace, &slower), name);
        }
    });
}

/// A test may come a period later than a call that waited for something slower would have looked, and each message has at most
/// three looks; never more than that is lost.
#[test]
fn tests_lose_at_most_a_period_a_look() {
    fixed_ways(|trace, network, name| {
        let period = 400;
        let inside = run(trace, &Network { progress: Progress::Inside, ..network.clone() });
        let progress = Progress::Every(period as f64);
        let tests = run(trace, &Network { progress, ..network.clone() });
        let endpoints: usize = trace.ranks.iter().map(|rank| rank.endpoints.len()).sum();
        let most = period * 3 * endpoints as i64;
        for (tests, inside) in ends(&tests).into_iter().zip(ends(&inside)) {
            assert!(tests <= inside + most, "{name}: {tests} and {inside}");
        }
    });
}

/// Both send, then both receive.
fn head_to_head(bytes: u64) -> Script {
    let mut script = Script::new(2);
    for rank in 0..2 {
        script.act(rank, Act::Compute(1_000));
        script.act(rank, Act::Send(Message::new(1 - rank, 0, bytes)));
        script.act(rank, Act::Recv(Message::new(1 - rank, 0, bytes)));
    }
    script
}

#[test]
fn what_needs_buffers_hangs_without_them_and_ends_with_them() {
    let trace = head_to_head(1_000).trace();
    for protocol in RENDEZVOUS {
        for progress in [Progress::Inside, Progress::Async, Progress::Every(1_000.0)] {
            let base = network(protocol, progress);
            let limit =
                |bytes| each(&base, |it| (it.eager_limit, it.progress_limit) = (bytes, bytes));
            let hangs = run(&trace, &limit(0));
            let stuck: Vec<u32> = hangs.stuck.iter().map(|stuck| stuck.rank).collect();
            assert_eq!(stuck, [0, 1], "{protocol}, {progress}");
            assert!(hangs.stuck.iter().all(|stuck| stuck.since == 1_000));
            assert_eq!(hangs.run_ns(&trace), None);
            let ends = run(&trace, &limit(u64::MAX));
            // computes, sends for 100 ns, and receives what took 2,000 ns from 1,000 ns on; the rest of the script is 100 ns
            assert_eq!(ends.run_ns(&trace), Some(1_000 + 2_000 + 100), "{protocol}, {progress}");
        }
    }
}

/// One message of 5,000 bytes, above the eager limit; the receive and the send posted at these moments, waited for at 100,000 ns.
fn one_message(sent: i64, received: i64, is_wildcard: bool) -> Script {
    let mut script = Script::new(2);
    let message = |peer| Message { is_wildcard, ..Message::new(peer, 0, 5_000) };
    for (rank, at, post) in
        [(0, sent, Act::Isend(message(1))), (1, received, Act::Irecv(message(0)))]
    {
        script.act(rank, Act::Compute(at)).act(rank, post);
        script.act(rank, Act::Compute(100_000 - at)).act(rank, Act::Wait(vec![0]));
    }
    script
}

#[test]
fn races_of_the_speculative_protocol_lose_nothing() {
    let end = |sent, received, is_wildcard| {
        let trace = one_message(sent, received, is_wildcard).trace();
        let outcome = run(&trace, &network(Protocol::Speculative, Progress::Inside));
        assert!(outcome.stuck.is_empty());
        outcome.ranks[1].calls[0].end()
    };
    // the invitation is there before the send: written during the computation
    assert_eq!(end(10_000, 1_000, false), 100_200);
    // 5,000 bytes are 5,000 ns on the wire
    // they cross: the ready-to-send is handled in the wait, then the data are read
    assert_eq!(end(1_500, 1_000, false), 100_100 + 1_000 + 5_000 + 1_000);
    // nobody can be invited: the same
    assert_eq!(end(10_000, 1_000, true), 100_100 + 1_000 + 5_000 + 1_000);
    // the send was first, and its ready-to-send there before the receive: read from the post on
    assert_eq!(end(1_000, 50_000, false), 100_200);
}
