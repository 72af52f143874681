//! A row of a record as texts, and the values that its columns can have.

use crate::db::rules::Rule;
use crate::model::Bytes;

/// A row that can be read.
pub trait JobRow: Sized {
    const TABLE: &'static str;
    const COLUMNS: &'static [&'static str];
    /// # Errors
    /// A column holds what it cannot.
    fn read(row: &Fields<'_>) -> Result<Self, BadField>;
}

/// A column holds what it cannot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {expected}")]
pub struct BadField {
    pub column: &'static str,
    pub expected: String,
}

/// Ids of the rows read so far, by table, each in ascending order.
#[derive(Debug, Default)]
pub struct Ids {
    tables: Vec<(&'static str, Vec<i64>)>,
}

impl Ids {
    pub fn has(&self, table: &str, id: i64) -> bool {
        let ids = self.tables.iter().find(|(name, _)| *name == table);
        ids.is_some_and(|(_, ids)| ids.binary_search(&id).is_ok())
    }

    /// # Errors
    /// It is not higher than those before it.
    pub fn add(&mut self, table: &'static str, id: i64) -> Result<(), BadField> {
        let place = self.tables.iter().position(|(name, _)| *name == table);
        let place = place.unwrap_or_else(|| {
            self.tables.push((table, Vec::new()));
            self.tables.len() - 1
        });
        let ids = &mut self.tables[place].1;
        if ids.last().is_some_and(|last| *last >= id) {
            return Err(BadField { column: "id", expected: "ids ascend".to_owned() });
        }
        ids.push(id);
        Ok(())
    }
}

/// A row.
pub struct Fields<'r> {
    pub values: &'r [&'r str],
    /// Where each column of the table stands in it; `None`: the file does not have the column.
    pub places: &'r [Option<usize>],
    pub columns: &'static [&'static str],
    pub ids: &'r Ids,
}

impl Fields<'_> {
    /// `None`: NULL.
    fn value(&self, place: usize) -> Option<&str> {
        self.places[place].map(|at| self.values[at]).filter(|value| !value.is_empty())
    }

    fn bad(&self, place: usize, expected: impl Into<String>) -> BadField {
        BadField { column: self.columns[place], expected: expected.into() }
    }

    fn present<T>(&self, place: usize, value: Option<T>) -> Result<T, BadField> {
        value.ok_or_else(|| self.bad(place, "a value is expected"))
    }

    pub fn number(&self, place: usize, rule: Rule) -> Result<i64, BadField> {
        self.present(place, self.optional_number(place, rule)?)
    }

    pub fn optional_number(&self, place: usize, rule: Rule) -> Result<Option<i64>, BadField> {
        let Some(value) = self.value(place) else { return Ok(None) };
        let (least, most) = rule.bounds().unwrap_or((i64::MIN, i64::MAX));
        let number = value.parse().ok().filter(|number| (least..=most).contains(number));
        number.map(Some).ok_or_else(|| self.bad(place, rule.expected()))
    }

    /// An empty text is none, as NULL.
    pub fn text(&self, place: usize) -> Result<String, BadField> {
        Ok(self.optional_text(place)?.unwrap_or_default())
    }

    pub fn optional_text(&self, place: usize) -> Result<Option<String>, BadField> {
        let text = self.value(place).map(unescaped).transpose();
        text.map_err(|()| self.bad(place, "what stands behind \\ is not understood"))
    }

    pub fn word(
        &self,
        place: usize,
        words: &'static [&'static str],
    ) -> Result<&'static str, BadField> {
        let value = self.value(place).unwrap_or_default();
        let word = words.iter().find(|word| **word == value);
        word.copied().ok_or_else(|| self.bad(place, Rule::Word(words).expected()))
    }

    pub fn optional_id(&self, place: usize, table: &'static str) -> Result<Option<i64>, BadField> {
        let id = self.optional_number(place, Rule::Key)?;
        match id.filter(|id| !self.ids.has(table, *id)) {
            Some(_) => Err(self.bad(place, Rule::Row(table).expected())),
            None => Ok(id),
        }
    }
}

/// Numbers of bytes are not negative.
pub fn of_bytes(bytes: i64) -> Bytes {
    Bytes(bytes.unsigned_abs())
}

fn unescaped(value: &str) -> Result<String, ()> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (byte, length) = match behind.as_bytes().first() {
            Some(b'\\') => (b'\\', 1),
            Some(b't') => (b'\t', 1),
            Some(b'n') => (b'\n', 1),
            Some(b'x') => {
                let hex = behind.get(1..3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
                (hex.ok_or(())?, 3)
            }
            _ => return Err(()),
        };
        bytes.push(byte);
        rest = &behind[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
