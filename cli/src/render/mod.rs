//! One file per renderer; all write to any [`std::io::Write`].

pub mod advice;
pub mod alike;
pub mod bench;
pub mod calibration;
pub(crate) mod cause;
pub mod columns;
pub mod diff;
pub mod glossary;
pub mod hang;
pub mod injection;
pub mod left_over;
pub mod loggps;
pub mod overlap;
pub mod pairs;
pub mod pending;
pub mod reach;
pub mod report;
pub mod requests;
pub mod sites;
pub mod stretch;
pub mod table;
pub mod thresholds;
pub mod tree;
pub mod tune;
pub mod watching;
pub mod whatif;
