//! Whether a run ends because MPI keeps messages: sends that wait for each other as soon as none is kept, found by one replay.
//!
//! Said only where it follows from MPI's rules, whatever happens when. The replay has receives match as they did and every thread
//! do what it did, so nothing is said of a circle that a wildcard, another thread, a test, or a wait for any of several requests
//! could have opened, nor of a collective in it that need not synchronise (MPI-4.1 6.14), nor of a record with gaps.

use serde::Serialize;

use super::document::Blocked;
use super::paths::NamedSites;
use super::standstill::Teller;
use crate::replay::deadlock::{standstill, Reason, Waiting};
use crate::replay::scenario::{Contention, Protocol, Scenario, Scope, Size};
use crate::replay::Outcome;
use lapscope_data::model::{Completes, Kind, Needs};
use lapscope_data::symbols::NameFrames;
use lapscope_data::text::units::bytes;
use lapscope_measure::thresholds::Thresholds;
use lapscope_trace::{Direction, Locality, Operation, Trace};

/// Calls that wait for each other where MPI keeps nothing.
#[derive(Debug, Clone, Serialize)]
pub struct ReliesOnBuffering {
    /// Ranks that wait for each other, each for the next and the last for the first.
    pub cycle: Vec<Blocked>,
    /// The smallest message among those that are sent: the circle closes where MPI does not keep it.
    pub bytes: u64,
    /// From here on this MPI does not keep them, as far as it says so or the run shows it.
    pub waits_from_bytes: Option<u64>,
    /// One sentence, and the cure.
    pub says: String,
}

/// MPI keeps no message. How messages move decides nothing here, so they do by the protocol with the fewest events: of ten thousand
/// at once that share what they go through each changes when all others arrive.
pub fn nothing_kept() -> Scenario {
    Scenario {
        eager_limit: Some(Size(0)),
        protocol: Some(Protocol::RendezvousWrite),
        contention: Some(Contention::None),
        on: Some(Scope::All),
        ..Scenario::default()
    }
}

/// Whether a replay without buffering tells something that one with it does not: some message of the run was small enough to be kept.
pub fn may_keep(trace: &Trace) -> bool {
    let is_kept = |it: &Operation| it.is_send() && it.bytes.0 > 0 && it.peer.is_some();
    trace.ranks.iter().any(|rank| rank.operations.iter().any(is_kept))
}

/// What a run relies on; `outcome`: of the replay under [`nothing_kept`], of a run that ends when it is replayed as it was.
pub fn relies_on_buffering(
    trace: &Trace,
    outcome: &Outcome,
    thresholds: &Thresholds,
    names: &mut dyn NameFrames,
) -> Option<ReliesOnBuffering> {
    let found = standstill(trace, outcome)?;
    let Reason::Circle(circle) = &found.reason else { return None };
    let is_certain = trace.matching.doubtful == 0
        && trace.ranks.iter().all(|rank| rank.is_whole())
        && circle.iter().all(|waiting| is_certain(trace, waiting));
    let kept = circle.iter().filter_map(|waiting| kept(trace, waiting)).min_by_key(|kept| kept.0);
    let (least, locality) = kept.filter(|_| is_certain)?;
    let waits_from = waits_from(thresholds, locality).filter(|&from| from > least);
    let named = NamedSites { trace, names, length: Default::default() };
    let mut teller = Teller { trace, named };
    let cycle: Vec<Blocked> = circle.iter().map(|waiting| teller.blocked(waiting)).collect();
    let says = sentence(&teller, circle, &cycle, (least, waits_from));
    Some(ReliesOnBuffering { cycle, bytes: least, waits_from_bytes: waits_from, says })
}

fn operation<'a>(trace: &'a Trace, waiting: &Waiting) -> Option<&'a Operation> {
    let rank = &trace.ranks[waiting.stuck.rank as usize];
    let row = rank.endpoints.get(waiting.stuck.endpoint as usize)?;
    rank.operations.get(row.operation as usize)
}

