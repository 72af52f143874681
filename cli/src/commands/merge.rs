//! `lapscope export sqlite`: the databases of all ranks in one file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::ExportSqliteArgs;
use lapscope_data::db::{self, Database};
use lapscope_data::merged;
use lapscope_data::text::style::Style;
use lapscope_report::pipeline::OpenRun;
use lapscope_show::format::warn_of_data;
use lapscope_show::output::print;

/// # Errors
/// There is no run, or the file cannot be written, or exists.
pub fn run(args: &ExportSqliteArgs) -> anyhow::Result<ExitCode> {
    let roots = match args.runs.as_slice() {
        [] => vec![db::find_run(None)?],
        named => named.to_vec(),
    };
    let mut open = open_all(&roots)?;
    let files = open.files.databases.clone();
    let output = args.output.clone().unwrap_or_else(|| default_output(&roots[0]));
    let bar = rows_bar(&files);
    let left_out = merged::merge(&files, &output, &|rows| bar.inc(rows))?;
    bar.finish_and_clear();
    open.leave_out(left_out)?;
    warn_of_data(&open.problems(&[]));
    let files = &open.files.databases;
    let plural = if files.len() == 1 { "file" } else { "files" };
    let merged = format!("{}: {} {plural} merged", output.display(), files.len());
    print(|out| writeln!(out, "{}", Style::for_stdout().wrap(&merged, "", "  ")))?;
    Ok(ExitCode::SUCCESS)
}

/// Beside the run directory, not in it: there every rank-*.db is one rank's.
fn default_output(root: &Path) -> PathBuf {
    let root = root.canonicalize().unwrap_or_else(|_| root.into());
    if root.is_dir() {
        let mut name = root.file_name().unwrap_or_default().to_owned();
        name.push(".db");
        root.with_file_name(name)
    } else {
        root.with_extension("merged.db")
    }
}

/// The runs that were named, as one.
///
/// # Errors
/// One of them is not there, or nothing in them can be read.
fn open_all(roots: &[PathBuf]) -> anyhow::Result<OpenRun> {
    let found: Result<Vec<PathBuf>, _> =
        roots.iter().map(|root| db::find_run(Some(root))).collect();
    OpenRun::open_all(&found?)
}

/// A progress bar for copying `files`, on standard error where that is a terminal.
pub fn rows_bar(files: &[PathBuf]) -> ProgressBar {
    let rows = |path: &PathBuf| {
        let database = Database::open(path).ok()?;
        db::rows_to_scan(&database.connection).ok()
    };
    let total = files.iter().filter_map(rows).sum();
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = "merging {wide_bar} {human_pos}/{human_len} rows, {eta} left";
    bar.with_style(ProgressStyle::with_template(template).expect("a constant template"))
}
