//! What `lapscope calibrate` measured, as tables.

use std::io::{self, Write};

use super::loggps;
use super::table::{Align, Table};
use lapscope_data::model::Nanos;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, percent, round_bytes, time};
use lapscope_measure::reference::sharing::SEVERAL;
use lapscope_measure::reference::{ends, Estimate, LocalityDescription, Reference};
use lapscope_report::calibration::Calibration;

/// Every so many sizes one is shown: 1 B, 4 B, 16 B and so on.
const SHOWN_FACTOR: u32 = 2;
/// Sizes of the columns for collectives.
const COLLECTIVE_BYTES: [(u64, &str); 4] =
    [(16, "16 B"), (1 << 10, "1 KiB"), (64 << 10, "64 KiB"), (1 << 20, "1 MiB")];

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, calibration: &Calibration, style: Style) -> io::Result<()> {
    let circumstances = &calibration.circumstances;
    let hosts: Vec<&str> = circumstances.hosts.iter().map(String::as_str).collect();
    let head = format!(
        "{} ranks on {}, {}",
        calibration.ranks,
        hosts.join(", "),
        circumstances.mpi_library
    );
    writeln!(out, "{}", style.bold(&style.wrap(&head, "", "  ")))?;
    for (name, value) in &circumstances.environment {
        writeln!(out, "{}", style.wrap(&format!("{name}={value}"), "  ", "    "))?;
    }
    let description = calibration.times.describe();
    for locality in &description.localities {
        write_locality(out, &calibration.times, locality, style)?;
    }
    loggps::write(out, &calibration.loggps, style)?;
    write_collectives(out, &calibration.times, style)
}

fn write_locality(
    out: &mut dyn Write,
    reference: &Reference,
    locality: &LocalityDescription,
    style: Style,
) -> io::Result<()> {
    let coverage = &locality.coverage;
    let spread =
        coverage.spread.map(|spread| format!(", spread {}", percent(spread))).unwrap_or_default();
    let title = format!("Between {}", ends(locality.locality));
    let about = format!("{} transfers{spread}", count(coverage.samples));
    writeln!(out, "\n{}", style.headed(&title, &about))?;
    let mut table = Table::new(&[
        ("size", Align::Right),
        ("time", Align::Right),
        ("quickest to median", Align::Left),
        ("bandwidth", Align::Right),
    ]);
    let sizes = (0..64).step_by(SHOWN_FACTOR as usize).map(|exponent| 1u64 << exponent);
    for bytes in sizes.filter(|bytes| (coverage.min_bytes..=coverage.max_bytes).contains(bytes)) {
        let Some(estimate) = reference.transfer(locality.locality, bytes) else { continue };
        table.row(row(bytes, estimate), None);
    }
    table.write(out, style)?;
    let Some(sharing) = reference.sharing(locality.locality) else { return Ok(()) };
    let shared = format!(
        "{SEVERAL} messages of {} at once take {:.1} times as long as one, one each way at once {:.1} times.",
        round_bytes(sharing.bytes),
        sharing.several,
        sharing.both_ways
    );
    writeln!(out, "{}", style.wrap(&shared, "  ", "  "))
}

fn row(bytes: u64, estimate: Estimate) -> Vec<String> {
    let median = time(Nanos(estimate.high_ns));
    let within = match estimate.is_low_known() {
        true => format!("{} to {median}", time(Nanos(estimate.low_ns))),
        false => format!("not known to {median}"),
    };
    let megabytes = bytes as f64 * 1e3 / estimate.ns as f64; // bytes per ns are GB/s
    let bandwidth = if megabytes < 10.0 { String::new() } else { format!("{megabytes:.0} MB/s") };
    vec![round_bytes(bytes), time(Nanos(estimate.ns)), within, bandwidth]
}

fn write_collectives(out: &mut dyn Write, reference: &Reference, style: Style) -> io::Result<()> {
    let mut table = Table::new(&[
        ("call", Align::Left),
        ("ranks", Align::Right),
        ("0 B", Align::Right),
        (COLLECTIVE_BYTES[0].1, Align::Right),
        (COLLECTIVE_BYTES[1].1, Align::Right),
        (COLLECTIVE_BYTES[2].1, Align::Right),
        (COLLECTIVE_BYTES[3].1, Align::Right),
    ]);
    let mut any = false;
    for (call, ranks, points) in reference.collective_points() {
        let has_nothing = points.first().is_some_and(|point| point.bytes == 0.0);
        let cell = |bytes| {
            let estimate =
                reference.collective(call, ranks, bytes).filter(|_| has_nothing == (bytes == 0));
            estimate.map(|estimate| time(Nanos(estimate.ns))).unwrap_or_default()
        };
        let mut cells = vec![call.to_owned(), ranks.to_string(), cell(0)];
        cells.extend(COLLECTIVE_BYTES.iter().map(|&(bytes, _)| cell(bytes)));
        table.row(cells, None);
        any = true;
    }
    if any {
        let about = "all ranks entering together, by what a rank contributes";
        writeln!(out, "\n{}", style.headed("Collectives", about))?;
        table.write(out, style)?;
    }
    Ok(())
}
