//! Sums over the calls and requests of a run, by call site, kind and size: of each file in one pass, then of all files together.

pub mod aggregate;
pub mod cell;
pub mod combine;
pub mod measures;
