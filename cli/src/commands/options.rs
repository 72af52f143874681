//! `lapscope options`.

use std::process::ExitCode;

use crate::args::OptionsArgs;

/// # Errors
/// Not built yet.
pub fn run(_args: &OptionsArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
