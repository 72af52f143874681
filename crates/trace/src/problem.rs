//! What a reader must know before believing the numbers: of which kind it is, and of which ranks.

use serde::Serialize;

use lapscope_data::model::Rank;

/// Kinds of problems; their names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    DamagedFile,
    MissingRanks,
    Starved,
    CopiedSends,
    Accelerator,
    UnrecordedChildren,
    NotRecovered,
    SeveralJobs,
    Singletons,
    Died,
    Pending,
    Summarized,
    LostRecords,
    UnknownRequests,
    LostMarks,
    CutPaths,
    Rebuilt,
    NoSymbols,
    NotWatched,
    UnseenThreads,
    NoMoments,
}

/// One problem, said in a sentence or two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub kind: ProblemKind,
    pub message: String,
    /// Ranks that it is about; empty when it is about the run.
    pub ranks: Vec<Rank>,
}

impl Problem {
    pub fn new(kind: ProblemKind, message: impl Into<String>, ranks: Vec<Rank>) -> Self {
        Problem { kind, message: message.into(), ranks }
    }
}
