//! Made spools: what an observer says of them, and that nothing in them is believed.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use lapscope_fixture::random::Random;
use lapscope_fixture::spools::{made, Operation, Shape, Spool};

use super::*;
use crate::store;

fn job_of(shape: Shape, ranks: u32, bytes: usize) -> (tempfile::TempDir, JobState) {
    let run = tempfile::tempdir().unwrap();
    for rank in 0..ranks {
        let file = run.path().join(format!("rank-{rank}.spool"));
        made(shape, rank, ranks, bytes).write(&file).unwrap();
    }
    let job = look(run.path());
    (run, job)
}

fn look(run: &Path) -> JobState {
    Observer::open(run).unwrap().look(&mut ()).unwrap()
}

fn open_call(job: &JobState, rank: usize) -> (&str, &OpenCall) {
    let open = job.ranks[rank].threads[0].open.as_ref().unwrap();
    (job.calls[open.operation.call as usize].name.as_str(), open)
}

#[test]
fn ranks_wait_in_a_barrier_but_one() {
    let (_run, job) = job_of(Shape::Barrier, 3, 1000);
    assert_eq!((job.ranks.len(), job.unseen.len()), (3, 0), "{:?}", job.unseen);
    let (name, open) = open_call(&job, 0);
    assert_eq!(
        (name, open.operation.kind, open.operation.peer),
        ("MPI_Barrier", Kind::Collective, -3)
    );
    assert!(job.ranks[2].threads[0].open.is_none());
    assert_eq!(job.communicators[0].members, Members::World(3));
    let (rank, last) = (&job.ranks[2], job.ranks[2].threads[0].last.unwrap());
    assert_eq!((rank.condition, rank.is_over()), (Condition::Runs, false));
    assert!(
        rank.threads[0].system.is_some() && rank.now > last.end && last.end == rank.last_record
    );
    assert_eq!(job.calls[last.call as usize].name, "MPI_Allreduce");
    let frame = job.paths[last.path.unwrap() as usize].frames[0];
    assert_eq!(
        (frame.address, job.modules[frame.module.unwrap() as usize].base_name()),
        (0x30, "solver")
    );
    assert_eq!(job.paths.len(), 2, "the same on all ranks: of the barrier, of the reductions");
}

#[test]
fn what_is_waited_for_is_found_by_the_handles() {
    let (_run, job) = job_of(Shape::Ring, 4, 0);
    let (name, open) = open_call(&job, 1);
    let waits = open.waits.clone().unwrap();
    assert_eq!(
        (name, waits),
        ("MPI_Waitall", Waits { requests: vec![0, 1], handles: 2, is_certain: true })
    );
    let peers: Vec<_> = job.ranks[1].requests.iter().map(|it| it.operation.peer_world).collect();
    assert_eq!(peers, [Some(0), Some(2)]);
}

/// As mpi4py does, which hands over copies of its handles.
#[test]
fn where_handles_have_moved_all_of_the_thread_may_be_meant() {
    let run = tempfile::tempdir().unwrap();
    let mut spool = made(Shape::Ring, 0, 2, 0);
    let waitall = spool.operation(&Operation::plain("MPI_Waitall", 0));
    spool.inside(waitall, 11_000, (0x1000, 2));
    spool.write(&run.path().join("rank-0.spool")).unwrap();
    let waits = open_call(&look(run.path()), 0).1.waits.clone().unwrap();
    assert_eq!(waits, Waits { requests: vec![0, 1], handles: 2, is_certain: false });
}

#[test]
fn a_spool_and_its_database_say_the_same() {
    for shape in [Shape::Barrier, Shape::Cycle, Shape::Ring] {
        let (run, live) = job_of(shape, 2, 3000);
        for rank in 0..2 {
            let (spool, database) = (
                run.path().join(format!("rank-{rank}.spool")),
                run.path().join(format!("rank-{rank}.db")),
            );
            store::convert(&spool, &database, &mut |_| {}).unwrap();
            fs::remove_file(spool).unwrap();
        }
        let stored = look(run.path());
        let names =
            |job: &JobState| job.calls.iter().map(|call| call.name.clone()).collect::<Vec<_>>();
        for (live, stored) in [(&live, &stored)] {
            assert_eq!(stored.unseen, []);
            for (a, b) in live.ranks.iter().zip(&stored.ranks) {
                assert_eq!(a.history.sent, b.history.sent, "{shape:?}");
                assert_eq!(a.history.received, b.history.received);
                assert_eq!((a.history.is_whole, b.history.is_whole), (true, true));
                assert_eq!((a.last_record, a.requests.len()), (b.last_record, b.requests.len()));
                assert_eq!((b.condition, b.threads[0].system.clone()), (Condition::Killed, None));
                let counts = |rank: &RankState| {
                    let of = |it: &Sequence| (it.communicator, it.count, it.last.len());
                    rank.history.collectives.iter().map(of).collect::<Vec<_>>()
                };
                assert_eq!(counts(a), counts(b));
                assert_eq!(
                    (a.threads[0].calls, a.threads[0].mpi),
                    (b.threads[0].calls, b.threads[0].mpi)
                );
            }
        }
        let (names_live, names_stored) = (names(&live), names(&stored));
        let call = |job: &JobState, names: &[String]| {
            job.ranks[0].threads[0].open.as_ref().map(|open| {
                let waits = open.waits.as_ref().map(|waits| waits.requests.clone());
                (
                    names[open.operation.call as usize].clone(),
                    open.begin,
                    open.operation.peer_world,
                    waits,
                )
            })
        };
        assert_eq!(call(&live, &names_live), call(&stored, &names_stored), "{shape:?}");
    }
}

