//! Where documents and formats meet. A document has text, JSON and perhaps rows; a format takes one of them. A new format is a
//! file here and a line in [`FORMATS`], and every document that has what the format takes can be printed in it.

mod csv;
mod json;
mod markdown;
pub mod rows;
mod text;

use std::fmt;
use std::io::{self, Write};

use anyhow::{bail, Result};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::output;
use lapscope_advise::problem::in_short;
use lapscope_data::say;
use lapscope_data::text::style::Style;
use lapscope_data::text::visible::Form;
use lapscope_trace::problem::{Problem, ProblemKind};
use rows::RowWriter;

pub use json::write as write_json;

/// Every format that `--format` knows; the first one is the default.
const FORMATS: [&FormatDef; 4] = [&text::FORMAT, &json::FORMAT, &csv::FORMAT, &markdown::FORMAT];

/// The answer of a command. Methods take it by `&mut`, as some answers are read while they are written.
pub trait Document {
    /// Writes what people read.
    ///
    /// # Errors
    /// Of the writer, or of what is read meanwhile.
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()>;

    /// Writes all of it, with the keys of `docs/json.md`.
    ///
    /// # Errors
    /// As [`Document::write_text`].
    fn write_json(&mut self, out: &mut dyn Write) -> Result<()>;

    /// Writes its rows one after the other, of those that have any.
    ///
    /// # Errors
    /// As [`Document::write_text`]; it has no rows.
    fn write_rows(&mut self, _rows: &mut dyn RowWriter) -> Result<()> {
        let others = FORMATS.iter().filter(|format| !format.is_table);
        let others: Vec<&str> = others.map(|format| format.name).collect();
        bail!("this is no table; its formats are {}", others.join(" and "))
    }

    /// What its text and JSON say of the run's problems, and its rows cannot.
    fn problems(&self) -> &[Problem] {
        &[]
    }
}

/// What a format is.
struct FormatDef {
    name: &'static str,
    help: &'static str,
    /// Whether it takes rows alone.
    is_table: bool,
    /// Whether rows go out as they come, so that there may be any number of them.
    streams: bool,
    /// What of it a terminal may get.
    form: fn() -> Form,
    write: fn(&mut dyn Document, &mut dyn Write) -> Result<()>,
}

/// What `--format` says.
#[derive(Clone, Copy)]
pub struct Format(&'static FormatDef);

impl Format {
    /// For the command line: any format.
    pub fn any() -> impl TypedValueParser<Value = Format> {
        parser(|_| true)
    }

    /// For the command line, of documents without rows.
    pub fn of_no_table() -> impl TypedValueParser<Value = Format> {
        parser(|format| !format.is_table)
    }

    pub fn is_table(self) -> bool {
        self.0.is_table
    }

    pub fn is_json(self) -> bool {
        self.0.name == json::FORMAT.name
    }

    /// How many entries are printed, 0 for all: programs that read get all of them unless somebody asks for fewer.
    pub fn top(self, asked: Option<usize>, of_text: usize) -> usize {
        let is_read = [json::FORMAT.name, csv::FORMAT.name].contains(&self.0.name);
        asked.unwrap_or(if is_read { 0 } else { of_text })
    }

    /// Whether rows go out as they come.
    pub fn streams(self) -> bool {
        self.0.streams
    }
}

fn parser(is_meant: fn(&FormatDef) -> bool) -> impl TypedValueParser<Value = Format> {
    let meant = FORMATS.into_iter().filter(move |format| is_meant(format));
    let values = meant.map(|format| PossibleValue::new(format.name).help(format.help));
    PossibleValuesParser::new(values).map(|name| {
        let named = FORMATS.into_iter().find(|format| format.name == name);
        Format(named.expect("a name of the list"))
    })
}

impl Default for Format {
    fn default() -> Self {
        Format(FORMATS[0])
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Format({self})")
    }
}

/// Prints `document` on standard output in a format that it has.
///
/// # Errors
/// Of the document, or standard output fails; a reader that went away is an error, which `main` takes for success.
pub fn print(document: &mut dyn Document, format: Format) -> Result<()> {
    let Format(format) = format;
    if format.is_table {
        warn(document.problems());
    }
    output::print_with((format.form)(), |out| (format.write)(document, out).map_err(named))
}

/// Says of an error in writing where that was.
fn named(error: anyhow::Error) -> anyhow::Error {
    let is_of_writer = error.is::<io::Error>() || error.is::<serde_json::Error>();
    if is_of_writer {
        error.context(output::STANDARD_OUTPUT)
    } else {
        error
    }
}

/// Says on standard error what must be known, for output formats that have no place for it.
pub fn warn(problems: &[Problem]) {
    for sentence in in_short(problems) {
        say!("{sentence}");
    }
}

/// As [`warn`], where nothing is concluded from times: that ranks lacked processors is said by those that do.
pub fn warn_of_data(problems: &[Problem]) {
    let of_data = problems.iter().filter(|problem| problem.kind != ProblemKind::Starved);
    warn(&of_data.cloned().collect::<Vec<_>>());
}
