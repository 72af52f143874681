//! A whole run in memory: who communicated what with whom and when, on one clock.
//!
//! [`Trace::read`] reads the files side by side, finds the other end of every message ([`matching`]), the members of every
//! collective ([`collective`]), and brings the clocks of different nodes together ([`clock`]). Analyses of overlap and of
//! blocking sends are pure functions of it.

mod cache;
pub mod call_paths;
pub mod clock;
pub mod collective;
mod combine;
mod detail;
pub mod device_time;
pub mod endpoint;
mod file;
pub mod gpu;
pub mod handles;
pub mod injected;
mod kept;
mod lane;
pub mod left_out;
mod line;
pub mod made_up;
mod marks;
pub mod matching;
pub mod message_waits;
pub mod operation;
mod packed;
mod paired;
mod past;
pub mod presence;
pub mod problem;
pub mod processors;
pub mod query;
mod read;
pub mod roster;
mod row;
mod row_list;
mod rows;
pub mod samples;
pub mod script;
pub mod starvation;
pub mod stats;
pub mod stretch;
pub mod sums;
pub mod survey;
pub mod target;
mod test_counts;
#[cfg(test)]
mod tests;
mod threads;
pub mod watched;
pub mod wrappers;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use lapscope_data::model::{Bytes, CallName, Ended, RankInfo};
use lapscope_data::places::Places;

pub use cache::Cache;
pub use clock::Clocks;
pub use clock::Settled;
pub use collective::{Before, Meetings};
pub use collective::{Collective, CollectiveMembers};
pub use detail::Detail;
pub use device_time::{BusySpan, BusySums, DeviceLane, DeviceTime, DeviceWork};
pub use endpoint::{Call, Endpoint, Observation, OtherCall, Span, NONE};
pub use file::Depth;
pub use left_out::LeftOut;
pub use marks::Mark;
pub use matching::Matching;
pub use message_waits::{MessageWait, VainProbes};
pub use operation::{Direction, Operation, RequestEnd};
pub use paired::Paired;
pub use past::Past;
pub use presence::Presence;
pub use read::{sum_and_keep, ReadProgress, WithSinks};
pub use roster::{CommKey, Roster};
pub use row_list::RowList;
pub use starvation::{Starvation, Starved};
pub use stretch::counted::Stretch;
pub use threads::Threads;

/// Tests that are further apart than this are looks from within a computation, nanoseconds.
pub(crate) const WAITING_LOOP: i64 = 20_000;
/// What is not known of a loop may be one part in so many of it.
const SMALL_PART: i64 = 10;

/// Between which processes a message goes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Locality {
    /// A rank and itself.
    #[serde(rename = "self")]
    SelfRank,
    /// Ranks of one node.
    Node,
    /// Ranks of different nodes.
    Network,
}

impl Locality {
    pub const ALL: [Locality; 3] = [Locality::SelfRank, Locality::Node, Locality::Network];
}

/// A run. Moments are nanoseconds on one clock, which begins with the first rank's recording.
#[derive(Debug, Default)]
pub struct Trace {
    /// In the order of rank and life.
    pub ranks: Vec<RankTrace>,
    pub places: Arc<Places>,
    /// [`Operation::blocking_call`] indexes into this.
    pub blocking_calls: Vec<CallName>,
    pub roster: Arc<Roster>,
    /// Those that operations name; of a part of a run those of that part.
    pub communicators: Vec<CommKey>,
    /// Whether an analysis looks at each rank, as it does at those of a part of the run; `None`: it looks at all.
    focus: Option<Vec<bool>>,
    pub collectives: Vec<Collective>,
    /// What the last member of each collective did before it came.
    before: Vec<Before>,
    pub members: CollectiveMembers,
    /// Targets of one-sided calls, whose [`Endpoint::partner`] indexes into this.
    pub awaited_targets: Vec<target::Awaited>,
    pub matching: Matching,
    pub clocks: Clocks,
    /// [`Mark::name`] indexes into this.
    pub mark_names: Vec<String>,
    is_starved: bool,
    /// What of the run counts; `None`: all of it.
    pub stretch: Option<Stretch>,
}

