//! The tables of columns in data dictionaries, `schema/README.md` and `schema/jobs.md`: what stands between `<!-- table NAME -->` and
//! `<!-- end -->`. All else there is written by hand.

use super::{ColumnKind, Schema, SchemaColumn, SchemaTable};
use crate::line;

const END: &str = "<!-- end -->";

fn marked(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- table ")?.strip_suffix(" -->")
}

/// The dictionary with its tables as they should be.
///
/// # Errors
/// `LINE: what is wrong`: a table that the dictionary does not have, or that the database does not.
pub fn filled(schema: &Schema, dictionary: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut lines = dictionary.lines().zip(1..);
    let mut missing: Vec<&SchemaTable> = schema.tables.iter().collect();
    while let Some((line, number)) = lines.next() {
        line!(&mut text, "{line}");
        let Some(name) = marked(line) else { continue };
        let place = missing.iter().position(|table| table.name == name);
        let place = place.ok_or_else(|| format!("{number}: no table {name}, or once more"))?;
        write_table(&mut text, missing.remove(place));
        if !lines.any(|(line, _)| line == END) {
            return Err(format!("{number}: no {END} follows"));
        }
        line!(&mut text, "{END}");
    }
    match missing.first() {
        None => Ok(text),
        Some(table) => Err(format!("1: <!-- table {} --> is nowhere", table.name)),
    }
}

fn write_table(text: &mut String, table: &SchemaTable) {
    line!(text, "| column of `{}` | value | meaning |\n|---|---|---|", table.name);
    if let Some(whole) = &table.parts_of {
        line!(text, "| all of `{whole}` | | of this one alone |");
    }
    for column in &table.columns[table.shared..] {
        let SchemaColumn { name, comment, more, .. } = column;
        let null = if column.may_be_null { ", NULL" } else { "" };
        let blank = if more.is_empty() { "" } else { " " };
        let value = value(&column.kind);
        line!(text, "| `{name}` | {value}{null} | {}{blank}{more} |", whole(comment, more));
    }
}

/// The comment; without its last mark where nothing follows.
fn whole<'a>(comment: &'a str, more: &str) -> &'a str {
    if more.is_empty() {
        comment.trim_end_matches('.')
    } else {
        comment
    }
}

fn value(kind: &ColumnKind) -> String {
    match kind {
        ColumnKind::Plain(plain) => plain.value.to_owned(),
        ColumnKind::Words { words, .. } => format!("`{}`", words.join("`, `")),
        ColumnKind::Row(table) => format!("`{table}.id`"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, tests::TEXT};
    use super::*;

    #[test]
    fn tables_are_filled_in() {
        let schema = parse(TEXT).expect("understood");
        let part = |name: &str| format!("<!-- table {name} -->\nold\n<!-- end -->\n");
        let old = format!("# Head\n{}Words\n{}{}", part("rank"), part("pair"), part("call"));
        let made = filled(&schema, &old).expect("whole");
        for said in [
            "# Head\n<!-- table rank -->\n| column of `rank` | value | meaning |\n|---|---|---|\n",
            "| `rank` | number | key of `all` others, too |\n",
            "| `ended` | `exit`, `killed` | how |\n| `clock` | text, NULL | which |\n<!-- end -->\nWords\n",
            "| `call_id` | `call.id` | it |\n",
        ] {
            assert!(made.contains(said), "{said}\n{made}");
        }
        assert_eq!(filled(&schema, &made).expect("whole"), made);
        for (text, said) in [
            (part("rank"), "1: <!-- table call --> is nowhere"),
            (part("rank") + &part("rank"), "4: no table rank, or once more"),
            ("\n<!-- table rank -->\n".to_owned(), "2: no <!-- end --> follows"),
        ] {
            assert_eq!(filled(&schema, &text).expect_err(&text), said);
        }
    }
}
