//! Which transfers of a run had nothing in between: both sides were inside MPI for this one message from the post of the
//! send on. The others tell how long they took under the circumstances, not how long they have to take.

use rayon::prelude::*;

use super::{CollectiveSample, Fit, Reference, Sample, Source};
use crate::starved::processor_share;
use crate::stats::upper_median;
use crate::trace::{Collective, Direction, Half, Locality, Operation, Trace};
use lapscope_data::model::RankInfo;

/// Between two calls, nanoseconds: what a program needs to make the next one.
const SHORT_GAP: i64 = 1_000;
/// This part of a transfer is as good as nothing.
const LITTLE: i64 = 50;

impl Reference {
    /// From the run's own transfers; its source is [`Source::None`] when none will do.
    pub fn of_run(trace: &Trace) -> Reference {
        Reference::of_operations(trace, |_| true)
    }

    /// As [`Reference::of_run`], from those operations alone that `counts` says yes to.
    pub fn of_operations(trace: &Trace, counts: impl Fn(&Operation) -> bool + Sync) -> Reference {
        let infos: Vec<&RankInfo> = trace.ranks.iter().map(|rank| rank.info()).collect();
        let share = processor_share(&infos);
        let processors =
            Processors { trace, is_never_known: share.is_some() && !trace.is_starved() };
        let fit = |rank: usize| {
            let mut fit = Fit::default();
            for half in trace.halves(rank).filter(|half| counts(half.operation)) {
                match half.operation.direction {
                    Direction::Send => {
                        transfer(&processors, &half).into_iter().for_each(|s| fit.add(s))
                    }
                    Direction::Collective => collective(&processors, &half)
                        .into_iter()
                        .for_each(|s| fit.add_collective(s)),
                    _ => {}
                }
            }
            fit
        };
        let ranks = (0..trace.ranks.len()).into_par_iter();
        let fitted = ranks.map(fit).reduce(Fit::default, Fit::merge);
        let processor_share = share.filter(|_| fitted.is_disturbed());
        Reference { processor_share, ..fitted.finish(Source::Run) }
    }
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
    if !send.operation.is_send() || send.outstanding > 0 || !is_alone(send) {
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
    half.completed_together == 2
        && matches!(directions, (Send, Receive) | (Receive, Send))
        && half.operation.peer.is_some_and(|peer| other.operation.peer == Some(peer))
        && other.bytes() <= half.bytes()
}

/// A collective that all members entered together, and of a non-blocking one waited for at once, alone. It takes as long as
/// half of the members do from the entry of the last one: a root that sends is done at once, somebody may be held up. The
/// member that came last tells for all.
fn collective<'a>(processors: &Processors<'a>, half: &Half<'_>) -> Option<CollectiveSample<'a>> {
    let trace = processors.trace;
    let operation = half.operation;
    let collective = trace.collective(half)?;
    let is_complete = collective.agrees && collective.members == collective.comm_size;
    if !is_complete || collective.last_rank as usize != half.rank {
        return None;
    }
    let parts: Option<Vec<(i64, u64)>> =
        trace.members(half).map(|member| part(&member, collective)).collect();
    let mut parts = parts?;
    let (ns, bytes) = upper_median(&mut parts, Ord::cmp)?;
    let members: Vec<usize> = trace.members(half).map(|member| member.rank).collect();
    let begin = collective.last_begin;
    Some(CollectiveSample {
        is_disturbed: processors.lacked(&members, begin, begin + ns),
        call: &trace.blocking_calls[operation.blocking_call as usize].name,
        is_request: operation.is_request,
        ranks: operation.comm_size,
        bytes,
        ns,
    })
}

/// How long a member took from the entry of the last one, nanoseconds, and its bytes; `None` when it was longer in it before,
/// or computed, or waited for other requests too.
fn part(member: &Half<'_>, collective: &Collective) -> Option<(i64, u64)> {
    let ns = member.completion_end? - collective.last_begin;
    let together = ns > 0 && collective.last_begin - member.post_begin <= ns;
    let waits =
        || member.completed_together == 1 && computed(member).is_some_and(|it| it <= little_of(ns));
    (together && (!member.operation.is_request || waits())).then(|| (ns, member.bytes().0))
}
