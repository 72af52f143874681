//! `lapscope run`.

use std::process::ExitCode;

use crate::args::RunArgs;

/// # Errors
/// Not built yet.
pub fn run(_args: &RunArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
