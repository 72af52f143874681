//! Where the fields of schema/spool.h lie. crates/data/src/state_layout.c holds the C compiler to the same offsets.

/// Integers of the machine at an offset of bytes that are known to be long enough.
macro_rules! reads {
    ($($name:ident: $type:ty,)*) => {
        $(
            #[inline]
            pub fn $name(bytes: &[u8], at: usize) -> $type {
                const BYTES: usize = std::mem::size_of::<$type>();
                let mut own = [0; BYTES];
                own.copy_from_slice(&bytes[at..at + BYTES]);
                <$type>::from_ne_bytes(own)
            }
        )*
    };
}

reads! { u16_at: u16, u32_at: u32, u64_at: u64, i32_at: i32, i64_at: i64, f64_at: f64, }

pub const VERSION: u32 = 11;

pub mod header {
    pub const BYTES: usize = 4096;
    pub const MAGIC: &[u8; 8] = b"LAPSPOOL";
    pub const VERSION: usize = 8;
    pub const HEADER_BYTES: usize = 12;
    pub const END: usize = 20;
    pub const RANK: usize = 24;
    pub const WORLD_SIZE: usize = 28;
    pub const THREAD_LEVEL: usize = 32;
    pub const LIFE: usize = 36;
    pub const PID: usize = 40;
    pub const PID_START: usize = 48;
    pub const HOST: usize = 56;
    pub const BOOT_ID: usize = 312;
    pub const FIRST: usize = 352;
    pub const EPOCH_UNIX_NS: usize = 368;
    pub const LATEST: usize = 376;
    pub const LATEST_INDEX: usize = 408;
    pub const WORLD: usize = 412;
    pub const NOMINAL_TICKS_PER_NS: usize = 416;
    pub const INIT_END: usize = 424;
    pub const FINALIZE_BEGIN: usize = 432;
    pub const LOST_RECORDS: usize = 440;
    pub const UNKNOWN_REQUESTS: usize = 448;
    pub const SUMMARIZED: usize = 456;
    pub const CHUNKS: usize = 460;
    pub const JOB: usize = 464;
    pub const LAUNCH: usize = 720;
    pub const PID_NAMESPACE: usize = 784;

    pub const FINALIZED: u32 = 1;
    pub const ABORTED: u32 = 2;
    pub const EXITED: u32 = 3;
}

pub mod chunk {
    pub const BYTES: usize = 64;
    pub const ALIGN: u64 = 65536;
    pub const MAGIC: u32 = 0x4b4e_4843;
    pub const KIND: usize = 4;
    pub const THREAD: usize = 6;
    pub const SIZE: usize = 8;
    pub const USED: usize = 16;
    pub const BASE: usize = 24;
    pub const HAS_STATE: usize = 32;

    /// Bytes of a chunk that is no stream, at most.
    pub const MOST_ENTRIES_BYTES: u64 = 1 << 20;

    pub const STREAM: u16 = 1;
    pub const LIVE: u16 = 2;
    pub const TALLY: u16 = 3;
}

/// Types of records, and how long what is fixed of definitions is.
pub mod record {
    pub const END: u8 = 0;
    pub const META: u8 = 1;
    pub const MODULE: u8 = 2;
    pub const PATH: u8 = 3;
    pub const COMM: u8 = 4;
    pub const OPERATION: u8 = 5;
    pub const OUTCOME: u8 = 6;
    pub const THREAD: u8 = 7;
    pub const MARK_NAME: u8 = 9;
    pub const CALL: u8 = 16;
    pub const REQUEST: u8 = 18;
    pub const FOREIGN: u8 = 19;
    pub const LEFT_OUT: u8 = 23;
    pub const MARK: u8 = 26;
    pub const LAST_HOT: u8 = MARK;

    /// Behind the byte of the type, by type.
    pub const HEADS: [usize; 10] = [0, 6, 32, 7, 35, 55, 29, 10, 69, 5];
    pub const HOT_HEAD: usize = 3;
    pub const HOT_FIELDS: usize = 5;
    /// With what a whole word behind the last field reads.
    pub const HOT_MOST: usize = HOT_HEAD + 7 * HOT_FIELDS + 8;
}

