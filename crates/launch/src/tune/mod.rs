//! The search for a setting of injection that makes a program faster. [`first`] says what a run without injection tells, [`search`]
//! what to try, [`trial`] what a run with injection showed, [`confirm`] what whole runs gained, [`pace`] what injection costs while it is off, [`choice`] what
//! follows, [`settings`] tries those of the MPI itself, [`earlier`] where an automatic run lets it begin, [`policy`] how that is kept; [`tuning`] goes through all that.

pub mod bar;
pub mod choice;
pub mod confirm;
mod copy;
pub mod document;
pub mod earlier;
pub mod first;
pub mod notes;
pub mod pace;
pub mod policy;
pub mod search;
pub mod session;
pub mod settings;
pub mod trial;
pub mod tuning;
pub mod variable;
