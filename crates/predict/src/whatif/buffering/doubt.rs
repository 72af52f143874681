//! What leaves open whether the calls of a circle wait for each other in every run where MPI keeps nothing.
//!
//! The run up to the circle is one that can happen: it is the recorded one, in which MPI kept all but the messages that the circle
//! waits for. Only what the replay does not know could have taken the run another way: a probe that found a message which nobody
//! sends before the circle, or a counter in a window. In the circle each waits for what the record says, unless a receive from any
//! source is open that takes another message, another thread acts, or the call itself would have let the rank go on.

use crate::replay::deadlock::Waiting;
use crate::replay::outcome::Stuck;
use crate::replay::Outcome;
use lapscope_data::model::{Completes, Kind, Mode, Rank};
use lapscope_trace::{Direction, Endpoint, Operation, OtherCall, RankTrace, Trace, NONE};

/// Why nothing certain can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The record has gaps, or messages in it may be matched wrongly.
    Gaps,
    /// What ranks fetch from a window decides what they do.
    Counter,
    /// Another thread of the rank may act.
    Threads(Rank),
    /// What it does where its test is unsuccessful is not recorded.
    Test(Rank),
    /// It waits for any of several requests.
    AnyOf(Rank),
    /// It sends in parts, which go by themselves.
    Partitioned(Rank),
    /// It had found by a probe what is not sent then.
    Probe(Rank),
    /// Its receive from any source may take another message.
    AnySource(Rank),
}

/// Whether ranks fetch from a counter in a window.
pub fn hands_out_work(trace: &Trace) -> bool {
    let operations = || trace.ranks.iter().flat_map(|rank| &rank.operations);
    let is_fetch = |name: &str| matches!(name, "MPI_Fetch_and_op" | "MPI_Compare_and_swap");
    operations()
        .any(|operation| operation.kind == Kind::Rma && is_fetch(&trace.call_of(operation).name))
}

/// The first reason for which these ranks may go on.
pub fn find(trace: &Trace, outcome: &Outcome, circle: &[Waiting]) -> Option<Doubt> {
    if trace.matching.doubtful > 0 || !trace.ranks.iter().all(RankTrace::is_whole) {
        return Some(Doubt::Gaps);
    }
    if hands_out_work(trace) {
        return Some(Doubt::Counter);
    }
    let from_any = |it: &Waiting| operation(trace, &it.stuck).is_some_and(|it| it.is_wildcard);
    let stands = |stuck: &Stuck| stands(trace, stuck);
    // whoever goes on may send what a receive from any source waits for
    let standing = match circle.iter().any(from_any) {
        true => outcome.stuck.iter().find_map(stands),
        false => circle.iter().find_map(|it| stands(&it.stuck)),
    };
    let probed = || outcome.stuck.iter().find_map(|stuck| probed(trace, outcome, stuck));
    standing.or_else(probed).or_else(|| takes_another(trace, outcome))
}

/// What a thread does not get in the call in which it stands.
pub fn operation<'a>(trace: &'a Trace, stuck: &Stuck) -> Option<&'a Operation> {
    let rank = &trace.ranks[stuck.rank as usize];
    let endpoint = rank.endpoints.get(stuck.endpoint as usize)?;
    rank.operations.get(endpoint.operation as usize)
}

/// Why a rank may go on from where it stands although it does not get what it waits for.
fn stands(trace: &Trace, stuck: &Stuck) -> Option<Doubt> {
    let rank = &trace.ranks[stuck.rank as usize];
    let number = rank.info().rank;
    let (Some(operation), Some(call)) =
        (operation(trace, stuck), rank.calls.get(stuck.call as usize))
    else {
        return Some(Doubt::Gaps);
    };
    let call = trace.call_of(&rank.operations[call.operation as usize]);
    if rank.threads.count() > 1 {
        Some(Doubt::Threads(number))
    } else if call.name.starts_with("MPI_Test") {
        Some(Doubt::Test(number))
    } else if matches!(call.completes, Some(Completes::Any | Completes::Some)) {
        Some(Doubt::AnyOf(number))
    } else {
        (operation.mode == Mode::Partitioned).then_some(Doubt::Partitioned(number))
    }
}

