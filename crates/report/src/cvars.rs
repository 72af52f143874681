//! What the MPI library of a run declared about its protocols: its control variables, and the variables of the environment
//! that libraries below the MPI obey.
//!
//! Both stand in the database. The library is never asked afterwards: a run may be somebody else's, and reading it must not
//! load anything that it names.

use std::path::PathBuf;

use lapscope_data::db::{
    cvars_of_first, environment_of_first, is_of_open_mpi, Database, DbError, ValuesByName,
};
use lapscope_measure::thresholds::{Declared, DeclaredBy};

/// Control variables about protocols and the recorded environment's, by name; with a sentence when there are no control
/// variables.
///
/// # Errors
/// The first database cannot be read.
pub fn declared(databases: &[PathBuf]) -> Result<(Vec<Declared>, Option<String>), DbError> {
    let Some(path) = databases.first() else { return Ok((Vec::new(), None)) };
    let database = Database::open(path)?;
    let environment = environment_of_first(&database)?;
    let mut all = declared_by(DeclaredBy::ControlVariable, cvars_of_first(&database)?);
    // other MPIs take their variables from the environment alone
    let is_missing = all.is_empty() && is_of_open_mpi(&database)?;
    let trouble = is_missing.then(|| NONE_RECORDED.to_owned());
    // UCX and libfabric have no control variables; what is set for them, they obey
    all.extend(declared_by(DeclaredBy::Environment, environment));
    all.retain(Declared::concerns_sends);
    Ok((all, trouble))
}

const NONE_RECORDED: &str = "MPI's control variables are not in this run, which an older lapscope has recorded: declared limits are those of the environment alone";

fn declared_by(by: DeclaredBy, values: ValuesByName) -> Vec<Declared> {
    values.into_iter().map(|(name, value)| Declared { name, value, by }).collect()
}
