//! The MPI library that belongs to a launcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::launcher;
use super::line::is_launcher;

/// Names of the library, by the ABI that the launcher is of.
const OPENMPI: [&str; 2] = ["libmpi.so.40", "libmpi.so"];
const MPICH: [&str; 4] = ["libmpi.so.12", "libmpich.so.12", "libmpi.so", "libmpich.so"];

/// The library in the installation that the launcher of `line` is part of. `None` when it is of no MPI (srun) or its
/// library is elsewhere: then the loader's is taken.
pub fn find(line: &[OsString]) -> Option<PathBuf> {
    let launcher = launcher::ask(line.iter().find(|word| is_launcher(word))?)?;
    beside_launcher(&launcher.path, launcher.abi?)
}

/// The library of this ABI in the installation that `launcher`, no link, is part of.
pub fn beside_launcher(launcher: &Path, abi: &str) -> Option<PathBuf> {
    let names: &[&str] = if abi == "openmpi" { &OPENMPI } else { &MPICH };
    find_below(launcher.parent()?.parent()?, names)
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
}
