//! The only way to standard output: `clippy.toml` forbids the others.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use clap::ValueEnum;

use lapscope_data::text::style::Style;
use lapscope_data::text::visible::{Form, Shown};

/// How a command prints its data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For reading
    #[default]
    Text,
    /// Stable keys, documented in docs/json.md; times in ns, sizes in bytes
    Json,
    /// One header line, then one line a row
    Csv,
}

/// [`Format`] for commands whose data is no table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum TextOrJson {
    /// For reading
    #[default]
    Text,
    /// Stable keys, documented in docs/json.md
    Json,
}

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
