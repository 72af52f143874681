//! How a run was configured: options, environment and control variables, as its first rank has them.

use std::collections::BTreeMap;

use rusqlite::Row;

use super::{Database, DbError};
use crate::model::Text;
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
        // what the conversion says of the spool is no option
        let sql = format!(
            "SELECT name, value FROM {table} WHERE rank = ?1 AND name NOT IN ('damaged_pieces', 'lost_marks', 'cut_paths')"
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

/// Whether an environment variable says how a job was to run, not which job it was or which process of it.
fn is_setting(name: &str) -> bool {
    const OF_THE_JOB: [&str; 22] = [
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
            ["OMPI_MCA_orte_hnp_uri", "OMPI_COMM_WORLD_RANK", "SLURM_JOB_ID", "LAPSCOPE_DIR"];
        assert!(!names.iter().any(|name| is_setting(name)));
    }
}
