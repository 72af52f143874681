//! lapscope's own libraries, and what they need.

use std::path::{Path, PathBuf};

use super::Finding;
use crate::install::{self, ABIS};
use lapscope_data::db::USER_VERSION;
use lapscope_data::program::libraries_of_object;

const TOPIC: &str = "lapscope";

pub fn look() -> Vec<Finding> {
    let version = format!("{}, database format {USER_VERSION}", env!("CARGO_PKG_VERSION"));
    let mut findings = vec![Finding::ok(TOPIC, "version", version)];
    match install::preload_library() {
        Err(error) => findings.push(
            Finding::missing(
                TOPIC,
                "preload library",
                format!("{error:#}"),
                "install lapscope anew, or `make build` in its source tree",
            )
            .follows("without it nothing can be recorded; reading runs works"),
        ),
        Ok(preload) => {
            findings.push(Finding::ok(TOPIC, "preload library", preload.display().to_string()));
            findings.extend(recorders(&preload));
        }
    }
    findings.push(Finding::ok(TOPIC, "SQLite", rusqlite::version()));
    findings
}

/// Those beside the preload library: one finding for all that work, one for each that does not.
fn recorders(preload: &Path) -> Vec<Finding> {
    let there: Vec<(&str, PathBuf)> =
        ABIS.iter().filter_map(|abi| Some((*abi, install::recorder(preload, abi)?))).collect();
    let looked: Vec<Result<(&str, Option<String>), Finding>> =
        there.iter().map(|(abi, path)| recorder(abi, path)).collect();
    let works: Vec<&(&str, Option<String>)> = looked.iter().flatten().collect();
    let mut findings = Vec::new();
    if !works.is_empty() {
        let names = works.iter().map(|(abi, _)| *abi).collect::<Vec<_>>().join(", ");
        let with = works.iter().find_map(|(_, with)| with.as_deref());
        let with = with.map(|name| format!(" (with {name})")).unwrap_or_default();
        findings.push(Finding::ok(TOPIC, "recorders", format!("{names}{with}")));
    }
    if there.is_empty() {
        let advice = "install lapscope anew; in its source tree: install an MPI with its headers, then `make build`";
        let none = Finding::missing(TOPIC, "recorders", "none beside the preload library", advice);
        findings.push(none.follows("nothing is recorded"));
    }
    findings.extend(looked.into_iter().filter_map(Result::err));
    findings
}

/// With the library that walks call paths, where that is one of the system's.
fn recorder<'a>(abi: &'a str, path: &Path) -> Result<(&'a str, Option<String>), Finding> {
    let libraries = libraries_of_object(path);
    let lost: Vec<&str> = libraries
        .iter()
        .filter(|(_, path)| path.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    if !lost.is_empty() {
        let says = format!("{} needs {}, not found", path.display(), lost.join(", "));
        let advice = "install them, or lapscope anew; in its source tree: `make build`";
        let missing = Finding::missing(TOPIC, format!("recorder {abi}"), says, advice);
        return Err(missing.follows("nothing of programs of that ABI is recorded"));
    }
    let unwind = libraries.iter().find(|(name, _)| name.starts_with("libunwind."));
    Ok((abi, unwind.and_then(|(_, path)| real_name(path.as_deref()?))))
}

/// `libunwind.so.8.0.1`: the version is in the name of the file that the link points to.
fn real_name(path: &Path) -> Option<String> {
    Some(path.canonicalize().ok()?.file_name()?.to_string_lossy().into_owned())
}