/// What one rank did. Of what is kept of it lists of very many rows stand behind it, and the run says what else is left out here.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RankTrace {
    #[serde(skip)]
    pub info: Option<Arc<RankInfo>>,
    pub operations: Vec<Operation>,
    /// Requests of all kinds, blocking messages and collectives.
    #[serde(skip)]
    pub endpoints: RowList<Endpoint>,
    /// Calls that completed requests or communicated themselves.
    #[serde(skip)]
    pub calls: RowList<Call>,
    /// All others that have rows.
    #[serde(skip)]
    pub other_calls: Vec<OtherCall>,
    /// How many of these there are by operation, also where they were not read; of the last operations there are none.
    pub(crate) other_counts: Vec<u32>,
    pub threads: Threads,
    pub observations: Vec<Observation>,
    /// Those that found a message, and the sums of those that did not.
    pub message_waits: Vec<MessageWait>,
    pub vain_probes: Vec<VainProbes>,
    #[serde(skip)]
    pub presence: Presence,
    pub starvation: Starvation,
    /// Without lanes also where it was not recorded: [`RankInfo::has_device_time`].
    pub devices: DeviceTime,
    /// Messages and collectives that were only summed up.
    pub left_out: Vec<LeftOut>,
    /// When rows were recorded; empty: all the time.
    pub detail: Vec<Detail>,
    /// What the program marked, in the order of time; also where no rows were recorded.
    pub marks: Vec<Mark>,
    pub made: handles::MadeHandles,
    /// Host, as a number.
    #[serde(skip)]
    pub node: u32,
    /// Moments of its epoch, of the return of MPI_Init, and of the entry of MPI_Finalize or of the last record.
    #[serde(skip)]
    pub epoch: i64,
    #[serde(skip)]
    pub init_end: i64,
    #[serde(skip)]
    pub end: i64,
    /// How its own clock was corrected.
    #[serde(skip)]
    line: Option<line::Line>,
}

impl RankTrace {
    /// # Panics
    /// Never for the ranks of a [`Trace`] that was read.
    #[inline]
    pub fn info(&self) -> &RankInfo {
        self.info.as_ref().expect("set by Trace::read")
    }

    /// What is known of it, to be made otherwise; of a trace that is made up.
    ///
    /// # Panics
    /// As [`RankTrace::info`].
    pub fn info_mut(&mut self) -> &mut RankInfo {
        Arc::make_mut(self.info.as_mut().expect("set by Trace::read"))
    }

    /// When the rank was inside MPI and a GPU of it computed.
    pub fn computed_in_calls(&self) -> BusySums {
        self.devices.computed_in(self.presence.intervals())
    }

    /// Operations of all other calls, and how many there are of each.
    pub fn other_operations(&self) -> impl Iterator<Item = (&Operation, u64)> {
        let counts = self.other_counts.iter().map(|&count| u64::from(count));
        self.operations.iter().zip(counts).filter(|&(_, count)| count > 0)
    }

    /// The timestamp from which a loop of tests waited for a request, until the test that completed it; `None`: its tests are too
    /// far apart to be one that waits.
    pub fn polled_since(&self, endpoint: &Endpoint) -> Option<i64> {
        let seen = self.observations.get(endpoint.observed as usize)?;
        let call = self.calls.get(endpoint.call as usize)?;
        let [first, last] = [seen.first_unsuccessful_test?, seen.last_unsuccessful_test?]
            .map(|test| endpoint.begin + test);
        // it may have had no processor between two of them, as after sched_yield
        let looped = call.begin - first - self.starvation.within(first, call.begin);
        let apart = looped / (seen.unsuccessful_tests.max(1) as i64);
        let since_last = call.begin - last - self.starvation.most_within(last, call.begin);
        // the last of them may itself have moved the message; whatever it was, it is a small part of the loop
        let is_last = since_last <= WAITING_LOOP || since_last <= looped / SMALL_PART;
        (apart <= WAITING_LOOP && is_last).then_some(first)
    }

