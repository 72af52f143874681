//! Which transfers of a run had nothing in between: both sides were inside MPI for this one message from the post of the
//! send on. The others tell how long they took under the circumstances, not how long they have to take.

use std::collections::btree_map::Entry;
use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{CollectiveSample, Fit, Reference, ReferenceSource, Sample};
use lapscope_data::model::{Mode, RankInfo};
use lapscope_trace::processors::processor_share;
use lapscope_trace::roster::CommKey;
use lapscope_trace::stats::{scramble, upper_median};
use lapscope_trace::{Collective, Direction, Half, Locality, Operation, Trace};

/// Between two calls, nanoseconds: what a program needs to make the next one.
const SHORT_GAP: i64 = 1_000;
/// This part of a transfer is as good as nothing.
const LITTLE: i64 = 50;

/// Collectives of a communicator that are looked at, about; and members of one.
const MOST_COLLECTIVES: u64 = 4_096;
const MOST_MEMBERS: usize = 64;

/// What transfers of some ranks tell; what is merged in any order comes to the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Samples {
    messages: Fit,
    /// By communicator and number there.
    collectives: BTreeMap<(CommKey, u32), Gathering>,
}

/// A collective as far as some of its members tell.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Gathering {
    /// Name of the blocking call, and whether it was the non-blocking one.
    call: String,
    is_request: bool,
    ranks: u32,
    /// Members that told so far.
    members: u32,
    /// One of them was longer in it, or did something else besides.
    is_mixed: bool,
    is_disturbed: bool,
    /// How long members took, nanoseconds, and their bytes: those that a hash puts first.
    parts: Vec<(u64, i64, u64)>,
}

impl Reference {
    /// From the run's own transfers; its source is [`ReferenceSource::None`] when none will do.
    pub fn of_run(trace: &Trace) -> Reference {
        Reference::of_operations(trace, |_| true)
    }

    /// As [`Reference::of_run`], from those operations alone that `counts` says yes to.
    pub fn of_operations(trace: &Trace, counts: impl Fn(&Operation) -> bool + Sync) -> Reference {
        Samples::collect(trace, counts).reference(trace)
    }
}

impl Samples {
    /// Collects samples of the ranks in the trace's focus, from those operations that `counts` says yes to.
    pub fn collect(trace: &Trace, counts: impl Fn(&Operation) -> bool + Sync) -> Samples {
        let processors =
            Processors { trace, is_never_known: share(trace).is_some() && !trace.is_starved() };
        let of_rank = |rank: usize| {
            let mut samples = Samples::default();
            let tells = |operation: &Operation| {
                matches!(operation.direction, Direction::Send | Direction::Collective)
                    && counts(operation)
            };
            for half in trace.halves_of(rank, tells) {
                match half.operation.direction {
                    Direction::Send => {
                        let key = (half.rank as u64) << 40 | half.index as u64;
                        if let Some(sample) = transfer(&processors, &half) {
                            samples.messages.add(sample, key);
                        }
                    }
                    Direction::Collective => samples.add_member(&processors, &half),
                    _ => {}
                }
            }
            samples
        };
        let ranks: Vec<usize> = trace.focus().collect();
        ranks.into_par_iter().map(of_rank).reduce(Samples::default, Samples::merge)
    }

    #[must_use]
    pub fn merge(mut self, other: Samples) -> Samples {
        self.messages = self.messages.merge(other.messages);
        for (key, more) in other.collectives {
            match self.collectives.entry(key) {
                Entry::Occupied(mut known) => known.get_mut().merge(more),
                Entry::Vacant(free) => {
                    free.insert(more);
                }
            }
        }
        self
    }

    /// The times of the run, from the samples of all its ranks.
    pub fn reference(self, trace: &Trace) -> Reference {
        let mut fit = self.messages;
        for ((comm, number), mut gathering) in self.collectives {
            let key = hash_of(comm, number);
            let Some((ns, bytes)) = gathering.time() else { continue };
            let Gathering { ref call, is_request, ranks, is_disturbed, .. } = gathering;
            let sample = CollectiveSample { call, is_request, ranks, bytes, ns, is_disturbed };
            fit.add_collective(sample, key);
        }
        let processor_share = share(trace).filter(|_| fit.is_disturbed());
        Reference { processor_share, ..fit.finish(ReferenceSource::Run) }
    }

    /// A member's part of a collective that all ranks are known of.
    fn add_member(&mut self, processors: &Processors<'_>, half: &Half<'_>) {
        let trace = processors.trace;
        let Some(collective) = trace.collective(half).filter(|it| it.is_complete()) else { return };
        let Some((comm, number, of)) = trace.meeting_of(half) else { return };
        let is_looked_at = |of: u64| hash_of(comm, number) % of < MOST_COLLECTIVES;
        if u64::from(of) > MOST_COLLECTIVES && !is_looked_at(of.into()) {
            return;
        }
        let part = part(half, collective);
        let begin = collective.last_begin;
        let is_disturbed =
            part.is_some_and(|(ns, _)| processors.lacked(&[half.rank], begin, begin + ns));
        let call = &trace.blocking_calls[half.operation.blocking_call as usize].name;
        let member = scramble(half.rank as u64);
        let gathering = Gathering {
            call: call.clone(),
            is_request: half.operation.is_request,
            ranks: half.operation.comm_size,
            members: 1,
            is_mixed: part.is_none(),
            is_disturbed,
            parts: part.map(|(ns, bytes)| (member, ns, bytes)).into_iter().collect(),
        };
        match self.collectives.entry((comm, number)) {
            Entry::Occupied(mut known) => known.get_mut().merge(gathering),
            Entry::Vacant(free) => {
                free.insert(gathering);
            }
        }
    }
}

