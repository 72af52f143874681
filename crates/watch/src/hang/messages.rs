//! Which message each open receive gets, and which receive each open send (MPI-4.1 3.5, 4.2): from what was sent and received
//! on each lane so far, and what is open now.

use rustc_hash::FxHashMap;

use super::job::{Job, Open, OpenAt};
use lapscope_data::model::{Kind, Mode, Rank};
use lapscope_data::state::{Lane, OpenOperation, OpenRequest, ThreadState};

/// Messages that can only be told apart by their order. World ranks; ordered so that what a receive may match lies together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneKey {
    pub world: i64,
    pub receiver: i64,
    pub communicator: u32,
    pub is_partitioned: bool,
    pub sender: i64,
    pub tag: i64,
}

/// What is under way on a lane.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// That have ended, from the sender's side, and from the receiver's.
    pub sent: u64,
    pub received: u64,
    /// Of these, the bytes; and those of the last one that was sent.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub last_bytes: Option<u64>,
    /// Sends that have not ended, the oldest first.
    pub open: Vec<OpenAt>,
    /// How many open receives got one of it.
    pub matched: u64,
}

impl Flow {
    /// Messages that no receive has ended with.
    fn unreceived(&self) -> u64 {
        (self.sent + self.open.len() as u64).saturating_sub(self.received)
    }

    /// Messages that no receive, open or ended, is for.
    pub fn unmatched(&self) -> u64 {
        self.unreceived().saturating_sub(self.matched)
    }

    /// Messages whose sends have ended and that no receive, open or ended, is for, and the bytes of all that have not been received.
    pub fn kept(&self) -> (u64, u64) {
        let unreceived = self.sent.saturating_sub(self.received);
        let bytes = self.sent_bytes.saturating_sub(self.received_bytes);
        (unreceived.saturating_sub(self.matched), bytes)
    }

    /// Whether a receive is for the open send at this place of the list.
    fn is_matched(&self, at: usize) -> bool {
        at as i64 + (self.sent as i64 - self.received as i64) < self.matched as i64
    }
}

/// What became of the other side of an open send or receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It is there; where it is open, too, of whom.
    Found(Option<usize>),
    /// Perhaps: another open operation may have got it.
    Perhaps,
    Missing,
}

/// All messages of a job.
pub struct Messages {
    lanes: Vec<(LaneKey, Flow)>,
    sends: FxHashMap<OpenAt, Match>,
    receives: FxHashMap<OpenAt, Match>,
}

/// An open receive.
struct Receive<'a> {
    place: OpenAt,
    operation: &'a OpenOperation,
    is_partitioned: bool,
    takes: bool,
}

impl Messages {
    pub fn match_open(job: &Job<'_>) -> Messages {
        let mut lanes = gather_lanes(job);
        let all: Vec<Vec<Receive<'_>>> =
            (0..job.ranks().len()).map(|at| open_receives(job, at)).collect();
        let receives = match_receives(job, &all, &mut lanes);
        let mut sends = FxHashMap::default();
        for (key, flow) in &lanes {
            let receiver = job.find(Rank { world: key.world, number: key.receiver });
            for (at, &place) in flow.open.iter().enumerate() {
                let wildcard = || receiver.is_some_and(|at| has_wildcard(&all[at], key));
                let found = match flow.is_matched(at) {
                    true => Match::Found(receiver),
                    false if wildcard() => Match::Perhaps,
                    false => Match::Missing,
                };
                sends.insert(place, found);
            }
        }
        Messages { lanes, sends, receives }
    }

    pub fn send(&self, place: OpenAt) -> Match {
        self.sends.get(&place).copied().unwrap_or(Match::Perhaps)
    }

    pub fn receive(&self, place: OpenAt) -> Match {
        self.receives.get(&place).copied().unwrap_or(Match::Perhaps)
    }

    /// Lanes to a rank that have messages which no receive is for.
    pub fn unmatched_to(&self, receiver: Rank) -> impl Iterator<Item = &(LaneKey, Flow)> {
        let wanted = (receiver.world, receiver.number);
        let first = self.lanes.partition_point(|(key, _)| (key.world, key.receiver) < wanted);
        let of_rank = self.lanes[first..].iter();
        of_rank
            .take_while(move |(key, _)| (key.world, key.receiver) == wanted)
            .filter(|(_, flow)| flow.unmatched() > 0)
    }

