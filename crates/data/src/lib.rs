//! What a run is made of: its files, their rows as types, names of places, and words for people. Everything else builds on it.

pub mod calendar;
pub mod calls;
pub mod db;
pub mod files;
pub mod job;
pub mod jobs;
pub mod merged;
pub mod model;
pub mod options;
pub mod pending;
pub mod places;
pub mod program;
pub mod recovery;
pub mod schema;
pub mod secrets;
pub mod slurm;
pub mod state;
pub mod store;
pub mod symbols;
pub mod text;
pub mod users;

/// Version of the JSON keys; raised when one changes its meaning or goes.
pub const JSON_VERSION: u32 = 3;
