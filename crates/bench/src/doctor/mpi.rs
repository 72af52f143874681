//! The MPIs in PATH, and whether there is a recorder for each.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Finding;
use crate::install;
use crate::launch::line::find_executable;
use crate::launch::mpi_library::identify;

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
