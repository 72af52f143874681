//! Tells concurrent from pipelined communication ([SA06]) by the messages of a run.
//!
//! In a concurrent program all compute, then all exchange: what a rank sends does not depend on what it is about to receive.
//! In a pipelined one it does. Messages between two ranks are taken in the order of their posts, and four things tell:
//! - Messages there and back that *cross*, each posted before the other is received, do not depend on each other: concurrent.
//! - A message that comes back only after, as that of a ping-pong or of a token on a ring, may depend on the first. It does
//!   not where both ranks compute at the same time meanwhile: then one just received before it sent. Where neither computes,
//!   nothing is told.
//! - A *train* is a row of messages in one direction, ended by one in the other or by a collective. While a long one lasts, a
//!   ring shift leads from the receiver back to the sender: concurrent. A wavefront does not: pipelined. Messages of the
//!   middle half are looked at, as wavefronts that follow each other overlap at their ends.
//! - A train within which its source computes next to nothing, compared with what it computes around it, is one message in parts.
//!
//! What none of these tells is not told.
//!
//! Two thirds of the messages of two sites must agree, and most of them must tell, eight at least. Otherwise the pair
//! is mixed or not known, and its time available lies between nothing and that of a concurrent program. Not told apart
//! are a shift along a line that is not closed and a wavefront: rank r needs what rank r - 1 had in both, and nothing
//! leads back. A chain of messages that comes back before the next send, each posted after the one before it was
//! received, is a token: in turns.

mod between;
mod scan;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::Serialize;

use between::Between;
use lapscope_trace::Presence;
use scan::Scan;

/// A matched message that was received.
#[derive(Debug, Clone, Copy)]
pub struct TimedMessage {
    /// Places of ranks in the trace.
    pub source: u32,
    pub destination: u32,
    /// Begin of its send's post, and end of the call that completed its receive: nanoseconds on the run's clock.
    pub sent: i64,
    pub received: i64,
    /// Which pair of sites.
    pub pair: u32,
}

/// All messages of a run.
#[derive(Debug, Default)]
pub struct Traffic<'t> {
    /// In the order of their posts.
    pub messages: Vec<TimedMessage>,
    /// Begins of each rank's collectives, in order.
    pub collectives: Vec<Vec<i64>>,
    /// When each rank was inside MPI.
    pub presence: Vec<&'t Presence>,
}

/// What a message tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vote {
    Concurrent,
    Pipelined,
    Dependent,
}

/// How many messages of a pair of sites tell what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Votes {
    pub concurrent: u64,
    pub pipelined: u64,
    pub dependent: u64,
    /// They were looked at and tell nothing.
    pub untold: u64,
}

/// How two sites communicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// All compute, then all exchange.
    Concurrent,
    /// What is received is needed for what is sent next: a wavefront.
    Pipelined,
    /// The answer needs the question: a ping-pong, a worker and its master. As in a pipelined program, nothing can be done
    /// while the first datum is under way.
    Dependent,
    /// Some of each.
    Mixed,
    /// Too little was seen that could tell.
    Unknown,
}

/// Fewer votes tell nothing.
const LEAST_VOTES: u64 = 8;

impl Votes {
    fn add(&mut self, vote: Option<Vote>) {
        match vote {
            Some(Vote::Concurrent) => self.concurrent += 1,
            Some(Vote::Pipelined) => self.pipelined += 1,
            Some(Vote::Dependent) => self.dependent += 1,
            None => self.untold += 1,
        }
    }

    fn merge(&mut self, other: Votes) {
        self.concurrent += other.concurrent;
        self.pipelined += other.pipelined;
        self.dependent += other.dependent;
        self.untold += other.untold;
    }

    /// What two thirds of those say that tell, where most do.
    pub fn pattern(&self) -> Pattern {
        let all = self.concurrent + self.pipelined + self.dependent;
        let is_most = |votes: u64| 3 * votes >= 2 * all;
        if all < LEAST_VOTES.max(self.untold) {
            Pattern::Unknown
        } else if is_most(self.concurrent) {
            Pattern::Concurrent
        } else if !is_most(self.pipelined + self.dependent) {
            Pattern::Mixed
        } else if self.pipelined >= self.dependent {
            Pattern::Pipelined
        } else {
            Pattern::Dependent
        }
    }
}

/// Trains that are looked at, of all ranks together: as many of each two ranks, evenly spread.
const LOOKS: usize = 8_192;

impl Traffic<'_> {
    /// What the messages of each pair of sites tell, by [`TimedMessage::pair`]. Messages of a rank to itself tell nothing.
    pub fn votes(&self) -> FxHashMap<u32, Votes> {
        let mut between: FxHashMap<(u32, u32), Vec<u32>> = FxHashMap::default();
        for (place, message) in (0..).zip(&self.messages) {
            let (a, b) = (message.source, message.destination);
            if a != b {
                between.entry((a.min(b), a.max(b))).or_default().push(place);
            }
        }
        let mut between: Vec<((u32, u32), Vec<u32>)> = between.into_iter().collect();
        between.sort_unstable_by_key(|(ranks, _)| *ranks);
        let every = between.len().div_ceil(LOOKS).max(1);
        let looks = (LOOKS / between.len().max(1)).max(1);
        let of = |(place, (_, messages)): (usize, &(_, Vec<u32>))| {
            let looks = if place % every == 0 { looks } else { 0 };
            Between::new(self, messages).votes(&Scan::new(self), looks)
        };
        let merge = |mut all: FxHashMap<u32, Votes>, some: FxHashMap<u32, Votes>| {
            for (pair, votes) in some {
                all.entry(pair).or_default().merge(votes);
            }
            all
        };
        between.par_iter().enumerate().map(of).reduce(FxHashMap::default, merge)
    }

    /// How many collectives a rank had begun before.
    fn phase(&self, rank: u32, moment: i64) -> usize {
        self.collectives[rank as usize].partition_point(|&begin| begin < moment)
    }
}

#[cfg(test)]
mod tests;
