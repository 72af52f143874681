//! Two ranks by hand: looks a second apart.

use super::bins::{bins, RankOrder};
use super::*;
use lapscope_data::model::{CallName, CallPath, Frame, Kind, Module};
use lapscope_data::state::{
    Condition, History, LastCall, OpenCall, OpenOperation, SeenBy, SeenCall, SeenCalls,
    SeenInjection, SeenOperation, SeenRequests, Sink, ThreadState, Unseen,
};

const SECOND: i64 = 1_000_000_000;
const WAITALL: u32 = 0;
const ISEND: u32 = 1;
const WRITE: u32 = 2;

/// Names a frame by its address.
struct Addresses;

impl NameFrames for Addresses {
    fn name(&mut self, frame: Frame) -> Vec<FrameName> {
        vec![FrameName {
            function: Some(format!("f{}", frame.address)),
            offset: None,
            file: None,
            line: None,
            column: None,
            module: None,
            address: frame.address,
            inlined: false,
        }]
    }
    fn column(&mut self, _: Frame) -> Option<u32> {
        None
    }
    fn show_column(&mut self, _: Frame) {}
    fn code_bytes(&mut self, _: Frame) -> Option<u64> {
        None
    }
}

fn call(name: &str, family: &str, role: &str) -> CallName {
    let call = CallName::unknown(name.into());
    CallName { family: family.into(), role: role.into(), ..call }
}

/// Paths 0 and 1 differ, and are of one line.
fn job(ranks: Vec<RankState>) -> JobState {
    let frame = |address| Frame { module: Some(0), address, level: 0 };
    let path = |frames: &[u64]| CallPath {
        frames: frames.iter().copied().map(frame).collect(),
        ..CallPath::default()
    };
    JobState {
        modules: vec![Module { path: "/app".into(), build_id: String::new() }],
        paths: vec![path(&[7, 1]), path(&[7, 2]), path(&[9])],
        calls: vec![
            call("MPI_Waitall", "POINT_TO_POINT", "COMPLETE"),
            call("MPI_Isend", "POINT_TO_POINT", "POST"),
            call("MPI_File_write", "FILE", "BLOCK"),
        ],
        ranks,
        ..JobState::default()
    }
}

fn operation(call: u32, path: u32) -> OpenOperation {
    OpenOperation {
        call,
        kind: Kind::Other,
        path: Some(path),
        communicator: None,
        peer: -3,
        peer_world: None,
        tag: -3,
        bytes: 0,
        receive: None,
        made_by: None,
    }
}

/// A rank `seconds` after its epoch, with so many calls behind it, inside of MPI_Waitall since `open`.
fn rank(number: i64, seconds: f64, calls: u64, open: Option<f64>) -> RankState {
    let at = |seconds: f64| Nanos((seconds * SECOND as f64) as i64);
    let thread = ThreadState {
        number: 0,
        tid: 1,
        calls,
        unsuccessful_tests: 0,
        unsuccessful: None,
        mpi: Nanos(0),
        open: open.map(|begin| OpenCall {
            operation: operation(WAITALL, 0),
            begin: at(begin),
            waits: None,
        }),
        last: None,
        system: None,
    };
    RankState {
        rank: Rank::of_first_world(number),
        life: 1,
        world_size: 2,
        host: "vm".into(),
        pid: 1,
        thread_level: 0,
        condition: Condition::Runs,
        epoch_unix_ns: 0,
        init_end: Nanos(0),
        now: at(seconds),
        last_record: at(seconds),
        threads: vec![thread],
        other_threads: Vec::new(),
        requests: Vec::new(),
        history: History::default(),
    }
}

fn by(rank: i64) -> SeenBy {
    SeenBy { rank: Rank::of_first_world(rank), life: 1 }
}

fn seen_operation(call: u32, path: u32, kind: Kind, bytes: u64) -> SeenOperation {
    SeenOperation { call, kind, path: Some(path), bytes }
}

fn saw_call(gatherer: &mut Gatherer, of: i64, call: u32, path: u32, from: f64, to: f64) {
    let at = |seconds: f64| Nanos((seconds * SECOND as f64) as i64);
    let operation = seen_operation(call, path, Kind::Other, 0);
    let (begin, end) = (at(from), at(to));
    gatherer.call(&SeenCall { by: by(of), thread: 0, operation, begin, end });
}

fn live() -> (Live, Gatherer) {
    (Live::new(Nanos(10 * SECOND), Nanos(5 * SECOND)), Gatherer::default())
}

/// The first look, a second after the epoch.
fn first_look(live: &mut Live, gatherer: &mut Gatherer) -> Moment {
    saw_call(gatherer, 0, WAITALL, 0, 0.1, 0.9);
    let state = job(vec![rank(0, 1.0, 10, None), rank(1, 1.0, 10, None)]);
    live.look(&state, gatherer, &mut Addresses)
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9
}

