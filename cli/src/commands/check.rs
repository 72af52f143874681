//! `lapscope check`: runs against limits and earlier runs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use toml::{Table, Value};

use super::open_run;
use crate::args::check::{share, value_of, CheckArgs};
use lapscope_data::files::cannot_write;
use lapscope_data::say;
use lapscope_data::text::style::Style;
use lapscope_report::check::{
    read_baseline, unfit_for_baseline, write_baseline, Check, CheckedRun, Limit, Name, Verdict,
};
use lapscope_report::pipeline::report::build;
use lapscope_report::report::ReportOptions;
use lapscope_show::format::rows::{self, RowWriter};
use lapscope_show::format::{self, Document};
use lapscope_show::render::check as render;

/// Of what cannot be judged, and of what cannot be read.
const NOT_JUDGED: u8 = 2;
const TOLERANCE: f64 = 0.05;

/// Reads all runs and prints what holds. What cannot be read is not judged, as 1 says that something falls short.
///
/// # Errors
/// Standard output fails.
pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    let check = match check(args) {
        Ok(Some(check)) => check,
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Err(error) => {
            say!("{error:#}");
            return Ok(ExitCode::from(NOT_JUDGED));
        }
    };
    let verdict = check.verdict;
    if args.format.is_table() {
        check.notes.iter().for_each(|note| say!("{note}"));
    }
    format::print(&mut CheckOutput(check), args.format)?;
    Ok(match verdict {
        Verdict::Holds => ExitCode::SUCCESS,
        Verdict::FallsShort => ExitCode::FAILURE,
        Verdict::NotJudged => ExitCode::from(NOT_JUDGED),
    })
}

/// `None`: a baseline was written, and nothing was to be checked.
fn check(args: &CheckArgs) -> Result<Option<Check>> {
    let mut limits: Vec<Limit> = args.max.iter().chain(&args.min).cloned().collect();
    let mut tolerance = TOLERANCE;
    if let Some(path) = &args.limits {
        read_limits(path, &mut limits, &mut tolerance)
            .with_context(|| path.display().to_string())?;
    }
    let is_asked = !limits.is_empty() || !args.against.is_empty();
    if !is_asked && args.write_baseline.is_none() {
        bail!("nothing to check: --max, --min, --limits or --against says what has to hold");
    }
    let runs = match args.runs.is_empty() {
        true => vec![read_run(None, args)?],
        false => side(&args.runs, args)?,
    };
    let against = side(&args.against, args)?;
    for limit in &limits {
        limit.name.check(&runs[0].report).map_err(anyhow::Error::msg)?;
    }
    if let Some(path) = &args.write_baseline {
        let earlier = std::fs::read_to_string(path).unwrap_or_default();
        if path.exists() && read_baseline(&earlier).is_none() {
            bail!("{} is there and no baseline of lapscope: it is left alone", path.display());
        }
        write_file(path, &write_baseline(&runs))?;
        if let Some(why) = unfit_for_baseline(&runs) {
            say!("nothing can be judged against {}: {why}", path.display());
        }
    }
    if !is_asked {
        return Ok(None);
    }
    let tolerance = args.tolerance.unwrap_or(tolerance);
    let check = Check::new(&runs, &against, &limits, (tolerance, args.advice));
    let check = check.map_err(anyhow::Error::msg)?;
    if let Some(path) = &args.junit {
        write_file(path, &render::junit(&check))?;
    }
    if let Some(path) = &args.badge {
        write_file(path, &render::badge(check.verdict))?;
    }
    Ok(Some(check))
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| cannot_write(path, error))
}

/// Runs, and those that baselines have.
fn side(paths: &[PathBuf], args: &CheckArgs) -> Result<Vec<CheckedRun>> {
    let mut runs = Vec::new();
    for path in paths {
        let text = match path.extension().is_some_and(|it| it == "json") && path.is_file() {
            true => std::fs::read_to_string(path)
                .with_context(|| path.display().to_string())
                .map(Some)?,
            false => None,
        };
        match text.as_deref().map(read_baseline) {
            Some(Some(Ok(baseline))) => runs.extend(baseline),
            Some(Some(Err(why))) => bail!("{}: {why}", path.display()),
            Some(None) => bail!("{}: it is no baseline of lapscope", path.display()),
            None => runs.push(read_run(Some(path), args)?),
        }
    }
    Ok(runs)
}

fn read_run(path: Option<&Path>, args: &CheckArgs) -> Result<CheckedRun> {
    let mut open = open_run(path, &args.times, &args.wrappers, &args.resources)?;
    Ok(CheckedRun::new(&build(&mut open, &[], ReportOptions::default())?)?)
}

/// Tables `[max]` and `[min]`, and `tolerance`.
fn read_limits(path: &Path, limits: &mut Vec<Limit>, tolerance: &mut f64) -> Result<()> {
    let table: Table = std::fs::read_to_string(path)?.parse()?;
    for (key, value) in &table {
        match (key.as_str(), value) {
            ("tolerance", value) => {
                let read = plain(value).and_then(|text| share(&text).map_err(anyhow::Error::msg));
                *tolerance = read.context("tolerance")?;
            }
            ("max" | "min", Value::Table(entries)) => {
                add_limits(entries, "", key == "max", limits)?
            }
            _ => bail!("{key}: expected [max], [min] or tolerance"),
        }
    }
    Ok(())
}

/// A name with dots in it is a table within a table.
fn add_limits(entries: &Table, name: &str, is_max: bool, limits: &mut Vec<Limit>) -> Result<()> {
    for (key, value) in entries {
        let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        if let Value::Table(entries) = value {
            add_limits(entries, &name, is_max, limits)?;
            continue;
        }
        let read = plain(value);
        let name = Name::new(&name);
        let read = read.and_then(|text| value_of(&name, &text).map_err(anyhow::Error::msg));
        let value = read.with_context(|| name.asked.clone())?;
        limits.push(Limit { name, is_max, value });
    }
    Ok(())
}

fn plain(value: &Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(_) | Value::Float(_) => Ok(value.to_string()),
        other => bail!("{other}: expected a number, or text as \"20%\""),
    }
}

struct CheckOutput(Check);

impl Document for CheckOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::write(out, &self.0, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(&self.0, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(rows::write(rows, &render::columns(), &self.0.checks)?)
    }
}
