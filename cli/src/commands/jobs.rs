//! `lapscope jobs`: records of many jobs are imported, and jobs listed.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, Context, Result};

use super::html;
use crate::args::JobsArgs;
use lapscope_data::jobs::{GroupBy, Imported, JobsDatabase};
use lapscope_data::say;
use lapscope_data::text::progress::Progress;
use lapscope_report::jobs::{groups, ImportedCounts, Jobs, JobsChoice};
use lapscope_show::format;
use lapscope_show::html::jobs::{page, JobsPage};
use lapscope_show::openmetrics::{is_openmetrics, openmetrics};

/// Jobs on the page, and in text.
const ON_PAGE: usize = 500;
const IN_TEXT: usize = 20;

/// Problems of an import that are named; the others are counted.
const NAMED_PROBLEMS: usize = 10;

/// # Errors
/// A directory is not there, the database cannot be read or written, or what was asked for not be written.
pub fn run(args: &JobsArgs) -> Result<ExitCode> {
    check(args)?;
    let (database, imported) = open(args)?;
    let is_whole = imported.as_ref().map_or(true, |imported| imported.left_out == 0);
    let choice = JobsChoice {
        filter: args.filter(),
        order: args.sort,
        top: args.format.top(args.top, IN_TEXT),
        by: args.by,
    };
    if let Some(path) = &args.html {
        let top = args.top.unwrap_or(ON_PAGE);
        let jobs = Jobs::read(
            &database,
            &args.database,
            None,
            &JobsChoice { top, by: None, ..choice.clone() },
        )?;
        let by = |by| groups(&database, &choice.filter, by);
        let (users, mpis) = (by(GroupBy::User)?, by(GroupBy::Mpi)?);
        let executables = by(GroupBy::Executable)?;
        let shown = JobsPage { jobs: &jobs, users: &users, mpis: &mpis, executables: &executables };
        html::replace(path, &page(&shown)?)?;
    }
    if let Some(path) = &args.openmetrics {
        html::replace(
            path,
            &openmetrics(&database.groups(&choice.filter, GroupBy::ExecutableAndMpi)?),
        )?;
    }
    if let Some(path) = &args.parquet {
        write_parquet(&database, &choice, path)?;
    }
    if !args.quiet {
        let mut jobs = Jobs::read(&database, &args.database, imported, &choice)?;
        format::print(&mut jobs, args.format)?;
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What can be wrong before anything is done.
fn check(args: &JobsArgs) -> Result<()> {
    for directory in &args.directories {
        if !directory.is_dir() {
            bail!("there is no directory {}", directory.display());
        }
    }
    if let Some(path) = &args.html {
        html::check(path)?;
    }
    if let Some(path) = &args.openmetrics {
        check_metrics(path)?;
    }
    if let Some(path) = args.parquet.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
        bail!("{} exists already; name another file, or remove it first", path.display());
    }
    Ok(())
}

/// Nothing else than metrics of lapscope is replaced.
fn check_metrics(path: &Path) -> Result<()> {
    let Ok(file) = File::open(path) else { return Ok(()) };
    let mut begin = Vec::new();
    file.take(256).read_to_end(&mut begin).with_context(|| path.display().to_string())?;
    if !is_openmetrics(&begin) {
        bail!(
            "{} is there and has no metrics of lapscope: it is left alone: name another one",
            path.display()
        );
    }
    Ok(())
}

/// The database, with what is to be imported and deleted before it is read.
fn open(args: &JobsArgs) -> Result<(JobsDatabase, Option<ImportedCounts>)> {
    if args.directories.is_empty() && args.forget.is_none() {
        return Ok((JobsDatabase::open(&args.database)?, None));
    }
    let mut database = JobsDatabase::create(&args.database)?;
    let context = || args.database.display().to_string();
    let progress = Progress::new("importing");
    let told = |expected, done| {
        progress.expect(expected);
        progress.add(done);
    };
    let imported = database.import(&args.directories, args.forget, &told).with_context(context)?;
    drop(progress);
    say_problems(&imported);
    let forgotten = args.forget.map(|before| database.forget(before)).transpose();
    let counts = ImportedCounts::new(&imported, forgotten.with_context(context)?.unwrap_or(0));
    Ok((database, Some(counts)))
}

fn say_problems(imported: &Imported) {
    let problems = &imported.problems;
    for problem in problems.iter().take(NAMED_PROBLEMS) {
        say!("{problem}");
    }
    if problems.len() > NAMED_PROBLEMS {
        say!("{} more could not be read", problems.len() - NAMED_PROBLEMS);
    }
}

/// All jobs that the filters leave.
#[cfg(feature = "parquet")]
fn write_parquet(database: &JobsDatabase, choice: &JobsChoice, path: &Path) -> Result<()> {
    super::export::parquet::write_jobs(path, database.jobs(&choice.filter, choice.order, 0)?)
}

#[cfg(not(feature = "parquet"))]
fn write_parquet(_: &JobsDatabase, _: &JobsChoice, _: &Path) -> Result<()> {
    Err(super::left_out("jobs --parquet"))
}
