//! lapscope's own libraries, and what they need.

use std::path::Path;

use super::Finding;
use crate::install::{self, ABIS};
use lapscope_data::db::USER_VERSION;
use lapscope_data::program::libraries_of_object;

const TOPIC: &str = "lapscope";

pub fn look() -> Vec<Finding> {
    let version = format!("{}, database format {USER_VERSION}", env!("CARGO_PKG_VERSION"));
    let mut findings = vec![Finding::ok(TOPIC, "version", version)];
    match install::preload_library() {
        Err(error) => findings.push(Finding::missing(
            TOPIC,
            "preload library",
            format!("{error:#}"),
            "without it nothing can be recorded; reading runs works",
        )),
        Ok(preload) => {
            findings.push(Finding::ok(TOPIC, "preload library", preload.display().to_string()));
            findings.extend(ABIS.iter().filter_map(|abi| recorder(&preload, abi)));
            if !ABIS.iter().any(|abi| install::recorder(&preload, abi).is_some()) {
                findings.push(Finding::missing(
                    TOPIC,
                    "recorders",
                    "none beside the preload library",
                    "install an MPI with its headers, then `make build`",
                ));
            }
        }
    }
    findings.push(Finding::ok(TOPIC, "SQLite", rusqlite::version()));
    findings
}

/// The recorder for `abi` where there is one, and whether its own libraries are found.
fn recorder(preload: &Path, abi: &str) -> Option<Finding> {
    let path = install::recorder(preload, abi)?;
    let name = format!("recorder {abi}");
    let libraries = libraries_of_object(&path);
    let lost: Vec<&str> = libraries
        .iter()
        .filter(|(_, path)| path.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    if !lost.is_empty() {
        return Some(Finding::missing(
            TOPIC,
            name,
            format!("{} needs {}, not found", path.display(), lost.join(", ")),
            "install them, or rebuild with `make build`",
        ));
    }
    let unwind = libraries.iter().find(|(name, _)| name.starts_with("libunwind."));
    let with = unwind.and_then(|(_, path)| real_name(path.as_deref()?));
    let with = with.map(|name| format!(" (with {name})")).unwrap_or_default();
    Some(Finding::ok(TOPIC, name, format!("{}{with}", path.display())))
}

/// `libunwind.so.8.0.1`: the version is in the name of the file that the link points to.
fn real_name(path: &Path) -> Option<String> {
    Some(path.canonicalize().ok()?.file_name()?.to_string_lossy().into_owned())
}
