//! `lapscope help`: of lapscope, of a command, or what a word means.

use std::process::ExitCode;

use crate::args::{help_of, unknown_topic, HelpArgs};
use lapscope_data::text::style::Style;
use lapscope_show::output;
use lapscope_show::render::{cures, glossary};

/// # Errors
/// Standard output cannot be written.
pub fn run(args: &HelpArgs) -> anyhow::Result<ExitCode> {
    let topic = args.topic.as_deref();
    if topic == Some("terms") {
        output::print(|out| glossary::write_text(out, Style::for_stdout()))?;
    } else if topic == Some("cures") {
        output::print(|out| cures::write(out, Style::for_stdout()))?;
    } else if let Some(help) = help_of(topic) {
        output::print(|out| write!(out, "{help}"))?;
    } else {
        unknown_topic(topic.unwrap_or_default()).exit();
    }
    Ok(ExitCode::SUCCESS)
}
