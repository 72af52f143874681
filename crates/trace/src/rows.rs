//! Rows of a file on their way to being ranks: each goes to the rank of its operation, with the place of that there.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::device_time::DeviceRow;
use super::endpoint::{Call, Endpoint, Observation, OtherCall, Span, NONE};
use super::handles::MadeHandles;
use super::marks::RankMarks;
use super::message_waits::{MessageWait, VainProbes};
use super::operation::RequestEnd;
use super::presence::Presence;
use super::row::TraceRow;
use super::{Detail, LeftOut, Starved, Threads};
use lapscope_data::model::{Bytes, CallRow, Kind, MemoryKind};
use lapscope_data::places::{CallPathId, SiteId};

/// What `operation` says, with the file's own ids resolved as far as the file can.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct FileOperation {
    pub site: SiteId,
    pub path: Option<CallPathId>,
    /// The call that says what kind of send it is: of persistent requests the one that made them. Index into
    /// [`OperationPlaces::calls`](lapscope_data::places::Places::calls).
    pub mode_call: u32,
    pub communicator_id: Option<i64>,
    pub kind: Kind,
    pub bytes: Bytes,
    pub peer: Option<i64>,
    pub tag: Option<i64>,
    pub posted_peer: Option<i64>,
    pub ended: RequestEnd,
    pub is_tested: bool,
    pub receive: Option<i64>,
    pub is_second_half: bool,
}

/// Of what is kept of it lists of very many rows stand behind it: [`super::packed`].
#[derive(Default, Serialize, Deserialize)]
pub(super) struct RankRows {
    /// Nothing of it is wanted.
    #[serde(skip)]
    pub is_left_out: bool,
    /// End of the recording, since its epoch.
    #[serde(skip)]
    pub end: i64,
    pub operations: Vec<FileOperation>,
    #[serde(skip)]
    pub endpoints: Vec<Endpoint>,
    #[serde(skip)]
    pub calls: Vec<Call>,
    #[serde(skip)]
    pub call_ids: Vec<i64>,
    #[serde(skip)]
    pub other_calls: Vec<OtherCall>,
    /// How many of these there are by operation, whether they are kept or not.
    pub other_counts: Vec<u32>,
    pub message_waits: Vec<MessageWait>,
    pub vain_probes: Vec<VainProbes>,
    pub threads: Threads,
    pub observations: Vec<Observation>,
    /// From begin to end: calls, and posts, each nearly in order.
    #[serde(skip)]
    pub inside: Vec<(i64, i64)>,
    #[serde(skip)]
    pub posts: Vec<(i64, i64)>,
    #[serde(skip)]
    pub presence: Presence,
    pub starved: Vec<Starved>,
    pub device_busy: Vec<DeviceRow>,
    pub left_out: Vec<LeftOut>,
    pub detail: Vec<Detail>,
    pub marks: RankMarks,
    pub made: MadeHandles,
}

impl RankRows {
    /// Room for so many rows: a list that grows has twice the room that it needs. What ids promise and a file does not hold
    /// costs nothing as long as nobody writes there.
    pub fn reserve(&mut self, calls: u64, requests: u64) {
        const MOST: u64 = 1 << 26;
        let [calls, requests] = [calls, requests].map(|rows| rows.min(MOST) as usize);
        self.endpoints.reserve(calls + requests);
        self.calls.reserve(calls);
        self.call_ids.reserve(calls);
        self.inside.reserve(calls + requests);
        self.posts.reserve(requests);
    }

    fn count_other(&mut self, operation: u32) {
        let operation = operation as usize;
        if operation >= self.other_counts.len() {
            self.other_counts.resize(operation + 1, 0);
        }
        self.other_counts[operation] = self.other_counts[operation].saturating_add(1);
    }

    /// The place of a call in `calls`: mostly the last, as requests stand in the order of the calls that completed them.
    fn call_of(&self, id: i64) -> Option<usize> {
        match self.call_ids.last() {
            Some(&last) if last == id => Some(self.call_ids.len() - 1),
            _ => self.call_ids.binary_search(&id).ok(),
        }
    }
}

/// Where an operation of a file is: the rank's place, its place there, and how its rows are taken.
#[derive(Clone, Copy)]
pub(super) struct OperationPlace {
    pub rank: u32,
    pub operation: u32,
    /// A call that communicates itself.
    pub is_blocking: bool,
    /// That, or one that makes a request.
    pub is_endpoint: bool,
    /// See [`MessageWait`].
    pub waits_for_message: bool,
}

