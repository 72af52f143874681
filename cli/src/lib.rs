//! The library behind the `lapscope` command: everything but argument parsing and exit codes.

pub mod args;
pub mod commands;
pub mod export;
mod html;
#[cfg(feature = "live")]
mod live;
pub mod output;
pub mod plot;
pub mod render;
