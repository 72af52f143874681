//! Runs of growing rank counts: as text, and as rows.

use std::io::{self, Write};

use super::table::{Align, Cell, Table};
use crate::format::rows::{text, ExportColumn};
use lapscope_data::model::Nanos;
use lapscope_data::text::plural;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, factor, hertz, percent_range, time};
use lapscope_measure::efficiency::Bounds;
use lapscope_measure::scaling::{RunAtScale, ScalingLine, ScalingMode, ScalingRow, ScalingUnit};
use lapscope_report::scaling::{ScaledRun, Scaling};

/// Columns of a run's numbers, as "93.1 to 94.0 %", and of what these are called.
const NUMBER: usize = 16;
const LABEL: usize = 30;

/// Writes all of it.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, scaling: &Scaling, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.headed("lapscope report", &about(scaling)))?;
    for run in &scaling.runs {
        let line = format!("{}  {}", ranks(run), run.run);
        writeln!(out, "{}", style.wrap(&line, "  ", "    "))?;
    }
    for note in &scaling.notes {
        writeln!(out, "{}", style.warning(note))?;
    }
    writeln!(out, "\n{}", style.headed("SCALING", mode(scaling.mode)))?;
    let at_once = (style.width.saturating_sub(LABEL) / NUMBER).max(1);
    for (number, runs) in scaling.runs.chunks(at_once).enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        write_table(out, runs, style)?;
    }
    Ok(())
}

/// "3 runs, against runs/a of 2 ranks"
pub fn about(scaling: &Scaling) -> String {
    let first = scaling.runs.first().map(ranks).unwrap_or_default();
    format!("{} runs, against {} of {first}", scaling.runs.len(), scaling.reference)
}

/// What all is held against.
pub fn mode(mode: ScalingMode) -> &'static str {
    match mode {
        ScalingMode::Strong => "as POP defines it; the same work for all runs (strong)",
        ScalingMode::Weak => "as POP defines it; as much work for each rank (weak)",
    }
}

pub fn ranks(run: &ScaledRun) -> String {
    format!("{} rank{}", run.numbers.ranks, plural(run.numbers.ranks))
}

/// A column for each run.
fn write_table(out: &mut dyn Write, runs: &[ScaledRun], style: Style) -> io::Result<()> {
    let of_runs = runs.iter().map(|run| (ranks(run), Align::Right));
    let heads: Vec<(String, Align)> =
        std::iter::once((String::new(), Align::Left)).chain(of_runs).collect();
    let mut table = Table::with_heads(&heads).indented(2);
    let lines: Vec<Vec<ScalingLine>> = runs.iter().map(|run| run.numbers.lines()).collect();
    for (at, first) in lines.first().into_iter().flatten().enumerate() {
        if first.key == "ranks" {
            continue; // the heads
        }
        let values = lines.iter().map(|lines| shown(&lines[at]));
        let cells = std::iter::once(first.label.to_owned()).chain(values);
        table.row(cells.map(Cell::from).collect(), None);
    }
    table.write(out, style)
}

/// "93.1 to 94.0 %"
fn shown(line: &ScalingLine) -> String {
    let Some(Bounds { low, high }) = line.value else { return "-".to_owned() };
    match line.unit {
        ScalingUnit::Count => count(low as u64),
        ScalingUnit::Time => time(Nanos(low as i64)),
        ScalingUnit::Factor => factor(low),
        ScalingUnit::Share => percent_range(low, high),
        ScalingUnit::Hertz => hertz(low),
    }
}

/// A row for each run.
pub fn columns() -> Vec<ExportColumn<ScaledRun>> {
    let mut columns = vec![ExportColumn::new("run", |run: &ScaledRun| text(&run.run))];
    columns.push(ExportColumn::new("ranks", |run: &ScaledRun| text(run.numbers.ranks)));
    columns.push(ExportColumn::new("runtime_ns", |run: &ScaledRun| text(run.numbers.runtime_ns)));
    let empty = RunAtScale::default();
    let named = ScalingRow::new(&empty, &empty, ScalingMode::Strong);
    let is_whole =
        |line: &ScalingLine| [ScalingUnit::Count, ScalingUnit::Time].contains(&line.unit);
    let fractions = named.lines().into_iter().enumerate().filter(|(_, line)| !is_whole(line));
    for (at, line) in fractions {
        let name = line.key.rsplit('/').next().unwrap_or_default().to_owned();
        columns.extend(super::efficiency::bounds(&name, move |run: &ScaledRun| {
            run.numbers.lines().swap_remove(at).value
        }));
    }
    columns
        .push(ExportColumn::new("instructions", |run: &ScaledRun| text(run.numbers.instructions)));
    columns.push(ExportColumn::new("cycles", |run: &ScaledRun| text(run.numbers.cycles)));
    columns
}
