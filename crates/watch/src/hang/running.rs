//! What ranks that still run have not ended: the calls they are inside of, and their requests.

use serde::Serialize;

use super::document::Standing;
use super::job::Job;
use super::rollcall;
use super::words::Words;
use crate::pending::{PendingKind, Posted};
use lapscope_data::model::{Nanos, Rank};
use lapscope_data::state::{JobState, OpenOperation, RankState};
use lapscope_data::symbols::{FrameName, NameFrames};

/// Ranks that run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Running {
    /// Open calls before requests, of each rank.
    pub items: Vec<RunningItem>,
    /// Who is where, the odd ones out first.
    pub places: Vec<Standing>,
}

/// A call that has not returned, or a request that has not ended.
#[derive(Debug, Clone, Serialize)]
pub struct RunningItem {
    pub what: PendingKind,
    pub rank: Rank,
    pub life: i64,
    pub host: String,
    pub pid: i64,
    pub thread: u32,
    pub call: String,
    /// 0 of calls.
    pub bytes: u64,
    /// World rank; `None` when not known, as of a receive from any source.
    pub peer: Option<Rank>,
    /// As the program gave it, in the communicator; -1 MPI_ANY_SOURCE, -2 MPI_PROC_NULL.
    pub posted_peer: Option<i64>,
    pub tag: Option<i64>,
    pub communicator: Option<String>,
    /// Up to now.
    pub since_ns: Nanos,
    pub unsuccessful_tests: u32,
    pub frames: Vec<FrameName>,
}

/// What one look says.
pub fn running(mut state: JobState, names: &mut dyn NameFrames) -> Running {
    state.ranks.retain(|rank| rank.condition.runs());
    let job = Job::new(&state, &state);
    let mut words = Words::new(&job, names);
    let mut items = Vec::new();
    for rank in job.ranks() {
        for thread in &rank.threads {
            if let Some(open) = &thread.open {
                let about = (PendingKind::Call, thread.number, open.begin, 0);
                items.push(item(&job, &mut words, rank, &open.operation, about));
            }
        }
        for request in &rank.requests {
            let about =
                (PendingKind::Request, request.thread, request.begin, request.unsuccessful_tests);
            items.push(item(&job, &mut words, rank, &request.operation, about));
        }
    }
    Running { items, places: rollcall::places(&job, &mut words) }
}

fn item(
    job: &Job<'_>,
    words: &mut Words<'_>,
    rank: &RankState,
    operation: &OpenOperation,
    (what, thread, begin, unsuccessful_tests): (PendingKind, u32, Nanos, u32),
) -> RunningItem {
    const NO_PEER: i64 = -3;
    let known = |value: i64| (value != NO_PEER).then_some(value);
    let communicator = operation.communicator.map(|it| &job.state.communicators[it as usize]);
    RunningItem {
        what,
        rank: rank.rank,
        life: rank.life,
        host: rank.host.clone(),
        pid: rank.pid,
        thread,
        call: job.told_by(operation).name.clone(),
        bytes: operation.bytes,
        peer: operation.peer_world.map(|peer| rank.rank.neighbor(peer)),
        posted_peer: known(operation.peer),
        tag: known(operation.tag),
        communicator: communicator.map(|it| it.name.clone()).filter(|name| !name.is_empty()),
        since_ns: Nanos((rank.now - begin).0.max(0)),
        unsuccessful_tests,
        frames: words.frames(operation.path),
    }
}

impl Running {
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        self.places.iter().flat_map(|place| place.ranks.iter().copied())
    }

    /// Keeps these ranks alone.
    pub fn only(mut self, is_wanted: impl Fn(Rank) -> bool) -> Running {
        self.items.retain(|item| is_wanted(item.rank));
        for place in &mut self.places {
            place.ranks.retain(|rank| is_wanted(*rank));
            place.count = place.ranks.len();
        }
        self.places.retain(|place| place.count > 0);
        self
    }
}

impl RunningItem {
    /// "MPI_Irecv from rank 3, tag 7, 1024 bytes".
    pub fn describe(&self) -> String {
        const ROOT: i64 = -4; // this rank itself
        let posted_peer = self.posted_peer.filter(|peer| *peer != ROOT);
        let RunningItem { call, peer, tag, bytes, .. } = self;
        Posted { call, peer: *peer, posted_peer, tag: *tag, bytes: *bytes }.describe()
    }
}
