//! What a rank had done, out of how often it did what.

use rustc_hash::FxHashMap;

use super::definitions::{SpoolOperation, SpoolOutcome};
use super::lanes::{Lanes, Times};
use super::layout::{outcome, peer};
use super::live::Entry;
use super::locks::Locks;
use super::names::all;
use super::tables::{Begun, CollectiveOrder, Count};
use super::translate::Translate;
use super::{Collective, Failed, History, Sequence};
use crate::model::{CallName, Mode};

/// A message that has gone, or come.
#[derive(Debug, Clone, Copy)]
struct PastMessage {
    kind: u8,
    comm: u32,
    peer: i32,
    tag: i32,
    bytes: u64,
    is_partitioned: bool,
}

struct Filling<'a, 'b> {
    translate: &'a mut Translate<'b>,
    sent: Lanes,
    received: Lanes,
    locks: Locks,
    failed: Vec<Failed>,
    is_whole: bool,
}

/// The history of a rank. Its entries are the requests that are under way, and `kept` how many collectives of a communicator are
/// listed.
pub fn read(
    translate: &mut Translate<'_>,
    entries: &[Entry],
    is_whole: bool,
    kept: usize,
) -> History {
    let collectives = sequences(translate, entries, kept);
    let is_whole = is_whole && !translate.spool.tables.is_cut;
    let mut filling = Filling {
        translate,
        sent: Lanes::default(),
        received: Lanes::default(),
        locks: Locks::default(),
        failed: Vec::new(),
        is_whole,
    };
    filling.calls();
    filling.requests();
    let Filling { sent, received, locks, failed, is_whole, .. } = filling;
    let (sent, received, locks) = (sent.list(), received.list(), locks.list());
    History { sent, received, collectives, locks, failed, is_whole }
}

impl Filling<'_, '_> {
    fn calls(&mut self) {
        let spool = self.translate.spool;
        for (id, count) in (0u32..).zip(&spool.tables.calls).filter(|(_, count)| count.count > 0) {
            match spool.tables.definitions.operation(id) {
                Some(operation) => {
                    let name = &all()[usize::from(operation.call)];
                    self.call(*operation, name, *count);
                }
                None => self.is_whole = false,
            }
        }
    }

    fn call(&mut self, operation: SpoolOperation, name: &CallName, count: Count) {
        if name.has_failed(operation.kind(), operation.comm != 0) {
            let (call, path) =
                (self.translate.call(operation.call), self.translate.path(operation.path));
            self.failed.push(Failed { call, path, count: count.count });
            self.is_whole = false;
        } else if is_of_message(&operation) && name.role == "BLOCK" {
            self.add(message_of_call(&operation, name), count);
        } else if name.family == "WINDOW" {
            let target = self.translate.peer_world(operation.comm, operation.peer);
            if let Some(window) = self.translate.communicator(operation.comm) {
                self.locks.add(&name.name, window, target, count.count);
            }
        }
    }

    fn requests(&mut self) {
        let spool = self.translate.spool;
        for (id, count) in (0u32..).zip(&spool.tables.requests).filter(|(_, count)| count.count > 0)
        {
            let definitions = &spool.tables.definitions;
            let outcome = definitions.outcome(id);
            let known = outcome.and_then(|it| Some((*it, *definitions.operation(it.operation)?)));
            match known {
                Some((outcome, operation)) => self.request(&outcome, &operation, *count),
                None => self.is_whole = false,
            }
        }
    }

    fn request(&mut self, outcome: &SpoolOutcome, operation: &SpoolOperation, count: Count) {
        if !is_of_message(operation) || outcome.ended == outcome::CANCELLED {
            return;
        }
        let definitions = &self.translate.spool.tables.definitions;
        let init = definitions.operation(operation.init).copied();
        let call = init.map_or(operation.call, |init| init.call);
        let is_partitioned = is_partitioned(&all()[usize::from(call)]);
        // Of one that was freed, or failed, nothing says what came: as posted it is known where the program named source and tag.
        let is_vague = outcome.ended == outcome::FREED || outcome.ended == outcome::FAILED;
        let (peer, tag) = match operation.kind {
            SpoolOperation::RECV if !is_vague => (outcome.source, outcome.tag),
            _ => (operation.peer, operation.tag),
        };
        let SpoolOperation { kind, comm, .. } = *operation;
        self.add(
            PastMessage { kind, comm, peer, tag, bytes: outcome.bytes, is_partitioned },
            count,
        );
        let came = self.translate.spool.tables.definitions.operation(outcome.receive).copied();
        match came.filter(is_of_message) {
            Some(came) => self.add(message_of_call(&came, &all()[usize::from(came.call)]), count),
            None if all()[usize::from(call)].sends_and_receives() => self.is_whole = false,
            None => {}
        }
    }