impl Gathering {
    fn merge(&mut self, other: Gathering) {
        self.members += other.members;
        self.is_mixed |= other.is_mixed || self.is_request != other.is_request;
        self.is_disturbed |= other.is_disturbed;
        if self.is_mixed {
            self.parts = Vec::new();
            return;
        }
        self.parts.extend(other.parts);
        if self.parts.len() > MOST_MEMBERS {
            self.parts.sort_unstable();
            self.parts.truncate(MOST_MEMBERS);
        }
    }

    /// It takes as long as half of the members do from the entry of the last one: a root that sends is done at once, somebody
    /// may be held up.
    fn time(&mut self) -> Option<(i64, u64)> {
        let is_whole = self.members == self.ranks && !self.is_mixed;
        let parts = self.parts.iter().filter(|_| is_whole);
        let mut parts: Vec<(i64, u64)> = parts.map(|&(_, ns, bytes)| (ns, bytes)).collect();
        upper_median(&mut parts, Ord::cmp)
    }
}

fn hash_of((world, identity, ordinal): CommKey, number: u32) -> u64 {
    [identity as u64, ordinal as u64, number.into()]
        .into_iter()
        .fold(world as u64, |hash, part| scramble(hash ^ part))
}

/// Share of the time in which ranks could have run in which they had a processor, where it was little.
fn share(trace: &Trace) -> Option<f64> {
    let infos: Vec<&RankInfo> = trace.ranks.iter().map(|rank| rank.info()).collect();
    processor_share(&infos)
}

/// Knows when ranks had to do without a processor.
struct Processors<'a> {
    trace: &'a Trace,
    /// They had to, and nothing tells when.
    is_never_known: bool,
}

impl Processors<'_> {
    /// Whether one of the ranks perhaps lacked one between these moments.
    fn lacked(&self, ranks: &[usize], from: i64, to: i64) -> bool {
        let is_starved = |rank: &usize| self.trace.ranks[*rank].starvation.within(from, to) > 0;
        self.is_never_known || ranks.iter().any(is_starved)
    }
}

/// The message of a send, when the receiver was already waiting for it alone and the sender did nothing else. A receiver that
/// says that it is ready enters its wait at the moment at which the send is posted, so a little later will do.
fn transfer(processors: &Processors<'_>, send: &Half<'_>) -> Option<Sample> {
    let trace = processors.trace;
    let is_alone = |half: &Half<'_>| half.completed_together == 1 || is_exchange(trace, half);
    // the sender of a copy goes on computing
    let is_copy = send.operation.mode == Mode::Buffered;
    if !send.operation.is_send() || is_copy || send.outstanding > 0 || !is_alone(send) {
        return None;
    }
    let receive = trace.partner(send).filter(is_alone)?;
    let locality = trace.locality(send.rank, receive.rank);
    let (sent, received) = (send.completion_end?, receive.completion_end?);
    let waited_for = receive.completion_begin?;
    let ns = received - send.post_begin;
    let little = little_of(ns);
    let is_awaited = match locality {
        // nobody can wait and send; so at once behind the send
        Locality::SelfRank => receive.post_begin <= send.post_begin && waited_for <= sent + little,
        _ => waited_for <= send.post_begin + little,
    };
    let is_upwards = send.rank < receive.rank;
    let is_disturbed = processors.lacked(&[send.rank, receive.rank], send.post_begin, received);
    let sample = Sample { locality, bytes: send.bytes().0, ns, is_upwards, is_disturbed };
    (is_awaited && computed(send)? <= little).then_some(sample)
}

/// Computation that is as good as none beside a transfer, nanoseconds.
fn little_of(transfer: i64) -> i64 {
    SHORT_GAP.max(transfer / LITTLE)
}

/// Computation between the post of a request and the call that completed it.
fn computed(half: &Half<'_>) -> Option<i64> {
    Some(half.window()? - half.mpi.unwrap_or(0))
}

/// Whether one call completed this request and one the other way between the same ranks, of no more bytes. As an
/// MPI_Sendrecv it takes what a message takes, or somewhat more.
fn is_exchange(trace: &Trace, half: &Half<'_>) -> bool {
    use Direction::{Receive, Send};
    if half.completed_together != 2 {
        return false;
    }
    let endpoints = &trace.ranks[half.rank].endpoints;
    // requests that one call completed are neighbours
    let is_same = |&index: &usize| {
        endpoints.get(index).is_some_and(|other| half.call.is_some_and(|call| other.call == call))
    };
    let neighbours = [half.index.wrapping_sub(1), half.index + 1];
    let Some(other) =
        neighbours.into_iter().find(is_same).map(|index| trace.half(half.rank, index))
    else {
        return false;
    };
    let directions = (half.operation.direction, other.operation.direction);
    matches!(directions, (Send, Receive) | (Receive, Send))
        && half.operation.peer.is_some_and(|peer| other.operation.peer == Some(peer))
        && other.bytes() <= half.bytes()
}

/// Of a collective that all members entered together, and of a non-blocking one waited for at once, alone: how long a member
/// took from the entry of the last one, nanoseconds, and its bytes; `None` when it was longer in it before, or computed, or
/// waited for other requests too.
fn part(member: &Half<'_>, collective: &Collective) -> Option<(i64, u64)> {
    let ns = member.completion_end? - collective.last_begin;
    let together = ns > 0 && collective.last_begin - member.post_begin <= ns;
    let waits =
        || member.completed_together == 1 && computed(member).is_some_and(|it| it <= little_of(ns));
    (together && (!member.operation.is_request || waits())).then(|| (ns, member.bytes().0))
}
