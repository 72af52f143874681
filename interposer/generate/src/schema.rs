//! `tables.def`: every table and column of the database, as SQL, as rules of the command line, and as the data
//! dictionary. The head of the file has the format.

pub mod columns;
pub mod dictionary;
pub mod jobs;
pub mod record;
pub mod rules;
pub mod sql;

/// All that the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    pub application_id: i64,
    pub user_version: i64,
    pub tables: Vec<SchemaTable>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaTable {
    pub name: String,
    /// The primary key, where no column is of the kind `key`.
    pub key: Vec<String>,
    pub is_checked_as_read: bool,
    /// Files from before it was lack it.
    pub is_later: bool,
    /// The table that is made of this one's rows.
    pub parts_of: Option<String>,
    /// How many columns it has of that table, in front of its own.
    pub shared: usize,
    pub comment: String,
    pub columns: Vec<SchemaColumn>,
    line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaColumn {
    pub name: String,
    pub kind: ColumnKind,
    /// Whether a reader checks its values.
    pub is_checked: bool,
    pub may_be_null: bool,
    /// The aggregate of SQL that makes a value of those of several rows.
    pub merged_by: Option<String>,
    pub comment: String,
    /// What the dictionary says behind the comment.
    pub more: String,
    line: usize,
}

/// Which values a column may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    Plain(&'static Plain),
    Words {
        words: Vec<String>,
        /// Whether SQLite refuses others.
        is_enforced: bool,
    },
    /// An id of that table.
    Row(String),
}

/// A kind without parameters.
#[derive(Debug, PartialEq, Eq)]
pub struct Plain {
    name: &'static str,
    /// The `Rule` of crates/data.
    rule: &'static str,
    /// What the dictionary says of it.
    value: &'static str,
}

const fn plain(name: &'static str, rule: &'static str, value: &'static str) -> Plain {
    Plain { name, rule, value }
}

const PLAIN: [Plain; 16] = [
    plain("time", "Time", "ns"),
    plain("time_sum", "TimeSum", "ns"),
    plain("total", "Total", "ns"),
    plain("epoch", "Epoch", "ns"),
    plain("bytes", "Bytes", "bytes"),
    plain("count", "Count", "count"),
    plain("number", "Number", "number"),
    plain("ordinal", "Ordinal", "number, from 1"),
    plain("level", "Level", "number"),
    plain("integer", "Integer", "number"),
    plain("real", "Real", "number"),
    plain("size_class", "SizeClass", "0 to 64"),
    plain("flag", "Flag", "0, 1"),
    plain("text", "Text", "text"),
    plain("key", "Key", "key"),
    plain("rank", "Rank", "`rank.rank`"),
];

impl SchemaTable {
    /// The primary key, where it is a single column; SQLite then numbers its rows by it.
    fn single_key(&self) -> Option<&str> {
        match self.key.as_slice() {
            [column] => Some(column),
            [] => {
                self.columns.iter().find(|column| column.kind.is("key")).map(|it| it.name.as_str())
            }
            _ => None,
        }
    }
}

impl ColumnKind {
    pub fn is(&self, name: &str) -> bool {
        matches!(self, ColumnKind::Plain(plain) if plain.name == name)
    }

    pub fn is_text(&self) -> bool {
        matches!(self, ColumnKind::Words { .. }) || self.is("text")
    }
}

fn kind(text: &str) -> Result<ColumnKind, String> {
    match text.split_once(' ') {
        Some((name @ ("choice" | "word"), words)) => {
            let words = words.split('|').map(str::to_owned).collect();
            Ok(ColumnKind::Words { words, is_enforced: name == "choice" })
        }
        Some(("row", table)) => Ok(ColumnKind::Row(table.to_owned())),
        _ => {
            let known = PLAIN.iter().find(|plain| plain.name == text);
            known.map(ColumnKind::Plain).ok_or_else(|| format!("unknown kind {text}"))
        }
    }
}

/// What stands in front of ` -- `, and behind it.
fn commented(text: &str) -> Result<(&str, String), String> {
    let (head, comment) = text.split_once(" -- ").ok_or("says not what it means, behind --")?;
    Ok((head.trim(), comment.trim().to_owned()))
}

fn column(text: &str, line: usize) -> Result<SchemaColumn, String> {
    let (head, comment) = commented(text)?;
    let (name, values) = head.split_once(' ').ok_or("no kind")?;
    let (values, merged_by) = match values.split_once(", ") {
        Some((values, way)) => (values, Some(way.to_owned())),
        None => (values, None),
    };
    let without_null = values.strip_suffix(" or NULL");
    let values = without_null.unwrap_or(values);
    let unchecked = values.strip_prefix("any ");
    Ok(SchemaColumn {
        name: name.to_owned(),
        kind: kind(unchecked.unwrap_or(values))?,
        is_checked: unchecked.is_none(),
        may_be_null: without_null.is_some(),
        merged_by,
        comment,
        more: String::new(),
        line,
    })
}

fn table(text: &str, line: usize) -> Result<SchemaTable, String> {
    let (head, comment) = commented(text)?;
    let mut clauses = head.split(", ");
    let name = clauses.next().unwrap_or_default().to_owned();
    let mut table = SchemaTable { name, comment, line, ..SchemaTable::default() };
    for clause in clauses {
        match clause.split_once(' ') {
            Some(("key", columns)) => table.key = columns.split(' ').map(str::to_owned).collect(),
            Some(("of", other)) => table.parts_of = Some(other.to_owned()),
            _ if clause == "later" => table.is_later = true,
            _ if clause == "checked as read" => table.is_checked_as_read = true,
            _ => return Err(format!("unknown clause {clause}")),
        }
    }
    Ok(table)
}

