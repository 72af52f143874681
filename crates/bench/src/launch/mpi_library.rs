//! The MPI library that belongs to a launcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::line::{find_executable, is_launcher};

/// Names of the library, by the ABI that the launcher is of.
const OPENMPI: [&str; 2] = ["libmpi.so.40", "libmpi.so"];
const MPICH: [&str; 4] = ["libmpi.so.12", "libmpich.so.12", "libmpi.so", "libmpich.so"];

/// The library in the installation that the launcher of `line` is part of. `None` when it is of no MPI (srun) or its
/// library is elsewhere: then the loader's is taken.
pub fn find(line: &[OsString]) -> Option<PathBuf> {
    let launcher = find_executable(line.iter().find(|word| is_launcher(word))?)?;
    let mut command = Command::new(&launcher);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let text = String::from_utf8_lossy(&command.output().ok()?.stdout).into_owned();
    beside_launcher(&launcher.canonicalize().ok()?, identify(&text).1?)
}

/// The library of this ABI in the installation that `launcher`, no link, is part of.
pub fn beside_launcher(launcher: &Path, abi: &str) -> Option<PathBuf> {
    let names: &[&str] = if abi == "openmpi" { &OPENMPI } else { &MPICH };
    find_below(launcher.parent()?.parent()?, names)
}

/// The version line of what a launcher says of itself, and the ABI where it tells it.
pub fn identify(text: &str) -> (String, Option<&'static str>) {
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

/// In the usual places under the prefix that an MPI is installed in.
fn find_below(prefix: &Path, names: &[&str]) -> Option<PathBuf> {
    let mut places: Vec<PathBuf> =
        ["lib", "lib64", "lib/release"].iter().map(|place| prefix.join(place)).collect();
    // Debian: lib/x86_64-linux-gnu
    let below = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    places.extend(below.map(|entry| entry.path()).filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().contains("-linux-"))
    }));
    let candidates = places.iter().flat_map(|place| names.iter().map(|name| place.join(name)));
    candidates.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_below_a_prefix() {
        let prefix = tempfile::tempdir().unwrap();
        let path = |name: &str| prefix.path().join(name);
        assert_eq!(find_below(prefix.path(), &OPENMPI), None);
        std::fs::create_dir_all(path("lib/s390x-linux-gnu")).unwrap();
        std::fs::write(path("lib/s390x-linux-gnu/libmpi.so.40"), "").unwrap();
        std::fs::write(path("lib/s390x-linux-gnu/libmpich.so.12"), "").unwrap();
        let found = find_below(prefix.path(), &MPICH).unwrap();
        assert_eq!(found, path("lib/s390x-linux-gnu/libmpich.so.12"));
        std::fs::write(path("lib/libmpi.so.40"), "").unwrap();
        assert_eq!(find_below(prefix.path(), &OPENMPI), Some(path("lib/libmpi.so.40")));
    }

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
