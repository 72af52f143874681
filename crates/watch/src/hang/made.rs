//! Job states made by hand, for tests.

use lapscope_data::model::{
    CallName, CallPath, Completes, Frame, Kind, Mode, Nanos, Needs, Rank, Transfers,
};
use lapscope_data::state::{
    Collective, Communicator, Condition, History, JobState, Lane, LastCall, Members, OpenCall,
    OpenOperation, OpenRequest, RankState, Sequence, SystemState, ThreadState, Waits,
};
use lapscope_data::symbols::{unnamed, FrameName, NameFrames};

/// Names a frame by its address: line 7 of x.c is address 7.
pub struct Lines;

impl NameFrames for Lines {
    fn name(&mut self, frame: Frame) -> Vec<FrameName> {
        let mut name = unnamed(frame, None);
        name.function = Some("main".into());
        (name.file, name.line) = (Some("x.c".into()), Some(frame.address as u32));
        vec![name]
    }

    fn column(&mut self, _: Frame) -> Option<u32> {
        None
    }

    fn show_column(&mut self, _: Frame) {}

    fn code_bytes(&mut self, _: Frame) -> Option<u64> {
        None
    }
}

pub const SECOND: i64 = 1_000_000_000;
/// When the second look was.
const NOW: i64 = 100 * SECOND;

/// A job of ranks that compute; each call path is a line.
pub fn job(ranks: usize) -> JobState {
    let world = Communicator {
        world: Rank::FIRST_WORLD,
        name: "MPI_COMM_WORLD".into(),
        identity: 1,
        ordinal: 0,
        is_inter: false,
        members: Members::World(ranks as u32),
    };
    let row = Communicator { name: "row".into(), identity: 2, ..world.clone() };
    JobState {
        calls: calls(),
        paths: (0..100).map(path).collect(),
        communicators: vec![world, row],
        ranks: (0..ranks).map(|number| rank(number as i64, ranks as i64)).collect(),
        ..JobState::default()
    }
}

fn path(line: u64) -> CallPath {
    let frame = Frame { module: None, address: line, level: 0 };
    CallPath { frames: vec![frame], ..CallPath::default() }
}

fn rank(number: i64, world_size: i64) -> RankState {
    RankState {
        rank: Rank::of_first_world(number),
        life: 0,
        world_size,
        host: "node".into(),
        pid: 1000 + number,
        thread_level: 0,
        condition: Condition::Runs,
        epoch_unix_ns: 0,
        init_end: Nanos(SECOND),
        now: Nanos(NOW),
        last_record: Nanos(10 * SECOND),
        threads: vec![thread(0)],
        other_threads: Vec::new(),
        requests: Vec::new(),
        history: History { is_whole: true, ..History::default() },
    }
}

pub fn thread(number: u32) -> ThreadState {
    ThreadState {
        number,
        tid: 0,
        calls: 10,
        unsuccessful_tests: 0,
        unsuccessful: None,
        mpi: Nanos(0),
        open: None,
        last: Some(LastCall { call: call("MPI_Send"), path: Some(3), end: Nanos(10 * SECOND) }),
        system: Some(system('R', 40 * SECOND)),
    }
}

pub fn system(state: char, processor: i64) -> SystemState {
    SystemState {
        state,
        processor: Nanos(processor),
        sleeps_in: String::new(),
        wakes_by_itself: false,
        sleeps: 0,
        age: Nanos(0),
    }
}

/// The look half a second before, at which everything was as now.
pub fn before(after: &JobState) -> JobState {
    let mut before = after.clone();
    for rank in before.ranks.iter_mut().filter(|rank| !rank.is_over()) {
        rank.now = rank.now - Nanos(SECOND / 2);
        for system in rank.threads.iter_mut().filter_map(|it| it.system.as_mut()) {
            if system.state == 'R' {
                system.processor = system.processor - Nanos(SECOND / 2);
            }
        }
    }
    before
}

