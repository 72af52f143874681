//! Where debug information lies that was taken out of a program: beside it, in the folders of distributions, at a server.
//!
//! A file is taken only with the build id that was recorded, so it speaks for the program that ran, whoever named it.

use std::path::{Path, PathBuf};

use super::debuginfod;
use super::elf::{build_id, debug_link, hexadecimal};
use crate::model::Module;

/// Folders in which distributions put debug files.
const GLOBAL: &str = "/usr/lib/debug";

/// The debug file of a module on this machine, or, where `DEBUGINFOD_URLS` names servers, from one of them.
///
/// Servers are not asked for the MPI's and the system's own libraries, of which no line is shown.
pub fn find(module: &Module) -> Option<PathBuf> {
    let path = Path::new(&module.path);
    let local = find_locally(path, &module.build_id);
    let is_wanted = || !module.is_mpi() && !is_system(path);
    local.or_else(|| is_wanted().then(|| debuginfod::find(&module.build_id))?)
}

/// The debug file of the program at `path`, as gdb looks for it.
pub fn find_locally(path: &Path, id: &str) -> Option<PathBuf> {
    let (directory, rest) =
        hexadecimal(id)?.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    let by_id = PathBuf::from(format!("{GLOBAL}/.build-id/{directory}/{rest}.debug"));
    let by_link = || -> Option<[PathBuf; 3]> {
        let name = debug_link(path)?;
        let folder = path.parent()?;
        let global = Path::new(GLOBAL).join(folder.strip_prefix("/").unwrap_or(folder));
        Some([folder.join(&name), folder.join(".debug").join(&name), global.join(&name)])
    };
    let is_same = |file: &PathBuf| file != path && build_id(file).as_deref() == Some(id);
    Some(by_id).filter(is_same).or_else(|| by_link()?.into_iter().find(is_same))
}

fn is_system(path: &Path) -> bool {
    ["/lib", "/lib64", "/usr/lib", "/usr/lib64"].iter().any(|folder| path.starts_with(folder))
}
