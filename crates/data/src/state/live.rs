//! What a rank's threads are inside of, and its requests that are under way: what its process changes while it is read. The kernel
//! copies a piece of the file while the process writes it, so that a copy may be of two moments: what two copies one behind the
//! other agree on is of one.
//!
//! Where several tries find no two that agree, the thread is said to be in no call, though its number of calls tells
//! that it goes on. A record is written before its live entry is cleared, so a request whose record is the last of a
//! stream is over, whatever its entry says.

use std::io;

use super::definitions::Definitions;
use super::layout::{chunk as at, live, now, u16_at, u32_at, u64_at};
use super::spool::{Chunk, Spool};

/// Copies of what changes faster than it can be read.
const TRIES: usize = 8;

/// What a thread is inside of: `struct spool_thread_state`, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadInside {
    pub number: u16,
    pub tid: i64,
    /// 0: nothing, or it changes too fast to tell.
    pub operation: u32,
    pub begin: u64,
    pub mpi_ticks: u64,
    pub calls: u64,
    pub unsuccessful_tests: u64,
    /// The operation of the last of these; 0: none.
    pub unsuccessful_operation: u32,
    waits_variables: u64,
    pub waits_count: u32,
    waits_stride: u8,
}

impl ThreadInside {
    fn read(number: u16, tid: i64, bytes: &[u8]) -> ThreadInside {
        ThreadInside {
            number,
            tid,
            operation: u32_at(bytes, now::CURRENT_OPERATION),
            begin: u64_at(bytes, now::CURRENT_BEGIN),
            mpi_ticks: u64_at(bytes, now::MPI_TICKS),
            calls: u64_at(bytes, now::CALLS),
            unsuccessful_tests: u64_at(bytes, now::UNSUCCESSFUL_TESTS),
            unsuccessful_operation: u32_at(bytes, now::UNSUCCESSFUL_OPERATION),
            waits_variables: u64_at(bytes, now::WAITS_VARIABLES),
            waits_count: u32_at(bytes, now::WAITS_COUNT),
            waits_stride: bytes[now::WAITS_STRIDE],
        }
    }

    /// Whether the call was given the handle at that address of the program.
    pub fn waits_for(&self, variable: u64) -> bool {
        let (stride, offset) =
            (u64::from(self.waits_stride), variable.wrapping_sub(self.waits_variables));
        stride != 0 && offset < u64::from(self.waits_count) * stride && offset % stride == 0
    }
}

/// A request that is under way: `struct spool_live`, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub operation: u32,
    pub thread: u16,
    pub post_begin: u64,
    pub post_ticks: u64,
    pub unsuccessful_tests: u32,
    pub last_unsuccessful_test: u64,
    pub variable: u64,
    pub is_cancelled: bool,
    pub is_seen_complete: bool,
    pub is_persistent: bool,
    /// Number of partitions, of partitioned requests alone.
    pub partitions: u32,
    pub ready: u16,
}

impl Entry {
    fn read(bytes: &[u8]) -> Entry {
        let flags = bytes[live::FLAGS];
        Entry {
            operation: u32_at(bytes, live::OPERATION),
            thread: u16_at(bytes, live::THREAD),
            post_begin: u64_at(bytes, live::POST_BEGIN),
            post_ticks: u64_at(bytes, live::POST_TICKS),
            unsuccessful_tests: u32_at(bytes, live::UNSUCCESSFUL_TESTS),
            last_unsuccessful_test: u64_at(bytes, live::LAST_UNSUCCESSFUL_TEST),
            variable: u64_at(bytes, live::VARIABLE),
            is_cancelled: flags & live::CANCELLED != 0,
            is_seen_complete: flags & live::SEEN_COMPLETE != 0,
            is_persistent: flags & live::PERSISTENT != 0,
            partitions: u32_at(bytes, live::PARTITIONS),
            ready: u16_at(bytes, live::READY),
        }
    }
}

/// What a rank's threads are inside of, by number, and where a history is wanted what is under way.
///
/// # Errors
/// The file cannot be read.
pub fn read(spool: &Spool) -> io::Result<(Vec<ThreadInside>, Vec<Entry>)> {
    let (mut threads, mut entries) = (Vec::new(), Vec::new());
    for chunk in spool.chunks.iter().filter(|chunk| chunk.kind == at::LIVE) {
        if spool.tables.has_history {
            read_chunk(spool, chunk, &mut threads, &mut entries)?;
        } else if chunk.has_state {
            threads.extend(read_state(spool, chunk)?);
        }
    }
    entries.retain(|entry| !is_recorded(spool, entry));
    entries.sort_unstable_by_key(|entry| (entry.post_begin, entry.thread, entry.variable));
    threads.sort_unstable_by_key(|inside: &ThreadInside| inside.number);
    threads.dedup_by_key(|inside| inside.number);
    Ok((threads, entries))
}