#[test]
fn nothing_before_the_first_look_counts() {
    let (mut live, mut gatherer) = live();
    let moment = first_look(&mut live, &mut gatherer);
    assert_eq!(
        (moment.total, moment.window_ns, moment.sites.len()),
        (Pace::default(), Nanos(0), 0)
    );
    assert_eq!((moment.age_ns, moment.hosts, moment.world_size), (Nanos(SECOND), 1, 2));
    // a call that was already under way at the first look counts from there on
    saw_call(&mut gatherer, 0, WAITALL, 0, 0.95, 1.25);
    let state = job(vec![rank(0, 2.0, 11, None), rank(1, 2.0, 10, None)]);
    let moment = live.look(&state, &mut gatherer, &mut Addresses);
    assert!(close(moment.ranks[0].pace.exposed_share, 0.25), "{:?}", moment.ranks[0]);
    assert!(close(moment.total.exposed_share, 0.125));
    assert!(close(moment.total.calls_per_s, 1.0));
}

#[test]
fn an_open_call_counts_up_to_the_look_and_later_only_what_was_left() {
    let (mut live, mut gatherer) = live();
    first_look(&mut live, &mut gatherer);
    let state = job(vec![rank(0, 2.0, 10, Some(1.5)), rank(1, 2.0, 10, None)]);
    let moment = live.look(&state, &mut gatherer, &mut Addresses);
    assert!(close(moment.ranks[0].pace.exposed_share, 0.5));
    let inside = moment.ranks[0].inside.as_ref().expect("it waits");
    assert_eq!((inside.call.as_str(), inside.since_ns), ("MPI_Waitall", Nanos(SECOND / 2)));
    assert_eq!((moment.sites[0].ranks_inside, moment.sites[0].calls), (1, 0));
    saw_call(&mut gatherer, 0, WAITALL, 0, 1.5, 2.25);
    let state = job(vec![rank(0, 3.0, 11, None), rank(1, 3.0, 10, None)]);
    let moment = live.look(&state, &mut gatherer, &mut Addresses);
    assert_eq!(moment.sites[0].exposed_ns, Nanos(SECOND * 3 / 4));
    assert_eq!((moment.sites[0].ranks_inside, moment.sites[0].calls), (0, 1));
    assert!(close(moment.ranks[0].pace.exposed_share, 0.375), "0.75 of 2 s");
    let shares = [0.25, 0.125]; // of both ranks' seconds
    assert!(moment.exposed_shares.iter().zip(shares).all(|(a, b)| close(*a, b)));
}

#[test]
fn sites_are_lines_and_files_are_no_communication() {
    let (mut live, mut gatherer) = live();
    first_look(&mut live, &mut gatherer);
    saw_call(&mut gatherer, 0, WRITE, 2, 1.0, 1.25);
    saw_call(&mut gatherer, 0, WAITALL, 0, 1.25, 1.5);
    let operation = seen_operation(WAITALL, 1, Kind::Other, 0);
    gatherer.calls(&SeenCalls { by: by(0), operation, count: 5, inside: Nanos(SECOND / 4) });
    let state = job(vec![rank(0, 2.0, 13, None), rank(1, 2.0, 10, None)]);
    let moment = live.look(&state, &mut gatherer, &mut Addresses);
    let sites: Vec<_> = moment.sites.iter().map(|site| (site.call.as_str(), site.calls)).collect();
    assert_eq!(sites, [("MPI_Waitall", 6)]);
    let function = moment.sites[0].site.as_ref().and_then(|site| site.function.clone());
    assert_eq!(function.as_deref(), Some("f7"));
    assert!(close(moment.sites[0].exposed_share, 0.25));
}

#[test]
fn messages_are_sends_and_tests_are_those_that_lapscope_made() {
    let (mut live, mut gatherer) = live();
    first_look(&mut live, &mut gatherer);
    for (call, kind) in [(ISEND, Kind::Send), (ISEND, Kind::Recv)] {
        let operation = seen_operation(call, 0, kind, 4000);
        gatherer.requests(&SeenRequests { by: by(0), operation, count: 3 });
    }
    gatherer.injected(&SeenInjection {
        by: by(1),
        call: ISEND,
        path: None,
        requests: 1,
        tests: 8,
        found: 0,
        inside: Nanos(1),
        interrupts: 0,
    });
    let state = job(vec![rank(0, 3.0, 10, None), rank(1, 3.0, 10, None)]);
    let moment = live.look(&state, &mut gatherer, &mut Addresses);
    let total = moment.total;
    let rates = [total.messages_per_s, total.bytes_per_s, total.injected_tests_per_s];
    assert!(rates.iter().zip([1.5, 6000.0, 4.0]).all(|(a, b)| close(*a, b)), "{rates:?}");
}

