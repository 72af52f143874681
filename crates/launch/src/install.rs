//! Where lapscope's own libraries are.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context};

use lapscope_data::text::shell;
use lapscope_trace::gpu::CUDA_PLUGIN;

/// What LD_PRELOAD names.
pub const PRELOAD: &str = "liblapscope.so";

/// The MPI ABIs that a recorder can exist for, as in `rank.mpi_abi`.
pub const ABIS: [&str; 3] = ["openmpi", "mpich", "mpiabi"];

/// The preload library: `LAPSCOPE_LIBRARY`, or the one that belongs to this executable (beside it, installed, or in
/// the build tree).
///
/// # Errors
/// Says where it was looked for. Also when its path cannot stand in LD_PRELOAD, where blanks and colons separate.
pub fn preload_library() -> anyhow::Result<PathBuf> {
    let path = match std::env::var_os("LAPSCOPE_LIBRARY").filter(|value| !value.is_empty()) {
        Some(named) => named_library(Path::new(&named))?,
        None => search()?,
    };
    let real = path.canonicalize().with_context(|| path.display().to_string())?;
    let as_named = std::path::absolute(&path)?; // perhaps a link
    let fits =
        |path: &PathBuf| !path.as_os_str().as_bytes().iter().any(|byte| b" :\t\n".contains(byte));
    if let Some(path) = [&real, &as_named].into_iter().find(|&path| fits(path)) {
        return Ok(path.clone());
    }
    bail!(
        "{}: LD_PRELOAD cannot hold a path with blanks or colons; make a link to its directory whose path has none, and \
         name that with LAPSCOPE_LIBRARY: ln -s {} /tmp/lapscope-lib; export LAPSCOPE_LIBRARY=/tmp/lapscope-lib",
        real.display(),
        shell::quote(real.parent().unwrap_or(&real))
    )
}

fn named_library(path: &Path) -> anyhow::Result<PathBuf> {
    let path = if path.is_dir() { path.join(PRELOAD) } else { path.into() };
    if !path.is_file() {
        bail!("LAPSCOPE_LIBRARY names {}, which does not exist", path.display());
    }
    Ok(path)
}

fn search() -> anyhow::Result<PathBuf> {
    let executable = std::env::current_exe().context("cannot tell where lapscope itself is")?;
    let candidates = candidates(&executable);
    if let Some(found) = candidates.iter().find(|candidate| candidate.is_file()) {
        return Ok(found.clone());
    }
    let places: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
    bail!(
        "{PRELOAD} not found; looked for {}. Build it with `make build`, or name it with LAPSCOPE_LIBRARY",
        places.join(", ")
    )
}

/// Beside the executable, under the prefix that it is installed in, in the tree that it was built in.
fn candidates(executable: &Path) -> Vec<PathBuf> {
    let Some(directory) = executable.parent() else { return Vec::new() };
    let mut places = vec![directory.join(PRELOAD)];
    if let Some(prefix) = directory.parent() {
        places.push(prefix.join("lib/lapscope").join(PRELOAD));
        if let Some(tree) = prefix.parent().filter(|_| prefix.ends_with("target")) {
            places.push(tree.join("build/lib").join(PRELOAD));
        }
    }
    places
}

/// The recorder for `abi` that belongs to the preload library `preload`, if it was built.
pub fn recorder(preload: &Path, abi: &str) -> Option<PathBuf> {
    let path = preload.with_file_name(format!("liblapscope-{abi}.so"));
    path.is_file().then_some(path)
}

/// Whether it is ours, of any installation.
pub fn is_cuda_plugin(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == CUDA_PLUGIN)
}

/// What records when GPUs work, if it was built with the preload library `preload`.
pub fn cuda_plugin(preload: &Path) -> Option<PathBuf> {
    let path = preload.with_file_name(CUDA_PLUGIN);
    path.is_file().then_some(path)
}

/// The program of `lapscope calibrate` that belongs to the preload library `preload`.
///
/// # Errors
/// It is not there.
pub fn calibrator(preload: &Path) -> anyhow::Result<PathBuf> {
    let path = preload.with_file_name("lapscope-calibrate");
    if !path.is_file() {
        bail!(
            "{} is missing; install lapscope anew, or build it with `make build`",
            path.display()
        );
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_installed_and_built_executables() {
        let installed = candidates(Path::new("/opt/lapscope/bin/lapscope"));
        assert!(installed.contains(&PathBuf::from("/opt/lapscope/lib/lapscope/liblapscope.so")));
        let built = candidates(Path::new("/src/target/release/lapscope"));
        assert!(built.contains(&PathBuf::from("/src/build/lib/liblapscope.so")));
    }
}
