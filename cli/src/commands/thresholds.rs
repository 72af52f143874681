//! `lapscope thresholds`: from which size on sends wait for their receiver.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::open::{print, print_json, warn, OpenRun};
use crate::analysis::problem::{Problem, ProblemKind};
use crate::analysis::report::JSON_VERSION;
use crate::analysis::thresholds::{Declared, DeclaredBy, Thresholds};
use crate::args::{Format, ThresholdsArgs};
use crate::db::{Database, DbError};
use crate::render;
use crate::render::style::Style;
use crate::trace::Trace;

#[derive(Serialize)]
struct Document<'a> {
    json_version: u32,
    run: String,
    #[serde(flatten)]
    thresholds: &'a Thresholds,
}

/// Prints the limits of each path with what speaks for them.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &ThresholdsArgs) -> Result<ExitCode> {
    let open = OpenRun::open(args.run.as_deref())?;
    let (trace, failed) = Trace::read(&open.files.databases)?;
    let mut problems = open.problems.clone();
    problems.extend(
        failed.iter().map(|error| {
            Problem::new(ProblemKind::DamagedFile, format!("not read: {error}"), vec![])
        }),
    );
    warn(&problems);
    let declared = declared(&open.files.databases);
    let thresholds = Thresholds::find(&trace, &args.ranks, declared);
    match args.format {
        Format::Text => {
            print(|out| render::thresholds::write(out, &thresholds, Style::for_stdout()))?;
        }
        Format::Json => print_json(&Document {
            json_version: JSON_VERSION,
            run: open.name(),
            thresholds: &thresholds,
        })?,
        Format::Csv => print(|out| render::thresholds::write_csv(out, &thresholds))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Variables of the first rank that has them: limits, and which transports are used.
pub(super) fn declared(databases: &[PathBuf]) -> Vec<Declared> {
    let read = |path: &PathBuf| read_declared(path).ok().filter(|found| !found.is_empty());
    databases.iter().find_map(read).unwrap_or_default()
}

fn read_declared(path: &Path) -> Result<Vec<Declared>, DbError> {
    let database = Database::open(path)?;
    let read = || -> rusqlite::Result<Vec<Declared>> {
        let mut statement = database.connection.prepare(
            "SELECT name, value, 1 FROM cvar WHERE rank = (SELECT min(rank) FROM rank)
             UNION ALL SELECT name, value, 0 FROM environment WHERE rank = (SELECT min(rank) FROM rank) ORDER BY 3 DESC, 1",
        )?;
        let rows = statement.query_map([], |row| {
            let by = match row.get(2)? {
                1 => DeclaredBy::ControlVariable,
                _ => DeclaredBy::Environment,
            };
            Ok(Declared { name: row.get(0)?, value: row.get(1)?, by })
        })?;
        rows.filter(|row| row.as_ref().map_or(true, Declared::concerns_sends)).collect()
    };
    read().map_err(DbError::reading(path))
}
