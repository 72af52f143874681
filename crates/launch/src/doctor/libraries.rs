//! lapscope's own libraries, and what they need.

use std::path::{Path, PathBuf};

use super::{gpu, Finding};
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
            findings.push(gpu::look(TOPIC, &preload));
        }
    }
    findings.push(Finding::ok(TOPIC, "SQLite", rusqlite::version()));
    findings
}

/// Those beside the preload library: one finding for all that work, one for each that does not.
fn recorders(preload: &Path) -> Vec<Finding> {
    let there: Vec<(&str, PathBuf)> =
        ABIS.iter().filter_map(|abi| Some((*abi, install::recorder(preload, abi)?))).collect();
    let looked: Vec<Result<&str, Finding>> =
        there.iter().map(|(abi, path)| recorder(abi, path)).collect();
    let works: Vec<&str> = looked.iter().flatten().copied().collect();
    let mut findings = Vec::new();
    if !works.is_empty() {
        findings.push(Finding::ok(TOPIC, "recorders", works.join(", ")));
    }
    if there.is_empty() {
        let advice = "install lapscope anew; in its source tree: install an MPI with its headers, then `make build`";
        let none = Finding::missing(TOPIC, "recorders", "none beside the preload library", advice);
        findings.push(none.follows("nothing is recorded"));
    }
    findings.extend(looked.into_iter().filter_map(Result::err));
    findings
}

/// Whether what it needs is there.
fn recorder<'a>(abi: &'a str, path: &Path) -> Result<&'a str, Finding> {
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
    Ok(abi)
}
