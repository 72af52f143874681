//! What a run leaves.

use clap::ValueEnum;

/// Whose databases a run has; `LAPSCOPE_FILES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Files {
    /// One for each rank
    Rank,
    /// One for all ranks of a node
    Node,
}

impl Files {
    /// As the variable has it.
    pub fn word(self) -> &'static str {
        match self {
            Files::Rank => "rank",
            Files::Node => "node",
        }
    }
}
