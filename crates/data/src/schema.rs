//! The schema as the command line knows it: its text, the comments in it, and which columns are ids of what. The last
//! is what it takes to put the files of several ranks side by side: each numbers its rows from 1.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;
use serde::Serialize;

use crate::db::query_row;
use crate::db::rules::{BIG_TABLES, LATER_TABLES, TABLES};
use crate::model::bounds::MOST_ROWS;

/// Made from `schema/tables.def`.
pub const SCHEMA_SQL: &str = include_str!(concat!(env!("OUT_DIR"), "/generated/schema.sql"));
pub const VIEWS_SQL: &str = include_str!("../../../schema/views.sql");

/// Tables whose rows are numbered.
pub const NUMBERED: [&str; 9] = [
    "thread",
    "module",
    "call_path",
    "communicator",
    "operation",
    "call",
    "request",
    "watch",
    "sample",
];

/// Tables that are the same in every file.
pub const SHARED: [&str; 1] = ["call_name"];

/// The table (an index into [`NUMBERED`]) whose row `column` of the table or view `relation` names; `None` when the
/// column is no id, or an id that means the same in all files.
pub fn target(relation: &str, column: &str) -> Option<usize> {
    let table = match (relation, column) {
        ("requests", "id") => "request",
        ("calls", "id") => "call",
        (_, "id") => relation,
        (_, "operation_id" | "init_operation_id" | "receive_operation_id") => "operation",
        (_, "completion_id" | "call_row_id") => "call",
        (_, "request_id") => "request",
        (_, "thread_id") => "thread",
        (_, "call_path_id" | "completion_call_path_id" | "copy_path_id") => "call_path",
        (_, "communicator_id") => "communicator",
        (_, "module_id") => "module",
        (_, "sample_id") => "sample",
        _ => return None,
    };
    NUMBERED.iter().position(|name| *name == table)
}

/// What to add to the ids of a file so that they are unique among several files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offsets {
    ids: [i64; NUMBERED.len()],
    /// To the key of the rank.
    rank: i64,
}

impl Offsets {
    /// For the file behind one with the offsets `self` and the rows that `schema` of `connection` holds.
    ///
    /// # Errors
    /// A table is missing.
    pub fn behind(&self, connection: &Connection, schema: &str) -> rusqlite::Result<Offsets> {
        let mut next = Offsets { rank: 0, ..*self };
        for (offset, table) in next.ids.iter_mut().zip(NUMBERED) {
            if lacks(connection, schema, table)? {
                continue;
            }
            let sql = format!("SELECT coalesce(max(id), 0) FROM {schema}.{table}");
            let last: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
            *offset = offset.saturating_add(last.clamp(0, MOST_ROWS));
        }
        Ok(next)
    }

    /// What is added to the ids of a numbered table.
    pub fn offset(&self, table: &str) -> i64 {
        NUMBERED.iter().position(|name| *name == table).map_or(0, |at| self.ids[at])
    }

    pub fn with_rank(self, rank: i64) -> Offsets {
        Offsets { rank, ..self }
    }

    /// All rows of `relation` in the file that is `schema`, as a query; none where the file has no such table.
    pub fn select(&self, relation: &Relation, schema: &str, there: &ColumnsThere) -> String {
        let (name, columns) = (&relation.name, relation.column_names());
        if LATER_TABLES.contains(&name.as_str()) && !there.contains_key(name) {
            let nothing: Vec<String> = columns.iter().map(|it| format!("NULL AS {it}")).collect();
            return format!("SELECT {} WHERE 0", nothing.join(", "));
        }
        format!("SELECT {} FROM {schema}.{name}", self.select_list(name, &columns, there))
    }

    /// The columns of `relation` as a SELECT list that adds the offsets; NULL for those that are not `there`.
    pub fn select_list(&self, relation: &str, columns: &[String], there: &ColumnsThere) -> String {
        let one = |column: &String| {
            if there.get(relation).is_some_and(|there| !there.contains(column)) {
                return format!("NULL AS {column}");
            }
            let offset = match target(relation, column) {
                Some(table) => self.ids[table],
                None if column == "rank" => self.rank,
                None => 0,
            };
            match offset {
                0 => column.clone(),
                _ => format!("{column} + {offset} AS {column}"),
            }
        };
        columns.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a file, `schema` of `connection`, was written before there was such a table.
///
/// # Errors
/// What SQLite says of its schema.
pub fn lacks(connection: &Connection, schema: &str, table: &str) -> rusqlite::Result<bool> {
    if !LATER_TABLES.contains(&table) {
        return Ok(false);
    }
    let sql = format!("SELECT NOT EXISTS (SELECT 1 FROM {schema}.sqlite_schema WHERE name = ?1)");
    query_row(connection, &sql, [table], |row| row.get(0))
}

/// By table the columns that a file has.
pub type ColumnsThere = HashMap<String, HashSet<String>>;

/// The columns of the file that is `schema` of `connection`: one that was written before a column came lacks it.
///
/// # Errors
/// What SQLite says of its schema.
pub fn columns_there(connection: &Connection, schema: &str) -> rusqlite::Result<ColumnsThere> {
    let tables = TABLES.iter().chain(BIG_TABLES).map(|(name, _)| format!("('{name}')"));
    let sql = format!(
        "SELECT of.column1, lower(x.name) FROM (VALUES {}) of, pragma_table_info(of.column1, '{schema}') x",
        tables.collect::<Vec<_>>().join(", ")
    );
    let mut there = ColumnsThere::new();
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, column): (String, String) = (row.get(0)?, row.get(1)?);
        there.entry(table).or_default().insert(column);
    }
    Ok(there)
}

