//! `lapscope overlap`: what was hidden, what could have been, and what was waited for.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Result};

use super::open::{warn, OpenRun};
use crate::analysis::overlap::{measure, EagerLimits, Options, Overlap};
use crate::analysis::problem::module_problems;
use crate::analysis::reference::{Reference, Source};
use crate::analysis::thresholds::Thresholds;
use crate::args::{Format, OverlapArgs, OverlapBy};
use crate::calibration::{self, Calibration};
use crate::output::{print, print_json};
use crate::render;
use crate::render::progress::Progress;
use crate::render::style::Style;
use crate::symbols::Renumbered;
use crate::trace::Trace;

/// Reads the run, recovering what killed ranks left, and prints its overlap.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &OverlapArgs) -> Result<ExitCode> {
    let overlap = build(args)?;
    match args.format {
        Format::Json => print_json(&overlap)?,
        Format::Csv => {
            warn(&overlap.problems);
            let by = args.by.unwrap_or(OverlapBy::Site);
            print(|out| render::overlap::write_csv(out, &overlap, by))?;
        }
        Format::Text => {
            print(|out| render::overlap::write(out, &overlap, args.by, Style::for_stdout()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn build(args: &OverlapArgs) -> Result<Overlap> {
    let mut open = OpenRun::open(args.run.as_deref())?;
    open.find_wrappers(&args.wrappers.names)?;
    let trace = open.trace(&args.ranks)?;
    let (reference, notes) = reference(args.reference.as_deref(), &trace, &open.files.databases)?;
    let eager = EagerLimits::of(&Thresholds::find(&trace, &reference, &[], Vec::new()));
    let progress = Progress::default();
    progress.expect(trace.ranks.iter().map(|rank| rank.endpoints.len() as u64).sum());
    let progressed = |requests| progress.add(requests);
    let measured = measure(&trace, &reference, eager, &args.ranks, &progressed);
    drop(progress);
    let (name, options) = (open.name(), Options { top: args.top, ranks: &args.ranks });
    let mut names = Renumbered::new(&mut open.symbols, &trace.modules);
    let mut overlap = Overlap::build(&name, &trace, &reference, &measured, options, &mut names);
    overlap.injection = open.injection(&args.ranks);
    let mut problems = open.problems(&[]);
    problems.extend(module_problems(open.symbols.troubles()));
    overlap.reference.notes.extend(notes);
    overlap.problems = problems;
    Ok(overlap)
}

/// The reference times that were asked for, and sentences about them.
fn reference(
    wanted: Option<&str>,
    trace: &Trace,
    databases: &[PathBuf],
) -> Result<(Reference, Vec<String>)> {
    let file = match wanted {
        None => return Ok(calibration::reference_for(trace, databases)),
        Some("run") => return Ok(calibration::reference_of_run(trace)),
        Some("calibration") => {
            let (reference, notes) = calibration::reference_for(trace, databases);
            if !matches!(reference.source, Source::Calibration { .. }) {
                let why = notes.iter().map(|note| format!("; {note}")).collect::<String>();
                bail!("no calibration fits this run; make one with: lapscope calibrate -- <launch line>{why}");
            }
            return Ok((reference, notes));
        }
        Some(file) => Path::new(file),
    };
    let Calibration { created, mut times, .. } = Calibration::read(file)?;
    times.source = Source::Calibration { file: file.into(), created };
    Ok(calibration::completed((times, Vec::new()), trace))
}
