//! Tests that look now and then in computation.

use super::*;
use crate::replay::scenario::Progress;
use lapscope_data::model::Mode;
use lapscope_trace::script::{Act, Message, Script, CALL};

/// The first rank looks once, after 1000 ns, for what the other sends after 3000 ns, answers, and has 5000 ns left to compute;
/// `between` stands behind the answer. When the runs of both end.
fn ends(look: Act, between: Option<Act>) -> [i64; 2] {
    let mut script = Script::new(2);
    for act in [Act::Irecv(Message::new(1, 0, 8)), Act::Compute(1_000), look] {
        script.act(0, act);
    }
    script.act(0, Act::Send(Message::new(1, 1, 8)));
    between.into_iter().for_each(|act| {
        script.act(0, act);
    });
    script.act(0, Act::Compute(5_000));
    script.act(1, Act::Compute(3_000));
    script.act(1, Act::Send(Message::new(0, 0, 8)));
    script.act(1, Act::Recv(Message::new(0, 1, 8)));
    if script.acts[0][0].len() > 5 {
        script.act(1, Act::Send(Message::new(0, 2, 8)));
    }
    let replayed = Replayed::replay(script.trace(), 64);
    [0, 1].map(|rank| replayed.outcome.ranks[rank].end)
}

#[test]
fn who_looks_and_finds_nothing_goes_on_computing() {
    let waits = ends(Act::Wait(vec![0]), None);
    let looks = ends(Act::Test(vec![0]), None);
    assert_eq!((looks, waits[1]), ([6_400, waits[1]], waits[1]));
    assert_eq!(waits[0] - looks[0], 1_908);
}

#[test]
fn what_stands_behind_a_wait_cannot_be_computed_before_it() {
    let recv = || Some(Act::Recv(Message::new(1, 2, 8)));
    assert_eq!(ends(Act::Test(vec![0]), recv()), ends(Act::Wait(vec![0]), recv()));
}

/// It looks after 9000 ns for what was there after 3108 ns; where messages move by themselves that is answered at once, and the
/// rest computed behind it.
#[test]
fn a_bound_has_looks_when_there_is_something_to_see() {
    let mut script = Script::new(2);
    let first = [Act::Irecv(Message::new(1, 0, 8)), Act::Compute(9_000), Act::Test(vec![0])];
    for act in first.into_iter().chain([Act::Send(Message::new(1, 1, 8)), Act::Compute(1_000)]) {
        script.act(0, act);
    }
    script.act(1, Act::Compute(3_000));
    script.act(1, Act::Send(Message::new(0, 0, 8)));
    script.act(1, Act::Recv(Message::new(0, 1, 8)));
    let trace = script.trace();
    let program = Program::new(&trace);
    let (conditions, durations) = (Conditions::as_recorded(2), Durations::measure(&trace));
    let ends = |progress| {
        let network = Network { progress, ..network(64) };
        let outcome = replay(&trace, &program, &network, &conditions, &durations);
        let [looks, answered] = [0, 1].map(|rank| outcome.ranks[rank].end);
        let first = &outcome.ranks[0];
        assert_eq!(first.compute + first.overhead + first.wait, looks);
        (looks, answered)
    };
    assert_eq!(ends(Progress::Inside), (10_400, 9_408));
    assert_eq!(ends(Progress::Async), (10_400, 3_416));
}

/// The first rank tests in a loop for an answer to its send that needs the receive, and a probe beside it finds what the other sends
/// after 3000 ns: until then it computed nothing.
#[test]
fn a_loop_that_something_else_ends_is_no_computation() {
    let mut script = Script::new(2);
    let synchronous = |peer| Message { mode: Mode::Synchronous, ..Message::new(peer, 0, 8) };
    script.act(0, Act::Isend(synchronous(1))).act(0, Act::Compute(2_000));
    script.act(0, Act::Other(50)).act(0, Act::Recv(Message::new(1, 1, 8)));
    script.act(0, Act::TestLoop(vec![0]));
    script.act(1, Act::Compute(3_000)).act(1, Act::Send(Message::new(0, 1, 8)));
    script.act(1, Act::Recv(synchronous(0)));
    let compute = |polled: bool| {
        let mut trace = script.trace();
        let rank = &mut trace.ranks[0];
        if polled {
            // from the post on, and inside MPI all the time
            rank.observations[0].first_unsuccessful_test = Some(CALL);
            let send = rank.endpoints.iter_mut().find(|endpoint| endpoint.observed == 0).unwrap();
            send.mpi = send.window;
        }
        Program::new(&trace).ranks[0].compute()
    };
    // a script ends so long after its last call
    assert_eq!((compute(false), compute(true)), (2_000 + CALL, CALL));
}
