//! What starts programs and asks machines: launches with lapscope in front, the search for settings, the doctor, looks from other nodes.

mod bounded;
pub mod doctor;
pub mod gather;
pub mod install;
pub mod nodes;
pub mod own_program;
pub mod run;
pub mod tune;
