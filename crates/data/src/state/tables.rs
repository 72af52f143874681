//! What a rank's records amount to: counted by the ids of the spool, and understood later, as a record may stand in front of the
//! definition that it speaks of when that is in another thread's stream.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::definitions::{place, Definitions, SpoolOperation};
use super::fresh::{Fresh, SingleCall};
use super::names::facts;
use super::records::Definition;
use super::Sequence;

/// Bytes of the shortest record that defines something with an id.
const LEAST_DEFINITION: u64 = 8;
/// Records that wait for a definition: those of other threads, written within moments.
const MOST_UNSETTLED: usize = 1 << 16;

/// A record as ids and ticks.
#[derive(Debug, Clone, Copy)]
pub struct SpoolEvent {
    pub thread: u16,
    pub is_request: bool,
    /// The operation of a call, the outcome of a request.
    pub id: u32,
    pub receive: u32,
    /// Begin of the call, or of that which ended the request.
    pub begin: u64,
    pub duration: u64,
    pub post_begin: u64,
}

/// How often, and when last.
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    pub count: u64,
    /// Ticks at which the last of them began.
    pub last: u64,
    class: Class,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Class {
    #[default]
    NotKnown,
    Plain,
    /// Made by all members of its communicator in the same order.
    Gathers,
}

/// A collective of a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// Ticks.
    pub begin: u64,
    pub operation: u32,
}

/// Collectives of a communicator, by their begin.
#[derive(Debug, Clone, Default)]
pub struct CollectiveOrder {
    pub count: u64,
    pub last: VecDeque<Begun>,
}

impl CollectiveOrder {
    /// Requests end later than blocking calls that began behind them.
    pub fn insert(&mut self, begun: Begun) {
        self.count += 1;
        let behind = self.last.iter().rev().take_while(|other| other.begin > begun.begin).count();
        let place = self.last.len() - behind;
        if self.last.len() < Sequence::KEPT {
            self.last.insert(place, begun);
        } else if place > 0 {
            self.last.pop_front();
            self.last.insert(place - 1, begun);
        }
    }
}

/// What a rank's records amount to.
#[derive(Debug, Default)]
pub struct Tables {
    pub definitions: Definitions,
    /// Counts of calls, by operation.
    pub calls: Vec<Count>,
    /// Counts of requests, by outcome.
    pub requests: Vec<Count>,
    /// By communicator.
    pub orders: FxHashMap<u32, CollectiveOrder>,
    /// Ticks of the end of the last record.
    pub last: u64,
    /// Something that the rank did has no record.
    pub is_cut: bool,
    /// For a sink.
    pub fresh: Option<Fresh>,
    /// Whether a history is wanted, for which every record is read whole.
    pub has_history: bool,
    unsettled: Vec<SpoolEvent>,
    call_count: usize,
    damaged: u64,
}

impl Tables {
    pub fn new(call_count: usize) -> Tables {
        Tables { call_count, has_history: true, ..Tables::default() }
    }

    pub fn set_room(&mut self, bytes: u64) {
        self.definitions.room = (bytes / LEAST_DEFINITION).min(u64::from(u32::MAX - 1));
    }

    /// Whether what comes is summed up for a sink.
    pub fn keep_fresh(&mut self, is_wanted: bool) {
        self.fresh = is_wanted.then(|| self.fresh.take().unwrap_or_default());
    }

    /// Counts a request of which nothing but its outcome is wanted.
    #[inline]
    pub fn take_outcome(&mut self, outcome: u32) {
        let room = self.definitions.room;
        let is_sound = self.fresh.as_mut().map_or(true, |fresh| fresh.request(outcome, room));
        self.damaged += u64::from(!is_sound);
    }

    pub fn define(&mut self, definition: &Definition<'_>) {
        let is_sound = self.definitions.keep(definition, self.call_count);
        self.damaged += u64::from(!is_sound);
    }

    pub fn is_damaged(&self) -> bool {
        self.damaged != 0
    }

