//! The only way to standard output and standard error: `clippy.toml` forbids the others.

pub mod shell;
pub mod visible;

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};

use crate::args::Format;
use crate::render::style::Style;
use visible::{Form, Shown};

/// Writes text to standard output through a buffer; what could command a terminal is shown.
///
/// # Errors
/// Of the writer; a reader that went away is one, which `main` takes for success.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    print_in(Format::Text, write)
}

/// As [`print`], in any format.
///
/// # Errors
/// As [`print`].
pub fn print_in(
    format: Format,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    print_with(format, |out| write(out).context(STANDARD_OUTPUT))
}

/// Writes one JSON document.
///
/// # Errors
/// As [`print`].
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print_in(Format::Json, |out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

const STANDARD_OUTPUT: &str = "standard output";

/// As [`print_in`], for a `write` that has errors of its own.
///
/// # Errors
/// Of `write`, or of the writer.
#[allow(clippy::disallowed_methods)] // here it is
pub fn print_with(format: Format, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let form = match format {
        Format::Text => Form::Text { color: Style::for_stdout().color },
        Format::Csv => Form::Text { color: false },
        Format::Json => Form::Json,
    };
    let mut out = BufWriter::new(Shown::new(io::stdout().lock(), form));
    write(&mut out)?;
    out.flush().context(STANDARD_OUTPUT)
}

/// "lapscope: `text`" on standard error. Further lines of it are indented, so that each line of lapscope's that says who
/// speaks is one. Nobody is told when that fails.
pub fn say(text: impl Display) {
    let text = text.to_string();
    let text = text.trim_end_matches('\n').replace('\n', "\n    ");
    write_stderr(&format!("lapscope: {text}\n"));
}

/// What is a message as it is.
#[allow(clippy::disallowed_methods)] // here it is
pub fn write_stderr(text: &str) {
    let mut line = Vec::with_capacity(text.len());
    let shown = Shown::new(&mut line, Form::Text { color: false }).write_all(text.as_bytes());
    shown.expect("memory takes everything");
    let _ = io::stderr().lock().write_all(&line);
}

/// Says on standard error, as `format!`; see [`output::say`](crate::output::say).
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => { $crate::output::say(format_args!($($argument)*)) };
}