    /// Whether all that the rank did is on record, to its MPI_Finalize.
    pub fn is_whole(&self) -> bool {
        self.info().ended == Ended::Finalize && !self.has_gaps()
    }

    /// Whether calls are in no sum, so that their time looks like computation.
    pub fn leaves_time_open(&self) -> bool {
        let info = self.info();
        info.lost_records > 0
            || info.damaged_pieces > 0
            || self.marks.iter().any(|mark| mark.level == 0)
    }

    /// Whether something of what it did, until it ended, is not on record.
    pub fn has_gaps(&self) -> bool {
        let info = self.info();
        self.leaves_time_open() || info.unknown_requests > 0 || info.summarized.is_some()
    }
}

/// An endpoint unpacked. Moments are on the run's clock.
#[derive(Debug, Clone, Copy)]
pub struct Half<'a> {
    /// Index into [`Trace::ranks`], and into its endpoints.
    pub rank: usize,
    pub index: usize,
    pub operation: &'a Operation,
    pub post_begin: i64,
    /// Equal to `post_begin` for blocking calls, which have no window.
    pub post_end: i64,
    /// Entry of the completing call, or of the blocking call. `None`: it never ended, or was freed, and nothing tells when it
    /// completed.
    pub completion_begin: Option<i64>,
    /// `None` also when the call never returned.
    pub completion_end: Option<i64>,
    /// Requests that the completing call ended; 1 for blocking calls.
    pub completed_together: u32,
    /// Inside other MPI calls during the window; `None` when another thread completed it.
    pub mpi: Option<i64>,
    /// Bytes of earlier sends to that peer that were not complete at the post.
    pub outstanding: i64,
    pub observed: Option<&'a Observation>,
    /// Index into [`RankTrace::calls`] of the completing, or blocking, call.
    pub call: Option<u32>,
    partner: u32,
}

impl Half<'_> {
    /// From the end of the post to the begin of the completing call.
    #[inline]
    pub fn window(&self) -> Option<i64> {
        self.completion_begin.map(|begin| begin - self.post_end)
    }

    /// What unsuccessful tests took in its window, nanoseconds: what its rank was inside MPI and in no other call; 0 where that is
    /// not known.
    pub fn in_tests(&self, presence: &Presence) -> i64 {
        let Some((mpi, end)) = self.mpi.zip(self.completion_begin) else { return 0 };
        let in_calls = end - self.post_end - presence.outside(self.post_end, end);
        (mpi - in_calls).max(0)
    }

    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.operation.bytes
    }
}

