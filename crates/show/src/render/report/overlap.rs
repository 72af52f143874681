//! How much of the communication was overlapped, and what was waited for.

use std::io::{self, Write};

use crate::render::overlap::{cause_cells, causes_table, interval};
use lapscope_data::model::Nanos;
use lapscope_data::text::plural;
use lapscope_data::text::style::{display_width, Style};
use lapscope_data::text::units::{count, percent, MeanOfRanks};
use lapscope_measure::overlap::sums::{BlockingNumbers, Cause, OverlapNumbers};
use lapscope_measure::reference::ReferenceSource;
use lapscope_report::report::{OverlapSummary, Report};

pub(super) fn write(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let overlap = &report.overlap;
    let numbers = &overlap.totals.numbers;
    if numbers.requests == 0 && overlap.blocking.calls == 0 {
        return Ok(());
    }
    writeln!(out, "\n{}", style.headed_dimly("OVERLAP", &source(overlap)))?;
    for note in notes(report) {
        writeln!(out, "{}", style.wrap(&note, "  ", "  "))?;
    }
    if numbers.exposed_ns.0 > 0 {
        write_exposed(out, numbers, report, style)?;
    }
    if numbers.measured > 0 {
        let (picture, legend) = (picture(numbers, style.width.saturating_sub(2)), legend(numbers));
        if 4 + display_width(&picture) + display_width(&legend) <= style.width {
            writeln!(out, "  {picture}  {}", style.dim(&legend))?;
        } else {
            writeln!(out, "  {picture}\n{}", style.dim(&style.wrap(&legend, "  ", "  ")))?;
        }
        writeln!(out, "{}", style.wrap(&achieved(numbers, report.mean()), "  ", "  "))?;
    }
    let mean = report.mean();
    write_blocking(out, "Blocking calls", &overlap.blocking, mean, style)?;
    write_blocking(out, "Loops of tests that waited", &overlap.polling, mean, style)?;
    for sentence in super::loops::sentences(report) {
        writeln!(out, "{}", style.wrap(&sentence, "  ", "  "))?;
    }
    Ok(())
}

pub(crate) fn source(overlap: &OverlapSummary) -> String {
    match &overlap.reference.description.source {
        ReferenceSource::Calibration { created, .. } => {
            format!("reference times: lapscope calibrate of {created}")
        }
        ReferenceSource::Run => "reference times: from this run's own transfers".to_owned(),
        ReferenceSource::None => String::new(),
    }
}

/// What to know before believing the numbers.
pub(crate) fn notes(report: &Report) -> Vec<String> {
    let overlap = &report.overlap;
    let mut notes = overlap.reference.notes.clone();
    let matching = &overlap.matching;
    let lost = matching.unmatched_sends
        + matching.unmatched_receives
        + matching.doubtful
        + matching.other_end_left_out;
    if lost + matching.not_followed > 0 {
        notes.push(format!(
            "Both sides of {} message{} are recorded, and one side only of {} sends and receives: who was late is not seen there.",
            count(matching.messages),
            plural(matching.messages),
            count(lost + matching.not_followed)
        ));
    }
    notes
}

const COLUMNS: usize = 48;

/// One bar for the reference time: achieved, perhaps achieved, lost, no computation to overlap with.
fn picture(numbers: &OverlapNumbers, room: usize) -> String {
    let columns = COLUMNS.min(room);
    let at = |fraction: Option<f64>| {
        (fraction.unwrap_or(0.0).clamp(0.0, 1.0) * columns as f64).round() as usize
    };
    let low = at(numbers.achieved_low);
    let high = at(numbers.achieved_high).max(low);
    let possible = at(numbers.possible).max(high);
    let parts = [("█", low), ("▓", high - low), ("▒", possible - high), ("░", columns - possible)];
    parts.iter().map(|(letter, columns)| letter.repeat(*columns)).collect()
}

fn legend(numbers: &OverlapNumbers) -> String {
    let uncertain = percent(numbers.achieved_low.unwrap_or(0.0))
        != percent(numbers.achieved_high.unwrap_or(0.0));
    format!("█ overlapped{} ▒ lost ░ no computation", if uncertain { " ▓ perhaps" } else { "" })
}

pub(crate) fn achieved(numbers: &OverlapNumbers, mean: MeanOfRanks) -> String {
    let part = |label: &str, ns: Nanos| {
        let share = ns.share_of(numbers.reference_ns);
        (share >= 0.001).then(|| format!("{} to {label}", percent(share)))
    };
    let lost: Vec<String> = [
        part("late partners", numbers.lost_late_partner_ns),
        part("no progress", numbers.lost_no_progress_ns),
        part("other causes", numbers.lost_other_ns),
    ]
    .into_iter()
    .flatten()
    .collect();
    let why = if lost.is_empty() { String::new() } else { format!(": {}", lost.join(", ")) };
    format!(
        "{} request{} have a reference time of {}. Of that {} was overlapped, {} could have been. Lost: {} ({}){why}.",
        count(numbers.measured),
        plural(numbers.measured),
        mean.time(numbers.reference_ns),
        interval(numbers.achieved_low, numbers.achieved_high),
        interval(numbers.possible_low, numbers.possible),
        interval(numbers.lost_low, numbers.lost_high),
        mean.time_range(numbers.lost_low_ns, numbers.lost_high_ns),
    )
}

fn write_exposed(
    out: &mut dyn Write,
    numbers: &OverlapNumbers,
    report: &Report,
    style: Style,
) -> io::Result<()> {
    let title = format!(
        "Exposed in calls that complete requests: {} ({} of the run time). By cause:",
        report.mean().time(numbers.exposed_ns),
        percent(numbers.exposed_ns.share_of(report.totals.run_ns))
    );
    writeln!(out, "{}", style.wrap(&title, "  ", "  "))?;
    let mut causes = causes_table(20).indented(4);
    for cause in Cause::ALL {
        if let Some(cells) = cause_cells(numbers, cause, report.mean()) {
            causes.row(cells, None);
        }
    }
    causes.write(out, style)
}

fn write_blocking(
    out: &mut dyn Write,
    what: &str,
    blocking: &BlockingNumbers,
    mean: MeanOfRanks,
    style: Style,
) -> io::Result<()> {
    if blocking.blocked_ns.0 == 0 {
        return Ok(());
    }
    let share = |part: Nanos| percent(part.share_of(blocking.blocked_ns));
    let text = format!(
        "{what} took {}: {} late partner, {} no remote progress, {} transfer{}.",
        mean.time(blocking.blocked_ns),
        share(blocking.late_partner_ns),
        share(blocking.no_remote_progress_ns),
        share(blocking.transfer_ns),
        match blocking.no_processor_ns {
            Nanos(0) => String::new(),
            missing => format!(", {} no processor", share(missing)),
        }
    );
    writeln!(out, "{}", style.wrap(&text, "  ", "  "))
}
