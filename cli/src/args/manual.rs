use std::path::PathBuf;

use clap::Args;

/// Write the manual pages and the completions of bash, zsh and fish, as `make install` and packages install them.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct ManualArgs {
    /// Directory that gets man/, bash-completion/, zsh/ and fish/, as /usr/share has them
    #[arg(value_name = "DIR")]
    pub share: PathBuf,
}
