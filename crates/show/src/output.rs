//! The only way to standard output: `clippy.toml` forbids the others.

use std::io::{self, BufWriter, IsTerminal, Write};

use anyhow::{bail, Context, Result};

use lapscope_data::text::style::Style;
use lapscope_data::text::visible::{Form, VisibleWriter};

/// Writes text to standard output through a buffer; what could command a terminal is shown.
///
/// # Errors
/// Of the writer; a reader that went away is one, which `main` takes for success.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let form = Form::Text { color: Style::for_stdout().color };
    print_with(form, |out| write(out).context(STANDARD_OUTPUT))
}

/// What an error in writing is of.
pub const STANDARD_OUTPUT: &str = "standard output";

/// Writes bytes to standard output as they are, never to a terminal.
///
/// # Errors
/// Of `write`, or of the writer; standard output is a terminal.
#[allow(clippy::disallowed_methods)] // likewise
pub fn write_bytes(write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let out = io::stdout().lock();
    if out.is_terminal() {
        bail!("what is to be written are no letters, and standard output is a terminal: redirect it into a file");
    }
    let mut out = BufWriter::new(out);
    write(&mut out)?;
    out.flush().context(STANDARD_OUTPUT)
}

/// As [`print`], for any form and a `write` that has errors of its own.
///
/// # Errors
/// Of `write`, or of the writer.
#[allow(clippy::disallowed_methods)] // here it is
pub fn print_with(form: Form, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::new(VisibleWriter::new(io::stdout().lock(), form));
    write(&mut out)?;
    out.flush().context(STANDARD_OUTPUT)
}
