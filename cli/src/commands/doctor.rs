//! `lapscope doctor`.

use std::process::ExitCode;

use crate::args::DoctorArgs;

/// # Errors
/// Not built yet.
pub fn run(_args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