pub mod module {
    pub const BASE: usize = 4;
    pub const SIZE: usize = 12;
    pub const BEGIN: usize = 20;
    pub const PATH_BYTES: usize = 28;
    pub const BUILD_ID_BYTES: usize = 30;
}

pub mod path {
    pub const FRAMES: usize = 4;
    pub const TRUNCATED: usize = 6;
}

pub mod comm {
    pub const IDENTITY: usize = 4;
    pub const ORDINAL: usize = 12;
    pub const INTER: usize = 16;
    pub const SIZE: usize = 17;
    pub const REMOTE_SIZE: usize = 21;
    pub const NAME_BYTES: usize = 29;
    pub const MEMBERS: usize = 31;
    pub const NOT_KNOWN: u32 = u32::MAX;
}

pub mod operation {
    pub const CALL: usize = 4;
    pub const KIND: usize = 6;
    pub const PATH: usize = 7;
    pub const COMM: usize = 11;
    pub const PEER: usize = 15;
    pub const TAG: usize = 19;
    pub const BYTES: usize = 23;
    pub const SOURCE: usize = 31;
    pub const ACTUAL_TAG: usize = 35;
    pub const ACTUAL_BYTES: usize = 39;
    pub const INIT: usize = 47;
    pub const RECEIVE: usize = 51;
}

pub mod outcome {
    pub const OPERATION: usize = 4;
    pub const SOURCE: usize = 8;
    pub const TAG: usize = 12;
    pub const BYTES: usize = 16;
    pub const ENDED: usize = 24;
    pub const RECEIVE: usize = 25;

    pub const FREED: u8 = 3;
    pub const CANCELLED: u8 = 4;
    pub const FAILED: u8 = 5;
}

pub mod thread {
    pub const TID: usize = 2;
}

pub mod live {
    pub const BYTES: usize = 128;
    pub const OPERATION: usize = 0;
    pub const THREAD: usize = 4;
    pub const FLAGS: usize = 6;
    pub const POST_BEGIN: usize = 8;
    pub const POST_TICKS: usize = 16;
    pub const UNSUCCESSFUL_TESTS: usize = 40;
    pub const VARIABLE: usize = 56;
    pub const LAST_UNSUCCESSFUL_TEST: usize = 80;
    pub const PARTITIONS: usize = 120;
    pub const READY: usize = 126;

    pub const CANCELLED: u8 = 1;
    pub const SEEN_COMPLETE: u8 = 2;
    pub const PERSISTENT: u8 = 8;
}

/// `struct spool_thread_state`.
pub mod now {
    pub const BYTES: usize = 128;
    pub const CURRENT_OPERATION: usize = 4;
    pub const CURRENT_BEGIN: usize = 8;
    pub const MPI_TICKS: usize = 16;
    pub const CALLS: usize = 24;
    pub const WAITS_VARIABLES: usize = 32;
    pub const WAITS_COUNT: usize = 40;
    pub const WAITS_STRIDE: usize = 44;
    pub const UNSUCCESSFUL_TESTS: usize = 48;
    pub const UNSUCCESSFUL_OPERATION: usize = 56;
}

/// `struct spool_tally`, and `struct spool_injection` or `struct spool_sample` in its place.
pub mod tally {
    pub const BYTES: usize = 64;
    pub const CALL_PLUS_1: usize = 0;
    pub const REASON: usize = 3;
    pub const PATH: usize = 4;
    pub const COUNT: usize = 8;
    pub const SIZE: usize = 16;
    pub const INSIDE_TICKS: usize = 24;
    pub const TESTS: usize = 16;
    pub const FOUND: usize = 24;
    pub const TEST_TICKS: usize = 32;
    pub const INTERRUPTS: usize = 48;

    pub const UNSUCCESSFUL_TEST: u8 = 0;
    pub const INJECTION: u8 = 2;
    pub const SAMPLE: u8 = 3;
}

/// `enum spool_kind` and the numbers that stand for no peer.
pub mod peer {
    pub const PROC_NULL: i32 = -2;
    pub const ROOT: i32 = -4;
}