impl Trace {
    /// Requests, blocking messages and collectives of all ranks that were read.
    pub fn endpoints(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.endpoints.len() as u64).sum()
    }

    /// From the first return of MPI_Init to the last entry of MPI_Finalize, or to the last record.
    pub fn run_ns(&self) -> i64 {
        let begin = self.ranks.iter().map(|rank| rank.init_end).min().unwrap_or(0);
        let end = self.ranks.iter().map(|rank| rank.end).max().unwrap_or(begin);
        end - begin
    }

    /// Places of the ranks that an analysis looks at. Others are there for their sake: whom they talk to.
    pub fn focus(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.ranks.len()).filter(|&place| self.is_in_focus(place))
    }

    #[inline]
    pub fn is_in_focus(&self, place: usize) -> bool {
        self.focus.as_ref().map_or(true, |focus| focus[place])
    }

    /// Whether some rank kept sums alone from some time on.
    pub fn is_summarized(&self) -> bool {
        self.ranks.iter().any(|rank| rank.info().summarized.is_some())
    }

    /// Whether some rank had to do without a processor at times.
    #[inline]
    pub fn is_starved(&self) -> bool {
        self.is_starved
    }

    #[inline]
    pub fn half(&self, rank: usize, index: usize) -> Half<'_> {
        let trace = &self.ranks[rank];
        let endpoint = &trace.endpoints[index];
        let operation = &trace.operations[endpoint.operation as usize];
        let is_freed = operation.ended == RequestEnd::Freed;
        let call = trace.calls.get(endpoint.call as usize).filter(|_| !is_freed);
        let post_end = endpoint.begin + endpoint.post.or_zero();
        Half {
            rank,
            index,
            operation,
            post_begin: endpoint.begin,
            post_end,
            completion_begin: call.map(|call| call.begin.max(post_end)),
            completion_end: call
                .filter(|call| call.returned())
                .map(|call| (call.begin + call.duration).max(post_end)),
            completed_together: call.map_or(0, |call| call.completed().max(1)),
            mpi: endpoint.mpi.get(),
            outstanding: endpoint.outstanding.or_zero(),
            observed: trace.observations.get(endpoint.observed as usize),
            call: (endpoint.call != NONE).then_some(endpoint.call),
            partner: endpoint.partner,
        }
    }

    /// All endpoints of a rank.
    pub fn halves(&self, rank: usize) -> impl Iterator<Item = Half<'_>> {
        (0..self.ranks[rank].endpoints.len()).map(move |index| self.half(rank, index))
    }

    /// The endpoints of a rank whose operations `wanted` says yes to.
    pub fn halves_of(
        &self,
        rank: usize,
        wanted: impl Fn(&Operation) -> bool,
    ) -> impl Iterator<Item = Half<'_>> {
        let RankTrace { endpoints, operations, .. } = &self.ranks[rank];
        let wanted: Vec<bool> = operations.iter().map(wanted).collect();
        let of_wanted = endpoints.iter().enumerate();
        let of_wanted = of_wanted.filter(move |(_, it)| wanted[it.operation as usize]);
        of_wanted.map(move |(index, _)| self.half(rank, index))
    }

    /// The other end of a message, where it is known.
    #[inline]
    pub fn partner(&self, half: &Half<'_>) -> Option<Half<'_>> {
        let is_message = matches!(half.operation.direction, Direction::Send | Direction::Receive);
        let peer = half.operation.peer?;
        (is_message && half.partner != NONE)
            .then(|| self.half(peer as usize, half.partner as usize))
    }

    /// The collective that an endpoint takes part in, where all its members are known.
    #[inline]
    pub fn collective(&self, half: &Half<'_>) -> Option<&Collective> {
        (half.operation.direction == Direction::Collective)
            .then(|| self.collectives.get(half.partner as usize))
            .flatten()
    }

    #[inline]
    pub fn locality(&self, rank: usize, peer: usize) -> Locality {
        if rank == peer {
            Locality::SelfRank
        } else if self.ranks[rank].node == self.ranks[peer].node {
            Locality::Node
        } else {
            Locality::Network
        }
    }

    /// The function that an operation posted, or that blocked.
    #[inline]
    pub fn call_of(&self, operation: &Operation) -> &CallName {
        self.places.call(operation.site)
    }

    /// The moment at which `rank` was inside MPI again, from `moment` on, as far as that is known; its unsuccessful tests
    /// count by what they said of `half`, an endpoint of that rank.
    #[inline]
    pub fn next_inside(&self, half: &Half<'_>, moment: i64) -> Option<i64> {
        let call = self.ranks[half.rank].presence.next(moment);
        let tested = half.observed.and_then(|observed| {
            let first = half.post_begin + observed.first_unsuccessful_test?;
            let last = half.post_begin + observed.last_unsuccessful_test?;
            (last >= moment).then(|| first.max(moment))
        });
        [call, tested].into_iter().flatten().min()
    }
}
