//! `lapscope live`: what a running job does now.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{bail, Result};

use crate::args::LiveArgs;
use lapscope_show::live::{self, looker::Looker};

/// Shows the job until somebody leaves or, where nobody can, until it ends.
///
/// # Errors
/// Standard output is no terminal that can be drawn on, or fails; with --once: there is no run.
pub fn run(args: &LiveArgs) -> Result<ExitCode> {
    let looker = Looker::new(args.run.as_deref(), args.window, args.alert);
    match (args.json || args.format.is_json(), args.once) {
        (true, once) => live::printed::lines(looker, args.interval, once),
        (false, true) => live::printed::screen(looker, args.interval),
        (false, false) => {
            check_terminal()?;
            live::view::show(looker, args.interval)
        }
    }
}

#[allow(clippy::disallowed_methods)] // only asked what it is
fn check_terminal() -> Result<()> {
    const INSTEAD: &str =
        "`lapscope live --once` prints one screen, `lapscope live --format json` a line each interval";
    if !std::io::stdout().is_terminal() {
        bail!("standard output is not a terminal: {INSTEAD}");
    }
    let name = std::env::var("TERM").unwrap_or_default();
    if name.is_empty() || name == "dumb" {
        bail!("TERM={name}: this terminal cannot be drawn on: {INSTEAD}");
    }
    Ok(())
}
