//! `lapscope overlap`: what was hidden, what could have been, and what was waited for.

use std::process::ExitCode;

use anyhow::Result;

use super::warn;
use crate::args::OverlapArgs;
use crate::output::{print, print_json, Format};
use crate::render;
use crate::render::overlap::OverlapBy;
use lapscope_analysis::overlap::Options;
use lapscope_analysis::pipeline::overlap::build;
use lapscope_analysis::pipeline::OpenRun;
use lapscope_data::text::style::Style;

/// Reads the run, recovering what killed ranks left, and prints its overlap.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &OverlapArgs) -> Result<ExitCode> {
    let mut open = OpenRun::open(args.run.as_deref())?;
    open.find_wrappers(&args.wrappers.names)?;
    let options = Options { top: args.top, ranks: &args.ranks };
    let document = build(&mut open, args.reference.as_deref(), options)?;
    match args.format {
        Format::Json => print_json(&document)?,
        Format::Csv => {
            warn(&document.overlap.problems);
            let by = args.by.unwrap_or(OverlapBy::Site);
            print(|out| render::overlap::write_csv(out, &document, by))?;
        }
        Format::Text => {
            print(|out| render::overlap::write(out, &document, args.by, Style::for_stdout()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
