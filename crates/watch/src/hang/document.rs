//! What a diagnosis says; docs/hang.md explains it, docs/json.md its keys.

use serde::Serialize;

use lapscope_data::model::{Nanos, Rank};
use lapscope_data::state::{Condition, Unseen};
use lapscope_data::symbols::FrameName;

/// What everybody waits for.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// Between the two looks; 0 where one was enough, as nothing runs any more.
    pub observed_ns: Nanos,
    pub verdict: Verdict,
    /// What else is true, in the order of importance.
    pub further: Vec<Verdict>,
    /// Who is where, the odd ones out first.
    pub places: Vec<Standing>,
    pub ranks: Vec<RankPlace>,
    pub waits: Vec<ThreadWait>,
    pub unseen: Vec<Unseen>,
    /// Messages that no receive is for, at whom, most bytes first; of ranks whose messages are all on record.
    pub unreceived: Vec<Unreceived>,
    /// What was not seen, and what that means, as sentences.
    pub notes: Vec<String>,
}

/// What lies at a rank, or between it and its senders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreceived {
    pub rank: Rank,
    pub messages: u64,
    pub bytes: u64,
    /// Who sent them.
    pub from: Vec<Rank>,
}

/// What is the matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    Dead,
    CollectiveMismatch,
    NoMatch,
    Left,
    Deadlock,
    Stopped,
    Polls,
    Asleep,
    Computes,
    /// In MPI_Finalize with requests under way.
    Unfinished,
    Slow,
    Progress,
    Ended,
    Unknown,
}

/// One thing that is the matter.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    pub kind: VerdictKind,
    /// Whether nothing that the looks could not see can make it wrong.
    pub certain: bool,
    pub sentence: String,
    /// The ranks of whom it speaks, in order.
    pub ranks: Vec<Rank>,
    /// Who waits for whom in a circle; each waits for the next, the last for the first.
    pub cycle: Vec<Edge>,
    /// What comes nearest to what is waited for.
    pub candidates: Vec<String>,
}

/// A rank that waits for another.
#[derive(Debug, Clone, Serialize)]
pub struct Edge {
    pub from: Rank,
    pub to: Rank,
    /// "waits in MPI_Recv for a message from rank 1, tag 7".
    pub why: String,
    pub call: String,
    pub site: Option<FrameName>,
}

/// Ranks that stand at the same place in the same condition.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    pub condition: Condition,
    /// That they are inside of, or test again and again; `None`: they are outside of MPI.
    pub call: Option<String>,
    /// Whether `call` is a test that they make again and again in vain.
    pub polls: bool,
    /// The last call that ended, for ranks outside of MPI.
    pub last_call: Option<String>,
    /// The site of the call, or of the last one.
    pub site: Option<FrameName>,
    pub frames: Vec<FrameName>,
    pub state: Activity,
    pub count: usize,
    pub ranks: Vec<Rank>,
    /// Their nodes, each once.
    pub hosts: Vec<String>,
    /// How long they have been there, at least and at most.
    pub since_least_ns: Nanos,
    pub since_most_ns: Nanos,
    /// Requests that are under way.
    pub requests: usize,
}

/// What the operating system says of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// On a processor.
    Busy,
    Asleep,
    /// By a signal or a debugger.
    Stopped,
    /// It has ended, or cannot be seen from here.
    Unknown,
}

#[derive(Debug, Clone, Serialize)]
pub struct RankPlace {
    pub rank: Rank,
    pub life: i64,
    pub host: String,
    pub pid: i64,
    pub condition: Condition,
    /// Whether it went on between the two looks.
    pub progressed: bool,
    pub threads: Vec<ThreadPlace>,
    /// Requests that are under way.
    pub requests: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct ThreadPlace {
    pub number: u32,
    pub call: Option<String>,
    /// Whether `call` is a test that it makes again and again in vain.
    pub polls: bool,
    pub last_call: Option<String>,
    /// "exchange halo.c:42"
    pub site: Option<String>,
    /// How long it has been there; of what has ended, at most.
    pub since_ns: Nanos,
    pub state: Activity,
    /// Share of the time between the looks that it was on a processor.
    pub busy: Option<f64>,
}

/// What a thread waits for.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadWait {
    pub from: Rank,
    pub thread: u32,
    pub needs: Needs,
    pub on: Vec<On>,
    /// Whether it will never get it, as far as can be seen.
    pub stuck: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    All,
    Any,
}

#[derive(Debug, Clone, Serialize)]
pub struct On {
    /// `None`: whoever comes, or nobody that is known.
    pub rank: Option<Rank>,
    /// How many others besides `rank`, in the same way.
    pub others: usize,
    pub certain: bool,
    pub why: String,
}
