//! One line of expectations: which rows it stands for, and how many of them there must be.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::rows::RecordedRow;

/// What a value or a count may be: `7`, `*`, `2+`, `2..5`, or a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    Any,
    Range(u64, u64),
    Word(String),
}

impl Allowed {
    fn parse(text: &str) -> Self {
        let number = |text: &str| text.parse::<u64>().ok();
        if text == "*" {
            return Self::Any;
        }
        if let Some(low) = text.strip_suffix('+').and_then(number) {
            return Self::Range(low, u64::MAX);
        }
        if let Some((low, high)) = text.split_once("..") {
            if let (Some(low), Some(high)) = (number(low), number(high)) {
                return Self::Range(low, high);
            }
        }
        Self::Word(text.to_owned())
    }

    fn allows(&self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Range(low, high) => {
                value.parse::<u64>().is_ok_and(|value| (*low..=*high).contains(&value))
            }
            Self::Word(word) => word == value,
        }
    }

    /// As a count: least and most.
    fn bounds(&self) -> Option<(u64, u64)> {
        match self {
            Self::Any => Some((0, u64::MAX)),
            Self::Range(low, high) => Some((*low, *high)),
            Self::Word(word) => word.parse().ok().map(|count| (count, count)),
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Range(low, u64::MAX) => write!(f, "{low}+"),
            Self::Range(low, high) => write!(f, "{low}..{high}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// Fields that every row must have as the line says, and what they are where the line does not name them.
fn required(table: &str) -> &'static [(&'static str, &'static str)] {
    match table {
        "request" => &[
            ("bytes", "0"),
            ("peer", "NULL"),
            ("tag", "NULL"),
            ("ended", "NULL"),
            ("by", "NULL"),
            ("init", "NULL"),
            ("receive_bytes", "NULL"),
            ("receive_peer", "NULL"),
            ("receive_tag", "NULL"),
        ],
        "call" => &[
            ("bytes", "0"),
            ("peer", "NULL"),
            ("tag", "NULL"),
            ("completed", "0"),
            ("receive_bytes", "NULL"),
            ("receive_peer", "NULL"),
            ("receive_tag", "NULL"),
        ],
        "comm" => &[("remote_members", "NULL")],
        _ => &[],
    }
}

/// A line of expectations for one rank.
#[derive(Debug, Clone)]
pub struct Pattern {
    pub rank: String,
    pub table: String,
    name: String,
    kind: Allowed,
    fields: BTreeMap<String, Allowed>,
    pub least: u64,
    pub most: u64,
}

/// `0`, `0-3` and `0,2`; with a world in front `2:0-3`.
fn parse_ranks(text: &str) -> Option<Vec<String>> {
    let (world, text) = text.split_at(text.find(':').map_or(0, |colon| colon + 1));
    let mut ranks = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?;
        ranks.extend(range.map(|rank| format!("{world}{rank}")));
    }
    Some(ranks)
}

impl Pattern {
    /// Parses `rank=0-1 request MPI_Isend send bytes=400 peer=1 tag=7 ended=waited by=MPI_Wait x10` into one pattern for
    /// each rank. `None` when it is no such line.
    pub fn parse(line: &str) -> Option<Vec<Self>> {
        let mut words = line.split_whitespace();
        let ranks = parse_ranks(words.next()?.strip_prefix("rank=")?)?;
        let table = words.next()?.to_owned();
        let (mut name, mut kind, mut count) =
            (String::new(), Allowed::Word(String::new()), Allowed::Range(1, 1));
        if table == "unknown" {
            count = Allowed::parse(words.next()?);
        } else {
            name = words.next()?.to_owned();
            kind = Allowed::parse(words.next()?);
        }
        let mut fields: BTreeMap<_, _> = required(&table)
            .iter()
            .map(|&(name, value)| (name.to_owned(), Allowed::Word(value.to_owned())))
            .collect();
        for word in words {
            if let Some((field, value)) = word.split_once('=') {
                fields.insert(field.to_owned(), Allowed::parse(value));
            } else {
                count = Allowed::parse(word.strip_prefix('x')?);
            }
        }
        let (least, most) = count.bounds()?;
        let of_rank = |rank| Self {
            rank,
            table: table.clone(),
            name: name.clone(),
            kind: kind.clone(),
            fields: fields.clone(),
            least,
            most,
        };
        Some(ranks.into_iter().map(of_rank).collect())
    }

    /// Whether the line is about this call: `MPI_Isend(_c)` is `MPI_Isend` and, in MPIs that have it, `MPI_Isend_c`.
    pub fn names(&self, call: &str) -> bool {
        match self.name.strip_suffix("(_c)") {
            Some(name) => name == call.strip_suffix("_c").unwrap_or(call),
            None => self.name == call,
        }
    }

    /// Whether the line stands for this row.
    pub fn matches(&self, row: &RecordedRow) -> bool {
        self.rank == row.rank
            && self.table == row.table
            && self.names(&row.name)
            && self.kind.allows(&row.kind)
            && self.fields.iter().all(|(name, allowed)| {
                row.fields.get(name).is_some_and(|value| allowed.allows(value))
            })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank={} {} {} {}", self.rank, self.table, self.name, self.kind)?;
        for (name, allowed) in &self.fields {
            write!(f, " {name}={allowed}")?;
        }
        match (self.least, self.most) {
            (least, u64::MAX) => write!(f, " x{least}+"),
            (least, most) if least == most => write!(f, " x{least}"),
            (least, most) => write!(f, " x{least}..{most}"),
        }
    }
}

/// A row in the form of a line of expectations, without the count.
pub fn describe(row: &RecordedRow) -> String {
    let mut line = format!("rank={} {} {} {}", row.rank, row.table, row.name, row.kind);
    for (name, value) in &row.fields {
        if !((name.starts_with("receive_") || name == "init") && value == "NULL") {
            write!(line, " {name}={value}").expect("a string takes it");
        }
    }
    line
}
