//! What runs programs: launches with lapscope in front, searches for settings, experiments, and looks at the machine.

pub mod bench;
mod bounded;
pub mod doctor;
pub mod install;
pub mod launch;
pub mod tune;
