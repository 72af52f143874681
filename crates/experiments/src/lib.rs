//! `lapscope bench`: the published experiments under each MPI, what they measured themselves held against what lapscope saw.

mod args;
mod card;
mod command;
mod compare;
mod database;
mod figures;
mod link;
mod model;
mod mpi;
mod outside;
mod plan;
mod program;
mod results;
mod session;
mod simulated;
mod table;
mod timeline;

pub use args::BenchArgs;
pub use command::run;
