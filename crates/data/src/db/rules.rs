//! What values a column may have, as schema/tables.def says for every table: of this are made the check of a file that is
//! opened, and that of the rows that `lapscope export sqlite` copies. Rows of the big tables are checked by their types as they are read (`check`).

use crate::model::bounds::{
    LATEST_EPOCH_NS, LONGEST_NS, LONGEST_TOTAL_NS, MOST, MOST_BYTES, MOST_ROWS,
};

/// What a column may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A duration or a moment since the rank's epoch.
    Time,
    /// A sum of differences of times: they may be negative.
    TimeSum,
    /// Times of many ranks together.
    Total,
    /// A moment since 1970, or since a host was started.
    Epoch,
    /// Calls, requests, tests.
    Count,
    /// Sizes, and sums of them.
    Bytes,
    /// A number that has to fit into 32 bits: of ranks, of a place.
    Number,
    /// As `Number`, and not 0.
    Ordinal,
    /// 0 or 1.
    Flag,
    /// A class of sizes of 64 bits.
    SizeClass,
    /// A number of 32 bits of either sign.
    Level,
    /// Any integer.
    Integer,
    Text,
    Word(&'static [&'static str]),
    /// A row of that table.
    Row(&'static str),
    /// The key of a rank.
    Rank,
    /// Only of the table itself: SQLite's key.
    Key,
}

use Rule::{
    Bytes, Count, Epoch, Flag, Integer, Key, Level, Number, Ordinal, Rank, Row, SizeClass, Text,
    Time, TimeSum, Total, Word,
};

/// A column: its name, with `?` behind it where NULL is a value, and what it may hold.
pub type ColumnRule = (&'static str, Rule);

include!(concat!(env!("OUT_DIR"), "/generated/rules.rs"));

impl Rule {
    /// The least and the greatest integer that it lets through; `None` where that does not tell all, or it is no integer.
    pub fn bounds(self) -> Option<(i64, i64)> {
        match self {
            Time => Some((0, LONGEST_NS)),
            TimeSum => Some((-LONGEST_NS, LONGEST_NS)),
            Total => Some((0, LONGEST_TOTAL_NS)),
            Epoch => Some((0, LATEST_EPOCH_NS)),
            Count => Some((0, MOST)),
            Bytes => Some((0, MOST_BYTES)),
            Number => Some((0, i64::from(i32::MAX))),
            Ordinal => Some((1, i64::from(i32::MAX))),
            Flag => Some((0, 1)),
            SizeClass => Some((0, 64)),
            Level => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
            Key => Some((0, MOST_ROWS)),
            Integer => Some((i64::MIN, i64::MAX)),
            Text | Word(_) | Row(_) | Rank => None,
        }
    }

    /// What a value that breaks it is told, for people.
    pub fn expected(self) -> String {
        match self {
            Time => "a time from 0 to 2^56 ns, 2 years, is expected".to_owned(),
            TimeSum => "a sum of times up to 2^56 ns, 2 years, is expected".to_owned(),
            Total => "a sum of times from 0 to 2^60 ns is expected".to_owned(),
            Epoch => "a moment up to the year 2190 is expected".to_owned(),
            Count => format!("a number from 0 to {MOST} is expected"),
            Bytes => format!("a number from 0 to {MOST_BYTES} is expected"),
            Number => "a number from 0 to 2147483647 is expected".to_owned(),
            Ordinal => "a number from 1 to 2147483647 is expected".to_owned(),
            SizeClass => "a number from 0 to 64 is expected".to_owned(),
            Level => "a number of 32 bits is expected".to_owned(),
            Flag => "0 or 1 is expected".to_owned(),
            Key => format!("a number from 0 to {MOST_ROWS} is expected"),
            Integer => "a whole number is expected".to_owned(),
            Text => "text is expected".to_owned(),
            Word(words) => format!("one of {} is expected", words.join(", ")),
            Row(of) => format!("there is no such row in {of}"),
            Rank => "there is no such rank in the file".to_owned(),
        }
    }

    /// SQL that is true where `column` of a table in `schema` is as it should be.
    fn holds(self, schema: &str, column: &str) -> String {
        if let Some((least, most)) = self.bounds() {
            let is_integer = format!("typeof({column}) = 'integer'");
            return match (least, most) {
                (i64::MIN, i64::MAX) => is_integer,
                _ => format!("{is_integer} AND {column} BETWEEN {least} AND {most}"),
            };
        }
        match self {
            Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
                format!("{column} IN ({})", words.join(", "))
            }
            Row(table) => format!("{column} IN (SELECT id FROM {schema}.{table})"),
            Rank => format!("{column} IN (SELECT rank FROM {schema}.rank)"),
            _ => format!("typeof({column}) = 'text'"),
        }
    }
}

/// SQL that is true where everything in a row is as it should be, and one that names the first column that is not.
pub fn conditions(schema: &str, columns: &[ColumnRule]) -> (String, String) {
    let each: Vec<(&str, String)> = columns
        .iter()
        .map(|(name, rule)| match name.strip_suffix('?') {
            Some(name) => (name, format!("({name} IS NULL OR {})", rule.holds(schema, name))),
            None => (*name, format!("({})", rule.holds(schema, name))),
        })
        .collect();
    let all: Vec<&str> = each.iter().map(|(_, condition)| condition.as_str()).collect();
    let cases: Vec<String> = each
        .iter()
        .map(|(name, condition)| format!("WHEN ({condition}) IS NOT TRUE THEN '{name}'"))
        .collect();
    (all.join(" AND "), format!("CASE {} END", cases.join(" ")))
}

/// What is wrong about a value that breaks the rule of its column, for people.
pub fn describe(table: &str, column: &str) -> String {
    let columns = TABLES.iter().chain(BIG_TABLES).find(|(name, _)| *name == table);
    let rule = columns.and_then(|(_, columns)| {
        columns.iter().find(|(name, _)| name.trim_end_matches('?') == column)
    });
    rule.map_or_else(|| "it cannot be".to_owned(), |(_, rule)| rule.expected())
}
