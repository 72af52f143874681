//! Which part of a run numbers are of.

use std::io::{self, Write};

use lapscope_data::text::style::Style;
use lapscope_data::text::units::time;
use lapscope_trace::stretch::NamedStretch;

/// "only what begins in steps 3 to 5 of 40, 1.20 s to 1.85 s after MPI_Init (650 ms)"
pub fn in_words(stretch: &NamedStretch) -> String {
    let (from, to) = (time(stretch.from_ns), time(stretch.to_ns));
    let length = time(stretch.to_ns - stretch.from_ns);
    let timestamps = format!("{from} to {to} after MPI_Init ({length})");
    let steps = match (stretch.first_step, stretch.last_step, stretch.steps) {
        (Some(first), Some(last), Some(of)) if first == last => {
            format!("in step {first} of {of}, ")
        }
        (Some(first), Some(last), Some(of)) => format!("in steps {first} to {last} of {of}, "),
        _ => String::new(),
    };
    format!("only what begins {steps}{timestamps}")
}

/// A line in front of numbers that are not of all of the run.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, stretch: Option<&NamedStretch>, style: Style) -> io::Result<()> {
    stretch.map_or(Ok(()), |stretch| {
        let line = in_words(stretch);
        writeln!(out, "{}", style.wrap(&line, "", "  "))
    })
}
