//! What a launcher says of itself: `mpirun` can be anybody's.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use super::line::{find_executable, is_launcher};
use crate::bounded;

pub struct Launcher {
    /// Its file, no link.
    pub path: PathBuf,
    /// What it calls its version.
    pub version: String,
    /// The ABI of its MPI; `None`: it starts programs of any (srun), or does not tell.
    pub abi: Option<&'static str>,
    /// Why it could not tell.
    pub complaint: Option<String>,
}

/// Asks `launcher` for its version. `None`: there is none of that name in PATH, or it is no launcher: a program, which would do
/// whatever it does, is never asked.
pub fn ask(launcher: &OsStr) -> Option<Launcher> {
    if !is_launcher(launcher) {
        return None;
    }
    let found = find_executable(launcher)?;
    let mut command = Command::new(&found);
    command.arg("--version");
    // Those of Open MPI refuse even to tell their version to root.
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    let said = bounded::ask(&mut command, bounded::LIMIT);
    let complaint = said
        .as_ref()
        .map_or(Some("it cannot be started".into()), bounded::ProgramOutput::complaint);
    let (version, abi) = identify(&said.map(|said| said.all()).unwrap_or_default());
    // srun says "slurm 23.02.6"
    let is_version = abi.is_some() || version.contains(|c: char| c.is_ascii_digit());
    let complaint =
        complaint.or_else(|| (!is_version).then(|| format!("it tells no version, but: {version}")));
    let path = found.canonicalize().unwrap_or(found);
    Some(Launcher { path, version, abi, complaint })
}

/// The version line of what a launcher says of itself, and the ABI where it tells it.
fn identify(text: &str) -> (String, Option<&'static str>) {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| line.contains(char::is_alphanumeric)).unwrap_or("no version");
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["HYDRA"]) {
        let version = text.lines().find_map(|line| line.trim().strip_prefix("Version:"));
        let version = version.map_or("", str::trim);
        return (format!("Hydra (MPICH) {version}"), Some("mpich"));
    }
    if has(&["Open MPI", "OpenRTE", "PRRTE"]) {
        return (first.to_owned(), Some("openmpi"));
    }
    let abi = has(&["Intel(R) MPI", "MPICH", "MVAPICH"]).then_some("mpich");
    (first.to_owned(), abi)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_told_by_their_versions() {
        let abi = |text| identify(text).1;
        assert_eq!(abi("mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs"), Some("openmpi"));
        assert_eq!(abi("mpirun (Open MPI) 5.0.1"), Some("openmpi"));
        assert_eq!(abi("Intel(R) MPI Library for Linux* OS, Version 2021.9"), Some("mpich"));
        assert_eq!(abi("slurm 23.02.6"), None);
        let hydra = "HYDRA build details:\n    Version:         4.0.2\n";
        assert_eq!(identify(hydra), ("Hydra (MPICH) 4.0.2".to_owned(), Some("mpich")));
    }
}
