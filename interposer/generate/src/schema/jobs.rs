//! `jobs.def`: the database of many jobs, for `include!` in crates/data, which defines `JobTable` and `Cell`. A row is a struct
//! whose fields are the columns; what is summed over many ranks and jobs is a fraction, which no sum leaves.

use super::{Schema, SchemaColumn, SchemaTable};
use crate::line;

/// Numbers of the format, a struct for each table, and how rows that are parts become one.
pub fn rows(schema: &Schema) -> String {
    let mut text = String::new();
    line!(&mut text, "pub const JOBS_APPLICATION_ID: i64 = {};", schema.application_id);
    line!(&mut text, "pub const JOBS_VERSION: i64 = {};", schema.user_version);
    for table in &schema.tables {
        row(&mut text, table);
        if let Some(whole) = &table.parts_of {
            line!(
                &mut text,
                "pub const MERGE_{}: &str = {:?};",
                whole.to_uppercase(),
                merge(schema, table)
            );
        }
    }
    text
}

/// `site` is `ListedSite`.
fn type_name(table: &SchemaTable) -> String {
    format!("Listed{}{}", table.name[..1].to_uppercase(), &table.name[1..])
}

fn row(text: &mut String, table: &SchemaTable) {
    let (name, own) = (type_name(table), &table.name);
    let (first, rest) = table.comment.split_at(1);
    line!(text, "/// {}{rest}.", first.to_uppercase());
    line!(text, "#[derive(Debug, Clone, Default, PartialEq, Serialize)]\npub struct {name} {{");
    for column in &table.columns {
        line!(text, "/// {}", column.comment);
        line!(text, "pub {}: {},", column.name, value_type(column));
    }
    line!(text, "}}\nimpl JobTable for {name} {{\nconst NAME: &'static str = {own:?};");
    line!(text, "const CELLS: &'static [(&'static str, Cell<Self>)] = &[");
    for column in &table.columns {
        line!(text, "({:?}, Cell::{}),", column.name, cell(column));
    }
    line!(text, "];\nfn read(row: &Row<'_>) -> rusqlite::Result<Self> {{\nOk({name} {{");
    for (place, column) in table.columns.iter().enumerate() {
        line!(text, "{}: row.get({place})?,", column.name);
    }
    line!(text, "}})\n}}\nfn values(&self) -> Vec<&dyn ToSql> {{\nvec![");
    for column in &table.columns {
        line!(text, "&self.{},", column.name);
    }
    line!(text, "]\n}}\n}}");
}

fn value_type(column: &SchemaColumn) -> String {
    let own = match &column.kind {
        kind if kind.is_text() => "String",
        kind if kind.is("real") => "f64",
        _ => "i64",
    };
    if column.may_be_null {
        format!("Option<{own}>")
    } else {
        own.to_owned()
    }
}

/// What a column has, for whoever takes all of them alike.
fn cell(column: &SchemaColumn) -> String {
    let field = format!("row.{}", column.name);
    let (is_text, may_be_null) = (column.kind.is_text(), column.may_be_null);
    let kind = if column.kind.is("real") { "Real" } else { "Whole" };
    match (is_text, may_be_null) {
        (true, true) => format!("Word(|row| {field}.as_deref())"),
        (true, false) => format!("Word(|row| Some(&{field}))"),
        (false, true) => format!("{kind}(|row| {field})"),
        (false, false) => format!("{kind}(|row| Some({field}))"),
    }
}

/// The begin of a statement that makes a row of the whole of rows that are its parts.
fn merge(schema: &Schema, parts: &SchemaTable) -> String {
    let whole = schema.tables.iter().find(|table| Some(&table.name) == parts.parts_of.as_ref());
    let value = |column: &SchemaColumn| match &column.merged_by {
        Some(call) if call.contains('(') => call.clone(),
        Some(aggregate) => format!("{aggregate}({})", column.name),
        None => column.name.clone(),
    };
    let values = whole.map_or_else(Vec::new, |whole| whole.columns.iter().map(value).collect());
    format!(
        "INSERT INTO {} SELECT {}",
        parts.parts_of.as_deref().unwrap_or_default(),
        values.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const TEXT: &str = "application_id 7\nuser_version 2\ntable job, key user name -- a job\n    user number -- whose\n\
        \x20   name text -- its name\n    hosts count, count(DISTINCT host) -- how many\n    run_seconds real or NULL, sum -- time\n\
        table node, key user name host, of job -- a part\n    host text -- where\n";

    #[test]
    fn parts_have_the_columns_of_the_whole() {
        let made = rows(&parse(TEXT).expect("understood"));
        for said in [
            "pub struct ListedNode {\n/// whose\npub user: i64,\n",
            "/// time\npub run_seconds: Option<f64>,\n/// where\npub host: String,\n}",
            "(\"run_seconds\", Cell::Real(|row| row.run_seconds)),\n(\"host\", Cell::Word(|row| Some(&row.host))),",
            "MERGE_JOB: &str = \"INSERT INTO job SELECT user, name, count(DISTINCT host), sum(run_seconds)\";",
        ] {
            assert!(made.contains(said), "{said}\n{made}");
        }
    }
}
