//! Efficiencies as text.

use std::io::{self, Write};

use crate::render::table::{Align, Cell, Table};
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{percent, percent_range};
use lapscope_measure::efficiency::{Bounds, Efficiency, EfficiencyLine};
use lapscope_measure::gpu_efficiency::WAITS_FOR_GPUS;
use lapscope_report::report::Report;

/// # Errors
/// Of the writer.
pub(super) fn write(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    if let Some(efficiency) = &report.efficiency {
        section(out, "as POP defines it; 100 % at best", &efficiency.lines(), style)?;
        if report.head.has_gpus() {
            writeln!(out, "{}", style.wrap(WAITS_FOR_GPUS, "  ", "  "))?;
        }
    }
    match &report.gpu_efficiency {
        Some(gpus) => {
            section(out, "of GPUs, as TALP defines it; 100 % at best", &gpus.lines(), style)
        }
        None => Ok(()),
    }
}

fn section(
    out: &mut dyn Write,
    about: &str,
    lines: &[EfficiencyLine],
    style: Style,
) -> io::Result<()> {
    writeln!(out, "\n{}", style.headed("EFFICIENCY", about))?;
    let columns = [Align::Left, Align::Right, Align::Left].map(|align| ("", align));
    let mut table = Table::new(&columns);
    for line in lines {
        let row = [line.label.to_owned(), bounds(line.value), line.of_what.to_owned()];
        table.row(row.map(Cell::from).into(), None);
    }
    table.write(out, style)
}

/// "93.1 to 94.0 %"
fn bounds(value: Option<Bounds>) -> String {
    value.map_or_else(|| "not known".to_owned(), |it| percent_range(it.low, it.high))
}

/// That of a part of the run, in a sentence.
pub(super) fn sentence(efficiency: &Efficiency) -> String {
    format!(
        "Their parallel efficiency is {}: load balance {} times communication efficiency {}.",
        percent(efficiency.parallel_efficiency),
        percent(efficiency.load_balance),
        percent(efficiency.communication_efficiency),
    )
}
