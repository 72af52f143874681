//! One file a subcommand. Each has `pub fn run(args: &…Args) -> anyhow::Result<std::process::ExitCode>`.

pub mod bench;
pub mod calibrate;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod hang;
pub mod help;
pub mod html;
pub mod live;
pub mod merge;
pub mod options;
pub mod overlap;
pub mod own_program;
pub mod part;
pub mod pending;
pub mod reach;
pub mod recover;
pub mod report;
pub mod requests;
pub mod run;
pub mod sites;
pub mod sql;
pub mod thresholds;
pub mod tune;
pub mod watchdog;
pub mod whatif;
