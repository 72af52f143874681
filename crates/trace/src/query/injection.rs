//! Injected tests.

use rusqlite::{Connection, OptionalExtension};

use super::{collect, for_each};
use crate::test_counts::Tests;
use lapscope_data::model::{Nanos, RankKey, Text};

/// A row of `injector`.
pub(crate) struct InjectorRow {
    pub rank: RankKey,
    pub mode: String,
    pub problem: Option<String>,
    pub clock: Option<String>,
    pub ab_slot_ns: Option<Nanos>,
    pub test_ns: Option<Nanos>,
    pub interrupt_ns: Option<Nanos>,
    pub check_ns: Option<Nanos>,
    pub spent_ns: Nanos,
    /// What it tried and decided, as text.
    pub page: Option<String>,
}

/// In the order of their ranks.
pub(crate) fn injectors(connection: &Connection) -> rusqlite::Result<Vec<InjectorRow>> {
    let sql =
        "SELECT rank, mode, problem, clock, ab_slot_ns, test_ns, interrupt_ns, check_ns, spent_ns, automatic
         FROM injector ORDER BY rank";
    collect(connection, sql, [], |row| {
        let text = |at| row.get::<_, Option<Text>>(at).map(|text| text.map(|text| text.0));
        Ok(InjectorRow {
            rank: row.get(0)?,
            mode: row.get::<_, Text>(1)?.0,
            problem: text(2)?,
            clock: text(3)?,
            ab_slot_ns: row.get(4)?,
            test_ns: row.get(5)?,
            interrupt_ns: row.get(6)?,
            check_ns: row.get(7)?,
            spent_ns: row.get(8)?,
            page: text(9)?,
        })
    })
}

/// What a rank may spend, as a fraction; the option is in percent.
pub(crate) fn injection_budget(
    connection: &Connection,
    rank: RankKey,
) -> rusqlite::Result<Option<f64>> {
    let sql = "SELECT CAST(value AS REAL) / 100 FROM option WHERE rank = ?1 AND name = 'LAPSCOPE_INJECT_BUDGET'";
    connection.query_row(sql, [rank.0], |row| row.get(0)).optional()
}

/// The rows of `injection` of one rank and place, its threads together.
pub(crate) struct InjectionSums {
    pub rank: RankKey,
    pub call_id: i64,
    pub call_path_id: Option<i64>,
    pub is_on: bool,
    pub tests: Tests,
}

/// Gives all of them to `take`.
pub(crate) fn injection_sums(
    connection: &Connection,
    mut take: impl FnMut(InjectionSums),
) -> rusqlite::Result<()> {
    let sql = "SELECT rank, call_id, call_path_id, max(policy), sum(requests), sum(tests), sum(found), sum(test_ns), sum(idle_ns),
                sum(interrupts), sum(deferred), sum(interrupt_ns)
         FROM injection GROUP BY rank, call_id, call_path_id";
    for_each(connection, sql, [], |row| {
        let count = |column| row.get::<_, i64>(column).map(|count| count.max(0) as u64);
        take(InjectionSums {
            rank: row.get(0)?,
            call_id: row.get(1)?,
            call_path_id: row.get(2)?,
            is_on: row.get(3)?,
            tests: Tests {
                requests: count(4)?,
                tests: count(5)?,
                found: count(6)?,
                test_ns: row.get(7)?,
                idle_ns: row.get(8)?,
                interrupts: count(9)?,
                deferred: count(10)?,
                interrupt_ns: row.get(11)?,
            },
        });
        Ok(())
    })
}
