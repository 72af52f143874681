//! `lapscope pending`.

use std::process::ExitCode;

use crate::args::PendingArgs;

/// # Errors
/// Not built yet.
pub fn run(_args: &PendingArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
