//! The MPIs in PATH, and whether there is a recorder for each.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Finding;
use crate::install;
use crate::launch::line::find_executable;

const TOPIC: &str = "MPI";

const LAUNCHERS: [&str; 8] = [
    "mpirun",
    "mpiexec",
    "mpirun.openmpi",
    "mpirun.mpich",
    "mpiexec.hydra",
    "prterun",
    "orterun",
    "srun",
];

pub fn look() -> Vec<Finding> {
    let preload = install::preload_library().ok();
    let mut findings: Vec<Finding> = launchers()
        .iter()
        .map(|(names, path)| launcher(&names.join(", "), path, preload.as_deref()))
        .collect();
    if findings.is_empty() {
        findings.push(Finding::missing(
            TOPIC,
            "launchers",
            "no mpirun, mpiexec or srun in PATH",
            "load the module of your MPI, or install one (Debian: openmpi-bin or mpich)",
        ));
    }
    findings
}

/// Programs in PATH, each once, with all the names that mean it.
fn launchers() -> Vec<(Vec<&'static str>, PathBuf)> {
    let mut found: Vec<(Vec<&str>, PathBuf)> = Vec::new();
    for name in LAUNCHERS {
        let Some(path) = find_executable(OsStr::new(name)) else { continue };
        let path = path.canonicalize().unwrap_or(path);
        match found.iter_mut().find(|(_, known)| *known == path) {
            Some((names, _)) => names.push(name),
            None => found.push((vec![name], path)),
        }
    }
    found
}

fn launcher(names: &str, path: &Path, preload: Option<&Path>) -> Finding {
    let mut command = Command::new(path);
    command.arg("--version").stdin(Stdio::null());
    let text = command.output().map(|output| [output.stdout, output.stderr].concat());
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let (version, abi) = identify(&text);
    let Some(abi) = abi else {
        // srun and unknown ones start programs of any MPI
        return Finding::ok(TOPIC, names, version);
    };
    if preload.is_some_and(|preload| install::recorder(preload, abi).is_some()) {
        return Finding::ok(TOPIC, names, format!("{version}: recorder {abi}"));
    }
    let package = if abi == "openmpi" { "libopenmpi-dev" } else { "libmpich-dev" };
    Finding::missing(
        TOPIC,
        names,
        format!("{version}: no recorder {abi}"),
        format!(
            "make its compiler wrapper known (Debian: {package}; elsewhere: mpicc in PATH, or \
             cmake -DLAPSCOPE_MPICC=/path/to/mpicc), then `make build`"
        ),
    )
}

/// The version line, and the ABI where the launcher tells it.
pub fn identify(text: &str) -> (String, Option<&'static str>) {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no version");
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
