//! What is read from the spools of ranks: the same as their databases say afterwards, and while they run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use lapscope_data::state::{
    JobState, Lane, Observer, SeenCall, SeenCalls, SeenRequests, Sequence, Sink,
};
use lapscope_tests::build;
use lapscope_tests::launch::{lapscope, place, recover, Form, Job};
use lapscope_tests::mpi::{self, Mpi};

/// What comes and goes in many ways, and how many ranks each has.
const PROGRAMS: &[(&str, u32)] = &[
    ("waitany", 2),
    ("any_source", 3),
    ("sendrecv", 3),
    ("persistent_kinds", 2),
    ("cancel", 2),
    ("matched_probe", 2),
    ("icollectives", 3),
    ("communicators", 4),
    ("intercomm", 4),
    ("request_free", 2),
    ("threads", 2),
    ("proc_null", 2),
];

fn look(run: &Path) -> JobState {
    Observer::open(run).expect("a run").look(&mut ()).expect("a look")
}

/// Ends with its spools as they are.
fn record(mpi: &Mpi, program: &str, ranks: u32, place: &Path) {
    let app = build::app(mpi, program);
    let job = Job::new(mpi, ranks, app, Form::Preload, place).env("LAPSCOPE_CONVERT", "off");
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{program} under {}: {}", mpi.name, outcome.stderr);
}

/// What a history says in words that hold in any job: lanes and collectives of a rank, by the names of communicators and calls.
fn in_words(job: &JobState, rank: usize) -> BTreeMap<String, u64> {
    let history = &job.ranks[rank].history;
    let comm = |at: u32| {
        let comm = &job.communicators[at as usize];
        format!("{} {:x} {}", comm.name, comm.identity, comm.ordinal)
    };
    let mut words = BTreeMap::new();
    let lane = |way: &str, lane: &Lane| {
        let Lane { peer_world, tag, is_partitioned, bytes, .. } = lane;
        let name = format!(
            "{way} {peer_world} {tag} {is_partitioned} {}, {bytes} B last",
            comm(lane.communicator)
        );
        (name, lane.count)
    };
    words.extend(history.sent.iter().map(|it| lane("sent to", it)));
    words.extend(history.received.iter().map(|it| lane("received from", it)));
    for Sequence { communicator, count, last } in &history.collectives {
        words.insert(format!("collectives of {}", comm(*communicator)), *count);
        for (place, it) in last.iter().enumerate() {
            let name = &job.calls[it.call as usize].name;
            words.insert(
                format!(
                    "{place} in {}: {name} {} {:?} {} B",
                    comm(*communicator),
                    it.root,
                    it.root_world,
                    it.bytes
                ),
                1,
            );
        }
    }
    words.insert("whole".to_owned(), u64::from(history.is_whole));
    words
}

/// What a rank's threads made, in words.
fn threads_in_words(job: &JobState, rank: usize) -> Vec<String> {
    let of = |thread: &lapscope_data::state::ThreadState| {
        let last = thread.last.map(|last| job.calls[last.call as usize].name.as_str());
        let path = thread.last.and_then(|last| Some(&job.paths[last.path? as usize]));
        let frames: Vec<String> = path
            .map(|path| {
                path.frames
                    .iter()
                    .map(|it| (it.module.map(|at| &job.modules[at as usize].path), it.address))
            })
            .into_iter()
            .flatten()
            .map(|(module, address)| format!("{module:?}+{address:x}"))
            .collect();
        format!(
            "{} tid {}: {} calls, last {last:?} by {frames:?}",
            thread.number, thread.tid, thread.calls
        )
    };
    job.ranks[rank].threads.iter().map(of).collect()
}

#[test]
fn spools_and_databases_say_the_same() {
    for (turn, &(program, ranks)) in PROGRAMS.iter().enumerate() {
        for mpi in share!(turn, mpi::debian()) {
            let place = place();
            let run = place.path().join("run");
            record(mpi, program, ranks, place.path());
            let before = look(&run);
            recover(&run);
            let after = look(&run);
            assert_eq!((before.ranks.len(), after.ranks.len()), (ranks as usize, ranks as usize));
            for rank in 0..ranks as usize {
                let what = format!("rank {rank} of {program} under {}", mpi.name);
                assert_eq!(in_words(&before, rank), in_words(&after, rank), "{what}");
                assert_eq!(
                    threads_in_words(&before, rank),
                    threads_in_words(&after, rank),
                    "{what}"
                );
                let (a, b) = (&before.ranks[rank], &after.ranks[rank]);
                assert_eq!(
                    (a.condition, a.requests.len()),
                    (b.condition, b.requests.len()),
                    "{what}"
                );
                assert_eq!((a.init_end, a.epoch_unix_ns), (b.init_end, b.epoch_unix_ns), "{what}");
            }
        }
    }
}

