//! Whether a run ends because MPI keeps messages: sends that wait for each other as soon as none is kept, found by one replay.
//!
//! Accused is only what follows from MPI's rules, whatever happens when. The replay has receives match as they did and every thread
//! do what it did; [`doubt`] says where the record leaves open whether that is so, and then that is said in place of a verdict.
//! Collectives may synchronise as far as they have to (MPI-4.1 6.14), fences as barriers do.

mod doubt;

use serde::Serialize;

pub(super) use self::doubt::hands_out_work;
pub use self::doubt::Doubt;
use super::document::Blocked;
use super::standstill::NamedWaits;
use crate::replay::deadlock::{standstill, Reason, Waiting};
use crate::replay::scenario::{Contention, Protocol, Scenario, Scope, Size};
use crate::replay::Outcome;
use lapscope_data::symbols::NameFrames;
use lapscope_measure::thresholds::Thresholds;
use lapscope_trace::{Locality, Operation, Trace};

/// Calls that wait for each other where MPI keeps nothing.
#[derive(Debug, Clone, Serialize)]
pub struct ReliesOnBuffering {
    /// Ranks that wait for each other, each for the next and the last for the first.
    pub cycle: Vec<Blocked>,
    /// The smallest message among those that are sent: the circle closes where MPI does not keep it.
    pub bytes: u64,
    /// From here on this MPI does not keep them, as far as it says so or the run shows it.
    pub waits_from_bytes: Option<u64>,
    /// One sentence, and the cure; empty until somebody writes it.
    pub says: String,
    /// Of each in the circle, whether it waits for its own message to be received.
    #[serde(skip)]
    pub sends: Vec<bool>,
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

/// What a replay without buffering says of a run that ends with it.
#[derive(Debug, Default)]
pub struct BufferingFinding {
    pub relies: Option<ReliesOnBuffering>,
    pub not_known: Option<DoubtfulCircle>,
}

/// Calls that would wait for each other, and why it is not known whether they do.
#[derive(Debug)]
pub struct DoubtfulCircle {
    pub cycle: Vec<Blocked>,
    pub doubt: Doubt,
}

/// What a run relies on; `outcome`: of the replay under [`nothing_kept`], of a run that ends when it is replayed as it was.
pub fn relies_on_buffering(
    trace: &Trace,
    outcome: &Outcome,
    thresholds: &Thresholds,
    names: &mut dyn NameFrames,
) -> BufferingFinding {
    let found = standstill(trace, outcome).map(|found| found.reason);
    let Some(Reason::Circle(circle)) = found else { return BufferingFinding::default() };
    let sent: Vec<_> = circle.iter().map(|waiting| kept(trace, waiting)).collect();
    let least = sent.iter().flatten().min_by_key(|(bytes, _)| *bytes);
    let Some(&(least, locality)) = least else { return BufferingFinding::default() };
    let cycle = NamedWaits::new(trace, names).blocked_each(&circle);
    if let Some(doubt) = doubt::find(trace, outcome, &circle) {
        let not_known = Some(DoubtfulCircle { cycle, doubt });
        return BufferingFinding { relies: None, not_known };
    }
    let relies = ReliesOnBuffering {
        cycle,
        bytes: least,
        waits_from_bytes: waits_from(thresholds, locality).filter(|&from| from > least),
        says: String::new(),
        sends: sent.iter().map(Option::is_some).collect(),
    };
    BufferingFinding { relies: Some(relies), not_known: None }
}

/// The size of a message that its sender does not get rid of, and where it goes.
fn kept(trace: &Trace, waiting: &Waiting) -> Option<(u64, Locality)> {
    let operation = doubt::operation(trace, &waiting.stuck).filter(|it| it.is_send())?;
    let peer = operation.peer? as usize;
    Some((operation.bytes.0, trace.locality(waiting.stuck.rank as usize, peer)))
}

/// The smallest size of which the run shows, or else the MPI declares, that it is not kept.
fn waits_from(thresholds: &Thresholds, locality: Locality) -> Option<u64> {
    let found = thresholds.localities.iter().find(|found| found.locality == locality)?;
    let declared = found.declared.as_ref().and_then(|declared| declared.bytes);
    found.rendezvous.smallest_waiting_bytes.or(declared.map(|limit| limit.saturating_add(1)))
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
