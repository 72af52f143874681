//! What is said of a post, a blocking call or a wait: how far it could be moved, what that is worth, and what to know of it.

use serde::Serialize;

use super::bounds::ConfidenceBounds;
use super::order::OrderEstimate;
use super::who::TouchedBy;
use lapscope_data::model::{Nanos, Side};
use lapscope_data::places::SiteId;
use lapscope_data::symbols::FrameName;

/// A call in the program.
#[derive(Debug, Clone, Serialize)]
pub struct ProgramCall {
    #[serde(skip)]
    pub id: SiteId,
    pub call: String,
    pub site: Option<FrameName>,
}

/// Whether anything is to be gained by moving a post or a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Movability {
    /// All of the buffer is ready before, or needed behind.
    Movable,
    /// Half of it is, all of it is not: only smaller messages could be moved.
    HalfMovable,
    /// It is only copied at once: together with the copying the post could be earlier, or the wait later.
    MovableWithCopy,
    /// Data are written until the post, or used at once.
    AtOnce,
    /// What was watched does not tell.
    Unknown,
}

/// What to know of a site before its numbers are believed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// Fewer requests than an interval takes.
    TooFew { requests: u64, needed: u64 },
    /// On these ranks threads ran that were not watched: what they touched was not seen, so that reaches are upper bounds.
    OthersMayTouch { ranks: u64 },
    /// The share of the words on the stack, which other functions may have used behind their function's return.
    OnStack { share: f64 },
    /// The share of the words of datatypes with gaps: only first and last bytes of elements were watched.
    Sparse { share: f64 },
    /// The share of the words that were written so often that they were let go: their reach is an upper bound.
    Often { share: f64 },
    /// Of the words, those that nobody touched while they were watched: their reach is a lower bound. Of these, those whose buffer another
    /// call took.
    Untouched { share: f64, reused: f64 },
    /// Buffers differ: a tenth of them have at most that, far less than the others.
    Differ { tenth_ns: f64 },
    /// The order of the words is not known, so that the worst word may be far below those that were watched.
    NoOrder,
}

/// Data that the program copies, and what becomes of the copy.
#[derive(Debug, Clone, Serialize)]
pub struct CopiedBy {
    /// The line that copies.
    pub site: Option<FrameName>,
    pub frames: Vec<FrameName>,
    pub words: u64,
    /// From the completion to the first use of the copy; from the last write of what was copied to the post.
    pub all: Option<ConfidenceBounds>,
    pub touchers: Vec<TouchedBy>,
}

/// Buffers of one post or blocking call, of similar sizes, on one side.
#[derive(Debug, Clone, Serialize)]
pub struct SiteReach {
    #[serde(flatten)]
    pub place: ProgramCall,
    pub side: Side,
    /// Whether it makes requests; else it blocks.
    pub is_request: bool,
    /// The call that completes most of its requests.
    pub completed_in: Option<ProgramCall>,
    pub min_bytes: u64,
    pub max_bytes: u64,
    /// Ranks whose buffers were watched.
    pub ranks: u64,
    /// Buffers, and words of them, that were watched.
    pub buffers: u64,
    pub words: u64,
    /// How much earlier it could be posted, or later waited for, if all of the buffer is to be ready, or not needed yet;
    /// nanoseconds.
    pub all: Option<ConfidenceBounds>,
    /// Likewise for half of the buffer.
    pub half: Option<ConfidenceBounds>,
    /// From a word to the next in the order of production or consumption, nanoseconds: T_P or T_C of [SA06].
    pub word: Option<ConfidenceBounds>,
    #[serde(flatten)]
    pub order: OrderEstimate,
    pub touchers: Vec<TouchedBy>,
    pub copies: Vec<CopiedBy>,
    /// As `all` and `half`, if the copying is moved as well: from the last write of what is copied, to the first use of the copy.
    pub all_with_copy: Option<ConfidenceBounds>,
    pub half_with_copy: Option<ConfidenceBounds>,
    #[serde(flatten)]
    pub worth: Worth,
    pub verdict: Movability,
    pub notes: Vec<Note>,
}

/// A call that completes receives: it can come no later than the first of their data are needed.
#[derive(Debug, Clone, Serialize)]
pub struct WaitReach {
    #[serde(flatten)]
    pub place: ProgramCall,
    /// The least of its receives.
    pub all: Option<ConfidenceBounds>,
    /// Likewise, if what only copies the data is moved as well.
    pub all_with_copy: Option<ConfidenceBounds>,
    /// Index into `sites` of the receive that has it.
    pub first: Option<usize>,
    /// Receives that it completes of which nothing was watched.
    pub unwatched: Vec<ProgramCall>,
    /// Whether it completes sends, too: their buffers must not be written before.
    pub completes_sends: bool,
    /// What all its calls took, summed over ranks.
    pub exposed_ns: Nanos,
    /// What of it moving it could save, at most.
    pub recoverable_ns: Nanos,
    pub verdict: Movability,
}

impl SiteReach {
    /// How far it could be moved, with the copying beside it where that is what keeps it.
    pub fn movable(&self) -> Option<ConfidenceBounds> {
        match self.verdict {
            Movability::MovableWithCopy => self.all_with_copy,
            _ => self.all,
        }
    }
}

/// What a reach is measured against.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Worth {
    /// Transfers of the run of that site and these sizes.
    pub transfers: u64,
    /// What one takes undisturbed, a mean; `None`: not known.
    pub reference_ns: Option<Nanos>,
    /// The part of that which lies within the reach of all of the buffer: a fraction between 0 and 1.
    pub hides: Option<ConfidenceBounds>,
    /// What the program was inside calls that block, or complete these requests, summed over ranks; all sizes of the site together.
    pub exposed_ns: Nanos,
    /// What others waited for these sends, likewise; 0 of receives.
    pub waited_for_ns: Nanos,
    /// What of both an earlier post, or a later wait, could save at most.
    pub recoverable_ns: Nanos,
}
