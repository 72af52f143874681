//! How tests are injected.

use clap::ValueEnum;
use serde::Serialize;

/// What makes the tests; `LAPSCOPE_INJECT` without `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The program's own calls of MPI
    Calls,
    /// Interrupts of its computation
    Timer,
    /// A thread beside it
    Thread,
}

impl Mode {
    /// As the variable has it.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Calls => "calls",
            Mode::Timer => "timer",
            Mode::Thread => "thread",
        }
    }
}
