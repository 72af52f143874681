//! What the command line knows of columns, for `include!` in crates/data.

use super::{ColumnKind, Schema, SchemaColumn, SchemaTable};
use crate::line;

/// Numbers of the format, and the rules of all tables: constants of types that whoever includes it defines.
pub fn constants(schema: &Schema) -> String {
    let mut text = String::new();
    line!(&mut text, "/// `PRAGMA application_id` of every lapscope database.");
    line!(&mut text, "pub const APPLICATION_ID: i64 = {};", schema.application_id);
    line!(&mut text, "/// `PRAGMA user_version` that this program reads.");
    line!(&mut text, "pub const USER_VERSION: i64 = {};", schema.user_version);
    let (big, small): (Vec<&SchemaTable>, Vec<&SchemaTable>) =
        schema.tables.iter().partition(|table| table.is_checked_as_read);
    line!(
        &mut text,
        "/// Tables, and the rules of their columns. What is not here is only printed."
    );
    list(&mut text, "TABLES", &small);
    line!(&mut text, "/// The tables that are checked row by row as they are read.");
    list(&mut text, "BIG_TABLES", &big);
    let later = schema.tables.iter().filter(|table| table.is_later);
    let later: Vec<&str> = later.map(|table| table.name.as_str()).collect();
    line!(&mut text, "/// Tables that files from before them lack.");
    line!(&mut text, "pub const LATER_TABLES: &[&str] = &{later:?};");
    text
}

fn list(text: &mut String, name: &str, tables: &[&SchemaTable]) {
    line!(text, "pub const {name}: &[(&str, &[ColumnRule])] = &[");
    for table in tables {
        line!(text, "({:?}, &[", table.name);
        for column in table.columns.iter().filter(|column| column.is_checked) {
            let null = if column.may_be_null { "?" } else { "" };
            line!(text, "(\"{}{null}\", {}),", column.name, rule(column));
        }
        line!(text, "]),");
    }
    line!(text, "];");
}

fn rule(column: &SchemaColumn) -> String {
    match &column.kind {
        ColumnKind::Plain(plain) => plain.rule.to_owned(),
        ColumnKind::Words { words, .. } => format!("Word(&{words:?})"),
        ColumnKind::Row(table) => format!("Row({table:?})"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, tests::TEXT};
    use super::*;

    #[test]
    fn rules_are_of_what_is_checked() {
        let made = constants(&parse(TEXT).expect("understood"));
        let (small, big) = made.split_once("BIG_TABLES").expect("both");
        for said in [
            "APPLICATION_ID: i64 = 7;",
            "(\"rank\", Number),\n(\"ended\", Word(&[\"exit\", \"killed\"])),\n]),",
            "(\"call_id\", Row(\"call\")),\n(\"at?\", Time),",
        ] {
            assert!(small.contains(said), "{said}\n{made}");
        }
        assert!(big.contains("(\"call\", &[\n(\"id\", Key),"), "{made}");
        assert!(big.contains("LATER_TABLES: &[&str] = &[\"pair\"];"), "{made}");
    }
}
