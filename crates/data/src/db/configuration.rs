//! How a run was configured: options, environment and control variables, as its first rank has them, or all.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rusqlite::Row;

use super::{Database, DbError};
use crate::model::{Rank, Text};
use crate::secrets;

/// Names and values.
pub type ValuesByName = BTreeMap<String, String>;

/// The settings of a rank that were recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// LAPSCOPE_ options in force.
    pub options: ValuesByName,
    /// Environment variables that concern MPI, without those that tell one job from another.
    pub environment: ValuesByName,
    /// Control variables of the MPI library.
    pub cvars: ValuesByName,
    /// Build id of the executable; hexadecimal.
    pub build_id: Option<String>,
}

impl Configuration {
    /// Reads that of the first rank in a file.
    ///
    /// # Errors
    /// [`DbError::Damaged`] when a table is missing or unreadable.
    pub fn read(database: &Database) -> Result<Configuration, DbError> {
        read(database).map_err(DbError::reading(&database.path))
    }
}

fn read(database: &Database) -> rusqlite::Result<Configuration> {
    let connection = &database.connection;
    let sql = "SELECT rank FROM rank ORDER BY world, world_rank, life LIMIT 1";
    let rank: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    let settings = |table: &str| -> rusqlite::Result<ValuesByName> {
        // what was counted is no option
        let sql = format!(
            "SELECT name, value FROM {table} WHERE rank = ?1 AND name NOT IN ('damaged_pieces', 'lost_marks', 'cut_paths', 'device_sends')"
        );
        let mut statement = connection.prepare(&sql)?;
        let text = |row: &Row<'_>, at| row.get::<_, Text>(at).map(|text| text.0);
        let rows = statement.query_map([rank], |row| Ok((text(row, 0)?, text(row, 1)?)))?;
        rows.collect()
    };
    let mut configuration = Configuration {
        options: settings("option")?,
        environment: settings("environment")?,
        cvars: settings("cvar")?,
        build_id: None,
    };
    configuration.environment.retain(|name, _| is_setting(name));
    for (name, value) in &mut configuration.environment {
        *value = secrets::hide_in_value(name, value);
    }
    let mut statement = connection.prepare(
        "SELECT build_id FROM module JOIN rank USING (rank)
         WHERE rank = ?1 AND module.path = rank.executable AND build_id <> '' LIMIT 1",
    )?;
    let mut rows = statement.query([rank])?;
    if let Some(row) = rows.next()? {
        configuration.build_id = Some(row.get(0)?);
    }
    Ok(configuration)
}

/// The environment of the first rank in a file, as far as it was recorded.
///
/// # Errors
/// [`DbError::Damaged`], as for the next two.
pub fn environment_of_first(database: &Database) -> Result<ValuesByName, DbError> {
    let mut environment = values_of_first(database, "environment")?;
    for (name, value) in &mut environment {
        *value = secrets::hide_in_value(name, value);
    }
    Ok(environment)
}

/// Its control variables.
///
/// # Errors
/// As [`environment_of_first`].
pub fn cvars_of_first(database: &Database) -> Result<ValuesByName, DbError> {
    values_of_first(database, "cvar")
}

/// Files that the first rank had loaded, as far as they were recorded: that of its MPI is among them.
///
/// # Errors
/// As [`environment_of_first`].
pub fn modules_of_first(database: &Database) -> Result<Vec<PathBuf>, DbError> {
    const SQL: &str = "SELECT path FROM module WHERE rank = (SELECT min(rank) FROM module)";
    let read = || -> rusqlite::Result<_> {
        let mut statement = database.connection.prepare(SQL)?;
        let rows = statement.query_map([], |row| {
            let Text(path) = row.get(0)?;
            Ok(PathBuf::from(path))
        })?;
        rows.collect()
    };
    read().map_err(DbError::reading(&database.path))
}

fn values_of_first(database: &Database, table: &str) -> Result<ValuesByName, DbError> {
    let sql =
        format!("SELECT name, value FROM {table} WHERE rank = (SELECT min(rank) FROM {table})");
    let read = || -> rusqlite::Result<_> {
        let mut statement = database.connection.prepare(&sql)?;
        let rows = statement.query_map([], |row| {
            let (Text(name), Text(value)) = (row.get(0)?, row.get(1)?);
            Ok((name, value))
        })?;
        rows.collect()
    };
    read().map_err(DbError::reading(&database.path))
}

