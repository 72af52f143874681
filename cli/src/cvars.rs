//! What the MPI library of a run declares about its protocols: MPI_T control variables, and the variables of the
//! environment that libraries below the MPI obey.
//!
//! They are asked for when a report wants them, by starting that library once more with the environment of the run: the
//! application never pays (MPI_T_init_thread of Open MPI takes 0.2 s and opens components that it never asked for).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::analysis::thresholds::{Declared, DeclaredBy};
use crate::calibration::recorded_environment;
use crate::db::{Database, DbError};
use crate::install;
use crate::symbols::build_id;

/// A library that hangs when it is asked is given up.
const LIMIT: Duration = Duration::from_secs(10);

/// Control variables about protocols and the recorded environment's, by name; with a sentence when the library could not
/// be asked.
///
/// # Errors
/// The first database cannot be read.
pub fn declared(databases: &[PathBuf]) -> Result<(Vec<Declared>, Option<String>), DbError> {
    let Some(path) = databases.first() else { return Ok((Vec::new(), None)) };
    let database = Database::open(path)?;
    let environment = recorded_environment(&database)?;
    let stored = stored(&database).map_err(DbError::reading(path))?;
    let (mut all, trouble) = if stored.is_empty() {
        match library(&database)
            .map_err(DbError::reading(path))?
            .and_then(|mpi| ask(&mpi, &environment))
        {
            Ok(all) => (all, None),
            Err(why) => (Vec::new(), Some(format!("MPI's control variables are not known: {why}"))),
        }
    } else {
        (stored, None)
    };
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all.extend(of_environment(&environment));
    all.retain(Declared::concerns_sends);
    Ok((all, trouble))
}

/// What was set by hand. UCX and libfabric have no control variables; what is set for them, they obey.
fn of_environment(environment: &BTreeMap<String, String>) -> impl Iterator<Item = Declared> + '_ {
    environment.iter().map(|(name, value)| Declared {
        name: name.clone(),
        value: value.clone(),
        by: DeclaredBy::Environment,
    })
}

/// Rows of the table `cvar`.
fn stored(database: &Database) -> rusqlite::Result<Vec<Declared>> {
    let sql = "SELECT name, value FROM cvar WHERE rank = (SELECT min(rank) FROM cvar)";
    let mut statement = database.connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(Declared { name: row.get(0)?, value: row.get(1)?, by: DeclaredBy::ControlVariable })
    })?;
    rows.collect()
}

/// The run's MPI library, if the same file is still there.
fn library(database: &Database) -> rusqlite::Result<Result<PathBuf, String>> {
    let sql = "SELECT path, build_id FROM module ORDER BY id";
    let mut statement = database.connection.prepare(sql)?;
    let modules = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut found = Err("the run has no MPI library among its modules".to_owned());
    for module in modules {
        let (path, id): (String, String) = module?;
        let path = PathBuf::from(path);
        if !is_mpi_library(&path) {
            continue;
        }
        match build_id(&path) {
            Some(now) if now == id && is_trusted(&path) => return Ok(Ok(path)),
            Some(now) if now == id => found = Err(format!("{} is another user's", path.display())),
            Some(_) => found = Err(format!("{} is another file than in the run", path.display())),
            None => found = Err(format!("{} is not on this machine", path.display())),
        }
    }
    Ok(found)
}

fn is_mpi_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ["libmpi.so", "libmpich.so", "libmpi_abi.so"].iter().any(|library| name.starts_with(library))
}

/// Starts the library with the run's own settings.
fn ask(mpi: &Path, environment: &BTreeMap<String, String>) -> Result<Vec<Declared>, String> {
    let program = install::preload_library().and_then(|preload| install::calibrator(&preload));
    let program = program.map_err(|error| format!("{error:#}"))?;
    let settings =
        environment.iter().filter(|(name, value)| is_setting(name) && names_trusted_files(value));
    let mut command = Command::new(&program);
    command.arg("cvars").env("LAPSCOPE_MPI_LIBRARY", mpi).env_remove("LD_PRELOAD").envs(settings);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let output = child.stdout.take().expect("it was piped");
    let reader = std::thread::spawn(move || std::io::read_to_string(output));
    let succeeded = ended(&mut child);
    let text = reader.join().expect("the reader does not panic").unwrap_or_default();
    if succeeded {
        Ok(text.lines().filter_map(variable).collect())
    } else {
        Err(format!("{} does not tell them", mpi.display()))
    }
}

/// Settings of the library; what a launcher tells its ranks would have the library look for that launcher.
fn is_setting(name: &str) -> bool {
    const PREFIXES: [&str; 8] =
        ["OMPI_MCA_", "MPIR_CVAR_", "MPICH_", "UCX_", "FI_", "I_MPI_", "MV2_", "PSM"];
    const OF_A_JOB: [&str; 9] = [
        "OMPI_MCA_ess",
        "OMPI_MCA_orte_",
        "OMPI_MCA_pmix",
        "OMPI_MCA_schizo",
        "OMPI_MCA_initial_wdir",
        "I_MPI_HYDRA",
        "I_MPI_INFO",
        "MV2_COMM_WORLD",
        "MPICH_INTERFACE",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !OF_A_JOB.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a file is the system's or this user's own. A run may be somebody else's: reading it must not run what its owner
/// has named in it.
fn is_trusted(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: geteuid only returns a number.
    let own = unsafe { libc::geteuid() };
    std::fs::metadata(path)
        .is_ok_and(|facts| [0, own].contains(&facts.uid()) && facts.mode() & 0o002 == 0)
}

/// Directories of plug-ins and files of parameters are named in variables too.
fn names_trusted_files(value: &str) -> bool {
    value
        .split([':', ',', ';'])
        .filter(|word| word.contains('/'))
        .all(|word| is_trusted(Path::new(word)))
}

/// Waits for the end; whether it came in time and was a success.
fn ended(child: &mut Child) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        if let Ok(Some(status)) = child.try_wait() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// `name TAB value TAB description`; a line that the library itself has printed is none.
fn variable(line: &str) -> Option<Declared> {
    let mut fields = line.splitn(3, '\t');
    let (name, value) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    Some(Declared { name, value, by: DeclaredBy::ControlVariable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_program() {
        let found = variable("a_limit\t4096\tA limit").unwrap();
        assert_eq!((found.name.as_str(), found.value.as_str()), ("a_limit", "4096"));
        assert_eq!(variable("no value"), None);
        assert_eq!(variable("empty\t\t").unwrap().value, "");
    }

    #[test]
    fn files_of_others_are_not_loaded() {
        use std::os::unix::fs::PermissionsExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = file.path().to_str().unwrap();
        assert!(is_trusted(file.path()) && names_trusted_files(&format!("a,{name}")));
        std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o666)).unwrap();
        assert!(!is_trusted(file.path()) && !names_trusted_files(&format!("/etc:{name}")));
        assert!(!names_trusted_files("/nowhere/plugins") && names_trusted_files("tcp,self"));
    }

    #[test]
    fn settings_are_told_from_what_a_launcher_says() {
        assert!(is_setting("OMPI_MCA_btl_tcp_eager_limit") && is_setting("UCX_RNDV_THRESH"));
        for name in
            ["PMIX_RANK", "OMPI_MCA_ess", "OMPI_COMM_WORLD_RANK", "LD_PRELOAD", "SLURM_JOBID"]
        {
            assert!(!is_setting(name), "{name}");
        }
    }
}
