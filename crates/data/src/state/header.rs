//! The header of a spool, and its clock.

use super::layout::{f64_at, header as at, i32_at, i64_at, u32_at, u64_at, VERSION};
use crate::model::bounds::{LATEST_EPOCH_NS, LONGEST_NS, MOST};
use crate::model::{Nanos, Rank};
use crate::store::Owner;

/// What a header says.
#[derive(Debug, Clone)]
pub struct Header {
    /// `enum spool_end`.
    pub end: u32,
    pub rank: Rank,
    pub world_size: i64,
    pub thread_level: i64,
    pub life: i64,
    pub owner: Owner,
    pub clock: Clock,
    /// CLOCK_MONOTONIC at the epoch.
    pub epoch_monotonic_ns: i64,
    pub epoch_unix_ns: i64,
    pub init_end: Nanos,
    /// `None`: not entered.
    pub finalize_begin: Option<Nanos>,
    /// When the recorder last set its clock: of a rank that ended by itself, its end.
    pub clock_set: Nanos,
    /// Whether something is missing from the records: it was lost, was left out, or its begin was not seen.
    pub lacks_records: bool,
    pub chunks: u64,
}

impl Header {
    /// # Errors
    /// What is wrong with it, as a sentence's end.
    pub fn parse(bytes: &[u8]) -> Result<Header, &'static str> {
        if bytes.len() < at::BYTES || !bytes.starts_with(at::MAGIC) {
            return Err("is not a lapscope spool");
        }
        if u32_at(bytes, at::VERSION) != VERSION {
            return Err("was written by another version of lapscope: look at it with that version");
        }
        let rank = i32_at(bytes, at::RANK);
        let (world_size, world) = (i32_at(bytes, at::WORLD_SIZE), i32_at(bytes, at::WORLD));
        let life = i32_at(bytes, at::LIFE);
        let (monotonic, unix) = (i64_at(bytes, at::FIRST + 8), i64_at(bytes, at::EPOCH_UNIX_NS));
        let is_epoch = |moment: i64| (0..=LATEST_EPOCH_NS).contains(&moment);
        let is_sound = u32_at(bytes, at::HEADER_BYTES) as usize == at::BYTES
            && (0..world_size).contains(&rank)
            && world > 0
            && life > 0
            && is_epoch(monotonic)
            && is_epoch(unix);
        if !is_sound {
            return Err("has a damaged header (bytes 0 to 4095): nothing can be read from it");
        }
        let clock = Clock::of_header(bytes);
        let finalize = u64_at(bytes, at::FINALIZE_BEGIN);
        let is_some = |at| u64_at(bytes, at) != 0;
        Ok(Header {
            end: u32_at(bytes, at::END),
            rank: Rank { world: i64::from(world), number: i64::from(rank) },
            world_size: i64::from(world_size),
            thread_level: i64::from(i32_at(bytes, at::THREAD_LEVEL)),
            life: i64::from(life),
            owner: owner(bytes, unix),
            clock,
            epoch_monotonic_ns: monotonic,
            epoch_unix_ns: unix,
            init_end: clock.moment(u64_at(bytes, at::INIT_END)),
            finalize_begin: (finalize != 0).then(|| clock.moment(finalize)),
            clock_set: clock.moment(latest_pair(bytes).0),
            lacks_records: is_some(at::LOST_RECORDS)
                || is_some(at::UNKNOWN_REQUESTS)
                || u32_at(bytes, at::SUMMARIZED) != 0,
            chunks: u64::from(u32_at(bytes, at::CHUNKS)),
        })
    }
}

fn owner(bytes: &[u8], began_unix_ns: i64) -> Owner {
    let text = |at: usize, size: usize| {
        let field = &bytes[at..at + size - 1];
        let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).into_owned()
    };
    Owner {
        host: text(at::HOST, 256),
        pid: i64_at(bytes, at::PID),
        job: text(at::JOB, 256),
        launch: text(at::LAUNCH, 64),
        pid_start: u64_at(bytes, at::PID_START),
        pid_namespace: u64_at(bytes, at::PID_NAMESPACE),
        boot_id: text(at::BOOT_ID, 40),
        began_unix_ns,
    }
}

/// Ticks, and nanoseconds of CLOCK_MONOTONIC.
fn clock_pair(bytes: &[u8], place: usize) -> (u64, i64) {
    (u64_at(bytes, place), i64_at(bytes, place + 8))
}

/// The last one; zeros where there is none.
fn latest_pair(bytes: &[u8]) -> (u64, i64) {
    match u32_at(bytes, at::LATEST_INDEX) {
        0 => (0, 0),
        index => clock_pair(bytes, at::LATEST + 16 * (index & 1) as usize),
    }
}

/// Ticks as nanoseconds: as interposer/recorder/spool/definitions.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    first: u64,
    /// In units of 2^-56.
    ns_per_tick: u64,
}

impl Clock {
    fn of_header(bytes: &[u8]) -> Clock {
        let (first, first_ns) = clock_pair(bytes, at::FIRST);
        let (latest, latest_ns) = latest_pair(bytes);
        let mut ticks_per_ns = f64_at(bytes, at::NOMINAL_TICKS_PER_NS);
        if latest > first && latest_ns > first_ns {
            ticks_per_ns = (latest - first) as f64 / (latest_ns.abs_diff(first_ns)) as f64;
        }
        if !(ticks_per_ns > 1e-2 && ticks_per_ns < 1e3) {
            ticks_per_ns = 1.0; // not a number, too
        }
        Clock { first, ns_per_tick: ((1u64 << 56) as f64 / ticks_per_ns) as u64 }
    }

    /// Converts a duration.
    pub fn span(self, ticks: u64) -> Nanos {
        let ticks = ticks.min(LONGEST_NS as u64);
        let ns = (u128::from(ticks) * u128::from(self.ns_per_tick)) >> 56;
        Nanos(ns.min(LONGEST_NS as u128) as i64)
    }

    /// The first tick of a moment since the epoch, or one behind it.
    pub fn ticks(self, moment: Nanos) -> u64 {
        let ticks = ((moment.0.max(0) as u128) << 56) / u128::from(self.ns_per_tick.max(1));
        self.first.saturating_add(ticks.min(u128::from(u64::MAX)) as u64).saturating_add(1)
    }

    /// Since the epoch.
    pub fn moment(self, ticks: u64) -> Nanos {
        self.span(ticks.saturating_sub(self.first))
    }
}

/// Counts of a file that cannot be are none.
pub fn believed(count: u64) -> u64 {
    if count <= MOST as u64 {
        count
    } else {
        0
    }
}
