//! What is believed of a file at most: sums of such values do not overflow.

/// The longest time that a row may hold, 2^56 ns or 2 years and 3 months, and that the calls and posts of a rank may take
/// together. A moment, the duration of what began then, and the difference of two hosts' clocks add up to less than an i64
/// holds, and so do the calls of a hundred such ranks.
pub const LONGEST_NS: i64 = 1 << 56;
/// The longest time that many ranks may have taken together.
pub const LONGEST_TOTAL_NS: i64 = 1 << 60;
/// The latest moment since 1970 that is believed, in nanoseconds.
pub const LATEST_EPOCH_NS: i64 = 7_000_000_000_000_000_000;
/// The most calls, requests or tests that a row may hold: 10 years of one a microsecond.
pub const MOST: i64 = 1 << 48;
/// The most bytes that a row may hold.
pub const MOST_BYTES: i64 = i64::MAX >> 1;

/// The highest id of a row: those of many files are put behind each other.
pub const MOST_ROWS: i64 = 1 << 40;
