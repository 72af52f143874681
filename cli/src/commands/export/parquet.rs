//! `lapscope export parquet`: a run as tables of columns.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use super::interrupt::Interrupts;
use super::with_cure;
use crate::args::ExportParquetArgs;
use crate::commands::open_run;
use lapscope_advise::problem::module_problems;
use lapscope_columns::directory::{refuse_existing, Unfinished};
use lapscope_columns::{write, WriteProgress};
use lapscope_data::jobs::ListedJob;
use lapscope_data::say;
use lapscope_data::text::progress::Progress;
use lapscope_report::pipeline::overlap::prepare;
use lapscope_show::format::warn_of_data;

/// Jobs as a table in a file, which is not there when not all of it could be written.
///
/// # Errors
/// It is there already, or cannot be written.
pub fn write_jobs(path: &Path, jobs: Vec<ListedJob>) -> Result<()> {
    lapscope_columns::jobs::write_jobs(path, jobs).map_err(|error| {
        let _ = std::fs::remove_file(path);
        with_cure(error, path)
    })
}

/// # Errors
/// There is no run here, nothing of it can be read, or the directory is there already or cannot be written.
pub fn run(args: &ExportParquetArgs) -> Result<ExitCode> {
    refuse_existing(&args.directory)?;
    let mut open = open_run(args.run.as_deref(), &args.times, &args.wrappers, &args.resources)?;
    let prepared = prepare(&mut open)?;
    for note in &prepared.notes {
        say!("{note}");
    }
    // rows are measured, then written
    let progress = Progress::new("writing");
    progress.expect(2 * open.rows());
    let wrote = |rows| progress.add(rows);

    let unfinished = Unfinished::beside(&args.directory)?;
    let interrupts = Interrupts::watch();
    let told = WriteProgress { wrote: &wrote, is_stopped: &|| interrupts.signal().is_some() };
    let written = write(&prepared, &mut open.symbols, unfinished.path(), &told);
    drop(progress);
    if let Some(signal) = interrupts.signal() {
        say!("interrupted: {} was not made", args.directory.display());
        return Ok(ExitCode::from(128 + signal));
    }
    written
        .and_then(|()| unfinished.publish())
        .map_err(|error| with_cure(error, &args.directory))?;
    let mut problems = open.problems(&[]);
    problems.extend(module_problems(open.symbols.troubles()));
    warn_of_data(&problems);
    Ok(ExitCode::SUCCESS)
}
