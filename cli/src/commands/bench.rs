//! `lapscope bench`: all of it is in crates/experiments, which nothing else here knows.

pub use lapscope_experiments::{run, BenchArgs};
