//! What a rank does, out of its spool.

use super::header::believed;
use super::intern::Names;
use super::layout::header;
use super::live::{Entry, ThreadInside};
use super::spool::Spool;
use super::translate::Translate;
use super::{
    history, Condition, History, LastCall, OpenCall, OpenOperation, OpenRequest, Partitions,
    RankState, ThreadState, Waits,
};
use crate::model::{Completes, Kind, Mode, Nanos};
use crate::store::Fate;

/// What was seen of a rank besides its records.
#[derive(Debug, Clone)]
pub struct Sight {
    /// Asked before the spool was read.
    pub fate: Fate,
    /// When it was read, since the epoch.
    pub now: Nanos,
    pub threads: Vec<ThreadInside>,
    pub entries: Vec<Entry>,
    pub is_whole: bool,
}

/// The rank's state.
pub fn state(translate: &mut Translate<'_>, sight: Sight, kept: usize) -> RankState {
    let header = translate.spool.header.clone();
    let definitions = &translate.spool.tables.definitions;
    translate.names.describe(&definitions.command, &definitions.mpi_library);
    let clock = header.clock;
    let mut requests = Vec::with_capacity(sight.entries.len());
    let mut places = Vec::with_capacity(sight.entries.len());
    for entry in &sight.entries {
        let Some(operation) = translate.open_operation(entry.operation) else { continue };
        places.push(*entry);
        let partitions = partitions(entry, &operation, translate.names);
        requests.push(OpenRequest {
            operation,
            partitions,
            thread: u32::from(entry.thread),
            begin: clock.moment(entry.post_begin),
            unsuccessful_tests: entry.unsuccessful_tests,
            last_unsuccessful_test: match entry.unsuccessful_tests {
                0 => Nanos(0),
                _ => clock.moment(entry.last_unsuccessful_test),
            },
            is_cancelled: entry.is_cancelled,
            is_seen_complete: entry.is_seen_complete,
        });
    }
    let threads: Vec<ThreadState> = sight
        .threads
        .iter()
        .map(|inside| thread(translate, inside, &places, &header.end))
        .collect();
    let history = match translate.spool.tables.has_history {
        true => history::read(translate, &sight.entries, sight.is_whole, kept),
        false => History::default(),
    };
    let mut last_record = last_record(translate, &sight);
    let condition = condition(&header.end, header.finalize_begin, sight.fate, &threads);
    let now = match condition {
        Condition::Finalized | Condition::Aborted | Condition::Exited => {
            last_record = last_record.max(header.clock_set);
            last_record
        }
        _ => sight.now.max(last_record),
    };
    RankState {
        rank: header.rank,
        life: header.life,
        world_size: header.world_size,
        host: header.owner.host.clone(),
        pid: header.owner.pid,
        thread_level: header.thread_level,
        condition,
        epoch_unix_ns: header.epoch_unix_ns,
        init_end: header.init_end,
        now,
        last_record,
        threads,
        other_threads: Vec::new(),
        requests,
        history,
    }
}

fn condition(end: &u32, finalize: Option<Nanos>, fate: Fate, threads: &[ThreadState]) -> Condition {
    let is_inside = threads.iter().any(|thread| thread.open.is_some());
    match (*end, fate) {
        (header::FINALIZED, _) => Condition::Finalized,
        (header::ABORTED, _) => Condition::Aborted,
        (header::EXITED, _) => Condition::Exited,
        (_, Fate::Unknown) => Condition::Unknown,
        (_, Fate::Runs) if finalize.is_some() => Condition::Finalizing,
        (_, Fate::Runs) => Condition::Runs,
        // killed when MPI had ended, as by a launcher that did not wait: then nothing is missing
        (_, Fate::Ended) if finalize.is_some() && !is_inside => Condition::Finalized,
        (_, Fate::Ended) => Condition::Killed,
    }
}

fn thread(
    translate: &mut Translate<'_>,
    inside: &ThreadInside,
    entries: &[Entry],
    end: &u32,
) -> ThreadState {
    let clock = translate.spool.header.clock;
    let begin = clock.moment(inside.begin);
    let is_over = *end == header::FINALIZED;
    let operation = match inside.operation {
        0 => None,
        _ if is_over => None,
        id => translate.open_operation(id),
    };
    let open = operation.map(|operation| OpenCall {
        waits: waits(translate, &operation, inside, entries),
        operation,
        begin,
    });
    ThreadState {
        number: u32::from(inside.number),
        tid: inside.tid,
        calls: believed(inside.calls),
        unsuccessful_tests: believed(inside.unsuccessful_tests),
        unsuccessful: translate.open_operation(inside.unsuccessful_operation),
        mpi: clock.span(inside.mpi_ticks),
        open,
        last: last_call(translate, inside.number, entries),
        system: None,
    }
}

