//! Places and lists of columns for the conversion in C, and how each is read in Rust.

use super::{ColumnKind, Schema, SchemaColumn, SchemaTable};
use crate::{banner_of, line};

/// For each table `COLUMN_TABLE_NAME`, the place of a column from 1 on, `COLUMNS_OF_TABLE`, how many there are,
/// `COLUMNS_table`, the columns that SQLite does not number, and `VALUES_table`, a parameter for each column. Where there are
/// millions of rows, `struct table_row` has the columns that SQLite does not number, and `NULLABLE_table` a bit for each that
/// may be NULL.
pub fn places(schema: &Schema) -> String {
    let mut text = banner_of("Places and lists of the columns of each table.", "tables.def");
    for table in &schema.tables {
        let (name, capital) = (&table.name, table.name.to_uppercase());
        line!(&mut text, "enum {{");
        for (column, place) in table.columns.iter().zip(1..) {
            line!(&mut text, "    COLUMN_{capital}_{} = {place},", column.name.to_uppercase());
        }
        line!(&mut text, "    COLUMNS_OF_{capital} = {}\n}};", table.columns.len());
        line!(&mut text, "#define COLUMNS_{name} \"{}\"", names(table).join(","));
        line!(&mut text, "#define VALUES_{name} \"{}\"", vec!["?"; table.columns.len()].join(","));
        if table.is_checked_as_read {
            row(&mut text, table);
        }
    }
    text
}

fn row(text: &mut String, table: &SchemaTable) {
    line!(text, "struct {}_row {{\n    int64_t {};\n}};", table.name, names(table).join(", "));
    let nullable = unnumbered(table).zip(0..).filter(|(column, _)| column.may_be_null);
    let bits = nullable.fold(0, |bits: u64, (_, place)| bits | 1 << place);
    line!(text, "#define NULLABLE_{} UINT64_C({bits:#x})", table.name);
}

fn unnumbered(table: &SchemaTable) -> impl Iterator<Item = &SchemaColumn> {
    table.columns.iter().filter(|column| !column.kind.is("key"))
}

fn names(table: &SchemaTable) -> Vec<&str> {
    unnumbered(table).map(|column| column.name.as_str()).collect()
}

/// For each table with millions of rows a module with a type for each of its columns, which says how it is read: for `include!` in
/// crates/data, which defines `TableColumn`. In Rust the unit of a column is its type, and not in its name.
pub fn types(schema: &Schema) -> String {
    let mut text = String::new();
    for table in schema.tables.iter().filter(|table| table.is_checked_as_read) {
        line!(&mut text, "/// Columns of `{}`.", table.name);
        line!(&mut text, "#[allow(non_camel_case_types)]");
        line!(&mut text, "pub mod {} {{", table.name);
        line!(&mut text, "#[allow(unused_imports)]\nuse super::{{c_int, BadColumn, Bytes, Nanos, Rows, TableColumn}};");
        for column in &table.columns {
            column_type(&mut text, column);
        }
        line!(&mut text, "}}");
    }
    text
}

fn column_type(text: &mut String, column: &SchemaColumn) {
    let rule = match &column.kind {
        ColumnKind::Plain(plain) => plain.rule,
        ColumnKind::Words { .. } | ColumnKind::Row(_) => "",
    };
    let (value, read) = match (rule, column.may_be_null) {
        ("Time", false) => ("Nanos", "row.time(at).map(Nanos)"),
        ("Time", true) => ("Option<Nanos>", "row.optional_time(at).map(|time| time.map(Nanos))"),
        ("Bytes", false) => ("Bytes", "row.bytes(at).map(Bytes)"),
        ("Count", false) => ("u64", "row.count(at)"),
        (_, false) => ("i64", "row.integer(at)"),
        (_, true) => ("Option<i64>", "row.optional(at)"),
    };
    let name = column.name.strip_suffix("_ns").unwrap_or(&column.name);
    line!(text, "#[derive(Debug)]\npub struct {name};");
    line!(text, "impl TableColumn for {name} {{");
    line!(text, "const NAME: &'static str = {:?};", column.name);
    line!(text, "type Value = {value};");
    line!(text, "#[inline]\nfn read(row: &Rows<'_>, at: c_int) -> Result<{value}, BadColumn> {{\n{read}\n}}");
    line!(text, "}}");
}

#[cfg(test)]
mod tests {
    use super::super::{parse, tests::TEXT};
    use super::*;

    #[test]
    fn columns_are_counted_and_listed() {
        let made = places(&parse(TEXT).expect("understood"));
        for said in [
            "enum {\n    COLUMN_CALL_ID = 1,\n    COLUMN_CALL_RANK = 2,\n    COLUMNS_OF_CALL = 2\n};\n",
            "#define COLUMNS_call \"rank\"\n#define VALUES_call \"?,?\"\nstruct call_row {\n    int64_t rank;\n};\n",
            "#define NULLABLE_call UINT64_C(0x0)\n",
            "#define COLUMNS_pair \"call_id,at\"\n",
        ] {
            assert!(made.contains(said), "{said}\n{made}");
        }
    }

    #[test]
    fn columns_are_read_as_what_they_hold() {
        let made = types(&parse(TEXT).expect("understood"));
        assert!(made.contains("pub mod call {") && !made.contains("mod pair"), "{made}");
        for said in [
            "impl TableColumn for id {\nconst NAME: &'static str = \"id\";\ntype Value = i64;\n",
            "-> Result<i64, BadColumn> {\nrow.integer(at)\n}",
        ] {
            assert!(made.contains(said), "{said}\n{made}");
        }
    }
}
