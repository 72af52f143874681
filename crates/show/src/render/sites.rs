//! Call sites one by one, each with its whole call path.

use std::io::{self, Write};

use super::report::write_site_table;
use lapscope_data::symbols::FrameName;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, MeanOfRanks};
use lapscope_measure::sites::{Measures, Site};

/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    sites: &[Site],
    mean: MeanOfRanks,
    style: Style,
) -> io::Result<()> {
    for (index, site) in sites.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_site_table(out, std::slice::from_ref(site), mean, style)?;
        for measure in measures(&site.measures, mean) {
            writeln!(out, "{}", style.wrap(&measure, "        ", "          "))?;
        }
        write_frames(out, site.frames.as_deref().unwrap_or_default(), "        ", style)?;
        if site.truncated {
            writeln!(
                out,
                "{}",
                style.wrap("… (cut by LAPSCOPE_CALLPATH_DEPTH)", "        ", "          ")
            )?;
        }
    }
    Ok(())
}

/// What was measured besides time, a phrase each.
pub fn measures(measures: &Measures, mean: MeanOfRanks) -> Vec<String> {
    let mut phrases = Vec::new();
    if let (Some(user), Some(system)) = (measures.user_ns, measures.system_ns) {
        phrases.push(format!("CPU {} user, {} system", mean.time(user), mean.time(system)));
    }
    for counter in &measures.counters {
        let unit =
            if counter.unit.is_empty() { String::new() } else { format!(" {}", counter.unit) };
        let amount = |sum: i64, place: &str| {
            let sign = if sum < 0 { "-" } else { "" };
            format!("{sign}{}{unit} in {place}", count(sum.unsigned_abs()))
        };
        let windows = (counter.counted_requests > 0)
            .then(|| amount(counter.in_overlap_windows, "overlap windows"));
        let calls = (counter.counted_calls > 0).then(|| amount(counter.in_calls, "calls"));
        let parts: Vec<String> = windows.into_iter().chain(calls).collect();
        phrases.push(format!("{} {}", counter.name, parts.join(" and ")));
    }
    phrases
}

/// One line a frame, innermost first.
///
/// # Errors
/// Of the writer.
pub fn write_frames(
    out: &mut dyn Write,
    frames: &[FrameName],
    indent: &str,
    style: Style,
) -> io::Result<()> {
    for frame in frames {
        let inlined = if frame.inlined { " (inlined)" } else { "" };
        let line = format!("{}{inlined}", full(frame));
        writeln!(out, "{}", style.wrap(&line, indent, &format!("{indent}  ")))?;
    }
    Ok(())
}

/// "exchange  src/halo.c:42"; the whole path of the file, so that an editor can open it.
fn full(frame: &FrameName) -> String {
    match (&frame.function, &frame.file) {
        (Some(function), Some(file)) => {
            let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
            format!("{function}  {file}{line}")
        }
        _ => frame.short(),
    }
}