/// A table or view, with what the schema says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Relation {
    pub name: String,
    /// `table` or `view`
    pub kind: String,
    pub comment: String,
    pub columns: Vec<ColumnComment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnComment {
    pub name: String,
    pub comment: String,
}

impl Relation {
    pub fn column_names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }
}

/// Every table and view of this program's schema, in its order.
///
/// # Errors
/// Never, with the schema that is built in.
pub fn relations() -> rusqlite::Result<Vec<Relation>> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(SCHEMA_SQL)?;
    connection.execute_batch(VIEWS_SQL)?;
    let mut statement =
        connection.prepare("SELECT name, type FROM sqlite_schema ORDER BY rowid")?;
    let names: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    names
        .into_iter()
        .filter(|(_, kind)| kind == "table" || kind == "view")
        .map(|(name, kind)| {
            let columns = columns(&connection, &name)?;
            Ok(Relation { comment: comment(&kind, &name), name, kind, columns })
        })
        .collect()
}

fn columns(connection: &Connection, relation: &str) -> rusqlite::Result<Vec<ColumnComment>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([relation], |row| row.get::<_, String>(0))?;
    names
        .map(|name| {
            name.map(|name| ColumnComment { comment: column_comment(relation, &name), name })
        })
        .collect()
}

/// What stands behind the first line of a definition, or in the lines above it.
fn comment(kind: &str, name: &str) -> String {
    let text = format!("{SCHEMA_SQL}\n{VIEWS_SQL}");
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = definition(&lines, kind, name) else { return String::new() };
    if let Some((_, behind)) = lines[at].split_once("-- ") {
        return behind.to_owned();
    }
    let above: Vec<&str> =
        lines[..at].iter().rev().map_while(|line| line.strip_prefix("-- ")).collect();
    above.into_iter().rev().collect::<Vec<_>>().join(" ")
}

/// What stands behind a column in the definition of its table.
fn column_comment(table: &str, column: &str) -> String {
    let lines: Vec<&str> = SCHEMA_SQL.lines().collect();
    let Some(at) = definition(&lines, "table", table) else { return String::new() };
    lines[at + 1..]
        .iter()
        .take_while(|line| !line.starts_with(')'))
        .find(|line| line.split_whitespace().next() == Some(column))
        .and_then(|line| line.split_once("-- "))
        .map_or_else(String::new, |(_, behind)| behind.to_owned())
}

fn definition(lines: &[&str], kind: &str, name: &str) -> Option<usize> {
    let start = format!("CREATE {} {name} ", kind.to_uppercase());
    lines.iter().position(|line| line.starts_with(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new id column that nobody told `target` about would mix ranks up.
    #[test]
    fn every_id_column_is_known() {
        for relation in relations().unwrap() {
            for column in relation.column_names() {
                let is_id = column == "id" || column.ends_with("_id");
                let is_shared = SHARED.contains(&relation.name.as_str())
                    || column == "call_id"
                    || column == "build_id";
                assert_eq!(
                    target(&relation.name, &column).is_some(),
                    is_id && !is_shared,
                    "{}.{column}",
                    relation.name
                );
            }
        }
    }

    #[test]
    fn comments_come_from_the_schema() {
        let relations = relations().unwrap();
        let find = |name: &str| relations.iter().find(|relation| relation.name == name).unwrap();
        assert!(find("request").comment.starts_with("one request, from post to end"));
        assert!(find("tally").comment.starts_with("calls that would be too many as rows"));
        assert!(find("requests").comment.starts_with("every request with its operation"));
        let rank = find("rank");
        assert_eq!((rank.kind.as_str(), rank.columns[0].name.as_str()), ("table", "rank"));
        assert_eq!(
            rank.columns[0].comment,
            "key in this file; the world rank, but in a file of several worlds or lives"
        );
    }

    #[test]
    fn offsets_are_added_to_ids_alone() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(SCHEMA_SQL).unwrap();
        let row = "INSERT INTO call_path (id, rank, truncated) VALUES (7, 0, 0)";
        connection.execute(row, []).unwrap();
        let offsets = Offsets::default().behind(&connection, "main").unwrap();
        let columns = ["rank", "call_path_id", "count"].map(String::from);
        assert_eq!(
            offsets.select_list("tally", &columns, &ColumnsThere::new()),
            "rank, call_path_id + 7 AS call_path_id, count"
        );
    }
}
