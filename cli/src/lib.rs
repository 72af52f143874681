//! The library behind the `lapscope` command: everything but argument parsing and exit codes.

pub mod analysis;
pub mod args;
pub mod commands;
pub mod db;
pub mod model;
pub mod render;
pub mod symbols;
