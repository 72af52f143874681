//! A run looked at in parts, for when it is larger than memory or many machines are to look at it.
//!
//! A *part* is some ranks, its focus, with those that they talk to. An analysis goes through stages: each asks every part a
//! [`Question`], and puts the answers, [`Partial`]s, together in any order; what they come to is known in the next stage. The
//! answer does not depend on the parts, to the bit: sums are of integers, samples are drawn by the hash of what they are of, and
//! what may be anywhere in the run (clocks, the last to come to a collective) is asked for in a stage of its own.
//!
//! Messages need their two ranks, so the peers of the focus are read with it, and whole: what a sender was doing
//! meanwhile is asked of all its rows. Members of a collective that does not block may hold each other up while they
//! compute: of a small communicator all are looked at, of a larger one those next to a rank on either side. Replays and
//! watched buffers need the whole run: a run that fits into memory has them however it was looked at, and a report on a
//! larger one says that they are left out. A test cuts one run into 1 to 64 parts and compares bytes.

pub mod engine;
pub mod load;
pub mod partial;
pub mod plan;
pub mod remote;
pub mod wire;

pub use engine::{Engine, Local};
pub use partial::{EarlierStages, Partial, Question, Stage};
pub use plan::plan;
pub use remote::Remote;
