//! `lapscope requests`.

use std::process::ExitCode;

use crate::args::RequestsArgs;

/// # Errors
/// Not built yet.
pub fn run(_args: &RequestsArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