#[test]
fn the_window_forgets() {
    let (mut live, mut gatherer) = live();
    first_look(&mut live, &mut gatherer);
    saw_call(&mut gatherer, 0, WAITALL, 0, 1.0, 2.0);
    let mut shares = Vec::new();
    for second in 2..=13 {
        let seconds = f64::from(second);
        let state = job(vec![rank(0, seconds, 11, None), rank(1, seconds, 10, None)]);
        let moment = live.look(&state, &mut gatherer, &mut Addresses);
        shares.push(moment.ranks[0].pace.exposed_share);
    }
    assert!(close(shares[0], 1.0) && close(shares[9], 0.1) && close(shares[10], 0.0), "{shares:?}");
}

#[test]
fn silence_is_worth_an_alert_and_a_dead_rank_at_once() {
    let (mut live, mut gatherer) = live();
    first_look(&mut live, &mut gatherer);
    let mut look = |seconds: f64, calls: u64, condition| {
        let mut dead = rank(1, seconds, calls, None);
        dead.condition = condition;
        let state = job(vec![rank(0, seconds, 10, Some(1.0)), dead]);
        let moment = live.look(&state, &mut gatherer, &mut Addresses);
        moment.alerts.into_iter().map(|it| (it.kind, it.sentence)).collect::<Vec<_>>()
    };
    assert_eq!(look(4.0, 10, Condition::Runs), []);
    let quiet = "rank 0: no MPI call has ended for 7.00 s; inside MPI_Waitall f7 in ?";
    assert_eq!(look(7.0, 20, Condition::Runs), [(AlertKind::Quiet, quiet.to_owned())]);
    let nobody = "no MPI call of any rank has ended for 6.00 s: see `lapscope hang`";
    assert_eq!(look(13.0, 20, Condition::Runs), [(AlertKind::NoProgress, nobody.to_owned())]);
    let dead = "rank 1 was killed, or died without a chance to say so";
    let alerts = look(14.0, 20, Condition::Killed);
    assert_eq!(alerts[0], (AlertKind::Dead, dead.to_owned()));
    assert_eq!(alerts[1].0, AlertKind::NoProgress, "of those that are left");
}

#[test]
fn what_is_not_seen_is_said() {
    let (mut live, mut gatherer) = live();
    let mut state = job(vec![rank(0, 1.0, 1, None)]);
    let unseen = |file: &str| Unseen {
        file: file.into(),
        host: String::new(),
        why: "it is elsewhere".into(),
    };
    state.unseen = vec![unseen("rank-1"), unseen("rank-2")];
    let moment = live.look(&state, &mut gatherer, &mut Addresses);
    let sentence = "cannot be seen: rank-1, and 1 more: it is elsewhere";
    assert_eq!(moment.alerts[0].sentence, sentence);
}

#[test]
fn a_last_call_bounds_silence_from_the_first_look_on() {
    let (mut live, mut gatherer) = live();
    let mut silent = rank(0, 60.0, 10, None);
    silent.threads[0].last = Some(LastCall { call: 0, path: None, end: Nanos(20 * SECOND) });
    let moment = live.look(&job(vec![silent]), &mut gatherer, &mut Addresses);
    assert_eq!(moment.ranks[0].quiet_ns, Nanos(40 * SECOND));
    assert_eq!(moment.alerts[0].kind, AlertKind::NoProgress);
}

#[test]
fn the_one_that_waits_least_is_awaited() {
    let (mut live, mut gatherer) = live();
    first_look(&mut live, &mut gatherer);
    saw_call(&mut gatherer, 0, WAITALL, 0, 1.0, 1.5);
    let state = job(vec![rank(0, 2.0, 11, None), rank(1, 2.0, 10, None)]);
    let moment = live.look(&state, &mut gatherer, &mut Addresses);
    assert_eq!(moment.awaited, Some(Rank::of_first_world(1)));
    let mut ranks: Vec<&RankPace> = moment.ranks.iter().collect();
    RankOrder::LeastExposed.sort(&mut ranks);
    assert_eq!(ranks[0].rank.number, 1);
    RankOrder::Rank.sort(&mut ranks);
    assert_eq!(ranks[0].rank.number, 0);
}

#[test]
fn many_ranks_are_few_bins() {
    let (mut live, mut gatherer) = live();
    let ranks: Vec<RankState> = (0..1023).map(|number| rank(number, 1.0, 1, None)).collect();
    let moment = live.look(&job(ranks), &mut gatherer, &mut Addresses);
    let ten = bins(&moment.ranks, 10);
    let sizes: Vec<_> = ten.iter().map(|bin| (bin.first.number, bin.count)).collect();
    assert_eq!(sizes, [(0, 200), (200, 200), (400, 200), (600, 200), (800, 200), (1000, 23)]);
    assert_eq!(bins(&moment.ranks[..4], 10).len(), 4, "few ranks are not put together");
    assert_eq!(bins(&moment.ranks, 0).len(), 1);
    assert_eq!(bins(&[], 10), []);
}
