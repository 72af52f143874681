//! `lapscope sql`.

use std::process::ExitCode;

use crate::args::SqlArgs;

/// # Errors
/// Not built yet.
pub fn run(_args: &SqlArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
