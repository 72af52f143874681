//! Tells a sink of what was read.

use rustc_hash::FxHashMap;

use super::definitions::SpoolOperation;
use super::layout::{chunk, outcome, tally as at, u16_at, u32_at, u64_at};
use super::seen::{SeenBy, SeenCall, SeenCount, SeenInjection, SeenOperation, SeenRequest, Sink};
use super::tables::SpoolEvent;
use super::translate::Translate;
use crate::model::RequestEnded;

/// Numbers of a tally entry.
const NUMBERS: usize = 7;

/// What a sink was told of that is not read piece by piece.
#[derive(Debug, Default)]
pub struct SinkTallies {
    /// By chunk and place in it.
    tallies: FxHashMap<(usize, usize), [u64; NUMBERS]>,
    was_told: bool,
}

impl SinkTallies {
    /// Whether all that a process that is gone has left was told.
    pub fn is_all(&self) -> bool {
        self.was_told
    }

    /// Returns those whose definitions were not read yet.
    pub fn events(
        &mut self,
        translate: &mut Translate<'_>,
        events: Vec<SpoolEvent>,
        sink: &mut dyn Sink,
    ) -> Vec<SpoolEvent> {
        let mut left = Vec::new();
        for event in events {
            let known = match event.is_request {
                true => request(translate, &event).map(|seen| sink.request(&seen)),
                false => call(translate, &event).map(|seen| sink.call(&seen)),
            };
            if known.is_none() {
                left.push(event);
            }
        }
        left
    }

    /// What was only counted, as far as it became more.
    pub fn tallies(&mut self, translate: &mut Translate<'_>, sink: &mut dyn Sink) {
        self.was_told = true;
        let spool = translate.spool;
        let mut bytes = Vec::new();
        for (number, chunk) in spool.chunks.iter().enumerate() {
            if chunk.kind != chunk::TALLY
                || spool.read_chunk(chunk, chunk.bytes, &mut bytes).is_err()
            {
                continue;
            }
            let by = by(translate, chunk.thread);
            let is_in_use = |entry: &&[u8]| u16_at(entry, at::CALL_PLUS_1) != 0;
            let entries = bytes.chunks_exact(at::BYTES).take_while(is_in_use);
            for (place, entry) in entries.enumerate() {
                let now = numbers(entry);
                let before = self.tallies.insert((number, place), now).unwrap_or_default();
                if now != before {
                    let mut more = now;
                    for (more, before) in more.iter_mut().zip(before) {
                        *more = more.saturating_sub(before);
                    }
                    tell_tally(translate, by, entry, more, sink);
                }
            }
        }
    }
}

fn numbers(entry: &[u8]) -> [u64; NUMBERS] {
    let mut numbers = [0; NUMBERS];
    for (place, number) in numbers.iter_mut().enumerate() {
        *number = u64_at(entry, at::COUNT + 8 * place);
    }
    // two counts of 32 bits lie in one word
    numbers[(at::INTERRUPTS - at::COUNT) / 8] = match entry[at::REASON] {
        at::INJECTION => u64::from(u32_at(entry, at::INTERRUPTS)),
        _ => 0,
    };
    numbers
}

fn tell_tally(
    translate: &mut Translate<'_>,
    by: SeenBy,
    entry: &[u8],
    more: [u64; NUMBERS],
    sink: &mut dyn Sink,
) {
    let number = |place: usize| more[(place - at::COUNT) / 8];
    let clock = translate.spool.header.clock;
    let call = u16_at(entry, at::CALL_PLUS_1) - 1;
    if usize::from(call) >= super::names::all().len() {
        return;
    }
    let (call, path) = (translate.call(call), translate.path(u32_at(entry, at::PATH)));
    match entry[at::REASON] {
        at::INJECTION => sink.injected(&SeenInjection {
            by,
            call,
            path,
            requests: number(at::COUNT),
            tests: number(at::TESTS),
            found: number(at::FOUND),
            inside: clock.span(number(at::TEST_TICKS)),
            interrupts: number(at::INTERRUPTS),
        }),
        at::SAMPLE => {}
        reason => sink.counted(&SeenCount {
            by,
            call,
            path,
            is_unsuccessful: reason == at::UNSUCCESSFUL_TEST,
            count: number(at::COUNT),
            bytes: number(at::SIZE),
            inside: clock.span(number(at::INSIDE_TICKS)),
        }),
    }
}

fn by(translate: &Translate<'_>, thread: u16) -> SeenBy {
    let header = &translate.spool.header;
    SeenBy {
        rank: header.rank,
        life: header.life,
        epoch_unix_ns: header.epoch_unix_ns,
        thread: u32::from(thread),
    }
}

/// `None` while the definition of what it was is not known.
fn call(translate: &mut Translate<'_>, event: &SpoolEvent) -> Option<SeenCall> {
    let operation = *translate.spool.tables.definitions.operation(event.id)?;
    let receive = match event.receive {
        0 => None,
        id => Some(*translate.spool.tables.definitions.operation(id)?),
    };
    let clock = translate.spool.header.clock;
    Some(SeenCall {
        by: by(translate, event.thread),
        operation: came(translate, &operation),
        receive: receive.map(|receive| came(translate, &receive)),
        begin: clock.moment(event.begin),
        end: clock.moment(event.begin.saturating_add(event.duration)),
    })
}

fn request(translate: &mut Translate<'_>, event: &SpoolEvent) -> Option<SeenRequest> {
    let definitions = &translate.spool.tables.definitions;
    let outcome = *definitions.outcome(event.id)?;
    let posted = *definitions.operation(outcome.operation)?;
    let receive = definitions.operation(outcome.receive).copied();
    let clock = translate.spool.header.clock;
    let came_as = SpoolOperation {
        source: outcome.source,
        actual_tag: outcome.tag,
        actual_bytes: outcome.bytes,
        ..posted
    };
    Some(SeenRequest {
        by: by(translate, event.thread),
        posted_by: u32::from(event.posted_by),
        operation: came(translate, &came_as),
        receive: receive.map(|receive| came(translate, &receive)),
        ended: ended(outcome.ended),
        post_begin: clock.moment(event.post_begin),
        post_end: clock.moment(event.post_begin.saturating_add(event.post_duration)),
        completion_begin: clock.moment(event.begin),
        completion_end: clock.moment(event.begin.saturating_add(event.duration)),
        unsuccessful_tests: event.tests,
    })
}

fn ended(code: u8) -> RequestEnded {
    match code {
        1 => RequestEnded::Waited,
        2 => RequestEnded::Tested,
        outcome::FREED => RequestEnded::Freed,
        outcome::CANCELLED => RequestEnded::Cancelled,
        _ => RequestEnded::Failed,
    }
}

fn came(translate: &mut Translate<'_>, operation: &SpoolOperation) -> SeenOperation {
    let peer = match operation.kind {
        SpoolOperation::RECV => operation.source,
        _ => operation.peer,
    };
    SeenOperation {
        call: translate.call(operation.call),
        kind: operation.kind(),
        path: translate.path(operation.path),
        communicator: translate.communicator(operation.comm),
        peer_world: translate.peer_world(operation.comm, peer),
        tag: i64::from(operation.actual_tag),
        bytes: operation.actual_bytes,
    }
}
