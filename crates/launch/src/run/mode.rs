//! How tests are injected, and what else is tried beside that.

use clap::ValueEnum;
use serde::Serialize;

/// `LAPSCOPE_INJECT` without `off`: a mode, or that the recorder finds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Injection {
    /// The way that turns out best while the program runs; none where none gains
    Auto,
    /// The program's own calls of MPI make the tests
    Calls,
    /// Interrupts of its computation do
    Timer,
    /// A thread beside it does
    Thread,
}

impl Injection {
    /// As the variable has it.
    pub fn word(self) -> &'static str {
        match self {
            Injection::Auto => "auto",
            Injection::Calls => Mode::Calls.word(),
            Injection::Timer => Mode::Timer.word(),
            Injection::Thread => Mode::Thread.word(),
        }
    }
}

/// What makes the tests.
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
