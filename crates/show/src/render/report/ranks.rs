//! Ranks of the report: of few a sentence, of many how they differ, a line a rank where that is asked for.

use std::io::{self, Write};

use crate::render::alike;
use crate::render::table::{Align, Table};
use lapscope_data::model::{Nanos, RankList};
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, count, percent, time};
use lapscope_measure::alike::MOST_ROWS;
use lapscope_measure::totals::RankRow;
use lapscope_report::report::Report;

/// Writes the section on ranks, of many of them.
pub(super) fn write(
    out: &mut dyn Write,
    report: &Report,
    listed: Option<&RankList>,
    style: Style,
) -> io::Result<()> {
    if report.ranks.len() > MOST_ROWS {
        alike::write(out, &report.alike, style)?;
        let above = percent(report.spread.compute_imbalance);
        let text = format!("Outside MPI the rank with most is {above} above the mean.");
        writeln!(out, "{}", style.wrap(&text, "  ", "    "))?;
    }
    let Some(listed) = listed else { return Ok(()) };
    if report.ranks.len() <= MOST_ROWS {
        writeln!(out, "\n{}", style.bold("RANKS"))?;
    }
    write_rows(out, report.ranks.iter().filter(|row| listed.contains(row.rank)), style)
}

fn write_rows<'a>(
    out: &mut dyn Write,
    rows: impl Iterator<Item = &'a RankRow>,
    style: Style,
) -> io::Result<()> {
    let mut table = Table::new(&[
        ("rank", Align::Right),
        ("host", Align::Left),
        ("run time", Align::Right),
        ("outside MPI", Align::Right),
        ("", Align::Right),
        ("completing", Align::Right),
        ("beside a GPU", Align::Right),
        ("posting", Align::Right),
        ("blocking", Align::Right),
        ("collectives", Align::Right),
        ("else", Align::Right),
        ("requests", Align::Right),
        ("sent", Align::Right),
        ("received", Align::Right),
    ])
    .giving_up(&["received", "sent", "requests", "host", "run time"]);
    let part = |ns: Nanos| if ns.0 > 0 { time(ns) } else { String::new() };
    for row in rows {
        let totals = &row.totals;
        let outside = Nanos((totals.run_ns - totals.mpi_ns).0.max(0));
        let others = totals.rma_ns + totals.io_ns + totals.unsuccessful_test_ns + totals.other_ns;
        let moved = |sum: u64| if sum > 0 { bytes(sum) } else { String::new() };
        let cells = vec![
            row.rank.to_string(),
            row.host.clone(),
            time(totals.run_ns),
            time(outside),
            percent(outside.share_of(totals.run_ns)),
            part(totals.exposed_ns),
            part(totals.overlapped_with_gpu_ns),
            part(totals.posting_ns),
            part(totals.blocking_ns),
            part(totals.collective_ns),
            part(others),
            count(totals.requests),
            moved(row.sent_bytes),
            moved(row.received_bytes),
        ];
        table.row(cells, None);
    }
    table.write(out, style)
}

/// "per rank: inside MPI 3.1 % (rank 4) to 9.7 % (rank 0) ..."
pub(super) fn write_spread(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let (mpi, compute) = (report.spread.mpi_share, report.spread.compute_ns);
    let text = format!(
        "per rank: inside MPI {} (rank {}) to {} (rank {}), mean {}; outside MPI {} (rank {}) to {} (rank {}), \
         which is {} above the mean",
        percent(mpi.min),
        mpi.min_rank,
        percent(mpi.max),
        mpi.max_rank,
        percent(mpi.mean),
        time(Nanos(compute.min as i64)),
        compute.min_rank,
        time(Nanos(compute.max as i64)),
        compute.max_rank,
        percent(report.spread.compute_imbalance)
    );
    writeln!(out, "{}", style.wrap(&text, "  ", "  "))
}
