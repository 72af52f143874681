//! Comma-separated values (RFC 4180, with line feeds alone).

use std::io::{self, Write};

use csv::{ErrorKind, Terminator, Writer, WriterBuilder};

use super::rows::RowWriter;
use super::FormatDef;
use lapscope_data::text::visible::{visible, Form};

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "csv",
    help: "One header line, then one line a row",
    is_table: true,
    streams: true,
    form: || Form::Text { color: false },
    write: |document, out| {
        let mut csv = Csv::new(out);
        document.write_rows(&mut csv)?;
        Ok(csv.0.flush()?)
    },
};

/// Control characters of a cell are shown (`\x1b`), so that a line of the file is a row. What a spreadsheet would take for a
/// formula, as it begins with `=`, `+`, `-` or `@` and is no number, gets an apostrophe in front.
struct Csv<'a>(Writer<&'a mut dyn Write>);

impl<'a> Csv<'a> {
    fn new(out: &'a mut dyn Write) -> Csv<'a> {
        Csv(WriterBuilder::new().terminator(Terminator::Any(b'\n')).from_writer(out))
    }
}

impl RowWriter for Csv<'_> {
    fn head(&mut self, names: &[&str]) -> io::Result<()> {
        self.0.write_record(names.iter().map(|name| cell(name))).map_err(of_writer)
    }

    fn row(&mut self, cells: &[String]) -> io::Result<()> {
        self.0.write_record(cells.iter().map(|text| cell(text))).map_err(of_writer)
    }
}

fn cell(text: &str) -> String {
    let text = visible(text);
    let apostrophe = if is_formula(&text) { "'" } else { "" };
    format!("{apostrophe}{text}")
}

fn is_formula(cell: &str) -> bool {
    let is_digit = |letter: char| letter.is_ascii_digit() || "+-.eE".contains(letter);
    let is_number = || cell.chars().all(is_digit) && cell.parse::<f64>().is_ok();
    cell.trim_start().starts_with(['=', '+', '-', '@']) && !is_number()
}

/// The writer's own error, by whose kind a reader that went away is known.
fn of_writer(error: csv::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(rows: &[&[&str]]) -> String {
        let mut out = Vec::new();
        let mut csv = Csv::new(&mut out);
        for (number, row) in rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
            if number == 0 { csv.head(row) } else { csv.row(&cells) }.unwrap();
        }
        drop(csv);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_are_quoted_where_needed() {
        let text = written(&[&["a", "b"], &["x,\"y\"", ""], &["z", "1"]]);
        assert_eq!(text, "a,b\n\"x,\"\"y\"\"\",\nz,1\n");
    }

    #[test]
    fn names_are_no_formulas_and_one_row_is_one_line() {
        let cells =
            ["=1+2", "@SUM(1,2)", "-cmd", "+x", " =y", "-5", "+1.5e-3", "a=b", "two\nlines"];
        let expected = "'=1+2,\"'@SUM(1,2)\",'-cmd,'+x,' =y,-5,+1.5e-3,a=b,two\\nlines\n";
        assert_eq!(written(&[&cells]), expected);
    }
}
