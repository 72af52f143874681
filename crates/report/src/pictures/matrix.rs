//! Who sent how much to whom, and how long both ends waited for it.

use serde::Serialize;

use super::paint::Drawn;
use lapscope_data::model::{Bytes, Nanos};

/// Messages between bins of ranks, those that there are.
#[derive(Debug, Serialize)]
pub struct Matrix {
    /// By sender, then receiver.
    pub cells: Vec<MatrixCell>,
    /// Messages whose receiver is not known, or not of this run.
    pub unknown_messages: u64,
}

/// Messages from the ranks of one bin to those of another, or of the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MatrixCell {
    pub from: u32,
    pub to: u32,
    pub messages: u64,
    pub bytes: Bytes,
    /// In calls that waited for these messages or blocked, at both ends.
    pub exposed_ns: Nanos,
}

impl Matrix {
    pub(super) fn build(drawn: &Drawn) -> Matrix {
        let cell = |(&(from, to), lane): (&(u32, u32), &super::paint::Lane)| MatrixCell {
            from,
            to,
            messages: lane.messages,
            bytes: Bytes(lane.bytes),
            exposed_ns: Nanos(lane.exposed),
        };
        Matrix {
            cells: drawn.lanes.iter().map(cell).collect(),
            unknown_messages: drawn.unknown_messages,
        }
    }
}
