//! What rows of the big tables have to be for `merge` to copy them: a function in the copying query looks at all columns of a
//! row at once, in a third of the time that conditions in SQL take for it.

use std::sync::atomic::{AtomicI64, Ordering};

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::Connection;

use super::ids::Ids;
use super::rules::{ColumnRule, Rule, BIG_TABLES};
use crate::model::bounds::MOST_ROWS;

/// What a column may hold.
struct ValueRange {
    least: i64,
    most: i64,
    may_be_null: bool,
    /// It is the key, which counts up: the copies are numbered by SQLite.
    counts_up: bool,
}

impl ValueRange {
    fn holds(&self, value: ValueRef<'_>, next: &AtomicI64) -> bool {
        match value {
            ValueRef::Integer(id) if self.counts_up => {
                next.fetch_add(1, Ordering::Relaxed) == id && (self.least..=self.most).contains(&id)
            }
            ValueRef::Integer(number) => (self.least..=self.most).contains(&number),
            ValueRef::Null => self.may_be_null,
            _ => false,
        }
    }
}

/// SQL that is true of the rows of `table` in `schema` that can be, for one pass over them in the order of their keys; keys
/// must count up. `None` for tables that are not big.
///
/// # Errors
/// What SQLite says of the tables that the rows refer to.
pub fn rule_of_rows(
    connection: &Connection,
    schema: &str,
    table: &str,
) -> rusqlite::Result<Option<String>> {
    const NAME: &str = "lapscope_holds";
    let Some((_, columns)) = BIG_TABLES.iter().find(|(name, _)| *name == table) else {
        return Ok(None);
    };
    let mut rooms = Vec::with_capacity(columns.len());
    let mut names = Vec::with_capacity(columns.len());
    let mut others = String::new(); // what bounds do not tell
    let mut first = 0;
    for &(name, rule) in *columns {
        let of_table = |table: &str| Ids::read(connection, &format!("{schema}.{table}"));
        let (least, most) = match rule {
            Rule::Word(_) => {
                others += &format!(" AND ({})", rule_in_sql((name, rule), schema));
                continue;
            }
            Rule::Row(of) => {
                let ids = of_table(of)?;
                if !ids.are_dense() {
                    others += &format!(" AND ({})", rule_in_sql((name, rule), schema));
                }
                ids.ends()
            }
            Rule::Key => {
                first = of_table(table)?.ends().0;
                (0, MOST_ROWS)
            }
            rule => rule.bounds().unwrap_or((i64::MIN, i64::MAX)),
        };
        let counts_up = matches!(rule, Rule::Key);
        names.push(name.trim_end_matches('?'));
        rooms.push(ValueRange { least, most, may_be_null: name.ends_with('?'), counts_up });
    }
    let sql = format!("{NAME}({}){others}", names.join(", "));
    let next = AtomicI64::new(first);
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function(NAME, names.len() as i32, flags, move |row| {
        Ok(rooms.iter().enumerate().all(|(at, room)| room.holds(row.get_raw(at), &next)))
    })?;
    Ok(Some(sql))
}

fn rule_in_sql(column: ColumnRule, schema: &str) -> String {
    super::rules::conditions(schema, &[column]).0
}