/// Whether a probe of the rank, before it stood, found a message that is never sent in the replay.
fn probed(trace: &Trace, outcome: &Outcome, stuck: &Stuck) -> Option<Doubt> {
    let rank = &trace.ranks[stuck.rank as usize];
    let since = rank.calls.get(stuck.call as usize).map_or(i64::MAX, |call| call.begin);
    let is_probe = |call: &&OtherCall| {
        let is_before = call.thread == stuck.thread && call.begin < since;
        is_before && trace.call_of(&rank.operations[call.operation as usize]).role == "PROBE"
    };
    let probes: Vec<&OtherCall> = rank.other_calls.iter().filter(is_probe).collect();
    if probes.is_empty() {
        return None;
    }
    let is_receive =
        |it: &&Endpoint| rank.operations[it.operation as usize].direction == Direction::Receive;
    let mut receives: Vec<&Endpoint> = rank.endpoints.iter().filter(is_receive).collect();
    receives.sort_by_key(|it| it.begin);
    let is_sent = |probe: &&OtherCall| {
        let probe_of = &rank.operations[probe.operation as usize];
        let first = receives.partition_point(|it| it.begin < probe.begin);
        let found = receives[first..].iter().find(|it| {
            let receive = &rank.operations[it.operation as usize];
            let from =
                probe_of.is_wildcard || probe_of.peer.is_none() || probe_of.peer == receive.peer;
            let tag = probe_of.tag.is_none() || probe_of.tag == receive.tag;
            probe_of.comm == receive.comm && from && tag
        });
        found.is_some_and(|receive| is_posted_there(rank, outcome, receive))
    };
    (!probes.iter().all(is_sent)).then(|| Doubt::Probe(rank.info().rank))
}

/// Whether the other end of a message is posted in the replay.
fn is_posted_there(rank: &RankTrace, outcome: &Outcome, endpoint: &Endpoint) -> bool {
    let peer = rank.operations[endpoint.operation as usize].peer;
    let there =
        peer.and_then(|peer| outcome.ranks[peer as usize].posted.get(endpoint.partner as usize));
    there.is_some_and(|&at| at != i64::MAX)
}

/// Whether a receive from any source is open at the end of the replay beside a message of another rank than the one that it received
/// in the run. Those of one sender come in the order of the record (MPI-4.1 3.5). Which tags it takes is not known.
fn takes_another(trace: &Trace, outcome: &Outcome) -> Option<Doubt> {
    let open = |place: usize, direction: Direction| {
        let (rank, posted) = (&trace.ranks[place], &outcome.ranks[place].posted);
        let all = rank.endpoints.iter().zip(posted);
        all.filter_map(move |(endpoint, &at)| {
            let operation = &rank.operations[endpoint.operation as usize];
            let is_open = at != i64::MAX
                && operation.direction == direction
                && (endpoint.partner == NONE || !is_posted_there(rank, outcome, endpoint));
            is_open.then_some(operation)
        })
    };
    let places = || 0..trace.ranks.len();
    let takes =
        |place| open(place, Direction::Receive).filter(|it| it.is_wildcard || it.is_untraceable);
    let receives: Vec<(u32, &Operation)> =
        places().flat_map(|at| takes(at).map(move |it| (at as u32, it))).collect();
    if receives.is_empty() {
        return None;
    }
    let is_for = |sender: u32, send: &Operation, (receiver, receive): &(u32, &Operation)| {
        let is_to = send.peer.is_none() || send.peer == Some(*receiver);
        is_to && receive.comm == send.comm && receive.peer != Some(sender)
    };
    let taker = |sender: u32, send: &Operation| receives.iter().find(|it| is_for(sender, send, it));
    let taken =
        places().find_map(|at| open(at, Direction::Send).find_map(|it| taker(at as u32, it)));
    taken.map(|&(receiver, _)| Doubt::AnySource(trace.ranks[receiver as usize].info().rank))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::chain_tests::network;
    use crate::replay::deadlock::{standstill, Reason};
    use crate::replay::{replay, Conditions, Durations, Program};
    use crate::whatif::buffering::nothing_kept;
    use lapscope_trace::made_up::MadeUp;

    /// Rank 1 sends to rank 0 and then to rank 2, which sends to rank 0. That receives of rank 2 first, by two receives that take
    /// messages of any source or not.
    fn doubt(takes_any: [bool; 2]) -> Option<Doubt> {
        let mut run = MadeUp::new(3);
        run.send(1, 1, 0, 8, 10);
        run.send(1, 2, 2, 8, 10);
        run.receive_until(2, 3, 1, 8, 200);
        run.send(2, 4, 0, 8, 10);
        run.receive_until(0, 5, 2, 8, 400);
        run.receive_until(0, 6, 1, 8, 500);
        let mut trace = run.finish();
        for (operation, takes_any) in trace.ranks[0].operations.iter_mut().zip(takes_any) {
            operation.is_wildcard = takes_any;
        }
        let (program, durations) = (Program::new(&trace), Durations::measure(&trace));
        let unbuffered = network(64).with(&nothing_kept(), false);
        let outcome =
            replay(&trace, &program, &unbuffered, &Conditions::as_recorded(3), &durations);
        let found = standstill(&trace, &outcome).expect("rank 1 waits for rank 0");
        let Reason::Circle(circle) = found.reason else { panic!("{found:?}") };
        assert_eq!(circle.len(), 3, "{circle:?}");
        find(&trace, &outcome, &circle)
    }

    #[test]
    fn only_an_open_receive_takes_another_message() {
        assert_eq!(doubt([false, false]), None);
        assert_eq!(doubt([true, false]), Some(Doubt::AnySource(Rank::of_first_world(0))));
        assert_eq!(doubt([false, true]), None, "it is not posted yet");
    }
}
