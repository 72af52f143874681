//! `lapscope report`.

use std::process::ExitCode;

use crate::args::ReportArgs;

/// # Errors
/// Not built yet.
pub fn run(_args: &ReportArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
