//! LogGPS parameters as a table, a row for each segment of sizes.

use std::io::{self, Write};

use super::table::{Align, Table};
use lapscope_data::model::Nanos;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, percent, time, time_range};
use lapscope_measure::loggps::{LogGps, Overhead, Segment};
use lapscope_measure::reference::ends;
use lapscope_trace::stats::Interval;

/// Slopes below this many nanoseconds a byte are none: a mebibyte takes 1 µs.
const FLAT: f64 = 0.001;

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, all: &[LogGps], style: Style) -> io::Result<()> {
    for loggps in all {
        write_locality(out, loggps, style)?;
    }
    Ok(())
}

fn write_locality(out: &mut dyn Write, loggps: &LogGps, style: Style) -> io::Result<()> {
    let title = format!("LogGPS between {}", ends(loggps.locality));
    let residual = loggps.residual;
    let about = format!(
        "{}; round trips are within {} of it, at worst {} ({})",
        limit(loggps),
        percent(residual.median),
        percent(residual.worst),
        bytes(residual.worst_bytes)
    );
    writeln!(out, "\n{}", style.headed(&title, &about))?;
    let mut table = Table::new(&[
        ("sizes", Align::Left),
        ("L", Align::Right),
        ("o_s", Align::Right),
        ("o_r", Align::Right),
        ("g", Align::Right),
        ("G per KiB", Align::Right),
        ("G between", Align::Left),
    ]);
    for segment in &loggps.segments {
        table.row(row(loggps, segment), None);
    }
    table.write(out, style)
}

fn limit(loggps: &LogGps) -> String {
    match loggps.eager_limit_bytes {
        Some(limit) => format!("S {limit} bytes"),
        None => "no S was found".to_owned(),
    }
}

fn row(loggps: &LogGps, segment: &Segment) -> Vec<String> {
    let is_first = loggps.segments.first() == Some(segment);
    let latency = if is_first { ns(loggps.latency_ns.estimate) } else { String::new() };
    let Interval { low, estimate, high } = segment.gap_ns_per_byte.map(|ns| ns * 1024.0);
    vec![
        format!("up to {}", bytes(segment.max_bytes)),
        latency,
        overhead(segment.send),
        overhead(segment.receive),
        ns(segment.gap_ns.estimate),
        ns(estimate),
        time_range(whole(low), whole(high)),
    ]
}

fn whole(ns: f64) -> Nanos {
    Nanos(ns.round() as i64)
}

fn ns(value: f64) -> String {
    time(whole(value))
}

/// `200 ns + 51 ns/KiB`
fn overhead(overhead: Overhead) -> String {
    let base = ns(overhead.base_ns.estimate);
    let slope = overhead.ns_per_byte.estimate;
    if slope < FLAT {
        base
    } else {
        format!("{base} + {}/KiB", ns(slope * 1024.0))
    }
}
