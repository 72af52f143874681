//! `lapscope report`: where the time went.

use std::process::ExitCode;

use anyhow::Result;

use super::open::{print, print_json, warn, OpenRun};
use crate::analysis::problem::{find_problems, module_problems, Problem};
use crate::analysis::report::{Report, ReportOptions};
use crate::analysis::sites::Grouping;
use crate::args::{Format, ReportArgs};
use crate::model::Rank;
use crate::render;
use crate::render::style::Style;
use crate::symbols::Symbols;

/// Reads the run, recovering what killed ranks left, and prints the report.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &ReportArgs) -> Result<ExitCode> {
    let open = OpenRun::open(args.run.as_deref())?;
    let options = ReportOptions { top: args.top, order: args.sort.into() };
    let report = build(&open, &args.ranks, options)?;
    match args.format {
        Format::Text => print(|out| render::report::write(out, &report, Style::for_stdout()))?,
        Format::Json => print_json(&report)?,
        Format::Csv => {
            warn(&report.problems);
            print(|out| render::csv::write_sites(out, &report.sites))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The report on a run, or on some of its ranks.
///
/// # Errors
/// No file of it can be read, or it has none of these ranks.
pub fn build(open: &OpenRun, ranks: &[Rank], options: ReportOptions) -> Result<Report> {
    let (mut sums, failed) = open.sum()?;
    let mut problems = open.problems.clone();
    let mut troubles: Vec<Problem> = Vec::new();
    let pending = if sums.entries.iter().any(|entry| entry.cell.pending > 0) {
        let pending = open.pending()?;
        troubles = module_problems(pending.symbols.troubles());
        pending.items
    } else {
        Vec::new()
    };
    problems.extend(find_problems(&sums.ranks, &failed, &pending));
    sums.retain_ranks(ranks);
    anyhow::ensure!(!sums.ranks.is_empty(), "none of the ranks asked for is in {}", open.name());
    let mut symbols = Symbols::new(sums.modules.clone());
    sums.unify(Grouping::Frame, &mut symbols);
    let mut report = Report::build(&open.name(), &sums, problems, options, &mut symbols);
    for problem in troubles.into_iter().chain(module_problems(symbols.troubles())) {
        if !report.problems.contains(&problem) {
            report.problems.push(problem);
        }
    }
    Ok(report)
}
