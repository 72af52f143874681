//! `lapscope bench`: the published experiments under each MPI, what they measured themselves held against what lapscope saw.

pub mod results;
