//! Tells a sink of what was read.

use std::io;

use rustc_hash::FxHashMap;

use super::definitions::SpoolOperation;
use super::fresh::Fresh;
use super::layout::{chunk, tally as at, u16_at, u32_at, u64_at};
use super::seen::{
    SeenBy, SeenCall, SeenCalls, SeenCount, SeenInjection, SeenOperation, SeenRequests, Sink,
};
use super::spool::{Chunk, Spool};
use super::translate::Translate;

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

    /// What was summed up; that of which the definitions were not read yet stays there.
    pub fn sums(&mut self, translate: &mut Translate<'_>, fresh: &mut Fresh, sink: &mut dyn Sink) {
        let (by, clock) = (by(translate), translate.spool.header.clock);
        fresh.single.retain(|call| {
            let Some(operation) = of_call(translate, call.operation) else { return true };
            sink.call(&SeenCall {
                by,
                thread: u32::from(call.thread),
                operation,
                begin: clock.moment(call.begin),
                end: clock.moment(call.begin.saturating_add(call.duration)),
            });
            false
        });
        fresh.take_calls(|id, sum| {
            let Some(operation) = of_call(translate, id) else { return false };
            let (count, inside) = (sum.count, clock.span(sum.ticks));
            sink.calls(&SeenCalls { by, operation, count, inside });
            true
        });
        fresh.take_requests(|id, &count| {
            let Some(operation) = of_request(translate, id) else { return false };
            sink.requests(&SeenRequests { by, operation, count });
            true
        });
    }

    /// What was only counted, as far as it became more.
    pub fn tallies(&mut self, translate: &mut Translate<'_>, sink: &mut dyn Sink) {
        self.was_told = true;
        let spool = translate.spool;
        let mut bytes = Vec::new();
        for (number, chunk) in spool.chunks.iter().enumerate() {
            if chunk.kind != chunk::TALLY || read_entries(spool, chunk, &mut bytes).is_err() {
                continue;
            }
            for (place, entry) in bytes.chunks_exact(at::BYTES).take_while(is_in_use).enumerate() {
                let now = numbers(entry);
                let before = self.tallies.insert((number, place), now).unwrap_or_default();
                if now != before {
                    let mut more = now;
                    for (more, before) in more.iter_mut().zip(before) {
                        *more = more.saturating_sub(before);
                    }
                    tell_tally(translate, chunk.thread, entry, more, sink);
                }
            }
        }
    }
}

fn is_in_use(entry: &&[u8]) -> bool {
    u16_at(entry, at::CALL_PLUS_1) != 0
}

/// What of a chunk is in use, and a piece behind it: most ranks have few entries.
fn read_entries(spool: &Spool, chunk: &Chunk, into: &mut Vec<u8>) -> io::Result<()> {
    let mut wanted = 16 * at::BYTES as u64;
    loop {
        spool.read_chunk(chunk, wanted, into)?;
        let is_all = wanted >= chunk.bytes || (into.len() as u64) < wanted;
        if is_all || !into.chunks_exact(at::BYTES).all(|entry| is_in_use(&entry)) {
            return Ok(());
        }
        wanted *= 8;
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
    thread: u16,
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
    let by = by(translate);
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
            thread: u32::from(thread),
            call,
            path,
            is_unsuccessful: reason == at::UNSUCCESSFUL_TEST,
            count: number(at::COUNT),
            bytes: number(at::SIZE),
            inside: clock.span(number(at::INSIDE_TICKS)),
        }),
    }
}

fn by(translate: &Translate<'_>) -> SeenBy {
    let header = &translate.spool.header;
    SeenBy { rank: header.rank, life: header.life }
}

/// `None` while the definition of what it was is not known.
fn of_call(translate: &mut Translate<'_>, id: u32) -> Option<SeenOperation> {
    let operation = *translate.spool.tables.definitions.operation(id)?;
    Some(came(translate, &operation, operation.actual_bytes))
}

/// The same of an outcome.
fn of_request(translate: &mut Translate<'_>, id: u32) -> Option<SeenOperation> {
    let definitions = &translate.spool.tables.definitions;
    let outcome = *definitions.outcome(id)?;
    let operation = *definitions.operation(outcome.operation)?;
    Some(came(translate, &operation, outcome.bytes))
}

fn came(translate: &mut Translate<'_>, operation: &SpoolOperation, bytes: u64) -> SeenOperation {
    SeenOperation {
        call: translate.call(operation.call),
        kind: operation.kind(),
        path: translate.path(operation.path),
        bytes,
    }
}
