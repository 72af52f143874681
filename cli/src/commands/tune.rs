//! `lapscope tune`: whether the MPI's own settings or injected tests make a program faster, which, and by how much.

use std::process::ExitCode;

use anyhow::{bail, Result};

use super::run::{inspected, warn};
use crate::args::TuneArgs;
use lapscope_data::say;
use lapscope_data::text::shell;
use lapscope_launch::own_program::warn_of_load;
use lapscope_launch::tune::earlier::Earlier;
use lapscope_launch::tune::session::{Session, Stopped, TuneOptions};
use lapscope_launch::tune::tuning::{Tuning, FIRST};
use lapscope_show::format;

/// As a shell says it of what SIGINT ended.
const INTERRUPTED: u8 = 130;

fn options(args: &TuneArgs) -> TuneOptions<'_> {
    TuneOptions {
        command: &args.command,
        set: &args.set,
        min_bytes: args.min_bytes,
        timeout: args.timeout,
        dir: args.dir.as_deref(),
        keep: args.keep,
        modes: &args.modes,
        intervals: &args.intervals,
        runs: args.runs,
        pairs: args.pairs,
        budget: args.budget(),
        tries_injection: !args.no_injection,
        tries_settings: !args.no_settings,
        own_settings: &args.settings,
        copies_directory: args.cd_copy,
        anyway: args.anyway,
        policy: &args.policy,
        wrappers: &args.wrappers.names,
    }
}

/// Runs the program until it is known what to set, and prints that.
///
/// # Errors
/// The program cannot be run or recorded, a run cannot be read, or the policy not be written.
pub fn run(args: &TuneArgs) -> Result<ExitCode> {
    if args.policy.exists() && !args.force {
        let file = args.policy.display();
        bail!("{file} is there already; name another with --policy, or overwrite it with --force");
    }
    let earlier = args.earlier.as_deref().map(Earlier::read).transpose()?;
    let mut session = Session::begin(options(args))?;
    warn(inspected(&args.command).as_ref());
    warn_of_load();
    let answered = Tuning::new(&mut session, earlier.as_ref()).run();
    if answered.as_ref().map_or(true, |answer| answer.is_interrupted) {
        session.keep();
        let directory = session.directory();
        let first = shell::quote(directory.join(FIRST));
        let directory = directory.display();
        say!("the runs so far are in {directory}; to read one: lapscope report {first}");
    }
    session.end();
    match answered {
        Ok(mut answer) => {
            answer.directory = session.keeps().then(|| session.directory());
            format::print(&mut answer, args.format)?;
            if answer.is_interrupted {
                say!(
                    "interrupted; to go on: lapscope tune --from {}",
                    session.directory().display()
                );
                return Ok(INTERRUPTED.into());
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            let Stopped { code, sentence, .. } = error.downcast()?;
            say!("{sentence}");
            Ok(code.into())
        }
    }
}
