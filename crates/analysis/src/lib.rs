//! From rows to documents: a run put together on one clock (`trace`), pure functions of it, and the `pipeline` that opens a
//! run, reads it and has it analysed.

pub mod calibration;
pub mod cvars;
pub mod diff;
pub mod findings;
pub mod parts;
pub mod pictures;
pub mod pipeline;
pub mod report;
pub mod requests;
pub mod settings;
pub mod watching;
