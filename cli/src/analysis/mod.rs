//! Pure functions from rows to answers.

pub mod advice;
pub mod aggregate;
pub mod cell;
pub mod combine;
pub mod diff;
pub mod injection;
pub mod insight;
pub mod measures;
pub mod overlap;
pub mod pending;
pub mod problem;
pub mod reference;
pub mod report;
pub mod requests;
pub mod sites;
mod starved;
pub mod summary;
pub mod thresholds;
pub mod totals;
pub mod transfers;
pub mod wrappers;

/// Version of the JSON keys; raised when one changes its meaning or goes.
pub const JSON_VERSION: u32 = 3;