/// Whether the rank waits for just that, whenever messages come.
fn is_certain(trace: &Trace, waiting: &Waiting) -> bool {
    let rank = &trace.ranks[waiting.stuck.rank as usize];
    let Some(operation) = operation(trace, waiting) else { return false };
    let Some(call) = rank.calls.get(waiting.stuck.call as usize) else { return false };
    let call = trace.call_of(&rank.operations[call.operation as usize]);
    let waits_for_all = !matches!(call.completes, Some(Completes::Any | Completes::Some))
        && !call.name.starts_with("MPI_Test");
    // also a probe for any source: who receives what it found names a source that it did not choose
    let takes_any = |rank: u32| {
        let mut operations = trace.ranks[rank as usize].operations.iter();
        operations.any(|it| (it.is_wildcard || it.is_untraceable) && it.comm == operation.comm)
    };
    let is_bound = match operation.direction {
        Direction::Send => {
            operation.is_send() && !waiting.ranks.iter().any(|&rank| takes_any(rank))
        }
        Direction::Receive => !takes_any(waiting.stuck.rank),
        Direction::Collective => {
            let needs = trace.blocking_calls[operation.blocking_call as usize].needs;
            operation.kind == Kind::Collective && needs == Some(Needs::All)
        }
        Direction::None => false,
    };
    rank.threads.count() <= 1 && waits_for_all && is_bound
}

/// The size of a message that its sender does not get rid of, and where it goes.
fn kept(trace: &Trace, waiting: &Waiting) -> Option<(u64, Locality)> {
    let operation = operation(trace, waiting).filter(|it| it.is_send())?;
    let peer = operation.peer? as usize;
    Some((operation.bytes.0, trace.locality(waiting.stuck.rank as usize, peer)))
}

/// The smallest size of which the run shows, or else the MPI declares, that it is not kept.
fn waits_from(thresholds: &Thresholds, locality: Locality) -> Option<u64> {
    let found = thresholds.localities.iter().find(|found| found.locality == locality)?;
    let declared = found.declared.as_ref().and_then(|declared| declared.bytes);
    found.rendezvous.smallest_waiting_bytes.or(declared.map(|limit| limit.saturating_add(1)))
}

fn sentence(
    teller: &Teller<'_>,
    circle: &[Waiting],
    cycle: &[Blocked],
    (least, waits_from): (u64, Option<u64>),
) -> String {
    let who = teller.who_waits(circle, cycle);
    let ranks = super::standstill::ranks(cycle);
    let (wait, their) = match cycle.len() {
        1 => ("waits for itself", "its message"),
        _ => ("wait for each other", "their messages"),
    };
    let from = match waits_from {
        Some(from) => {
            format!("from about {} on with this one, with another perhaps before", bytes(from))
        }
        None => "with larger ones, or another MPI".to_owned(),
    };
    let cure = match circle.iter().all(|waiting| kept(teller.trace, waiting).is_some()) {
        true => "Use MPI_Sendrecv, or post MPI_Irecv before the send",
        false => "Post the receives (MPI_Irecv) before the calls that wait here",
    };
    format!(
        "relies on buffering: {ranks} {wait} for ever {who}, where MPI does not keep {their} ({} now): {from}. {cure}.",
        bytes(least)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::chain_tests::network;
    use crate::replay::{replay, Conditions, Durations, Program};
    use lapscope_trace::script::{Act, Message, Script};

    /// Each rank posts all its receives and sends, and waits for them.
    fn events(messages: i64) -> u64 {
        let mut script = Script::new(2);
        for rank in 0..2 {
            for tag in 0..messages {
                script.act(rank, Act::Irecv(Message::new(1 - rank, tag, 1_000_000)));
            }
            for tag in 0..messages {
                script.act(rank, Act::Isend(Message::new(1 - rank, tag, 1_000_000)));
            }
            script.act(rank, Act::Wait((0..2 * messages as usize).collect()));
        }
        let trace = script.trace();
        let (program, durations) = (Program::new(&trace), Durations::measure(&trace));
        let unbuffered = network(64).with(&nothing_kept(), false);
        replay(&trace, &program, &unbuffered, &Conditions::as_recorded(2), &durations).events
    }

    #[test]
    fn as_many_messages_at_once_take_as_many_events_each() {
        let (few, many) = (events(50), events(2_000));
        assert!(many <= 41 * few, "{few} {many}");
    }
}
