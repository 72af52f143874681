//! What comes nearest to a message that nobody has sent: one with another tag, in another communicator, from another rank.

use std::fmt::Write;

use super::graph::{Need, Target};
use super::job::OpenAt;
use super::messages::{Flow, LaneKey, ANY};
use super::needs::{Reason, Why};
use super::words::Words;
use super::HangEvidence;
use lapscope_data::state::OpenOperation;

/// How a message differs from the one that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Differs {
    Tag,
    Communicator,
    Source,
}

/// A message that no receive is for.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub differs: Differs,
    pub lane: LaneKey,
    pub count: u64,
    /// Whether it is likely meant: the program did not use both before.
    pub is_near: bool,
    /// An open send of it.
    pub open: Option<OpenAt>,
}

/// Those for a receive that waits in vain, the nearest first.
pub fn candidates(found: &HangEvidence<'_>, need: &Need<Why>) -> Vec<Candidate> {
    let Some(wanted) = received(found, need) else { return Vec::new() };
    let rank = found.job.rank(need.why.place.0).rank;
    let source_sends_no_more = match need.target {
        Target::Rank(at) => {
            found.job.has_left(at) || found.job.is_dead(at) || is_past_sending(found, at)
        }
        _ => false,
    };
    let lanes: Vec<&(LaneKey, Flow)> = found.messages.unmatched_to(rank).collect();
    let used_before = found.messages.has_used(rank, wanted);
    let mut candidates: Vec<Candidate> = Vec::new();
    for (key, flow) in lanes {
        let Some(differs) = differs(wanted, key) else { continue };
        let is_near = match differs {
            Differs::Tag | Differs::Communicator => !used_before || flow.received == 0,
            Differs::Source => source_sends_no_more && (!used_before || flow.received == 0),
        };
        let (count, open) = (flow.unmatched(), flow.open.first().copied());
        candidates.push(Candidate { differs, lane: *key, count, is_near, open });
    }
    candidates.sort_by_key(|it| (!it.is_near, it.differs, it.lane));
    candidates.truncate(3);
    candidates
}

/// Whether all that a rank waits for are calls that everybody makes: who comes to them has done before what it was to do.
fn is_past_sending(found: &HangEvidence<'_>, at: usize) -> bool {
    let mut needs = found.graph.nodes_of(at).iter().flat_map(|it| &it.needs);
    let is_meeting =
        |it: &Need<Why>| matches!(it.why.reason, Reason::Meeting(_) | Reason::Finalize);
    let first = needs.next();
    first.is_some_and(is_meeting) && needs.all(is_meeting)
}

/// The receive that a need is about.
fn received<'a>(found: &HangEvidence<'a>, need: &Need<Why>) -> Option<&'a OpenOperation> {
    let whole = found.job.operation(need.why.place)?;
    let receive = whole.receive.as_deref().unwrap_or(whole);
    (need.why.reason == Reason::Receive).then_some(receive)
}

/// In one thing; `None` where in more.
fn differs(wanted: &OpenOperation, key: &LaneKey) -> Option<Differs> {
    let tag = wanted.tag == ANY || wanted.tag == key.tag;
    let source = wanted.peer == ANY || wanted.peer_world == Some(key.sender);
    let communicator = wanted.communicator == Some(key.communicator);
    match (tag, communicator, source) {
        (false, true, true) => Some(Differs::Tag),
        (true, false, true) => Some(Differs::Communicator),
        (true, true, false) => Some(Differs::Source),
        _ => None,
    }
}

/// "rank 0 sent it 2 messages with tag 17 in MPI_Ssend (main x.c:9), which no receive is for".
pub fn sentence(words: &mut Words<'_>, receiver: usize, candidate: &Candidate) -> String {
    let Candidate { lane, count, open, .. } = candidate;
    let job = words.job;
    let mut text = format!("rank {} sent", job.rank(receiver).rank.neighbor(lane.sender));
    let _ = match count {
        1 => write!(text, " it a message with tag {}", lane.tag),
        _ => write!(text, " it {count} messages with tag {}", lane.tag),
    };
    let within = words.communicator(Some(lane.communicator));
    match (candidate.differs, within.as_str()) {
        (Differs::Communicator, "") => text += " in MPI_COMM_WORLD",
        (_, within) => text += within,
    }
    if let Some(operation) = open.and_then(|open| job.operation(open)) {
        text += &format!(" by {}", words.operation(operation));
    }
    text + ", which no receive is for"
}
