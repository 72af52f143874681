//! What would be: a recorded run replayed on another network, and written as a schedule for simulators.

pub mod goal;
pub mod replay;
pub mod whatif;
