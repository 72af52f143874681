//! Whether the rows of small tables are plainly as their rules say, told from their values alone. SQL that says the same of each
//! rule takes many times longer to compile than these rows take to read, and a run may have ten thousand files. What is not plain
//! is left to that SQL, which names what is wrong.

use rusqlite::types::ValueRef;
use rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};

use super::rules::{ColumnRule, Rule};

/// The tables of a file that were looked at, as far as others refer to them.
#[derive(Default)]
pub(super) struct SmallTables {
    ranks: FxHashSet<i64>,
    ids: FxHashMap<&'static str, IdRanges>,
}

impl SmallTables {
    /// Whether all rows of a table are plainly as its rules say. The tables that it refers to have to be looked at before it.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn are_plain(
        &mut self,
        connection: &Connection,
        (table, columns): (&'static str, &'static [ColumnRule]),
    ) -> rusqlite::Result<bool> {
        let mut statement = connection.prepare_cached(&format!("SELECT * FROM {table}"))?;
        let place =
            |(name, _): &ColumnRule| statement.column_index(name.trim_end_matches('?')).ok();
        let places: Option<Vec<usize>> = columns.iter().map(place).collect();
        let Some(places) = places else { return Ok(false) };
        let mut own = OwnIds::default();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for ((name, rule), &place) in columns.iter().zip(&places) {
                let value = row.get_ref(place)?;
                let is_null = matches!(value, ValueRef::Null) && name.ends_with('?');
                if !is_null && !self.holds((table, *name, *rule), value, &mut own) {
                    return Ok(false);
                }
            }
        }
        let has_all = own.have_what_is_named();
        self.ids.insert(table, own.ids);
        Ok(has_all)
    }

    /// Whether a value of a column is as its rule says. Ids of the table itself, and what refers to it, go to `own`.
    fn holds(
        &mut self,
        (table, name, rule): (&str, &str, Rule),
        value: ValueRef<'_>,
        own: &mut OwnIds,
    ) -> bool {
        match (rule, value) {
            (Rule::Text, ValueRef::Text(_)) => true,
            (Rule::Word(words), ValueRef::Text(text)) => {
                words.iter().any(|word| word.as_bytes() == text)
            }
            (Rule::Rank, ValueRef::Integer(rank)) => self.ranks.contains(&rank),
            (Rule::Row(of), ValueRef::Integer(id)) if of == table => own.name(id),
            (Rule::Row(of), ValueRef::Integer(id)) => {
                self.ids.get(of).is_some_and(|ids| ids.contain(id))
            }
            (rule, ValueRef::Integer(number)) => {
                if table == "rank" && name == "rank" {
                    self.ranks.insert(number);
                }
                let is_within =
                    rule.bounds().is_some_and(|(least, most)| least <= number && number <= most);
                is_within && (rule != Rule::Key || own.ids.follow(number))
            }
            _ => false,
        }
    }
}

/// Ids that count up, as ranges without gaps: as a rule that is one.
#[derive(Debug, Default)]
struct IdRanges(Vec<(i64, i64)>);

impl IdRanges {
    /// Takes the id of the next row; whether it is greater than that before it.
    fn follow(&mut self, id: i64) -> bool {
        match self.0.last_mut() {
            Some((_, last)) if id <= *last => return false,
            Some((_, last)) if id == *last + 1 => *last = id,
            _ => self.0.push((id, id)),
        }
        true
    }

    fn contain(&self, id: i64) -> bool {
        let behind = self.0.partition_point(|&(first, _)| first <= id);
        behind.checked_sub(1).is_some_and(|at| id <= self.0[at].1)
    }
}

/// Ids of the table that is looked at, and those by which its own rows name each other.
#[derive(Default)]
struct OwnIds {
    ids: IdRanges,
    named: Vec<i64>,
}

impl OwnIds {
    fn name(&mut self, id: i64) -> bool {
        if self.named.last() != Some(&id) {
            self.named.push(id);
        }
        true
    }

    fn have_what_is_named(&self) -> bool {
        self.named.iter().all(|&id| self.ids.contain(id))
    }
}

#[cfg(test)]
mod tests {
    use lapscope_fixture::{edit_rank, full};

    use super::super::rules::TABLES;
    use super::*;

    /// Tables of a run with rows in nearly all of them that are not plainly as they should be, after a change; those that refer to such a
    /// table are not, either.
    fn not_plain(change: &str) -> Vec<&'static str> {
        let directory = tempfile::tempdir().unwrap();
        full::write(directory.path());
        edit_rank(directory.path(), 0, |file| file.change(change));
        let connection = Connection::open(directory.path().join("rank-0.db")).unwrap();
        let mut looked_at = SmallTables::default();
        let mut is_plain = |table| looked_at.are_plain(&connection, table).unwrap();
        TABLES.iter().filter(|table| !is_plain(**table)).map(|(table, _)| *table).collect()
    }

    #[test]
    fn what_a_rule_does_not_let_through_is_not_plain() {
        assert_eq!(not_plain(""), [""; 0]);
        for (change, table) in [
            ("UPDATE rank SET lost_records = -1", "rank"),
            ("UPDATE operation SET call_path_id = 99999", "operation"),
            ("UPDATE operation SET receive_operation_id = 99999", "operation"),
            ("UPDATE thread SET number = 'one'", "thread"),
            ("UPDATE frame SET address = x'00'", "frame"),
            ("UPDATE watch SET call_path_id = 99", "watch"),
        ] {
            assert_eq!(not_plain(change).first(), Some(&table), "{change}");
        }
    }

    #[test]
    fn ids_may_have_gaps() {
        let mut ids = IdRanges::default();
        assert!([3, 4, 9].iter().all(|&id| ids.follow(id)) && !ids.follow(9));
        let known: Vec<i64> = (0..12).filter(|&id| ids.contain(id)).collect();
        assert_eq!(known, [3, 4, 9]);
    }
}
