//! The numbers of a run: pure functions of a run in memory, without files, SQL or arguments.

pub mod alike;
pub mod efficiency;
pub mod gpu_efficiency;
pub mod gpu_known;
pub mod injection;
pub mod left_over;
pub mod loggps;
#[cfg(test)]
mod no_names;
pub mod overlap;
pub mod profile;
pub mod progress;
pub mod reach;
pub mod reference;
pub mod scaling;
pub mod sites;
pub mod steps;
pub mod thresholds;
pub mod totals;
pub mod transfers;
pub mod uneven;
pub mod unexpected;
