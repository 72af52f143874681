//! `lapscope merge`.

use std::process::ExitCode;

use crate::args::MergeArgs;

/// # Errors
/// Not built yet.
pub fn run(_args: &MergeArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
