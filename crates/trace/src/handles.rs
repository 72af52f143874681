//! Communicators, windows and files that ranks made: a call that makes one may also make none, as MPI_Comm_split does for
//! ranks of no colour, so that calls cannot be counted for them.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::query::communicator_names;
use lapscope_data::db::{for_each_file, DbError};
use lapscope_data::model::Rank;

/// How many a rank made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MadeHandles {
    pub communicators: u64,
    pub windows: u64,
    pub files: u64,
}

/// By rank and life; also why some files could not be read.
pub fn read_made(databases: &[PathBuf]) -> (HashMap<(Rank, i64), MadeHandles>, Vec<DbError>) {
    let read = for_each_file(databases, |database, definitions| {
        let ranks = definitions.ranks_by_key();
        let mut made: HashMap<(Rank, i64), MadeHandles> = HashMap::new();
        let read = communicator_names(&database.connection, |rank, name| {
            if let Some(info) = ranks.get(&rank) {
                made.entry((info.rank, info.life)).or_default().add(name);
            }
        });
        read.map_err(DbError::reading(&database.path))?;
        Ok(made)
    });
    match read {
        Ok(files) => (files.read.into_iter().flatten().collect(), files.failed),
        Err(error) => (HashMap::new(), vec![error]),
    }
}

impl MadeHandles {
    /// `name`: the program's, or of the call that made it.
    fn add(&mut self, name: &str) {
        match name {
            "MPI_COMM_WORLD" | "MPI_COMM_SELF" | "made unseen" => {}
            _ if name.starts_with("MPI_Win_") => self.windows += 1,
            "MPI_File_open" => self.files += 1,
            _ => self.communicators += 1,
        }
    }
}
