//! The page of two runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use super::{check, default_path, show, write};
use crate::args::HtmlArgs;
use crate::commands::diff::configuration;
use crate::commands::open_run;
use lapscope_report::pipeline::OpenRun;
use lapscope_show::html::compare::{page, Compared, ComparedRun};

/// Writes the page, says where, and shows it where that is asked for.
///
/// # Errors
/// One of them is no run, no file of it can be read, or the page cannot be written.
pub fn run(args: &HtmlArgs, a: &Path, b: &Path) -> Result<ExitCode> {
    let (mut a, mut b) = (open(a, args)?, open(b, args)?);
    // what is a wrapper in one of them is one in both, or its callers would have no counterparts
    a.wrappers.join(&b.wrappers);
    b.wrappers = a.wrappers.clone();
    let path = args.output.clone().unwrap_or_else(|| path_of_both(&a, &b));
    check(&path)?;
    let a = read(a)?;
    let compared = Compared::new(a, read(b)?, args.top.into());
    write(&path, &page(&compared)?)?;
    if args.open {
        show(&path)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path, args: &HtmlArgs) -> Result<OpenRun> {
    open_run(Some(path), &args.times, &args.wrappers, &args.resources)
}

/// What was read goes when all of it is known that is shown.
fn read(mut open: OpenRun) -> Result<ComparedRun> {
    let configuration = configuration(&open.files.databases)?;
    ComparedRun::read(&mut open, configuration)
}

/// In the current directory, by the names of both.
fn path_of_both(a: &OpenRun, b: &OpenRun) -> PathBuf {
    let mut name = default_path(&a.files.root).with_extension("").into_os_string();
    name.push("-");
    name.push(default_path(&b.files.root));
    name.into()
}
