//! Columns as wide as what is in them.

use std::io::{self, Write};

use super::style::Style;

/// Where a column's cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A table with a head; a row may have lines of text under it.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<(Vec<String>, Option<String>)>,
}

impl Table {
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// `cells` are as many as there are columns.
    pub fn row(&mut self, cells: Vec<String>, below: Option<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push((cells, below));
    }

    /// # Errors
    /// Of the writer.
    pub fn write(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let used: Vec<usize> =
            (0..self.columns.len()).filter(|&column| self.is_used(column)).collect();
        let widths: Vec<usize> = used.iter().map(|&column| self.width(column)).collect();
        let head: Vec<&str> = used.iter().map(|&column| self.columns[column].0).collect();
        writeln!(out, "{}", style.dim(&self.line(&used, &head, &widths)))?;
        for (cells, below) in &self.rows {
            let cells: Vec<&str> = used.iter().map(|&column| cells[column].as_str()).collect();
            writeln!(out, "{}", self.line(&used, &cells, &widths))?;
            for line in below.iter().flat_map(|below| below.lines()) {
                writeln!(out, "      {}", Style::cut(line, style.width.saturating_sub(6)))?;
            }
        }
        Ok(())
    }

    /// A column without a single cell is left out.
    fn is_used(&self, column: usize) -> bool {
        self.rows.iter().any(|(cells, _)| !cells[column].is_empty())
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|(cells, _)| cells[column].chars().count());
        cells.chain([self.columns[column].0.chars().count()]).max().unwrap_or(0)
    }

    fn line(&self, used: &[usize], cells: &[&str], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((&column, cell), &width) in used.iter().zip(cells).zip(widths) {
            line.push_str("  ");
            match self.columns[column].1 {
                Align::Left => line += &format!("{cell:<width$}"),
                Align::Right => line += &format!("{cell:>width$}"),
            }
        }
        line.trim_end().to_owned()
    }
}