fn calls() -> Vec<CallName> {
    let name = |name: &str| CallName {
        role: "BLOCK".into(),
        family: "POINT_TO_POINT".into(),
        ..CallName::unknown(name.into())
    };
    let send = |it: &str, mode| CallName {
        kind: Kind::Send,
        transfers: Some(Transfers::Send),
        mode: Some(mode),
        ..name(it)
    };
    let recv = |it: &str, role: &str| CallName { kind: Kind::Recv, role: role.into(), ..name(it) };
    let wait = |it: &str, completes| CallName {
        completes: Some(completes),
        role: "COMPLETE".into(),
        ..name(it)
    };
    let all = |it: &str, needs| CallName {
        kind: Kind::Collective,
        family: "COLLECTIVE".into(),
        needs: Some(needs),
        ..name(it)
    };
    let of = |family: &str, it: &str| CallName { family: family.into(), ..name(it) };
    vec![
        send("MPI_Send", Mode::Standard),
        send("MPI_Ssend", Mode::Synchronous),
        send("MPI_Bsend", Mode::Buffered),
        send("MPI_Isend", Mode::Standard),
        send("MPI_Sendrecv", Mode::Standard),
        recv("MPI_Recv", "BLOCK"),
        recv("MPI_Irecv", "POST"),
        recv("MPI_Probe", "PROBE"),
        wait("MPI_Wait", Completes::One),
        wait("MPI_Waitall", Completes::All),
        wait("MPI_Waitany", Completes::Any),
        wait("MPI_Test", Completes::One),
        all("MPI_Barrier", Needs::All),
        all("MPI_Ibarrier", Needs::All),
        all("MPI_Allreduce", Needs::All),
        all("MPI_Bcast", Needs::Root),
        all("MPI_Reduce", Needs::AllAtRoot),
        CallName { role: "BLOCK".into(), ..of("POINT_TO_POINT", "MPI_Buffer_detach") },
        of("COMMUNICATOR", "MPI_Comm_dup"),
        of("WINDOW", "MPI_Win_fence"),
        of("WINDOW", "MPI_Win_lock"),
        of("FILE", "MPI_File_write"),
        of("ENVIRONMENT", "MPI_Finalize"),
    ]
}

pub fn call(name: &str) -> u32 {
    calls().iter().position(|it| it.name == name).expect("a call of the list") as u32
}

/// An operation in MPI_COMM_WORLD.
pub fn operation(name: &str, peer: i64, tag: i64, line: u32) -> OpenOperation {
    let call = call(name);
    OpenOperation {
        call,
        kind: calls()[call as usize].kind,
        path: Some(line),
        communicator: Some(0),
        peer,
        peer_world: (peer >= 0).then_some(peer),
        tag,
        bytes: 0,
        receive: None,
        made_by: None,
    }
}

/// A way to say in a test what each rank does.
pub trait Does {
    fn inside(&mut self, rank: usize, operation: OpenOperation);
    fn posted(&mut self, rank: usize, operation: OpenOperation);
    /// In a call for all its requests.
    fn waits(&mut self, rank: usize, call: &str, line: u32);
    fn sent(&mut self, rank: usize, to: i64, tag: i64, count: u64);
    fn received(&mut self, rank: usize, from: i64, tag: i64, count: u64);
    fn called(&mut self, rank: usize, communicator: u32, calls: &[(&str, i64)]);
    fn is(&mut self, rank: usize, condition: Condition);
}

impl Does for JobState {
    fn inside(&mut self, rank: usize, operation: OpenOperation) {
        let open = OpenCall { operation, begin: Nanos(20 * SECOND), waits: None };
        self.ranks[rank].threads[0].open = Some(open);
    }

    fn posted(&mut self, rank: usize, operation: OpenOperation) {
        let begin = Nanos(15 * SECOND + self.ranks[rank].requests.len() as i64);
        self.ranks[rank].requests.push(OpenRequest {
            operation,
            thread: 0,
            begin,
            unsuccessful_tests: 0,
            last_unsuccessful_test: Nanos(0),
            is_cancelled: false,
            is_seen_complete: false,
            partitions: None,
        });
    }

    fn waits(&mut self, rank: usize, name: &str, line: u32) {
        let operation = OpenOperation { communicator: None, ..operation(name, -3, -3, line) };
        self.inside(rank, operation);
        let requests: Vec<u32> = (0..self.ranks[rank].requests.len() as u32).collect();
        let handles = requests.len() as u32;
        let waits = Waits { requests, handles, is_certain: true };
        self.ranks[rank].threads[0].open.as_mut().unwrap().waits = Some(waits);
    }

    fn sent(&mut self, rank: usize, to: i64, tag: i64, count: u64) {
        self.ranks[rank].history.sent.push(lane(to, tag, count));
    }

    fn received(&mut self, rank: usize, from: i64, tag: i64, count: u64) {
        self.ranks[rank].history.received.push(lane(from, tag, count));
    }

    fn called(&mut self, rank: usize, communicator: u32, calls: &[(&str, i64)]) {
        let of = |&(name, root): &(&str, i64)| Collective {
            call: call(name),
            root,
            root_world: Some(0),
            bytes: 8,
            path: Some(50),
        };
        let last: Vec<Collective> = calls.iter().map(of).collect();
        let count = last.len() as u64;
        self.ranks[rank].history.collectives.push(Sequence { communicator, count, last });
    }

    fn is(&mut self, rank: usize, condition: Condition) {
        let rank = &mut self.ranks[rank];
        rank.condition = condition;
        if rank.is_over() {
            rank.threads.iter_mut().for_each(|it| it.system = None);
        }
    }
}

fn lane(peer_world: i64, tag: i64, count: u64) -> Lane {
    let (bytes, all_bytes) = (8, 8 * count);
    Lane { communicator: 0, peer_world, tag, is_partitioned: false, count, bytes, all_bytes }
}
