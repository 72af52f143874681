//! Rows of plain cells, and the two ways to them: a list of columns, and what serialises to an object.

use std::io;

use serde::Serialize;
use serde_json::Value;

/// Where rows go.
pub trait RowWriter {
    /// Takes the names of the columns, once, before the rows.
    ///
    /// # Errors
    /// Of the writer.
    fn head(&mut self, names: &[&str]) -> io::Result<()>;

    /// Takes a cell for each column.
    ///
    /// # Errors
    /// Of the writer.
    fn row(&mut self, cells: &[String]) -> io::Result<()>;
}

/// A column: its name, and what of an item stands in it.
pub struct ExportColumn<T> {
    name: String,
    cell: Box<dyn Fn(&T) -> String>,
}

impl<T> ExportColumn<T> {
    pub fn new(name: impl Into<String>, cell: impl Fn(&T) -> String + 'static) -> Self {
        ExportColumn { name: name.into(), cell: Box::new(cell) }
    }
}

/// Writes the names of the columns, and a row for each item.
///
/// # Errors
/// Of the writer.
pub fn write<T>(
    rows: &mut dyn RowWriter,
    columns: &[ExportColumn<T>],
    items: &[T],
) -> io::Result<()> {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    rows.head(&names)?;
    items.iter().try_for_each(|item| {
        let cells: Vec<String> = columns.iter().map(|column| (column.cell)(item)).collect();
        rows.row(&cells)
    })
}

/// Rows of what serialises to objects of plain values: their keys are the columns. The head comes with the first row.
pub struct Objects<'a> {
    rows: &'a mut dyn RowWriter,
    has_head: bool,
}

impl<'a> Objects<'a> {
    pub fn new(rows: &'a mut dyn RowWriter) -> Self {
        Objects { rows, has_head: false }
    }

    /// # Errors
    /// Of the writer.
    pub fn write(&mut self, row: &impl Serialize) -> io::Result<()> {
        let Value::Object(cells) = serde_json::to_value(row)? else { return Ok(()) };
        if !self.has_head {
            self.has_head = true;
            let names: Vec<&str> = cells.keys().map(String::as_str).collect();
            self.rows.head(&names)?;
        }
        let cells: Vec<String> = cells.values().map(plain).collect();
        self.rows.row(&cells)
    }
}

/// A cell as the JSON has it, but without quotes; what has no value is empty.
pub fn text(value: impl Serialize) -> String {
    serde_json::to_value(value).map_or_else(|_| String::new(), |value| plain(&value))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
