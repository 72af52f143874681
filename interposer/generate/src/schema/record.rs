//! `job.def`: the rows of a job's record, as the recorder writes them and as crates/data reads them.

use super::{ColumnKind, Schema, SchemaColumn, SchemaTable};
use crate::{banner_of, line};

/// Of each table `struct job_table`, `JOB_HEAD_table`, the lines above its rows, and `job_put_table`, which writes a row with the
/// functions of record/job_text.h. A number that is NULL is `JOB_NULL`, a text NULL.
pub fn writers(schema: &Schema) -> String {
    let mut text = banner_of("Rows of a job's record.", "job.def");
    line!(&mut text, "#define JOB_FIRST_LINE \"lapscope job record {}\\n\"", schema.user_version);
    for table in &schema.tables {
        writer(&mut text, table);
    }
    text
}

fn writer(text: &mut String, table: &SchemaTable) {
    let name = &table.name;
    line!(text, "struct job_{name} {{");
    for column in &table.columns {
        let kind = if column.kind.is_text() { "const char *" } else { "int64_t " };
        line!(text, "    {kind}{};", column.name);
    }
    line!(text, "}};");
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    line!(text, "#define JOB_HEAD_{name} \"[{name}]\\n{}\\n\"", names.join("\\t"));
    line!(text, "static inline void job_put_{name}(struct job_text *text, const struct job_{name} *row)\n{{");
    for (column, place) in table.columns.iter().zip(1..) {
        let kind = if column.kind.is_text() { "text" } else { "number" };
        let end = if place == table.columns.len() { "\\n" } else { "\\t" };
        line!(text, "    job_put_{kind}(text, row->{}, '{end}');", column.name);
    }
    line!(text, "}}");
}

/// For `include!` in crates/data, which defines `JobRow`, `Fields`, `of_bytes` and the types of values: a struct for each table.
pub fn readers(schema: &Schema) -> String {
    let mut text = String::new();
    line!(&mut text, "/// Of the records that this program reads.");
    line!(&mut text, "pub const JOB_VERSION: u32 = {};", schema.user_version);
    for table in &schema.tables {
        reader(&mut text, table);
    }
    text
}

/// `site` is `JobSite`.
fn type_name(table: &SchemaTable) -> String {
    let words = table.name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
    format!("Job{}", words.collect::<String>())
}

fn reader(text: &mut String, table: &SchemaTable) {
    let (name, own) = (type_name(table), &table.name);
    line!(text, "/// {}.", sentence(&table.comment));
    line!(text, "#[derive(Debug, Clone, PartialEq, Eq)]\npub struct {name} {{");
    for column in &table.columns {
        line!(text, "/// {}", column.comment);
        line!(text, "pub {}: {},", field(column), value_type(column));
    }
    line!(text, "}}\nimpl JobRow for {name} {{\nconst TABLE: &'static str = {own:?};");
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    line!(text, "const COLUMNS: &'static [&'static str] = &{names:?};");
    line!(text, "fn read(row: &Fields<'_>) -> Result<Self, BadField> {{\nOk({name} {{");
    for (place, column) in table.columns.iter().enumerate() {
        line!(text, "{}: {},", field(column), read(column, place));
    }
    line!(text, "}})\n}}\n}}");
}

fn sentence(comment: &str) -> String {
    comment[..1].to_uppercase() + &comment[1..]
}

/// In Rust the unit of a column is its type, and not in its name.
fn field(column: &SchemaColumn) -> &str {
    let is_time = matches!(rule(column), "Time" | "TimeSum" | "Total");
    let bare = is_time.then(|| column.name.strip_suffix("_ns")).flatten();
    bare.unwrap_or(&column.name)
}

fn rule(column: &SchemaColumn) -> &'static str {
    match &column.kind {
        ColumnKind::Plain(plain) => plain.rule,
        ColumnKind::Words { .. } | ColumnKind::Row(_) => "",
    }
}

fn value_type(column: &SchemaColumn) -> String {
    let own = match &column.kind {
        ColumnKind::Words { .. } => "&'static str",
        _ => match rule(column) {
            "Time" | "TimeSum" | "Total" => "Nanos",
            "Bytes" => "Bytes",
            "Count" => "u64",
            "Text" => "String",
            _ => "i64",
        },
    };
    if column.may_be_null {
        format!("Option<{own}>")
    } else {
        own.to_owned()
    }
}

fn read(column: &SchemaColumn, place: usize) -> String {
    let optional = if column.may_be_null { "optional_" } else { "" };
    match &column.kind {
        ColumnKind::Words { words, .. } => format!("row.{optional}word({place}, &{words:?})?"),
        ColumnKind::Row(table) => format!("row.{optional}id({place}, {table:?})?"),
        ColumnKind::Plain(plain) if plain.rule == "Text" => format!("row.{optional}text({place})?"),
        ColumnKind::Plain(plain) => {
            let number = format!("row.{optional}number({place}, Rule::{})?", plain.rule);
            let wrap = match plain.rule {
                "Time" | "TimeSum" | "Total" => "Nanos",
                "Bytes" => "of_bytes",
                "Count" => "i64::unsigned_abs",
                _ => return number,
            };
            match column.may_be_null {
                true => format!("{number}.map({wrap})"),
                false => format!("{wrap}({number})"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, tests::TEXT};
    use super::*;

    #[test]
    fn rows_are_written_column_by_column() {
        let made = writers(&parse(TEXT).expect("understood"));
        for said in [
            "#define JOB_FIRST_LINE \"lapscope job record 2\\n\"\n",
            "struct job_rank {\n    int64_t rank;\n    const char *ended;\n    const char *clock;\n};\n",
            "#define JOB_HEAD_pair \"[pair]\\ncall_id\\tat\\n\"\n",
            "    job_put_number(text, row->call_id, '\\t');\n    job_put_number(text, row->at, '\\n');\n}\n",
        ] {
            assert!(made.contains(said), "{said}\n{made}");
        }
    }

    #[test]
    fn rows_are_read_as_what_they_hold() {
        let made = readers(&parse(TEXT).expect("understood"));
        for said in [
            "pub struct JobRank {\n/// key of `all`\npub rank: i64,\n/// how\npub ended: &'static str,\n/// which\npub clock: Option<String>,\n}",
            "ended: row.word(1, &[\"exit\", \"killed\"])?,\nclock: row.optional_text(2)?,\n",
            "call_id: row.id(0, \"call\")?,\nat: row.optional_number(1, Rule::Time)?.map(Nanos),\n",
        ] {
            assert!(made.contains(said), "{said}\n{made}");
        }
    }
}