    fn add(&mut self, message: PastMessage, count: Count) {
        if message.peer == peer::PROC_NULL {
            return;
        }
        let communicator = self.translate.communicator(message.comm);
        let world = self.translate.peer_world(message.comm, message.peer);
        let (Some(communicator), Some(world), 0..) = (communicator, world, message.tag) else {
            self.is_whole = false;
            return;
        };
        let lanes =
            if message.kind == SpoolOperation::SEND { &mut self.sent } else { &mut self.received };
        let key = (communicator, world, i64::from(message.tag), message.is_partitioned);
        lanes.add(key, message.bytes, Times { count: count.count, last: count.last });
    }
}

fn is_of_message(operation: &SpoolOperation) -> bool {
    matches!(operation.kind, SpoolOperation::SEND | SpoolOperation::RECV)
}

fn is_partitioned(name: &CallName) -> bool {
    name.mode == Some(Mode::Partitioned)
}

fn message_of_call(operation: &SpoolOperation, name: &CallName) -> PastMessage {
    let is_receive = operation.kind == SpoolOperation::RECV;
    let (peer, tag) = match is_receive {
        true => (operation.source, operation.actual_tag),
        false => (operation.peer, operation.tag),
    };
    let SpoolOperation { kind, comm, actual_bytes: bytes, .. } = *operation;
    PastMessage { kind, comm, peer, tag, bytes, is_partitioned: is_partitioned(name) }
}

/// Collectives by communicator: those that ended, and with them those that are under way.
fn sequences(translate: &mut Translate<'_>, entries: &[Entry], kept: usize) -> Vec<Sequence> {
    let tables = &translate.spool.tables;
    let mut under_way: FxHashMap<u32, Vec<Begun>> = FxHashMap::default();
    for entry in entries {
        let Some(operation) = tables.definitions.operation(entry.operation) else { continue };
        if tables.gathers(operation) {
            let begun = Begun { begin: entry.post_begin, operation: entry.operation };
            under_way.entry(operation.comm).or_default().push(begun);
        }
    }
    let mut comms: Vec<u32> = tables.orders.keys().chain(under_way.keys()).copied().collect();
    comms.sort_unstable();
    comms.dedup();
    let mut sequences = Vec::with_capacity(comms.len());
    for comm in comms {
        let more = under_way.remove(&comm).unwrap_or_default();
        let order = tables.orders.get(&comm);
        let Some(communicator) = translate.communicator(comm) else { continue };
        let all = merged(order, more);
        let count = all.count;
        let from = all.last.len().saturating_sub(kept);
        let last = all.last.iter().skip(from).filter_map(|begun| collective(translate, *begun));
        sequences.push(Sequence { communicator, count, last: last.collect() });
    }
    sequences.sort_unstable_by_key(|sequence| sequence.communicator);
    sequences
}

fn merged(
    order: Option<&CollectiveOrder>,
    more: Vec<Begun>,
) -> std::borrow::Cow<'_, CollectiveOrder> {
    use std::borrow::Cow;
    let mut all = order.map_or_else(|| Cow::Owned(CollectiveOrder::default()), Cow::Borrowed);
    for begun in more {
        all.to_mut().insert(begun);
    }
    all
}

fn collective(translate: &mut Translate<'_>, begun: Begun) -> Option<Collective> {
    let definitions = &translate.spool.tables.definitions;
    let operation = *definitions.operation(begun.operation)?;
    let init = definitions.operation(operation.init).map(|init| init.call);
    Some(Collective {
        call: translate.call(init.unwrap_or(operation.call)),
        root: i64::from(operation.peer),
        root_world: translate.peer_world(operation.comm, operation.peer),
        bytes: operation.bytes,
        path: translate.path(operation.path),
    })
}
