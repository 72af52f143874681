//! One file a subcommand. Each has `pub fn run(args: &…Args) -> anyhow::Result<std::process::ExitCode>`.

pub mod bench;
pub mod calibrate;
pub mod check;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod hang;
pub mod help;
pub mod html;
#[cfg(feature = "live")]
pub mod live;
pub mod manual;
pub mod merge;
pub mod options;
pub mod overlap;
pub mod part;
pub mod pending;
pub mod progress;
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

/// What is said in place of a command that this build is without.
#[cfg(not(all(feature = "live", feature = "parquet")))]
pub fn left_out(command: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "this build has no `lapscope {command}`: `make demo` leaves it out, because it takes long to compile; `make build` has \
         everything"
    )
}
