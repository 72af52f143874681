//! The library behind the `lapscope` command: everything but argument parsing and exit codes.

pub mod analysis;
pub mod args;
pub mod bench;
pub mod calendar;
pub mod calibration;
pub mod commands;
pub mod cvars;
pub mod db;
pub mod doctor;
pub mod files;
pub mod install;
pub mod launch;
pub mod merged;
pub mod model;
pub mod options;
pub mod options_def;
pub mod output;
pub mod plot;
pub mod program;
pub mod render;
pub mod schema;
pub mod secrets;
pub mod store;
pub mod symbols;
pub mod trace;
pub mod tune;
