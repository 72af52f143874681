//! POP's efficiencies of a run and its parts, a row each.

use std::io::{self, Write};

use super::table::{Align, Cell, Table};
use crate::format::rows::{text, ExportColumn};
use lapscope_data::model::Nanos;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{percent_range, time};
use lapscope_measure::efficiency::{Bounds, Efficiency};
use lapscope_report::report::Report;

/// The run, all its steps, or a region that it marks.
#[derive(Debug, Clone)]
pub struct EfficiencyRow {
    pub kind: &'static str,
    pub name: Option<String>,
    /// `None`: not known.
    pub efficiency: Option<Efficiency>,
}

/// Of the run, of its steps where it has any, and of each region.
pub fn rows(report: &Report) -> Vec<EfficiencyRow> {
    let row = |kind, name, efficiency| EfficiencyRow { kind, name, efficiency };
    let steps = report.steps.as_ref().map(|steps| row("steps", None, steps.efficiency));
    let regions = report.regions.iter();
    let regions = regions.map(|region| row("region", Some(region.name.clone()), region.efficiency));
    std::iter::once(row("run", None, report.efficiency)).chain(steps).chain(regions).collect()
}

/// Serialisation and transfer have two ends, whose columns end in `_low` and `_high`.
pub fn columns() -> Vec<ExportColumn<EfficiencyRow>> {
    fn time(name: &str, of: fn(&Efficiency) -> Nanos) -> ExportColumn<EfficiencyRow> {
        ExportColumn::new(name, move |row: &EfficiencyRow| text(row.efficiency.as_ref().map(of)))
    }
    let mut columns = vec![
        ExportColumn::new("kind", |row: &EfficiencyRow| text(row.kind)),
        ExportColumn::new("name", |row: &EfficiencyRow| text(&row.name)),
    ];
    columns.push(time("useful_ns", |it| it.useful_ns));
    columns.push(time("most_useful_ns", |it| it.most_useful_ns));
    columns.push(time("runtime_ns", |it| it.runtime_ns));
    for (at, line) in Efficiency::of_none_or(None).into_iter().enumerate() {
        columns.extend(bounds(line.key, move |row: &EfficiencyRow| {
            Efficiency::of_none_or(row.efficiency)[at].value
        }));
    }
    columns
}

/// A column, or of what is known to within bounds, two.
pub(super) fn bounds<T>(
    name: &str,
    of: impl Fn(&T) -> Option<Bounds> + Copy + 'static,
) -> Vec<ExportColumn<T>> {
    let low = move |row: &T| text(of(row).map(|it| it.low));
    let high = move |row: &T| text(of(row).map(|it| it.high));
    match name {
        "serialisation_efficiency" | "transfer_efficiency" => vec![
            ExportColumn::new(format!("{name}_low"), low),
            ExportColumn::new(format!("{name}_high"), high),
        ],
        _ => vec![ExportColumn::new(name, low)],
    }
}

/// A line for each part.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.headed("lapscope report", &report.run))?;
    writeln!(out, "\n{}", style.headed("EFFICIENCY", "as POP defines it; 100 % at best"))?;
    let heads = ["", "run time", "parallel", "load balance", "communication", "serialisation"];
    let heads = heads.into_iter().chain(["transfer"]);
    let heads = heads.enumerate().map(|(at, head)| match at {
        0 => (head.to_owned(), Align::Left),
        _ => (head.to_owned(), Align::Right),
    });
    let mut table = Table::with_heads(&heads.collect::<Vec<_>>()).indented(2);
    for row in rows(report) {
        let name = row.name.unwrap_or_else(|| row.kind.to_owned());
        let runtime = row.efficiency.map_or_else(|| "-".to_owned(), |it| time(it.runtime_ns));
        let shown = |of: Option<Bounds>| {
            of.map_or_else(|| "-".to_owned(), |it| percent_range(it.low, it.high))
        };
        let lines = Efficiency::of_none_or(row.efficiency).map(|line| shown(line.value));
        let cells = [name, runtime].into_iter().chain(lines);
        table.row(cells.map(Cell::from).collect(), None);
    }
    table.write(out, style)
}
