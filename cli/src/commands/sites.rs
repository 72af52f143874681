//! `lapscope sites`.

use std::process::ExitCode;

use crate::args::SitesArgs;

/// # Errors
/// Not built yet.
pub fn run(_args: &SitesArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