/// What the thread did last: a call that has a row, or the post of a request that is under way.
fn last_call(translate: &mut Translate<'_>, number: u16, entries: &[Entry]) -> Option<LastCall> {
    let clock = translate.spool.header.clock;
    let call = translate.spool.stream(number).and_then(|stream| stream.last_call());
    let call = call.map(|call| (call.begin.saturating_add(call.duration), call.operation));
    let own = entries.iter().filter(|entry| entry.thread == number);
    let post =
        own.map(|entry| (entry.post_begin.saturating_add(entry.post_ticks), entry.operation));
    let (end, id) = post.chain(call).max()?;
    let operation = *translate.spool.tables.definitions.operation(id)?;
    Some(LastCall {
        call: translate.call(operation.call),
        path: translate.path(operation.path),
        end: clock.moment(end),
    })
}

/// What of a partitioned send is ready.
fn partitions(entry: &Entry, operation: &OpenOperation, names: &Names) -> Option<Partitions> {
    let made_by = names.name(operation.made_by.unwrap_or(operation.call));
    let is_one = operation.kind == Kind::Send && made_by.mode == Some(Mode::Partitioned);
    let Entry { partitions: all, ready, .. } = *entry;
    is_one.then_some(Partitions { all, ready: u32::from(ready) })
}

/// The requests that the open call was given.
fn waits(
    translate: &Translate<'_>,
    operation: &OpenOperation,
    inside: &ThreadInside,
    entries: &[Entry],
) -> Option<Waits> {
    let completes: Option<Completes> = translate.names.name(operation.call).completes;
    completes.filter(|_| inside.waits_count > 0)?;
    let is_given = |entry: &Entry| inside.waits_for(entry.variable);
    let numbered = || (0u32..).zip(entries);
    let given: Vec<u32> =
        numbered().filter(|(_, entry)| is_given(entry)).map(|(at, _)| at).collect();
    // handles that the program has moved, as persistent ones that it keeps elsewhere than where they were made
    let is_own = |entry: &Entry| entry.thread == inside.number;
    let may_be = |entry: &Entry| is_own(entry) && (given.is_empty() || entry.is_persistent);
    let moved: Vec<u32> = numbered()
        .filter(|(_, entry)| !is_given(entry) && may_be(entry))
        .map(|(at, _)| at)
        .collect();
    let is_certain = given.len() >= inside.waits_count as usize || moved.is_empty();
    let mut requests = given;
    if !is_certain {
        requests.extend(moved);
        requests.sort_unstable();
    }
    Some(Waits { requests, handles: inside.waits_count, is_certain })
}

fn last_record(translate: &Translate<'_>, sight: &Sight) -> Nanos {
    let (header, tables) = (&translate.spool.header, &translate.spool.tables);
    let posts = sight.entries.iter().map(|entry| {
        let post = entry.post_begin.saturating_add(entry.post_ticks);
        if entry.unsuccessful_tests == 0 {
            post
        } else {
            post.max(entry.last_unsuccessful_test)
        }
    });
    let begins =
        sight.threads.iter().filter(|inside| inside.operation != 0).map(|inside| inside.begin);
    let last = posts.chain(begins).chain([tables.last]).max().unwrap_or_default();
    let finalize = header.finalize_begin.unwrap_or_default();
    header.clock.moment(last).max(finalize).max(header.init_end)
}

/// Since the epoch of a spool's rank, by this host's clocks: by CLOCK_MONOTONIC where that is the rank's own.
pub fn now(spool: &Spool, is_own_clock: bool) -> Nanos {
    let header = &spool.header;
    let ns = match is_own_clock {
        true => clock_ns(libc::CLOCK_MONOTONIC) - header.epoch_monotonic_ns,
        false => clock_ns(libc::CLOCK_REALTIME) - header.epoch_unix_ns,
    };
    Nanos(ns.max(0))
}

fn clock_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is written before the call returns.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}
