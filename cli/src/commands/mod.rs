//! One file a subcommand. Each has `pub fn run(args: &…Args) -> anyhow::Result<std::process::ExitCode>`.

use std::path::Path;

use crate::args::{ReferenceArgs, ResourceArgs, WrapperArgs};
use lapscope_advise::problem::module_problems;
use lapscope_data::db::newer_sibling;
use lapscope_data::say;
use lapscope_data::symbols::Symbols;
use lapscope_data::text::shell;
use lapscope_launch::gather::Looks;
use lapscope_report::pipeline::OpenRun;
use lapscope_show::format::warn;
use lapscope_watch::hang::{diagnose, Diagnosis};

pub mod bench;
pub mod calibrate;
pub mod check;
pub mod diff;
pub mod doctor;
pub mod export;
mod gpu;
pub mod hang;
pub mod help;
pub mod html;
pub mod jobs;
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
pub mod scaling;
pub mod sites;
pub mod sql;
mod stacks;
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

/// Says which run is newer than one that was named: a launch into a directory with a run writes beside it.
pub fn hint_at_newer(named: Option<&Path>) {
    if let Some(newer) = named.and_then(newer_sibling) {
        say!(
            "{} is a newer run of that name: lapscope report {}",
            newer.display(),
            shell::quote(&newer)
        );
    }
}

/// Opens a run as the arguments of commands that analyse one say.
///
/// # Errors
/// There is no run, no file of it can be read, or a wrapper is named that cannot be.
pub fn open_run(
    run: Option<&Path>,
    times: &ReferenceArgs,
    wrappers: &WrapperArgs,
    resources: &ResourceArgs,
) -> anyhow::Result<OpenRun> {
    let mut open = OpenRun::open(run)?;
    hint_at_newer(run);
    open.resources = resources.resources();
    open.reference.clone_from(&times.reference);
    open.find_wrappers(&wrappers.names)?;
    Ok(open)
}

/// What two looks tell; modules that cannot be read are named.
pub fn diagnosis_of((before, after): &Looks) -> Diagnosis {
    let mut symbols = Symbols::new(after.modules.clone());
    let diagnosis = diagnose(before, after, &mut symbols);
    warn(&module_problems(symbols.troubles()));
    diagnosis
}
