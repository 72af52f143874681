//! Launching a program under lapscope: what the command line means, the environment it gets, the child and its signals.

pub mod child;
pub mod container;
pub mod environment;
mod files;
pub mod launcher;
pub mod line;
mod mode;
pub mod mpi_library;
pub mod nodes;
pub mod outcome;
mod recorded;
pub mod runs;

pub use files::Files;
pub use mode::{Injection, Mode};
pub use recorded::Recorded;

/// How often threads are looked at where samples are asked for without a rate.
pub const SAMPLES_A_SECOND: &str = "199";