impl Schema {
    fn add(&mut self, text: &str, line: usize) -> Result<(), String> {
        let unindented = text.trim_start();
        match text.len() - unindented.len() {
            0 => self.add_head(text, line),
            4 => {
                let columns = self.tables.last_mut().map(|table| &mut table.columns);
                columns.ok_or("a column of no table")?.push(column(unindented, line)?);
                Ok(())
            }
            _ => {
                let column = self.tables.last_mut().and_then(|table| table.columns.last_mut());
                let more = &mut column.ok_or("a meaning of no column")?.more;
                more.push_str(if more.is_empty() { "" } else { " " });
                more.push_str(unindented);
                Ok(())
            }
        }
    }

    fn add_head(&mut self, text: &str, line: usize) -> Result<(), String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let number = || rest.parse().map_err(|_| format!("not a number: {rest}"));
        match word {
            "application_id" => self.application_id = number()?,
            "user_version" => self.user_version = number()?,
            "table" => {
                let mut table = table(rest, line)?;
                if let Some(name) = &table.parts_of {
                    let whole = self.tables.iter().find(|other| other.name == *name);
                    let whole = whole.ok_or_else(|| format!("there is no table {name} above"))?;
                    table.columns.clone_from(&whole.columns);
                    table.shared = table.columns.len();
                }
                self.tables.push(table);
            }
            _ => return Err(format!("not understood: {word}")),
        }
        Ok(())
    }

    /// What one line cannot say.
    fn check(&self) -> Result<(), String> {
        for (at, table) in self.tables.iter().enumerate() {
            if self.tables[..at].iter().any(|other| other.name == table.name) {
                return Err(format!("{}: table {} is there twice", table.line, table.name));
            }
            let has = |name: &String| table.columns.iter().any(|column| column.name == *name);
            if let Some(missing) = table.key.iter().find(|name| !has(name)) {
                return Err(format!("{}: the key {missing} is no column", table.line));
            }
            for (place, column) in table.columns.iter().enumerate() {
                self.check_column(column, &table.columns[..place])?;
            }
        }
        Ok(())
    }

    fn check_column(&self, column: &SchemaColumn, before: &[SchemaColumn]) -> Result<(), String> {
        let SchemaColumn { name, line, .. } = column;
        if before.iter().any(|other| other.name == *name) {
            return Err(format!("{line}: column {name} is there twice"));
        }
        match &column.kind {
            ColumnKind::Row(of) if !self.tables.iter().any(|table| table.name == *of) => {
                Err(format!("{line}: there is no table {of}"))
            }
            _ => Ok(()),
        }
    }
}

/// Reads the file.
///
/// # Errors
/// `LINE: what is wrong`.
pub fn parse(text: &str) -> Result<Schema, String> {
    let mut schema = Schema::default();
    for (line, number) in text.lines().zip(1..) {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        schema.add(line.trim_end(), number).map_err(|problem| format!("{number}: {problem}"))?;
    }
    schema.check()?;
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub const TEXT: &str = "# a comment\napplication_id 7\nuser_version 2\n\n\
        table rank, key rank -- a process\n    rank number -- key of `all`\n        others,\n        too\n\
        \x20   ended choice exit|killed -- how\n    clock any text or NULL -- which\n\
        table call, checked as read -- a call\n    id key -- key\n    rank rank -- whose\n\
        table pair, key call_id at, later -- two\n    call_id row call -- it\n    at time or NULL -- when\n";

    #[test]
    fn everything_is_read() {
        let schema = parse(TEXT).expect("understood");
        assert_eq!((schema.application_id, schema.user_version), (7, 2));
        let [rank, call, pair] = &schema.tables[..] else { panic!("{schema:?}") };
        assert_eq!((rank.single_key(), call.single_key()), (Some("rank"), Some("id")));
        assert_eq!((pair.single_key(), call.is_checked_as_read), (None, true));
        assert_eq!([rank, call, pair].map(|table| table.is_later), [false, false, true]);
        let key = &rank.columns[0];
        assert_eq!((key.comment.as_str(), key.more.as_str()), ("key of `all`", "others, too"));
        let clock = &rank.columns[2];
        assert!(clock.may_be_null && !clock.is_checked && clock.kind.is_text());
        assert_eq!(pair.columns[0].kind, ColumnKind::Row("call".into()));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, said) in [
            ("tabel x -- y\n", "1: not understood: tabel"),
            ("user_version x\n", "1: not a number: x"),
            ("\ntable x\n", "2: says not what it means, behind --"),
            ("table x, open -- y\n", "1: unknown clause open"),
            ("table x -- y\n    a time\n", "2: says not what it means, behind --"),
            ("table x -- y\n    a -- b\n", "2: no kind"),
            ("table x -- y\n    a times -- b\n", "2: unknown kind times"),
            ("table x -- y\n    a row z -- b\n", "2: there is no table z"),
            ("table x -- y\n    a key -- b\n    a time -- b\n", "3: column a is there twice"),
            ("table x -- y\ntable x -- y\n", "2: table x is there twice"),
            ("table x, key b -- y\n    a time -- b\n", "1: the key b is no column"),
            ("table x, of z -- y\n", "1: there is no table z above"),
            ("    a time -- b\n", "1: a column of no table"),
            ("        more\n", "1: a meaning of no column"),
        ] {
            assert_eq!(parse(text).expect_err(text), said);
        }
    }
}
