//! Exposed time over the run.

use std::io::{self, Write};

use crate::render::cause;
use lapscope_data::model::Nanos;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::time;
use lapscope_measure::overlap::groups::TimeRow;
use lapscope_measure::overlap::sums::{ByCause, Cause};

/// How much, and what of it most. Where the output is narrow a column is several parts.
pub(super) fn write(out: &mut dyn Write, rows: &[TimeRow], style: Style) -> io::Result<()> {
    let parts_of_column = rows.len().div_ceil(style.width.saturating_sub(2).max(1)).max(1);
    let columns: Vec<ByCause> = rows.chunks(parts_of_column).map(exposed_together).collect();
    let exposed = |column: &ByCause| column.iter().map(|ns| ns.0).sum::<i64>();
    let most = columns.iter().map(exposed).max().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = |column: &ByCause| HEIGHTS[((exposed(column) * 8 + most - 1) / most) as usize];
    let heights: String = columns.iter().map(height).collect();
    let letters: String = columns.iter().map(letter).collect();
    let end = time(rows.last().map_or(Nanos(0), |row| row.end_ns));
    let about = "time in completing and blocking calls";
    writeln!(out, "\n{}", style.headed("OVER TIME", about))?;
    writeln!(out, "  {}", heights.trim_end())?;
    writeln!(out, "  {}", letters.trim_end())?;
    let names = Cause::ALL.map(|it| format!("{} {}", cause::letter(it), cause::name(it)));
    let note = format!("most of it: {}", names.join(", "));
    writeln!(out, "  0{end:>width$}", width = columns.len().saturating_sub(1))?;
    writeln!(out, "{}", style.dim(&style.wrap(&note, "  ", "  ")))
}

fn exposed_together(rows: &[TimeRow]) -> ByCause {
    let of = |row: &TimeRow, cause| row.numbers.exposed_of(cause) + row.blocking.blocked_by(cause);
    Cause::ALL.map(|cause| rows.iter().map(|row| of(row, cause)).sum())
}

/// The letter of the largest cause; the first of equal ones.
fn letter(column: &ByCause) -> char {
    let causes = Cause::ALL.into_iter().zip(column).rev();
    let most = causes.max_by_key(|(_, ns)| **ns).filter(|(_, ns)| ns.0 > 0);
    most.map_or(' ', |(cause, _)| cause::letter(cause))
}