/// Whether a file is of a run under Open MPI.
///
/// # Errors
/// As [`environment_of_first`].
pub fn is_of_open_mpi(database: &Database) -> Result<bool, DbError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM rank WHERE mpi_abi = 'openmpi')";
    let read = database.connection.query_row(sql, [], |row| row.get(0));
    read.map_err(DbError::reading(&database.path))
}

/// A name, its value, and a rank that had it.
pub type SettingRow = (String, String, Rank);

/// Options that were set, the environment and control variables of all ranks in a file; empty where they cannot be read.
pub fn settings_of_all(database: &Database) -> [Vec<SettingRow>; 3] {
    const OPTIONS: &str =
        "SELECT o.name, CASE o.source WHEN 'rejected' THEN o.value || ' (rejected)' ELSE o.value END,
         r.world, r.world_rank FROM option o JOIN rank r USING (rank) WHERE o.source <> 'default'";
    const ENVIRONMENT: &str =
        "SELECT name, value, world, world_rank FROM environment JOIN rank USING (rank)";
    const CVARS: &str = "SELECT name, value, world, world_rank FROM cvar JOIN rank USING (rank)";
    let setting = |row: &Row<'_>| {
        let (Text(name), Text(value)) = (row.get(0)?, row.get(1)?);
        let value = secrets::hide_in_value(&name, &value);
        Ok((name, value, Rank { world: row.get(2)?, number: row.get(3)? }))
    };
    let read = |sql: &str| -> rusqlite::Result<Vec<SettingRow>> {
        database.connection.prepare(sql)?.query_map([], setting)?.collect()
    };
    [OPTIONS, ENVIRONMENT, CVARS].map(|sql| read(sql).unwrap_or_default())
}

/// Whether an environment variable says how a job was to run, not which job it was or which process of it.
fn is_setting(name: &str) -> bool {
    const OF_THE_JOB: [&str; 23] = [
        "CUDA_INJECTION64_PATH",
        "OMPI_MCA_ess",
        "OMPI_MCA_orte_",
        "OMPI_MCA_initial_wdir",
        "OMPI_MCA_mpi_oversubscribe",
        "OMPI_MCA_shmem_RUNTIME_QUERY_hint",
        "OMPI_COMM_WORLD_",
        "OMPI_FILE_LOCATION",
        "OMPI_FIRST_RANKS",
        "OMPI_ARGV",
        "OMPI_COMMAND",
        "OMPI_APP_CTX",
        "OMPI_NUM_APP_CTX",
        "OMPI_UNIVERSE_SIZE",
        "OMPI_MCA_prte_",
        "PRTE_LAUNCHED",
        "MPI_LOCAL",
        "HYDI_",
        "HYDRA_",
        "I_MPI_HYDRA_",
        "I_MPI_INFO",
        "LAPSCOPE_",
        "LD_PRELOAD",
    ];
    // What a batch system asks for is told by these; the rest of its variables differs in every job.
    const OF_SLURM: [&str; 6] = ["CPU", "NTASKS", "DISTRIBUTION", "MEM", "HINT", "MPI_TYPE"];
    match name.strip_prefix("SLURM_") {
        Some(rest) => OF_SLURM.iter().any(|prefix| rest.starts_with(prefix)),
        None => !OF_THE_JOB.iter().any(|prefix| name.starts_with(prefix)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_jobs_apart_is_no_setting() {
        let names = ["OMPI_MCA_btl", "UCX_RNDV_THRESH", "OMP_NUM_THREADS", "SLURM_NTASKS"];
        assert!(names.iter().all(|name| is_setting(name)));
        let names =
            ["OMPI_MCA_orte_hnp_uri", "SLURM_JOB_ID", "LAPSCOPE_DIR", "CUDA_INJECTION64_PATH"];
        assert!(!names.iter().any(|name| is_setting(name)));
    }
}