    /// Lanes from a rank that have messages which no receive is for.
    pub fn unmatched_from(&self, sender: Rank) -> impl Iterator<Item = &(LaneKey, Flow)> {
        let is_from = move |key: &LaneKey| (key.world, key.sender) == (sender.world, sender.number);
        self.lanes.iter().filter(move |(key, flow)| is_from(key) && flow.unmatched() > 0)
    }

    /// The bytes of the last message that went the way of an open send and was sent to its end.
    pub fn last_bytes(&self, open: OpenAt) -> Option<u64> {
        let mut flows = self.lanes.iter().map(|(_, flow)| flow);
        flows.find(|flow| flow.open.contains(&open)).and_then(|flow| flow.last_bytes)
    }

    /// Whether a rank has received before what it waits for now.
    pub fn has_used(&self, receiver: Rank, wanted: &OpenOperation) -> bool {
        let begin = (receiver.world, receiver.number, wanted.communicator);
        let of = |key: &LaneKey| (key.world, key.receiver, Some(key.communicator));
        let first = self.lanes.partition_point(|(key, _)| of(key) < begin);
        let lanes = self.lanes[first..].iter().take_while(|(key, _)| of(key) == begin);
        lanes.into_iter().any(|(key, flow)| is_for(wanted, key) && flow.received > 0)
    }
}

/// What is open at a rank, the oldest first.
pub fn open_operations<'a>(job: &Job<'a>, at: usize) -> Vec<(Open, &'a OpenOperation)> {
    let rank = job.rank(at);
    let requests = rank.requests.iter().enumerate();
    let is_under_way = |it: &OpenRequest| !it.is_seen_complete && !it.is_cancelled;
    let requests = requests
        .filter(|(_, it)| is_under_way(it))
        .map(|(place, it)| (it.begin, Open::Request(place), &it.operation));
    let of_thread = |(place, thread): (usize, &'a ThreadState)| {
        thread.open.as_ref().map(|open| (open.begin, Open::Call(place), &open.operation))
    };
    let calls = rank.threads.iter().enumerate().filter_map(of_thread);
    let probes = rank.threads.iter().enumerate().filter_map(|(place, thread)| {
        let probe = job.probed(at, thread)?;
        thread.open.is_none().then_some((rank.now, Open::Probe(place), probe))
    });
    let mut all: Vec<_> = requests.chain(calls).chain(probes).collect();
    all.sort_by_key(|&(begin, open, _)| (begin, open));
    all.into_iter().map(|(_, open, operation)| (open, operation)).collect()
}

fn is_partitioned(job: &Job<'_>, operation: &OpenOperation) -> bool {
    job.told_by(operation).mode == Some(Mode::Partitioned)
}

fn gather_lanes(job: &Job<'_>) -> Vec<(LaneKey, Flow)> {
    let mut lanes: FxHashMap<LaneKey, Flow> = FxHashMap::default();
    for (at, rank) in job.ranks().iter().enumerate() {
        let Rank { world, number } = rank.rank;
        let key = |lane: &Lane, sender, receiver| LaneKey {
            world,
            receiver,
            communicator: lane.communicator,
            is_partitioned: lane.is_partitioned,
            sender,
            tag: lane.tag,
        };
        for lane in &rank.history.sent {
            let flow = lanes.entry(key(lane, number, lane.peer_world)).or_default();
            flow.sent += lane.count;
            flow.sent_bytes += lane.all_bytes;
            flow.last_bytes = Some(lane.bytes);
        }
        for lane in &rank.history.received {
            let flow = lanes.entry(key(lane, lane.peer_world, number)).or_default();
            flow.received += lane.count;
            flow.received_bytes += lane.all_bytes;
        }
        for (open, operation) in open_operations(job, at) {
            let sent = (operation.kind == Kind::Send).then_some(operation);
            let Some((communicator, receiver)) =
                sent.and_then(|it| it.communicator.zip(it.peer_world))
            else {
                continue;
            };
            let (tag, is_partitioned) = (operation.tag, is_partitioned(job, operation));
            if tag == NO_TAG {
                continue;
            }
            let key =
                LaneKey { world, receiver, communicator, is_partitioned, sender: number, tag };
            lanes.entry(key).or_default().open.push((at, open));
        }
    }
    let mut lanes: Vec<(LaneKey, Flow)> = lanes.into_iter().collect();
    lanes.sort_unstable_by_key(|(key, _)| *key);
    lanes
}

