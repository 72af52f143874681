//! A Markdown table, for issues and wikis.

use std::io::{self, Write};

use super::rows::RowWriter;
use super::FormatDef;
use lapscope_data::text::visible::{visible, Form};

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "markdown",
    help: "A table for issues and wikis, with the columns of csv",
    is_table: true,
    streams: true,
    form: || Form::Text { color: false },
    write: |document, out| document.write_rows(&mut Markdown(out)),
};

struct Markdown<'a>(&'a mut dyn Write);

impl Markdown<'_> {
    fn line(&mut self, cells: impl Iterator<Item = String>) -> io::Result<()> {
        writeln!(self.0, "| {} |", cells.collect::<Vec<_>>().join(" | "))
    }
}

impl RowWriter for Markdown<'_> {
    fn head(&mut self, names: &[&str]) -> io::Result<()> {
        self.line(names.iter().map(|name| cell(name)))?;
        self.line(names.iter().map(|_| "---".to_owned()))
    }

    fn row(&mut self, cells: &[String]) -> io::Result<()> {
        self.line(cells.iter().map(|text| cell(text)))
    }
}

/// On one line, with a backslash before what Markdown would take for more than a letter: `operator<`, `__libc_start_main`;
/// not before an underscore within a word.
fn cell(text: &str) -> String {
    let text = visible(text);
    let (mut cell, mut before) = (String::with_capacity(text.len() + 8), ' ');
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_within =
            before.is_alphanumeric() && letters.peek().is_some_and(|c| c.is_alphanumeric());
        if "\\`*[]<>|~&$".contains(letter) || (letter == '_' && !is_within) {
            cell.push('\\');
        }
        cell.push(letter);
        before = letter;
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_text() {
        let mut out = Vec::new();
        let mut table = Markdown(&mut out);
        table.head(&["call", "time_ns"]).unwrap();
        table.row(&["__a|b<int>\n".to_owned(), "-5".to_owned()]).unwrap();
        let expected = "| call | time_ns |\n| --- | --- |\n| \\_\\_a\\|b\\<int\\>\\\\n | -5 |\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
