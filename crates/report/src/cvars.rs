//! What the MPI library of a run declared about its protocols: its control variables, and the variables of the environment
//! that libraries below the MPI obey.
//!
//! Both stand in the database. The library is never asked afterwards: a run may be somebody else's, and reading it must not
//! load anything that it names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::calibration::recorded_environment;
use lapscope_data::db::{Database, DbError};
use lapscope_data::model::Text;
use lapscope_measure::thresholds::{Declared, DeclaredBy};

/// Control variables about protocols and the recorded environment's, by name; with a sentence when there are no control
/// variables.
///
/// # Errors
/// The first database cannot be read.
pub fn declared(databases: &[PathBuf]) -> Result<(Vec<Declared>, Option<String>), DbError> {
    let Some(path) = databases.first() else { return Ok((Vec::new(), None)) };
    let database = Database::open(path)?;
    let environment = recorded_environment(&database)?;
    let mut all = recorded(&database).map_err(DbError::reading(path))?;
    let is_missing = all.is_empty() && is_open_mpi(&database).map_err(DbError::reading(path))?;
    let trouble = is_missing.then(|| NONE_RECORDED.to_owned());
    all.extend(of_environment(environment));
    all.retain(Declared::concerns_sends);
    Ok((all, trouble))
}

const NONE_RECORDED: &str = "MPI's control variables are not in this run, which an older lapscope has recorded: declared limits are those of the environment alone";

/// Other MPIs take their variables from the environment alone.
fn is_open_mpi(database: &Database) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM rank WHERE mpi_abi = 'openmpi'";
    database.connection.query_row(sql, [], |row| Ok(row.get::<_, i64>(0)? > 0))
}

/// What was set by hand. UCX and libfabric have no control variables; what is set for them, they obey.
fn of_environment(environment: BTreeMap<String, String>) -> impl Iterator<Item = Declared> {
    let by = DeclaredBy::Environment;
    environment.into_iter().map(move |(name, value)| Declared { name, value, by })
}

/// Rows of the table `cvar`.
fn recorded(database: &Database) -> rusqlite::Result<Vec<Declared>> {
    let sql =
        "SELECT name, value FROM cvar WHERE rank = (SELECT min(rank) FROM cvar) ORDER BY name";
    let mut statement = database.connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        let (Text(name), Text(value)) = (row.get(0)?, row.get(1)?);
        Ok(Declared { name, value, by: DeclaredBy::ControlVariable })
    })?;
    rows.collect()
}
