//! From rows to documents: a run put together on one clock (`trace`), pure functions of it, and the `pipeline` that opens a
//! run, reads it and has it analysed.

pub mod advice;
pub mod aggregate;
pub mod alike;
pub mod calibration;
pub mod call_paths;
pub mod cell;
pub mod combine;
mod copied_sends;
pub mod cvars;
pub mod diff;
pub mod findings;
pub mod goal;
pub mod hang;
pub mod injection;
pub mod insight;
pub mod live;
pub mod loggps;
pub mod measures;
pub mod overlap;
pub mod parts;
pub mod pending;
pub mod pictures;
pub mod pipeline;
pub mod problem;
pub mod reach;
pub mod reference;
pub mod replay;
pub mod report;
pub mod requests;
pub mod settings;
pub mod singletons;
pub mod sites;
mod starved;
pub mod stats;
pub mod steps;
pub mod stretch;
pub mod summary;
pub mod thresholds;
pub mod totals;
pub mod trace;
pub mod transfers;
pub mod whatif;
pub mod wrappers;

/// Version of the JSON keys; raised when one changes its meaning or goes.
pub const JSON_VERSION: u32 = 3;
