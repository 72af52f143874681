//! `lapscope bench`: the published experiments under each MPI, what they measured themselves held against what lapscope saw.

pub mod compare;
pub mod database;
pub mod link;
pub mod model;
pub mod mpi;
pub mod outside;
pub mod plan;
pub mod program;
pub mod results;
pub mod session;
pub mod simulated;
pub mod table;
pub mod timeline;
