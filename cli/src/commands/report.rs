//! `lapscope report`: where the time went.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::{hint_at_newer, scaling};
use crate::args::{ReportArgs, REPORTED_SITES};
use lapscope_data::say;
use lapscope_data::text::style::Style;
use lapscope_measure::injection::automatic::Automatic;
use lapscope_report::pipeline::report::build;
use lapscope_report::pipeline::OpenRun;
use lapscope_report::report::{Report, ReportOptions};
use lapscope_show::format::rows::{self, RowWriter};
use lapscope_show::format::{self, Document, Format};
use lapscope_show::render;
use lapscope_show::render::report::AskedBesides;
use lapscope_trace::injected::page::pages_in;
use lapscope_trace::problem::Problem;

/// Reads the run, recovering what killed ranks left, and prints the report.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &ReportArgs) -> Result<ExitCode> {
    if let Some(run) = args.read.run.as_deref().filter(|_| !args.further.is_empty()) {
        let runs = std::iter::once(run).chain(args.further.iter().map(PathBuf::as_path));
        let how = (&args.times, &args.wrappers, &args.resources);
        let mut scaling = scaling::read(runs, args.scaling.into(), how)?;
        if args.read.format.is_table() {
            scaling.notes.iter().for_each(|note| say!("{note}"));
        }
        format::print(&mut scaling, args.read.format)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut open = match OpenRun::open(args.read.run.as_deref()) {
        Ok(open) => open,
        Err(error) => return report_pages(args, error),
    };
    hint_at_newer(args.read.run.as_deref());
    open.resources = args.resources.resources();
    open.stretch = args.stretch.wanted();
    open.reference.clone_from(&args.times.reference);
    open.find_wrappers(&args.wrappers.names)?;
    let top = args.read.format.top(args.top, REPORTED_SITES);
    let options = ReportOptions { top, order: args.sort.into(), ..ReportOptions::default() };
    let report = build(&mut open, &args.ranks.chosen(), options)?;
    if args.efficiency {
        format::print(&mut EfficiencyOutput(report), args.read.format)?;
        return Ok(ExitCode::SUCCESS);
    }
    format::print(
        &mut ReportOutput {
            report,
            asked: AskedBesides { listed: args.ranked.listed.clone(), how: args.how },
        },
        args.read.format,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// What `LAPSCOPE_INJECT=auto` decided is all that there is of a run with `LAPSCOPE_RECORD=off`.
///
/// # Errors
/// `error`, where there are no such pages either.
fn report_pages(args: &ReportArgs, error: anyhow::Error) -> Result<ExitCode> {
    let pages = args.read.run.as_deref().map(pages_in).unwrap_or_default();
    let Some(automatic) = Automatic::from_pages(pages) else { return Err(error) };
    format::print(&mut Pages { automatic }, args.read.format)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Pages {
    automatic: Automatic,
}

impl Document for Pages {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::injection::write_pages(out, &self.automatic, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(rows::write(rows, &render::columns::pages(), &self.automatic.page.arms)?)
    }

    fn problems(&self) -> &[Problem] {
        &[]
    }
}

struct ReportOutput {
    report: Report,
    asked: AskedBesides,
}

impl Document for ReportOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::report::write(out, &self.report, &self.asked, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(&self.report, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(rows::write(rows, &render::columns::sites(), &self.report.sites)?)
    }

    fn problems(&self) -> &[Problem] {
        &self.report.problems
    }
}

/// `--efficiency`. Its JSON is the report.
struct EfficiencyOutput(Report);

impl Document for EfficiencyOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::efficiency::write(out, &self.0, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(&self.0, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(rows::write(rows, &render::efficiency::columns(), &render::efficiency::rows(&self.0))?)
    }

    fn problems(&self) -> &[Problem] {
        &self.0.problems
    }
}

/// What the command prints of a run that nothing more was said about.
///
/// # Errors
/// As [`run`].
pub fn print_of(run: &Path) -> Result<()> {
    let mut open = OpenRun::open(Some(run))?;
    open.find_wrappers(&[])?;
    let options = ReportOptions { top: REPORTED_SITES, ..ReportOptions::default() };
    let report = build(&mut open, &[], options)?;
    format::print(&mut ReportOutput { report, asked: AskedBesides::default() }, Format::default())
}
