//! What moved while ranks computed, as a table.

use std::io::{self, Write};

use super::table::{Align, Table};
use lapscope_advise::progress_in_words::{between, computing, posted};
use lapscope_data::model::Nanos;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{percent, percent_range, round_bytes, time};
use lapscope_report::calibration::MeasuredProgress;

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, measured: &MeasuredProgress, style: Style) -> io::Result<()> {
    let circumstances = &measured.circumstances;
    let hosts: Vec<&str> = circumstances.hosts.iter().map(String::as_str).collect();
    let library = circumstances.mpi_library.split(',').next().unwrap_or_default();
    let library = library.split_whitespace().collect::<Vec<_>>().join(" ");
    let head = format!("{} ranks on {}, {library}", measured.ranks, hosts.join(", "));
    writeln!(out, "{}", style.bold(&style.wrap(&head, "", "  ")))?;
    for (name, value) in &circumstances.environment {
        writeln!(out, "{}", style.wrap(&format!("{name}={value}"), "  ", "    "))?;
    }
    writeln!(out)?;
    let mut table = Table::new(&[
        ("posted", Align::Left),
        ("between", Align::Left),
        ("size", Align::Right),
        ("alone", Align::Right),
        ("computing", Align::Left),
        ("moved", Align::Right),
        ("half of the rounds", Align::Left),
    ]);
    for it in &measured.moved {
        let row = vec![
            posted(it.posted).to_owned(),
            between(it.between).to_owned(),
            round_bytes(it.bytes),
            time(Nanos(it.alone_ns as i64)),
            computing(it.posted, it.computing).to_owned(),
            percent(it.moved),
            percent_range(it.moved_low, it.moved_high),
        ];
        table.row(row, None);
    }
    table.write(out, style)
}
