//! Communicators, windows and files that ranks made: a call that makes one may also make none, as MPI_Comm_split does for
//! ranks of no colour, so that calls cannot be counted for them.

use serde::{Deserialize, Serialize};

/// How many a rank made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeHandles {
    pub communicators: u64,
    pub windows: u64,
    pub files: u64,
}

impl MadeHandles {
    /// `name`: the program's, or of the call that made it.
    pub(crate) fn add(&mut self, name: &str) {
        match name {
            "MPI_COMM_WORLD" | "MPI_COMM_SELF" | "made unseen" => {}
            _ if name.starts_with("MPI_Win_") => self.windows += 1,
            "MPI_File_open" => self.files += 1,
            _ => self.communicators += 1,
        }
    }
}
