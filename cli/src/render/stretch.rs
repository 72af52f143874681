//! Which part of a run numbers are of.

use std::io::{self, Write};

use lapscope_analysis::stretch::Named;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::time;

/// "steps 3 to 5 of 40, 1.20 s to 1.85 s behind MPI_Init (650 ms)"
pub fn in_words(stretch: &Named) -> String {
    let (from, to) = (time(stretch.from_ns), time(stretch.to_ns));
    let length = time(stretch.to_ns - stretch.from_ns);
    let moments = format!("{from} to {to} behind MPI_Init ({length})");
    match (stretch.first_step, stretch.last_step, stretch.steps) {
        (Some(first), Some(last), Some(of)) if first == last => {
            format!("step {first} of {of}, {moments}")
        }
        (Some(first), Some(last), Some(of)) => {
            format!("steps {first} to {last} of {of}, {moments}")
        }
        _ => moments,
    }
}

/// A line in front of numbers that are not of all of the run.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, stretch: Option<&Named>, style: Style) -> io::Result<()> {
    stretch.map_or(Ok(()), |stretch| {
        let line = format!("only what begins in {}", in_words(stretch));
        writeln!(out, "{}", style.wrap(&line, "", "  "))
    })
}
