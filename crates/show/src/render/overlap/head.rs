//! What numbers rest on: reference times, matched messages, clocks.

use std::borrow::Cow;
use std::io::{self, Write};

use super::locality_name;
use lapscope_advise::problem::in_short;
use lapscope_data::model::Nanos;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, count, percent, time};
use lapscope_measure::overlap::Overlap;
use lapscope_measure::reference::ReferenceSource;

/// # Errors
/// Of the writer.
pub(super) fn write(out: &mut dyn Write, overlap: &Overlap, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.headed("lapscope overlap", &overlap.run))?;
    crate::render::stretch::write(out, overlap.stretch.as_ref(), style)?;
    for line in [reference_line(overlap), matching_line(overlap), clock_line(overlap)] {
        writeln!(out, "{}", style.wrap(&line, "", "  "))?;
    }
    let notes = overlap.reference.notes.iter().map(|note| Cow::Borrowed(note.as_str()));
    for note in notes.chain(in_short(&overlap.problems)) {
        writeln!(out, "{}", style.warning(&note))?;
    }
    Ok(())
}

fn reference_line(overlap: &Overlap) -> String {
    let description = &overlap.reference.description;
    let source = match &description.source {
        ReferenceSource::Calibration { file, created } => {
            format!("calibration of {created} ({})", file.display())
        }
        ReferenceSource::Run => "undisturbed transfers of this run".to_owned(),
        ReferenceSource::None => return "reference times: none".to_owned(),
    };
    let mut parts: Vec<String> = description
        .localities
        .iter()
        .map(|found| {
            let coverage = &found.coverage;
            format!(
                "{} {} samples, {} to {}, spread {}",
                locality_name(Some(found.locality)),
                count(coverage.samples),
                bytes(coverage.min_bytes),
                bytes(coverage.max_bytes),
                percent(coverage.spread.unwrap_or(0.0))
            )
        })
        .collect();
    if description.collectives.samples > 0 {
        parts.push(format!("collectives {} samples", count(description.collectives.samples)));
    }
    format!("reference times: {source}: {}", parts.join("; "))
}

fn matching_line(overlap: &Overlap) -> String {
    let matching = &overlap.matching;
    let mut line = format!("messages: {} matched", count(matching.messages));
    let parts = [
        (matching.unmatched_sends, "sends without a receive"),
        (matching.unmatched_receives, "receives without a send"),
        (matching.doubtful, "behind a contradiction"),
        (matching.not_followed, "to or from where nothing is known"),
        (matching.other_end_left_out, "whose other end was only summed up"),
    ];
    for (number, what) in parts.into_iter().filter(|(number, _)| *number > 0) {
        line += &format!(", {} {what}", count(number));
    }
    line
}

fn clock_line(overlap: &Overlap) -> String {
    let clocks = &overlap.clocks;
    let mut line = match clocks.clocks {
        0 | 1 => "clocks: one, that of all ranks".to_owned(),
        all => format!("clocks: {all}, {} corrected", clocks.corrections.len()),
    };
    let margin = clocks.corrections.iter().map(|correction| correction.margin_ns).max();
    if let Some(margin) = margin {
        line += &format!(" to within {}", time(Nanos(margin.max(0))));
    }
    if clocks.unconnected > 0 {
        line += &format!(", {} not connected by messages", clocks.unconnected);
    }
    line
}
