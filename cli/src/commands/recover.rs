//! `lapscope recover`.

use std::process::ExitCode;

use crate::args::RecoverArgs;

/// # Errors
/// Not built yet.
pub fn run(_args: &RecoverArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}

/// What [`recover_run`] did.
#[derive(Debug, Default)]
pub struct RecoverSummary {
    /// Databases made from spools.
    pub recovered: Vec<std::path::PathBuf>,
    /// One line each: spools left alone, and why (still running, on another host, damaged).
    pub left: Vec<String>,
}

/// Turns every leftover spool of the run directory `dir` into a database.
///
/// # Errors
/// The directory cannot be listed. A spool that cannot be converted is no error; it is named in the summary.
pub fn recover_run(_dir: &std::path::Path, _progress: bool) -> anyhow::Result<RecoverSummary> {
    Ok(RecoverSummary::default())
}