/// Places by `operation.id`, which the recorder numbers without gaps.
#[derive(Default)]
pub(super) struct OperationPlaces {
    ids: Vec<i64>,
    places: Vec<OperationPlace>,
    /// The receiving halves of operations that also send.
    pub receives: FxHashMap<i64, i64>,
    /// Where the data of requests lay, by their ids.
    pub memory: FxHashMap<i64, MemoryKind>,
}

impl OperationPlaces {
    pub fn push(&mut self, id: i64, place: OperationPlace) {
        self.ids.push(id);
        self.places.push(place);
    }

    pub fn get(&self, id: i64) -> Option<OperationPlace> {
        let guess = usize::try_from(id - self.ids.first()?).ok();
        let index = match guess.filter(|&guess| self.ids.get(guess) == Some(&id)) {
            Some(index) => index,
            None => self.ids.binary_search(&id).ok()?,
        };
        Some(self.places[index])
    }
}

/// `for_replay`: with what nobody else looks at, other calls and the thread of each.
pub(super) fn add_call(
    ranks: &mut [RankRows],
    places: &OperationPlaces,
    row: &CallRow,
    for_replay: bool,
) {
    let Some(place) = places.get(row.operation_id) else { return };
    let rank = &mut ranks[place.rank as usize];
    if rank.is_left_out {
        return;
    }
    let thread = rank.threads.number(row.thread_id);
    let duration = row.duration.map(|duration| duration.0.max(0));
    // what never returned was still inside when the process ended
    let end = duration.map_or(rank.end.max(row.begin.0), |duration| row.begin.0 + duration);
    rank.inside.push((row.begin.0, end));
    if place.waits_for_message {
        rank.message_waits.push(MessageWait {
            begin: row.begin.0,
            duration: end - row.begin.0,
            operation: place.operation,
            number: rank.other_calls.len() as u32,
            message: NONE,
            waited: 0,
        });
    }
    if row.completed == 0 && !place.is_blocking {
        rank.count_other(place.operation);
        if !for_replay {
            return;
        }
        rank.other_calls.push(OtherCall {
            begin: row.begin.0,
            duration: end - row.begin.0,
            operation: place.operation,
            thread,
        });
        return;
    }
    if for_replay {
        rank.threads.add_call(row.thread_id);
    }
    let index = rank.calls.len() as u32;
    rank.call_ids.push(row.id);
    let completed = row.completed.min(u64::from(u32::MAX)) as u32;
    rank.calls.push(Call::new(row.begin.0, duration, place.operation, completed));
    if !place.is_blocking {
        return;
    }
    let received = row.receive_id.and_then(|id| places.get(id));
    for half in [Some(place), received].into_iter().flatten() {
        if for_replay {
            rank.threads.add_endpoint(row.thread_id);
        }
        rank.endpoints.push(Endpoint {
            begin: row.begin.0,
            post: Span::new(0),
            window: Span::new(0),
            mpi: Span::new(0),
            outstanding: Span::new(0),
            operation: half.operation,
            call: index,
            partner: NONE,
            observed: NONE,
        });
    }
}

pub(super) fn add_request(
    ranks: &mut [RankRows],
    places: &OperationPlaces,
    row: &TraceRow,
    completion: Option<&CallRow>,
    for_replay: bool,
) {
    let Some(place) = places.get(row.operation_id) else { return };
    let rank = &mut ranks[place.rank as usize];
    if rank.is_left_out {
        return;
    }
    rank.threads.number(row.thread_id);
    let (begin, post) = (row.post_begin.0, row.post.0);
    let post_end = begin + post;
    rank.posts.push((begin, post_end));
    let memory = places.memory.get(&row.id).copied();
    let observed = row.observation(memory).map_or(NONE, |observation| {
        rank.observations.push(observation);
        (rank.observations.len() - 1) as u32
    });
    let call = completion.and_then(|call| rank.call_of(call.id));
    let received = places.receives.get(&row.operation_id).and_then(|&id| places.get(id));
    for half in [Some(place), received].into_iter().flatten() {
        if for_replay {
            rank.threads.add_endpoint(row.thread_id);
        }
        rank.endpoints.push(Endpoint {
            begin,
            post: Span::new(post),
            window: Span::from_ns(completion.map(|call| call.begin.0 - post_end)),
            mpi: Span::from_ns(row.mpi.map(|mpi| mpi.0)),
            outstanding: Span::new(row.outstanding_bytes.0 as i64),
            operation: half.operation,
            call: call.map_or(NONE, |call| call as u32),
            partner: NONE,
            observed,
        });
    }
}
