//! Threads that are to be copied, and their copies.

use std::io;
use std::time::Duration;

use super::python::PythonLines;
use lapscope_data::state::SystemState;

/// Registers from which callers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    pub instruction: u64,
    pub stack: u64,
    /// `None`: not known without stopping.
    pub frame: Option<u64>,
    /// The return address of a leaf function, where processors keep it in a register.
    pub link: u64,
    /// What functions preserve, as `registers.rs` numbers them; `None`: not known without stopping.
    pub preserved: [Option<u64>; 6],
}

/// A thread as it was.
#[derive(Debug, Clone)]
pub struct ThreadCopy {
    pub tid: i64,
    pub system: SystemState,
    pub registers: Registers,
    /// Parts of its stack, each with its address; the first from `registers.stack` on.
    pub stack: Vec<(u64, Vec<u8>)>,
    pub python: PythonLines,
}

impl ThreadCopy {
    /// A word of the stack.
    pub fn word(&self, address: u64) -> Option<u64> {
        self.stack.iter().find_map(|(begin, bytes)| {
            let at = usize::try_from(address.checked_sub(*begin)?).ok()?;
            let bytes = bytes.get(at..at.checked_add(8)?)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        })
    }
}

/// A thread that is to be stopped, and what is known of it without.
pub struct ToStop {
    /// Its process, among all that are looked at.
    pub process: usize,
    pub tid: i64,
    pub is_first: bool,
    /// As it was asleep; not all of its callers can be told.
    pub(super) asleep: Option<ThreadCopy>,
}

/// What came of stopping a thread.
pub enum Outcome {
    /// And for how long it was stopped at most.
    Copied(Box<ThreadCopy>, Duration),
    Ended,
    /// There was no time left.
    TooLate,
    Failed(io::Error),
}
