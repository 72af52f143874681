//! Where a program computes, by its samples.

use std::io::{self, Write};

use lapscope_advise::advice::line_in_words;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, percent};
use lapscope_data::text::{plural, ranks};
use lapscope_measure::profile::Profile;
use lapscope_report::report::Report;

/// Nothing where no samples were asked for.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(profile) = &report.profile else { return Ok(()) };
    writeln!(out, "\n{}", style.headed_dimly("COMPUTATION", &note(profile)))?;
    for line in &profile.outside.lines {
        let head = format!("  {:>7}  ", percent(line.share));
        let indent = " ".repeat(head.len());
        writeln!(out, "{}", style.wrap(&line_in_words(line), &head, &indent))?;
    }
    for line in sentences(profile, report.ranks.len()) {
        writeln!(out, "{}", style.wrap(&line, "  ", "  "))?;
    }
    Ok(())
}

/// "the lines with most of 1,204 samples outside of MPI, of 2 ranks"
pub fn note(profile: &Profile) -> String {
    let (samples, of) = (count(profile.outside.samples), profile.ranks);
    let s = plural(of as u64);
    format!("the lines with most of {samples} samples outside of MPI, of {of} rank{s}")
}

/// What else is to be known of the samples; `of`: ranks of the run.
pub fn sentences(profile: &Profile, of: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if profile.outside.other_threads >= 0.05 {
        lines.push(format!(
            "Threads that make no MPI call compute meanwhile: {:.1} of a rank in the mean.",
            profile.outside.other_threads
        ));
    }
    if profile.outside.lines.iter().any(|line| line.place.is_python_interpreter()) {
        lines.push(
            "Samples see no line of Python: advice names the calls between which it computes."
                .to_owned(),
        );
    }
    if profile.by_signal > 0 {
        let (of, s) = (profile.by_signal, plural(profile.by_signal as u64));
        lines.push(format!(
            "On {of} rank{s} a timer's signal took them, as perf_event_open is forbidden: at most some hundred a second, in step with \
             the kernel's clock, and with time in system calls. Of computations of a few milliseconds shares may be far off."
        ));
    }
    let missing = profile.lost + profile.left_out;
    if missing * 10 > profile.outside.samples {
        lines.push(
            "Shares are of the others alone, and may mislead: a lower rate leaves out fewer."
                .to_owned(),
        );
    }
    for (lost, why) in [
        (profile.lost, "found no room: more than some thousand between two calls of MPI"),
        (profile.left_out, "are left out: they are of too many instructions"),
    ] {
        if lost > 0 {
            lines.push(format!("{} further samples {why}.", count(lost)));
        }
    }
    lines.extend(profile.problems.iter().map(|it| {
        let who = ranks::in_words(&it.ranks, of);
        format!("No samples on {who}: {}.", it.problem)
    }));
    lines
}