/// Two copies of a thread's state alone.
fn read_state(spool: &Spool, chunk: &Chunk) -> io::Result<Option<ThreadInside>> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    spool.read_chunk(chunk, now::BYTES as u64, &mut first)?;
    spool.read_chunk(chunk, now::BYTES as u64, &mut second)?;
    let is_there = first.len() == now::BYTES && second.len() == now::BYTES;
    is_there.then(|| inside(spool, chunk, &first, &second)).transpose()
}

fn read_chunk(
    spool: &Spool,
    chunk: &Chunk,
    threads: &mut Vec<ThreadInside>,
    entries: &mut Vec<Entry>,
) -> io::Result<()> {
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    spool.read_chunk(chunk, chunk.bytes, &mut bytes)?;
    let mut is_same = false;
    for _ in 0..TRIES {
        spool.read_chunk(chunk, chunk.bytes, &mut again)?;
        is_same = bytes == again;
        if is_same {
            break;
        }
        std::mem::swap(&mut bytes, &mut again);
    }
    let mut from = 0;
    if chunk.has_state {
        if let (Some(state), Some(other)) = (bytes.get(..now::BYTES), again.get(..now::BYTES)) {
            threads.push(inside(spool, chunk, state, other)?);
        }
        from = now::BYTES;
    }
    let old = bytes.get(from..).unwrap_or_default().chunks_exact(live::BYTES);
    let new = again.get(from..).unwrap_or_default().chunks_exact(live::BYTES);
    let is_in_use = |entry: &&[u8]| u32_at(entry, live::OPERATION) != 0;
    let agreed = old.zip(new).filter(|(old, new)| is_same || old == new).map(|(old, _)| old);
    entries.extend(agreed.filter(is_in_use).map(Entry::read));
    Ok(())
}

/// Entries may go on changing where the state does not, and the other way round.
fn inside(spool: &Spool, chunk: &Chunk, first: &[u8], second: &[u8]) -> io::Result<ThreadInside> {
    let tid = tid(&spool.tables.definitions, chunk.thread);
    let of = |bytes: &[u8]| ThreadInside::read(chunk.thread, tid, bytes);
    let (mut before, mut after) = (of(first), of(second));
    let mut bytes = Vec::new();
    for _ in 0..TRIES {
        if before == after {
            return Ok(after);
        }
        before = after;
        spool.read_chunk(chunk, now::BYTES as u64, &mut bytes)?;
        if bytes.len() < now::BYTES {
            break;
        }
        after = of(&bytes);
    }
    // what it is inside of is not known; that it goes on is
    Ok(ThreadInside { operation: 0, waits_count: 0, ..after })
}

fn tid(definitions: &Definitions, thread: u16) -> i64 {
    definitions.threads.get(usize::from(thread)).copied().flatten().unwrap_or(0)
}

/// A request's record is written before its entry is cleared.
fn is_recorded(spool: &Spool, entry: &Entry) -> bool {
    let is_last = |thread: u16| {
        let last = spool.stream(thread).and_then(|stream| stream.last_request());
        let outcome = |id| spool.tables.definitions.outcome(id);
        last.is_some_and(|(posted_by, post_begin, id)| {
            (posted_by, post_begin) == (entry.thread, entry.post_begin)
                && outcome(id).is_some_and(|outcome| outcome.operation == entry.operation)
        })
    };
    spool.threads().any(is_last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_waited_for_when_it_is_one_of_the_array() {
        let array = ThreadInside {
            waits_variables: 0x1000,
            waits_count: 3,
            waits_stride: 8,
            ..ThreadInside::default()
        };
        let waited: Vec<u64> =
            (0xff8..0x1020).filter(|&variable| array.waits_for(variable)).collect();
        assert_eq!(waited, [0x1000, 0x1008, 0x1010]);
        assert!(!ThreadInside { waits_stride: 0, ..array }.waits_for(0x1000), "a damaged file");
        let none = ThreadInside { waits_count: 0, ..array };
        assert!(!none.waits_for(0x1000));
    }
}
