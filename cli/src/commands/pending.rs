//! `lapscope pending`: what had not ended when the processes did.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::warn;
use crate::args::PendingArgs;
use crate::output::Format;
use crate::output::{print, print_json};
use crate::render;
use lapscope_analysis::pending::PendingItem;
use lapscope_analysis::pipeline::filters::check_ranks;
use lapscope_analysis::pipeline::OpenRun;
use lapscope_analysis::problem::module_problems;
use lapscope_analysis::JSON_VERSION;
use lapscope_data::text::style::Style;

#[derive(Serialize)]
struct Document<'a> {
    json_version: u32,
    run: String,
    pending: &'a [PendingItem],
}

/// Prints requests that never ended and calls that never returned.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &PendingArgs) -> Result<ExitCode> {
    let mut open = OpenRun::open(args.run.as_deref())?;
    let found = open.pending()?;
    let known = found.ranks.iter().copied();
    check_ranks("--rank", args.ranks.iter().copied(), known, &open.name())?;
    let mut items = found.items;
    items.retain(|item| args.ranks.is_empty() || args.ranks.contains(&item.rank));
    let mut problems = open.problems(&[]);
    problems.extend(module_problems(found.symbols.troubles()));
    warn(&problems);
    match args.format {
        Format::Text => {
            print(|out| render::pending::write(out, &items, args.top, Style::for_stdout()))?;
        }
        Format::Json => {
            print_json(&Document {
                json_version: JSON_VERSION,
                run: open.name(),
                pending: &items,
            })?;
        }
        Format::Csv => print(|out| render::csv::write_pending(out, &items))?,
    }
    Ok(ExitCode::SUCCESS)
}
