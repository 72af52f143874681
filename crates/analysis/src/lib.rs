//! From rows to documents: a run put together on one clock (`trace`), pure functions of it, and the `pipeline` that opens a
//! run, reads it and has it analysed.

pub mod advice;
pub mod calibration;
mod copied_sends;
pub mod cvars;
pub mod diff;
pub mod findings;
pub mod insight;
pub mod parts;
pub mod pictures;
pub mod pipeline;
pub mod problem;
pub mod report;
pub mod requests;
pub mod settings;
pub mod singletons;
mod starved;
pub mod summary;
pub mod watching;
