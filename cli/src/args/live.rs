//! What `lapscope live` takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::units;
use lapscope_show::format::Format;

/// What a running job does now: who waits, where, how much moves, and what somebody should look at.
#[derive(Debug, Args)]
#[command(after_help = "\
Keys: q leaves, p pauses, s sorts, the arrows scroll, b puts ranks together, d diagnoses, h has help. The job is only read:
it goes on as it is when lapscope leaves or is killed.

Examples:
  lapscope live                         the newest run in this directory, or the next one
  lapscope live runs/a --alert 300      alerts after five minutes without an MPI call that ended
  lapscope live --once                  one screen as plain text, also without a terminal
  lapscope live --format json | jq .total.exposed_share")]
pub struct LiveArgs {
    /// Run directory, which may not be there yet [default: the newest lapscope-* here]
    pub run: Option<PathBuf>,

    /// Print one screen as plain text after one interval, and stop
    #[arg(long)]
    pub once: bool,

    /// json prints a line of JSON each interval in place of the screen; with --once, one
    #[arg(long, value_parser = Format::of_no_table(), default_value_t)]
    pub format: Format,

    /// As --format json
    #[arg(long, hide = true)]
    pub json: bool,

    /// Seconds between two looks, from 0.1 on
    #[arg(long, value_name = "S", default_value = "1", value_parser = units::interval)]
    pub interval: Duration,

    /// Seconds that rates and shares are of
    #[arg(long, value_name = "S", default_value = "10", value_parser = units::interval)]
    pub window: Duration,

    /// Seconds after which no progress is an alert
    #[arg(long, value_name = "S", default_value = "30", value_parser = units::interval)]
    pub alert: Duration,
}
