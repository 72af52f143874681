//! The library behind the `lapscope` command: what can be typed, and a file for each subcommand.

pub mod args;
pub mod commands;
