//! Replayed rendezvous protocols as a table.

use std::io::{self, Write};

use crate::simulated::{LinkSource, Simulated, StatedLink, TransferRow};
use lapscope_data::model::Nanos;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, time};
use lapscope_measure::reference::ends;
use lapscope_show::render::table::{Align, Table};

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, simulated: &Simulated, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.headed("lapscope bench --simulated", &link(&simulated.link)))?;
    let how = "Percent of a transfer that a computation hides, replayed: two ranks, progress inside MPI only, synchronous \
               sends. write: RTS, CTS, RDMA write; read: RTS, RDMA read; speculative: who receives first announces its \
               buffer.";
    writeln!(out, "{}\n", style.wrap(how, "", ""))?;
    let mut table = Table::new(&[
        ("side", Align::Left),
        ("first", Align::Left),
        ("size", Align::Right),
        ("write", Align::Right),
        ("read", Align::Right),
        ("speculative", Align::Right),
    ]);
    for row in &simulated.rows {
        table.row(cells(row), None);
    }
    table.write(out, style)
}

fn cells(row: &TransferRow) -> Vec<String> {
    let head = [row.side.to_owned(), row.first.to_owned(), bytes(row.bytes)];
    let overlaps = row.protocols.iter().map(|it| format!("{:.0}", 100.0 * it.overlap));
    head.into_iter().chain(overlaps).collect()
}

fn link(link: &StatedLink) -> String {
    let ns = |ns: f64| time(Nanos(ns.round() as i64));
    let source = match &link.source {
        LinkSource::Published => {
            "the test bed of [RA08] as published, overheads assumed".to_owned()
        }
        LinkSource::Given => {
            "as given; what was not, as of the test bed of [RA08], overheads assumed".to_owned()
        }
        LinkSource::Calibration { file, locality } => {
            format!("between {}, calibrated: {}", ends(*locality), file.display())
        }
    };
    let rate = match link.gap_ns_per_byte > 0.0 {
        true => format!("{:.0} MB/s", 1e3 / link.gap_ns_per_byte),
        false => "no time for bytes".to_owned(),
    };
    format!(
        "{} one way, {rate}, o_s {}, o_r {} ({source})",
        ns(link.latency_ns),
        ns(link.send_overhead_ns),
        ns(link.receive_overhead_ns)
    )
}
