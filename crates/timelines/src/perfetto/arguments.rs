//! What a viewer shows of a call or a request that is clicked on.

use super::fields::{annotation, event};
use crate::definitions::Definitions;
use crate::proto::Bytes;
use crate::rank::{Lifetime, RankEvents};
use lapscope_trace::{Direction, Operation, RequestEnd};

/// Numbered from 1, in all sequences.
pub(super) const NAMES: [&str; 13] = [
    "bytes",
    "peer",
    "tag",
    "requests",
    "received_bytes",
    "received_from",
    "received_tag",
    "root",
    "members",
    "communicator",
    "last_rank",
    "returned",
    "ended",
];

/// Likewise: how requests end.
pub(super) const TEXTS: [&str; 5] = ["tested", "freed", "cancelled", "failed", "pending"];

const BYTES: u64 = 1;
const PEER: u64 = 2;
const TAG: u64 = 3;
const REQUESTS: u64 = 4;
/// What is added to a message's own of the half that receives.
const RECEIVED: u64 = 4;
const ROOT: u64 = 8;
const MEMBERS: u64 = 9;
const COMMUNICATOR: u64 = 10;
const LAST: u64 = 11;
const RETURNED: u64 = 12;
const ENDED: u64 = 13;

fn whole(event: &mut Bytes, name: u64, value: i64) {
    event.nest(event::ANNOTATION, |entry| {
        entry.uint(annotation::NAME_IID, name);
        entry.int(annotation::INT, value);
    });
}

/// Says how many requests a call posts or ends, or what a blocking one communicates. What a request communicates its
/// lifetime tells.
pub(super) fn annotate_begin(
    event: &mut Bytes,
    run: &Definitions,
    rank: &RankEvents<'_>,
    index: u32,
) {
    let visit = rank.visits[index as usize];
    let mut posted = 0;
    for (number, &endpoint) in rank.began(index).iter().enumerate() {
        let operation = rank.operation_of(endpoint);
        if operation.is_request {
            posted += i64::from(!operation.is_second_half);
        } else {
            // of MPI_Sendrecv the half that receives stands behind
            annotate(event, run, rank, endpoint, number > 0);
        }
    }
    let requests = posted.max(visit.completed.into());
    let is_blocking = posted == 0 && !rank.began(index).is_empty();
    if requests > 1 || (visit.completed > 0 && !is_blocking) {
        whole(event, REQUESTS, requests);
    }
    if !visit.returned {
        event.nest(event::ANNOTATION, |entry| {
            entry.uint(annotation::NAME_IID, RETURNED);
            entry.uint(annotation::BOOL, 0);
        });
    }
}

pub(super) fn annotate_lifetime(
    event: &mut Bytes,
    run: &Definitions,
    rank: &RankEvents<'_>,
    lifetime: &Lifetime,
) {
    annotate(event, run, rank, lifetime.endpoint, false);
    let next = lifetime.endpoint + 1;
    let endpoints = &rank.rank().endpoints;
    let own = &endpoints[lifetime.endpoint as usize];
    if let Some(second) = endpoints.get(next as usize) {
        if rank.operation_of(next).is_second_half
            && (second.call, second.begin) == (own.call, own.begin)
        {
            annotate(event, run, rank, next, true);
        }
    }
    if let Some(text) = ended(rank.operation_of(lifetime.endpoint), lifetime.is_pending) {
        event.nest(event::ANNOTATION, |entry| {
            entry.uint(annotation::NAME_IID, ENDED);
            entry.uint(annotation::TEXT_IID, text);
        });
    }
}

/// Number of the word for it; `None` of those that were waited for.
fn ended(operation: &Operation, is_pending: bool) -> Option<u64> {
    match operation.ended {
        _ if is_pending => Some(5),
        RequestEnd::Completed => operation.is_tested.then_some(1),
        RequestEnd::Freed => Some(2),
        RequestEnd::Cancelled => Some(3),
        RequestEnd::Failed => Some(4),
        RequestEnd::Pending => Some(5),
    }
}

/// What an endpoint communicates; `is_second`: beside what its call or request sends.
fn annotate(
    event: &mut Bytes,
    run: &Definitions,
    rank: &RankEvents<'_>,
    endpoint: u32,
    is_second: bool,
) {
    let operation = rank.operation_of(endpoint);
    let peer = operation.peer.map(|place| run.ranks[place as usize].number);
    let more = if is_second { RECEIVED } else { 0 };
    match operation.direction {
        Direction::Collective => annotate_collective(event, run, rank, endpoint),
        Direction::Send | Direction::Receive => {
            whole(event, BYTES + more, operation.bytes.0 as i64);
            peer.into_iter().for_each(|peer| whole(event, PEER + more, peer));
            operation.tag.into_iter().for_each(|tag| whole(event, TAG + more, tag));
        }
        Direction::None if operation.bytes.0 > 0 => whole(event, BYTES, operation.bytes.0 as i64),
        Direction::None => {}
    }
}

/// All members of a collective have the same correlation, by which viewers show them together.
fn annotate_collective(event: &mut Bytes, run: &Definitions, rank: &RankEvents<'_>, endpoint: u32) {
    let half = rank.trace.half(rank.place, endpoint as usize);
    let operation = half.operation;
    whole(event, BYTES, operation.bytes.0 as i64);
    if let Some(root) = operation.peer {
        whole(event, ROOT, run.ranks[root as usize].number);
    }
    whole(event, MEMBERS, operation.comm_size.into());
    if let Some((communicator, number)) = run.meeting(rank.trace, &half) {
        whole(event, COMMUNICATOR, communicator.into());
        let correlation =
            u64::from(number) * (run.communicators.len() as u64) + u64::from(communicator);
        event.uint(event::CORRELATION, correlation + 1);
    }
    if let Some((_, last)) = rank.trace.last_member(&half) {
        whole(event, LAST, run.ranks[last as usize].number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_names() {
        let names = [
            (BYTES, "bytes"),
            (PEER, "peer"),
            (TAG, "tag"),
            (REQUESTS, "requests"),
            (TAG + RECEIVED, "received_tag"),
            (ROOT, "root"),
            (MEMBERS, "members"),
            (COMMUNICATOR, "communicator"),
            (LAST, "last_rank"),
            (RETURNED, "returned"),
            (ENDED, "ended"),
        ];
        for (number, name) in names {
            assert_eq!(NAMES[number as usize - 1], name);
        }
    }
}
