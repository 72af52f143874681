//! The SQL that makes a database. SQLite keeps its text in every file, with the comments.

use super::{ColumnKind, Schema, SchemaColumn, SchemaTable};
use crate::line;

/// `schema.sql`.
pub fn statements(schema: &Schema) -> String {
    let mut text = String::new();
    line!(&mut text, "-- A database of lapscope's, made by lapscope-generate.");
    line!(&mut text, "PRAGMA application_id = {};", schema.application_id);
    line!(&mut text, "PRAGMA user_version = {};", schema.user_version);
    for table in &schema.tables {
        create(&mut text, table);
    }
    text
}

fn create(text: &mut String, table: &SchemaTable) {
    let several_keys = if table.key.len() > 1 { table.key.join(", ") } else { String::new() };
    line!(text, "\nCREATE TABLE {} (  -- {}", table.name, plain(&table.comment));
    let width = table.columns.iter().map(|column| column.name.len()).max().unwrap_or_default();
    for (place, column) in table.columns.iter().enumerate() {
        let is_last = place + 1 == table.columns.len() && several_keys.is_empty();
        let comma = if is_last { "" } else { "," };
        let declared = declaration(table, column);
        let comment = plain(&column.comment);
        line!(text, "  {:width$} {declared}{comma}  -- {comment}", column.name);
    }
    if several_keys.is_empty() {
        line!(text, ");");
    } else {
        line!(text, "  PRIMARY KEY ({several_keys})\n) WITHOUT ROWID;");
    }
}

fn declaration(table: &SchemaTable, column: &SchemaColumn) -> String {
    if table.single_key() == Some(&column.name) {
        return "INTEGER PRIMARY KEY".to_owned();
    }
    let kind = if column.kind.is("real") { "REAL" } else { "INTEGER" };
    let mut declared = if column.kind.is_text() { "TEXT" } else { kind }.to_owned();
    if !column.may_be_null {
        declared.push_str(" NOT NULL");
    }
    if let ColumnKind::Words { words, is_enforced: true } = &column.kind {
        declared.push_str(&format!(" CHECK ({} IN ('{}'))", column.name, words.join("', '")));
    }
    declared
}

/// A comment without Markdown, and without the mark that more follows in the dictionary.
fn plain(comment: &str) -> String {
    comment.trim_end_matches([':', ';', ',', '.']).replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::super::{parse, tests::TEXT};
    use super::*;

    #[test]
    fn tables_are_made_with_their_keys() {
        let made = statements(&parse(TEXT).expect("understood"));
        for said in [
            "PRAGMA user_version = 2;\n",
            "\nCREATE TABLE rank (  -- a process\n  rank  INTEGER PRIMARY KEY,  -- key of all\n",
            "\n  ended TEXT NOT NULL CHECK (ended IN ('exit', 'killed')),  -- how\n",
            "\n  clock TEXT  -- which\n);\n",
            "\n  at      INTEGER,  -- when\n  PRIMARY KEY (call_id, at)\n) WITHOUT ROWID;\n",
        ] {
            assert!(made.contains(said), "{said}\n{made}");
        }
    }
}
