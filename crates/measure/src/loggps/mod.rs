//! LogGPS: what messages, and collectives made of them, cost by a few parameters.
//!
//! LogGP (Alexandrov, Ionescu, Schauser and Scheiman 1995) with a limit of synchronisation S above which a send waits for its
//! receive (Ino, Fujimoto and Hagihara 2001), by segments of sizes, as protocols differ. A message of s bytes costs
//!
//! - its sender o_s(s) on the processor, and its receiver o_r(s);
//! - L in the network, and G for each byte but the first;
//! - the next one g + (s - 1) G until it may follow.
//!
//! `lapscope calibrate` measures them by round trips with n messages and a delay between them (PRTT(n, d, s) of Hoefler,
//! Lichei and Rehm, Low-Overhead LogGP Parameter Assessment for Modern Interconnection Networks, 2007).

pub mod collective;
mod fit;
mod line;
mod read;
mod segments;

pub use fit::fit;
pub use read::{is_of_round_trip, Exchange, ExchangeKind, Exchanges, Late};

use serde::{Deserialize, Serialize};

use lapscope_trace::stats::Interval;
use lapscope_trace::{Locality, Trace};

/// The parameters between processes of one locality.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogGps {
    pub locality: Locality,
    /// L: what a small message spends in the network beyond the two overheads, nanoseconds.
    pub latency_ns: Interval,
    /// S: messages of more bytes wait for their receive; `None`: no such limit was found up to the largest message.
    pub eager_limit_bytes: Option<u64>,
    /// By rising sizes; there is at least one.
    pub segments: Vec<Segment>,
    pub residual: Residual,
    /// Exchanges measured.
    pub exchanges: u64,
}

/// The parameters of each locality that a run of `lapscope calibrate` has exchanges of; of other runs none.
pub fn of_run(trace: &Trace) -> Vec<LogGps> {
    let all = read::exchanges(trace);
    all.iter().filter_map(|(&locality, exchanges)| fit(locality, exchanges)).collect()
}

/// Sizes that are transferred in the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    pub min_bytes: u64,
    /// The largest size that was measured, or at which the next segment takes over; the last segment holds beyond it.
    pub max_bytes: u64,
    /// o_s: the sender's processor. Above S of the post alone.
    pub send: Overhead,
    /// o_r: the receiver's processor, for a message that has arrived. Above S of the post alone.
    pub receive: Overhead,
    /// g: between messages of one byte to the same process, nanoseconds.
    pub gap_ns: Interval,
    /// G, nanoseconds a byte.
    pub gap_ns_per_byte: Interval,
    /// What the first byte takes beyond o_s + L + o_r, nanoseconds: above S, until the two sides have found each other.
    /// Negative where both processors work on one message at the same time.
    pub beyond_ns: Interval,
    /// What each byte but the first of a message by itself takes beside the overheads' share, nanoseconds: G, or less, even
    /// nothing or negative, where processors copy while the network moves.
    pub wire_ns_per_byte: Interval,
}

/// Time on a processor by size: `base_ns` + bytes * `ns_per_byte`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    pub base_ns: Interval,
    pub ns_per_byte: Interval,
}

/// How far round trips that were measured are from what the parameters say of them, as a share of the time measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Residual {
    /// Over the sizes.
    pub median: f64,
    pub worst: f64,
    /// The size at which it is worst.
    pub worst_bytes: u64,
}

impl Overhead {
    /// Nanoseconds.
    pub fn for_bytes(&self, bytes: u64) -> f64 {
        self.base_ns.estimate + self.ns_per_byte.estimate * bytes as f64
    }
}

/// Bytes but the first, which L is for; of a message without any as of one of one byte.
fn behind_first(bytes: u64) -> f64 {
    bytes.saturating_sub(1) as f64
}

impl Segment {
    /// g + (s - 1) G: from one message of so many bytes to the next one, nanoseconds.
    pub fn gap(&self, bytes: u64) -> f64 {
        self.gap_ns.estimate + self.gap_ns_per_byte.estimate * behind_first(bytes)
    }
}

impl LogGps {
    /// The segment that such a message belongs to.
    ///
    /// # Panics
    /// There is no segment, which the fit does not give and files are checked for.
    pub fn segment(&self, bytes: u64) -> &Segment {
        let found = self.segments.iter().find(|segment| bytes <= segment.max_bytes);
        found.or(self.segments.last()).expect("at least one segment")
    }

    /// Whether such a message waits for its receive.
    pub fn waits(&self, bytes: u64) -> bool {
        self.eager_limit_bytes.is_some_and(|limit| bytes > limit)
    }

    /// o_s, nanoseconds.
    pub fn send_overhead(&self, bytes: u64) -> f64 {
        self.segment(bytes).send.for_bytes(bytes)
    }

    /// o_r, nanoseconds.
    pub fn receive_overhead(&self, bytes: u64) -> f64 {
        self.segment(bytes).receive.for_bytes(bytes)
    }

    /// In the network, of a message by itself: from the end of o_s to the begin of o_r, nanoseconds. Negative where the
    /// two overlap.
    pub fn network(&self, bytes: u64) -> f64 {
        let segment = self.segment(bytes);
        let first = self.latency_ns.estimate + segment.beyond_ns.estimate;
        first + segment.wire_ns_per_byte.estimate * behind_first(bytes)
    }

    /// From the begin of the send to the end of its receive, which waits for it, nanoseconds.
    pub fn transfer(&self, bytes: u64) -> f64 {
        self.send_overhead(bytes) + self.network(bytes) + self.receive_overhead(bytes)
    }

    /// Whether it can be used: read from a file that something else may have written.
    pub fn is_sound(&self) -> bool {
        let rises = self.segments.windows(2).all(|pair| pair[0].max_bytes < pair[1].max_bytes);
        let values = self.segments.iter().flat_map(Segment::values).chain([self.latency_ns]);
        let is_time = |value: Interval| value.estimate.is_finite() && value.estimate >= 0.0;
        let others = self.segments.iter().flat_map(|s| [s.beyond_ns, s.wire_ns_per_byte]);
        let is_number = |value: Interval| value.estimate.is_finite();
        let are_sound = values.into_iter().all(is_time) && others.into_iter().all(is_number);
        !self.segments.is_empty() && rises && are_sound
    }
}

impl Segment {
    fn values(&self) -> [Interval; 6] {
        let (send, receive) = (self.send, self.receive);
        [
            send.base_ns,
            send.ns_per_byte,
            receive.base_ns,
            receive.ns_per_byte,
            self.gap_ns,
            self.gap_ns_per_byte,
        ]
    }
}
