//! `lapscope sql`: a query over all ranks, or the list of what can be queried.

use std::cell::OnceCell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Statement};
use serde_json::Value;

use super::merge::rows_bar;
use crate::args::SqlArgs;
use lapscope_data::db::{self, DbError};
use lapscope_data::merged;
use lapscope_data::say;
use lapscope_data::schema::{self, Relation};
use lapscope_data::text::style::Style;
use lapscope_report::pipeline::OpenRun;
use lapscope_show::format::rows::RowWriter;
use lapscope_show::format::{self, warn_of_data, Document, Format};
use lapscope_show::render::table::{Align, Table};

/// # Errors
/// There is no run, or SQLite does not take the query.
pub fn run(args: &SqlArgs) -> anyhow::Result<ExitCode> {
    let (run, query) = match (&args.run, &args.query) {
        (Some(word), None) if is_query(word) => (None, word.to_str()),
        (run, query) => (run.as_deref(), query.as_deref()),
    };
    match query {
        None => format::print(&mut Schema(schema::relations()?), args.format)?,
        Some(query) => answer(run, query, args.format)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(run: Option<&Path>, query: &str, format: Format) -> anyhow::Result<()> {
    let mut open = OpenRun::open_all(&[find(run)?])?;
    let files = open.files.databases.clone();
    let bar = OnceCell::new();
    let copying = |copy: &Path| {
        say!(
            "{} files are more than SQLite can attach: merging them into {}, for this and later queries",
            files.len(),
            copy.display()
        );
    };
    let progress = |rows| bar.get_or_init(|| rows_bar(&files)).inc(rows);
    let together = merged::open_together(&files, &copying, &progress)?;
    if let Some(bar) = bar.get() {
        bar.finish_and_clear();
    }
    open.leave_out(together.left_out)?;
    open.read_in_part("some rows are missing", together.incomplete);
    warn_of_data(&open.problems(&[]));
    db::unlimited(&together.connection);
    let mut statement = prepare(&together.connection, query).map_err(plain)?;
    format::print(&mut QueryOutput(&mut statement), format).map_err(plain)
}

/// A single word may be a run or, for the newest run, the query.
fn is_query(word: &Path) -> bool {
    !word.exists() && word.to_string_lossy().trim().contains(char::is_whitespace)
}

/// As for every command; and `.`, so that a query can follow, means the newest run as well.
fn find(run: Option<&Path>) -> Result<PathBuf, DbError> {
    let is_none =
        |run| matches!(db::list_files(run), Err(DbError::Empty(_) | DbError::OnlyPages(_)));
    let run = run.filter(|run| *run != Path::new(".") || !is_none(run));
    db::find_run(run)
}

/// SQLite's own sentence, without the code that rusqlite puts behind it.
fn plain(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<rusqlite::Error>() {
        Some(rusqlite::Error::SqliteFailure(_, Some(sentence))) => anyhow::anyhow!("{sentence}"),
        _ => error,
    }
}

fn prepare<'a>(connection: &'a Connection, query: &'a str) -> anyhow::Result<Statement<'a>> {
    let mut statements = Batch::new(connection, query);
    let Some(statement) = statements.next()? else { bail!("the query is empty") };
    if !matches!(statements.next(), Ok(None)) {
        bail!("one statement at a time");
    }
    if !statement.readonly() {
        bail!(
            "only reading is possible here; to change a copy: lapscope export sqlite, then sqlite3"
        );
    }
    Ok(statement)
}

/// What a query gives; rows are written as they come, as those of a run may not fit into memory.
struct QueryOutput<'a, 'c>(&'a mut Statement<'c>);

impl Document for QueryOutput<'_, '_> {
    fn write_text(&mut self, out: &mut dyn Write, _: Style) -> anyhow::Result<()> {
        write_text(self.0, out)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        write_json(self.0, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> anyhow::Result<()> {
        write_rows(self.0, rows)
    }
}

fn column_names(statement: &Statement<'_>) -> Vec<String> {
    statement.column_names().into_iter().map(String::from).collect()
}

fn as_text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn write_rows(statement: &mut Statement<'_>, out: &mut dyn RowWriter) -> anyhow::Result<()> {
    let names = column_names(statement);
    out.head(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let cells = (0..names.len()).map(|i| row.get_ref(i).map(as_text));
        out.row(&cells.collect::<Result<Vec<_>, _>>()?)?;
    }
    Ok(())
}

/// One object a row.
fn write_json(statement: &mut Statement<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let names = column_names(statement);
    let mut rows = statement.query([])?;
    let mut before = "[\n";
    while let Some(row) = rows.next()? {
        let mut object = serde_json::Map::new();
        for (i, name) in names.iter().enumerate() {
            let value = match row.get_ref(i)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => number.into(),
                ValueRef::Real(number) => number.into(),
                other => as_text(other).into(),
            };
            object.insert(name.clone(), value);
        }
        write!(out, "{before}")?;
        serde_json::to_writer(&mut *out, &object)?;
        before = ",\n";
    }
    writeln!(out, "{}", if before == "[\n" { "[]" } else { "\n]" })?;
    Ok(())
}

/// Aligned columns; numbers to the right.
fn write_text(statement: &mut Statement<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let names = column_names(statement);
    let mut numeric = vec![true; names.len()];
    let mut lines = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut cells = Vec::with_capacity(names.len());
        for (i, numeric) in numeric.iter_mut().enumerate() {
            let value = row.get_ref(i)?;
            *numeric &= matches!(value, ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_));
            cells.push(as_text(value));
        }
        lines.push(cells);
    }
    let align = |numeric| if numeric { Align::Right } else { Align::Left };
    let heads: Vec<_> = names.into_iter().zip(numeric.into_iter().map(align)).collect();
    let mut table = Table::with_heads(&heads);
    lines.into_iter().for_each(|cells| table.row(cells, None));
    Ok(table.write(out, Style::for_rows())?)
}

/// What can be queried.
struct Schema(Vec<Relation>);

impl Document for Schema {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> anyhow::Result<()> {
        Ok(write_relations(out, &self.0, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        format::write_json(&self.0, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> anyhow::Result<()> {
        rows.head(&["relation", "kind", "column", "comment"])?;
        for relation in &self.0 {
            for schema::ColumnComment { name, comment } in &relation.columns {
                rows.row(&[&relation.name, &relation.kind, name, comment].map(String::clone))?;
            }
        }
        Ok(())
    }
}

fn write_relations(out: &mut dyn Write, relations: &[Relation], style: Style) -> io::Result<()> {
    let mut line =
        |text: &str, first: &str, rest: &str| writeln!(out, "{}", style.wrap(text, first, rest));
    for relation in relations {
        line(&format!("{} {}", relation.kind, relation.name), "", "  ")?;
        if !relation.comment.is_empty() {
            line(&relation.comment, "  ", "  ")?;
        }
        let is_commented = relation.columns.iter().any(|column| !column.comment.is_empty());
        let width = relation.columns.iter().map(|column| column.name.len()).max().unwrap_or(0);
        if !is_commented {
            line(&relation.column_names().join(", "), "    ", "    ")?;
        }
        for column in relation.columns.iter().filter(|_| is_commented) {
            let first = format!("    {:width$}  ", column.name);
            line(&column.comment, &first, &" ".repeat(first.len()))?;
        }
        line("", "", "")?;
    }
    line(
        "Times are nanoseconds, sizes are bytes; *_begin_ns counts from the rank's epoch.",
        "",
        "",
    )?;
    line("Query: lapscope sql . 'SELECT rank, call, count, ns FROM time_by_call ORDER BY ns DESC LIMIT 10'", "", "  ")
}
