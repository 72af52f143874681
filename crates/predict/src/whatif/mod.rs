//! What would be: a recorded run replayed under scenarios, with the error of the replay beside each answer.

pub mod bounds;
pub mod buffering;
#[cfg(test)]
mod chain_tests;
pub mod document;
pub mod file;
pub mod fit;
pub mod network;
pub mod paths;
pub mod predictor;
pub mod replayer;
pub mod standard;
pub mod standstill;
pub mod sweep;
pub mod uneven;