    #[inline]
    pub fn take(&mut self, event: &SpoolEvent) {
        if self.has_history {
            self.count(event);
        }
        if event.is_request {
            self.take_outcome(event.id);
        } else if let Some(fresh) = &mut self.fresh {
            let SpoolEvent { thread, id: operation, begin, duration, .. } = *event;
            let call = SingleCall { thread, operation, begin, duration };
            self.damaged += u64::from(!fresh.call(call, self.definitions.room));
        }
    }

    #[inline]
    fn count(&mut self, event: &SpoolEvent) {
        let room = self.definitions.room;
        let begin = if event.is_request { event.post_begin } else { event.begin };
        let table = if event.is_request { &mut self.requests } else { &mut self.calls };
        let id = event.id as usize;
        if id >= table.len() && place(table, room, event.id).is_none() {
            self.damaged += 1;
            return;
        }
        let count = &mut table[id];
        count.count += 1;
        count.last = count.last.max(begin);
        let class = count.class;
        if event.receive != 0 && !event.is_request {
            match place(&mut self.calls, room, event.receive) {
                Some(count) => {
                    count.count += 1;
                    count.last = count.last.max(begin);
                }
                None => self.damaged += 1,
            }
        }
        if class != Class::Plain {
            self.classify(event);
        }
    }

    /// Adds an event that may be a collective.
    fn classify(&mut self, event: &SpoolEvent) {
        let (operation, begin) = match event.is_request {
            true => match self.definitions.outcome(event.id) {
                Some(outcome) => (outcome.operation, event.post_begin),
                None => return self.defer(event),
            },
            false => (event.id, event.begin),
        };
        let Some(known) = self.definitions.operation(operation).copied() else {
            return self.defer(event);
        };
        let gathers = self.gathers(&known);
        let table = if event.is_request { &mut self.requests } else { &mut self.calls };
        table[event.id as usize].class = if gathers { Class::Gathers } else { Class::Plain };
        if gathers {
            self.orders.entry(known.comm).or_default().insert(Begun { begin, operation });
        }
    }

    fn defer(&mut self, event: &SpoolEvent) {
        if self.unsettled.len() < MOST_UNSETTLED {
            self.unsettled.push(*event);
        } else {
            self.damaged += 1;
        }
    }

    /// What waits for a definition has it, when all streams were read.
    pub fn settle(&mut self) {
        for event in std::mem::take(&mut self.unsettled) {
            self.classify(&event);
        }
    }

    /// Whether all members of its communicator make it in the same order. Of persistent requests each start counts, not the call
    /// that made them.
    pub fn gathers(&self, operation: &SpoolOperation) -> bool {
        let call = match self.definitions.operation(operation.init) {
            Some(init) => init.call,
            None if facts(operation.call).is_init => return false,
            None => operation.call,
        };
        operation.comm != 0 && facts(call).gathers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_are_in_the_order_of_their_begin() {
        let mut order = CollectiveOrder::default();
        for begin in [10, 30, 20, 40, 5] {
            order.insert(Begun { begin, operation: begin as u32 });
        }
        let begins: Vec<u64> = order.last.iter().map(|begun| begun.begin).collect();
        assert_eq!((order.count, begins), (5, vec![5, 10, 20, 30, 40]));
    }

    #[test]
    fn the_latest_collectives_are_kept() {
        let mut order = CollectiveOrder::default();
        let all = 2 * Sequence::KEPT as u64;
        for begin in (0..all).map(|number| 2 * number) {
            order.insert(Begun { begin, operation: 1 });
        }
        order.insert(Begun { begin: 1, operation: 2 });
        order.insert(Begun { begin: 2 * all - 3, operation: 3 });
        assert_eq!((order.count, order.last.len()), (all + 2, Sequence::KEPT));
        let operations: Vec<u32> = order.last.iter().rev().map(|begun| begun.operation).collect();
        assert_eq!(operations[..3], [1, 3, 1]);
        assert!(!operations.contains(&2), "one that began long before is only counted");
    }
}