/// Counts what it was told of.
#[derive(Default)]
struct Counted {
    calls: u64,
    /// Of them those that may have been open at the last look.
    single: u64,
    inside: Nanos,
    requests: u64,
}

impl Sink for Counted {
    fn call(&mut self, seen: &SeenCall) {
        assert!(seen.begin <= seen.end);
        self.inside += seen.end - seen.begin;
        self.single += 1;
        self.calls += 1;
    }
    fn calls(&mut self, seen: &SeenCalls) {
        self.inside += seen.inside;
        self.calls += seen.count;
    }
    fn requests(&mut self, seen: &SeenRequests) {
        self.requests += seen.count;
    }
}

#[test]
fn a_spool_that_grows_is_read_once() {
    let run = tempfile::tempdir().unwrap();
    let file = run.path().join("rank-0.spool");
    let mut spool = Spool::new(0, 1, 1_000_000_000).with_room(1 << 20);
    let world = spool.world();
    let barrier = spool.operation(&Operation::collective("MPI_Barrier", 0, world));
    let mut observer = Observer::open(run.path()).unwrap();
    let (mut counted, mut begin) = (Counted::default(), 0);
    for round in 1..=20 {
        for _ in 0..round * 100 {
            begin += 1000;
            spool.call(barrier, begin, 10);
        }
        spool.write(&file).unwrap();
        let job = observer.look(&mut counted).unwrap();
        let sequence = &job.ranks[0].history.collectives[0];
        assert_eq!(sequence.count, begin / 1000, "round {round}");
        assert!(sequence.last.len() <= Sequence::KEPT && job.ranks[0].history.is_whole);
    }
    let calls = begin / 1000;
    assert_eq!((counted.calls, counted.inside), (calls, Nanos(10 * calls as i64)), "each once");
    assert_eq!(
        counted.single,
        calls - 100,
        "all but those of the first look began before the last one"
    );
    assert!(look(run.path()).ranks[0].history.is_whole);
}

#[test]
fn damaged_spools_end_nobody() {
    let seed = std::env::var("LAPSCOPE_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random(seed.unwrap_or(18));
    let run = tempfile::tempdir().unwrap();
    let file = run.path().join("rank-0.spool");
    for round in 0..150 {
        made(Shape::Ring, 0, 4, 2000).write(&file).unwrap();
        let damaged = fs::OpenOptions::new().write(true).open(&file).unwrap();
        let length = damaged.metadata().unwrap().len() as i64;
        for _ in 0..=random.below(8) {
            // where something stands: the header, heads of chunks, entries and records
            let places = [(0, 800), (4096, 600), (4096 + 65536, 2600), (0, length)];
            let (from, bytes) = places[random.below(4) as usize];
            let at = (from + random.below(bytes)) as u64;
            let value = [0, 0xff, random.bits() as u8][random.below(3) as usize];
            let many = [1, 1, 4, 8][random.below(4) as usize];
            damaged.write_all_at(&vec![value; many], at).unwrap();
        }
        if random.is(0.1) {
            damaged.set_len(random.below(length) as u64).unwrap();
        }
        let mut observer = Observer::open(run.path()).unwrap();
        let mut counted = Counted::default();
        let job = observer.look(&mut counted).unwrap();
        assert!(job.ranks.len() + job.unseen.len() >= 1, "round {round}: said of nobody");
        assert!(counted.calls < 4096 && counted.requests < 4096, "round {round}");
        // damage may make a process of the header that is not there, whose spool changes no more
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_sparse_file_that_claims_much_costs_little() {
    let run = tempfile::tempdir().unwrap();
    let file = run.path().join("rank-0.spool");
    let mut spool = made(Shape::Cycle, 0, 2, 0);
    spool.call(u32::MAX - 8, 20_000, 1);
    spool.write(&file).unwrap();
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(1 << 33).unwrap();
    let job = look(run.path());
    assert!(!job.ranks[0].history.is_whole);
    assert_eq!(open_call(&job, 0).0, "MPI_Recv");
}

#[test]
fn parts_that_several_nodes_have_seen_become_one() {
    let (_a, first) = job_of(Shape::Ring, 2, 500);
    let (_b, second) = job_of(Shape::Cycle, 4, 500);
    let (mut left, mut right) = (first.clone(), second);
    right.ranks.drain(..2);
    left.unseen.push(Unseen { file: "rank-2".into(), host: "b".into(), why: "elsewhere".into() });
    left.unseen.push(Unseen { file: "rank-9".into(), host: "b".into(), why: "elsewhere".into() });
    let job = JobState::merge(vec![right, left]);
    let ranks: Vec<i64> = job.ranks.iter().map(|rank| rank.rank.number).collect();
    assert_eq!(ranks, [0, 1, 2, 3]);
    assert_eq!((open_call(&job, 0).0, open_call(&job, 3).0), ("MPI_Waitall", "MPI_Recv"));
    assert_eq!(job.unseen.iter().map(|it| it.file.as_str()).collect::<Vec<_>>(), ["rank-9"]);
    assert_eq!(job.communicators.len(), 1);
    assert_eq!(JobState::merge(vec![first.clone()]).ranks.len(), first.ranks.len());
}