/// Each look compares the rank's clock with this host's over a longer time, so that what it says of a moment differs from what the
/// one before would have said, by nanoseconds or, on a processor that others take away, by more.
const CLOCK_NS: i64 = 1_000_000;

/// Sums up by rank what it is told of.
#[derive(Default)]
struct Summed {
    calls: BTreeMap<i64, u64>,
    requests: BTreeMap<i64, u64>,
}

impl Sink for Summed {
    fn call(&mut self, seen: &SeenCall) {
        assert!(seen.begin <= seen.end);
        *self.calls.entry(seen.by.rank.number).or_default() += 1;
    }

    fn calls(&mut self, seen: &SeenCalls) {
        *self.calls.entry(seen.by.rank.number).or_default() += seen.count;
    }

    fn requests(&mut self, seen: &SeenRequests) {
        *self.requests.entry(seen.by.rank.number).or_default() += seen.count;
    }
}

/// Every look is possible, and follows the one before.
fn check(before: &JobState, after: &JobState) {
    for rank in &after.ranks {
        let earlier = before.ranks.iter().find(|it| it.rank == rank.rank);
        let sum = |lanes: &[Lane]| lanes.iter().map(|lane| lane.count).sum::<u64>();
        if let Some(earlier) = earlier {
            assert!(
                earlier.progress() <= rank.progress(),
                "rank {}: calls become fewer",
                rank.rank
            );
            assert!(sum(&earlier.history.sent) <= sum(&rank.history.sent));
            assert!(sum(&earlier.history.received) <= sum(&rank.history.received));
            let is_later = earlier.now.0 - CLOCK_NS <= rank.now.0;
            assert!(is_later || rank.is_over(), "{:?} after {:?}", rank.now, earlier.now);
        }
        assert!(rank.history.is_whole, "rank {}: something was read wrong", rank.rank);
        for thread in &rank.threads {
            let Some(open) = &thread.open else { continue };
            assert!(open.begin.0 - CLOCK_NS <= rank.now.0, "begins after it was seen: {open:?}");
            assert!(!after.calls[open.operation.call as usize].name.is_empty());
        }
        assert!(rank.requests.iter().all(|request| request.begin.0 - CLOCK_NS <= rank.now.0));
    }
}

#[test]
fn a_program_at_full_speed_is_read_whole() {
    for mpi in share!(mpi::debian()) {
        let place = place();
        let run = place.path().join("run");
        let app = build::app(mpi, "full_speed");
        let job = Job::new(mpi, 2, app, Form::Preload, place.path())
            .args(["1.5"])
            .env("LAPSCOPE_CONVERT", "off");
        let (mut seen, mut skimmed) = (Summed::default(), Summed::default());
        let (mut looks, mut busy) = (0u32, 0u32);
        thread::scope(|scope| {
            let program = scope.spawn(|| job.run());
            let begin = Instant::now();
            while !run.join("rank-1.spool").exists() && begin.elapsed() < Duration::from_secs(50) {
                thread::sleep(Duration::from_millis(5));
            }
            let open = || Observer::open(&run).expect("a run");
            let (mut observer, mut quick) = (open(), open().without_history());
            let mut before = JobState::default();
            loop {
                let is_over = program.is_finished();
                let after = observer.look(&mut seen).expect("a look");
                quick.look(&mut skimmed).expect("a look");
                check(&before, &after);
                looks += 1;
                busy += u32::from(
                    after.ranks.iter().any(|rank| rank.threads.iter().any(|it| it.open.is_some())),
                );
                before = after;
                if is_over {
                    break;
                }
                thread::sleep(Duration::from_millis(10));
            }
            let outcome = program.join().expect("a launch");
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        });
        assert!(looks > 2 && busy > 0, "{looks} looks, {busy} into calls");
        recover(&run);
        for rank in 0..2i64 {
            let file = run.join(format!("rank-{rank}.db"));
            let count = |table: &str| {
                let sql = format!("SELECT count(*) FROM {table} WHERE true");
                let text =
                    lapscope(["sql", "--format", "csv", file.to_str().expect("a path"), &sql]);
                text.lines().last().and_then(|line| line.trim().parse::<u64>().ok())
            };
            assert_eq!(seen.calls.get(&rank).copied(), count("call"), "calls of rank {rank}");
            let requests = seen.requests.get(&rank).copied().unwrap_or(0);
            assert_eq!(Some(requests), count("request"), "requests of rank {rank}");
            let of = |it: &Summed| (it.calls.get(&rank).copied(), it.requests.get(&rank).copied());
            assert_eq!(of(&skimmed), of(&seen), "rank {rank} without its history");
        }
        fs::remove_dir_all(&run).expect("a run to remove");
    }
}
