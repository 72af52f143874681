//! Run time against a knob, as bars.

use std::io::{self, Write};

use crate::render::table::{Align, Cell, Table};
use lapscope_data::model::Nanos;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{percent, time};
use lapscope_predict::whatif::document::{Sweep, WhatIf};

/// Columns of the longest bar.
const BAR: usize = 40;

/// # Errors
/// Of the writer.
pub(super) fn write(out: &mut dyn Write, answer: &WhatIf, style: Style) -> io::Result<()> {
    for sweep in &answer.sweeps {
        let about = format!(
            "run time against {}; recorded {}, error of the replay {}",
            sweep.knob,
            time(answer.recorded.run_ns),
            percent(answer.error())
        );
        writeln!(out, "\n{}", style.headed_dimly(&format!("SWEEP {}", sweep.knob), &about))?;
        write_sweep(out, sweep, answer, style)?;
    }
    Ok(())
}

fn write_sweep(
    out: &mut dyn Write,
    sweep: &Sweep,
    answer: &WhatIf,
    style: Style,
) -> io::Result<()> {
    let mut table = Table::new(&[
        ("value", Align::Right),
        ("run time", Align::Right),
        ("", Align::Bar(BAR)),
        ("exposed", Align::Right),
    ]);
    let times = sweep.points.iter().filter_map(|point| point.run_ns);
    let longest = times.chain([answer.recorded.run_ns]).max().unwrap_or_default();
    let mut row = |value: &str, run: Option<Nanos>, exposed: Option<Nanos>| {
        let bar = Cell::Bar(run.map_or(0.0, |ns| ns.share_of(longest)));
        let run = run.map_or_else(|| super::DEADLOCK.to_owned(), time);
        let exposed = exposed.map_or_else(String::new, time);
        table.row(vec![value.into(), run.into(), bar, exposed.into()], None);
    };
    for point in &sweep.points {
        row(&point.value, point.run_ns, point.exposed_ns);
    }
    row("replayed", answer.identity.run_ns, Some(answer.identity.exposed_ns));
    row("recorded", Some(answer.recorded.run_ns), Some(answer.recorded.exposed_ns));
    table.write(out, style)
}
