//! How tests are injected, and what else is tried beside that.

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
    /// No tests: standard sends go from copies. A mode of `lapscope tune`, which tries it where the advice is to.
    #[value(skip)]
    Sends,
}

impl Mode {
    /// As the variable has it, and the table `injector`.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Calls => "calls",
            Mode::Timer => "timer",
            Mode::Thread => "thread",
            Mode::Sends => "sends",
        }
    }
}
