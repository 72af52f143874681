//! Reads what ranks have counted outside of MPI in the whole run.

use super::{collect, Database};
use crate::model::{Rank, Text};
use crate::schema::lacks;

/// A row of `counter_sum`, with whose it is and what was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterSum {
    pub rank: Rank,
    pub life: i64,
    /// As PAPI has it.
    pub name: String,
    pub outside: i64,
}

/// Those of all ranks of a file.
///
/// # Errors
/// A value cannot be, or what SQLite says while reading.
pub fn read_counter_sums(database: &Database) -> rusqlite::Result<Vec<CounterSum>> {
    if lacks(&database.connection, "main", "counter_sum")? {
        return Ok(Vec::new());
    }
    let sql = "SELECT world, world_rank, life, name, outside
               FROM counter_sum JOIN counter USING (rank, number) JOIN rank USING (rank) WHERE problem IS NULL
               ORDER BY rank, number";
    collect(database, sql, |row| {
        Ok(CounterSum {
            rank: Rank { world: row.get(0)?, number: row.get(1)? },
            life: row.get(2)?,
            name: row.get::<_, Text>(3)?.0,
            outside: row.get(4)?,
        })
    })
}
