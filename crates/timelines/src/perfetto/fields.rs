//! Numbers of Perfetto's schema, `protos/perfetto/trace` in its repository: of each message the fields that are written.

/// Trace
pub const PACKET: u32 = 1;

pub mod packet {
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const FIRST_ON_SEQUENCE: u32 = 87;
    /// Values of SEQUENCE_FLAGS.
    pub const STATE_CLEARED: u64 = 1;
    pub const NEEDS_STATE: u64 = 2;
}

pub mod defaults {
    pub const TRACK_EVENT: u32 = 11;
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
}

pub mod clocks {
    /// ClockSnapshot
    pub const CLOCK: u32 = 1;
    pub const ID: u32 = 1;
    pub const TIMESTAMP: u32 = 2;
    pub const IS_INCREMENTAL: u32 = 3;
    /// The clock that all others are compared with.
    pub const BOOTTIME: u64 = 6;
    /// The first of those that a sequence has for itself.
    pub const OF_SEQUENCE: u64 = 64;
}

pub mod track {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const PROCESS_PID: u32 = 1;
    pub const PROCESS_NAME: u32 = 6;
    pub const THREAD_PID: u32 = 1;
    pub const THREAD_TID: u32 = 2;
    pub const THREAD_NAME: u32 = 5;
    pub const COUNTER_UNIT: u32 = 3;
    pub const COUNT: u64 = 2;
    pub const SIZE_BYTES: u64 = 3;
}

pub mod event {
    pub const ANNOTATION: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const NAME: u32 = 23;
    pub const TRACK: u32 = 11;
    pub const COUNTER_VALUES: u32 = 12;
    pub const COUNTER_TRACKS: u32 = 31;
    pub const SOURCE_LOCATION_IID: u32 = 34;
    pub const FLOW: u32 = 47;
    pub const LAST_FLOW: u32 = 48;
    pub const CORRELATION: u32 = 52;
    /// Values of TYPE.
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
}

pub mod annotation {
    pub const NAME_IID: u32 = 1;
    pub const BOOL: u32 = 2;
    pub const INT: u32 = 4;
    pub const TEXT_IID: u32 = 17;
}

pub mod interned {
    pub const EVENT_NAME: u32 = 2;
    pub const ANNOTATION_NAME: u32 = 3;
    pub const SOURCE_LOCATION: u32 = 4;
    pub const ANNOTATION_TEXT: u32 = 29;
    /// The number in all of these but source locations.
    pub const IID: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const FILE: u32 = 2;
    pub const FUNCTION: u32 = 3;
    pub const LINE: u32 = 4;
}