/// The receives among what is open at a rank, wildcards and then probes, which take nothing, last.
fn open_receives<'a>(job: &Job<'a>, at: usize) -> Vec<Receive<'a>> {
    let of = |(open, operation): (Open, &'a OpenOperation)| {
        let received = match &operation.receive {
            Some(receive) => receive.as_ref(),
            None if operation.kind == Kind::Recv => operation,
            None => return None,
        };
        let takes = job.call(operation.call).role != "PROBE";
        let is_partitioned = is_partitioned(job, operation);
        Some(Receive { place: (at, open), operation: received, is_partitioned, takes })
    };
    let mut receives: Vec<Receive<'_>> =
        open_operations(job, at).into_iter().filter_map(of).collect();
    receives.sort_by_key(|it| (!it.takes, is_wildcard(it.operation)));
    receives
}

/// Receives of a certain source and tag get theirs before wildcards do: so none of them is called without a message that
/// could have one. What a wildcard could have got is its perhaps.
fn match_receives(
    job: &Job<'_>,
    all: &[Vec<Receive<'_>>],
    lanes: &mut [(LaneKey, Flow)],
) -> FxHashMap<OpenAt, Match> {
    let mut matches = FxHashMap::default();
    for (receives, rank) in all.iter().zip(job.ranks()) {
        for receive in receives {
            matches.insert(receive.place, find_message(rank.rank, receive, lanes, job));
        }
    }
    matches
}

fn is_wildcard(operation: &OpenOperation) -> bool {
    operation.peer == ANY || operation.tag == ANY
}

/// MPI_ANY_SOURCE, MPI_ANY_TAG.
pub const ANY: i64 = -1;

/// The tag of a message that has none on record, or none that MPI takes.
pub const NO_TAG: i64 = -3;

fn find_message(
    rank: Rank,
    receive: &Receive<'_>,
    lanes: &mut [(LaneKey, Flow)],
    job: &Job<'_>,
) -> Match {
    let operation = receive.operation;
    let Some(communicator) = operation.communicator.filter(|_| operation.tag != NO_TAG) else {
        return Match::Perhaps;
    };
    let begin = (rank.world, rank.number, communicator, receive.is_partitioned);
    let of = |key: &LaneKey| (key.world, key.receiver, key.communicator, key.is_partitioned);
    let first = lanes.partition_point(|(key, _)| of(key) < begin);
    let mut found = Match::Missing;
    for (key, flow) in lanes[first..].iter_mut().take_while(|(key, _)| of(key) == begin) {
        if !is_for(operation, key) {
            continue;
        }
        if flow.unmatched() > 0 {
            // Ended sends are older than open ones.
            let left = flow.matched + flow.received;
            let of_open = left >= flow.sent;
            flow.matched += u64::from(receive.takes);
            let sender = Rank { world: key.world, number: key.sender };
            return Match::Found(of_open.then(|| job.find(sender)).flatten());
        }
        if flow.unreceived() > 0 {
            found = Match::Perhaps;
        }
    }
    found
}

fn is_for(operation: &OpenOperation, key: &LaneKey) -> bool {
    let from = operation.peer == ANY || operation.peer_world == Some(key.sender);
    from && (operation.tag == ANY || operation.tag == key.tag)
}

/// Whether a receive that any message could have matched, this lane's among them, is open.
fn has_wildcard(receives: &[Receive<'_>], key: &LaneKey) -> bool {
    receives.iter().any(|it| {
        it.takes
            && is_wildcard(it.operation)
            && it.is_partitioned == key.is_partitioned
            && it.operation.communicator == Some(key.communicator)
            && is_for(it.operation, key)
    })
}
