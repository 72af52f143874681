//! Where things are in the source tree and the build.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the source tree.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the tree")
}

/// `tests/apps`.
pub fn apps() -> PathBuf {
    root().join("tests/apps")
}

/// Where test programs are built, a directory for each MPI.
pub fn built(mpi: &str) -> PathBuf {
    root().join("build/tests").join(mpi)
}

/// Directory of `liblapscope.so` and its recorders; `LAPSCOPE_LIB_DIR` names another.
pub fn library_directory() -> PathBuf {
    env::var_os("LAPSCOPE_LIB_DIR").map_or_else(|| root().join("build/lib"), PathBuf::from)
}

/// The library that `LD_PRELOAD` names.
///
/// # Panics
/// When it has not been built.
pub fn preload_library() -> PathBuf {
    let path = library_directory().join("liblapscope.so");
    assert!(path.exists(), "{} is missing: `make` builds it", path.display());
    path
}

/// The command line program; `LAPSCOPE_BIN` names another.
///
/// # Panics
/// When it has not been built.
pub fn lapscope() -> PathBuf {
    let path = env::var_os("LAPSCOPE_BIN")
        .map_or_else(|| root().join("target/release/lapscope"), PathBuf::from);
    assert!(path.exists(), "{} is missing: `cargo build --release` builds it", path.display());
    path
}

/// The tree for other machines, where `make dist` has made one of this version.
pub fn portable() -> Option<PathBuf> {
    let name = concat!("lapscope-", env!("CARGO_PKG_VERSION"), "-linux-x86_64");
    Some(root().join("build/dist/tree").join(name))
        .filter(|tree| tree.join("bin/lapscope").exists())
}

/// Python with mpi4py for an MPI, where `tests/mpis.sh` has made it.
pub fn python(mpi: &str) -> PathBuf {
    root().join(format!("build/mpi/{mpi}/bin/python"))
}
