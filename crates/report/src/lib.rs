//! Documents of a run, and how they are made: the `pipeline` opens a run, reads it, whole or in `parts`, and has it analysed.

pub mod calibration;
pub mod check;
pub mod cvars;
pub mod diff;
pub mod findings;
pub mod jobs;
pub mod parts;
pub mod pictures;
pub mod pipeline;
pub mod report;
pub mod requests;
pub mod scaling;
pub mod settings;
pub mod watching;
