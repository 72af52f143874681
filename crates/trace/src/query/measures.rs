//! CPU time and counters, summed by place.

use std::ops::Range;

use rusqlite::Connection;

use super::{collect, for_each};
use lapscope_data::model::{Nanos, RankKey, Text};

/// Whether CPU time was asked for: of the options, so that nobody pays for looking through all calls.
pub(crate) fn has_cpu_time(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM option WHERE name = 'LAPSCOPE_CPU_TIME' AND lower(value) IN ('on', '1', 'yes', 'true')";
    connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

/// A row of `counter`.
pub(crate) struct CounterRow {
    pub rank: RankKey,
    pub number: i64,
    pub name: String,
    pub unit: String,
}

/// The counters that were counted.
pub(crate) fn counters(connection: &Connection) -> rusqlite::Result<Vec<CounterRow>> {
    let sql =
        "SELECT rank, number, name, unit FROM counter WHERE problem IS NULL ORDER BY rank, number";
    collect(connection, sql, [], |row| {
        Ok(CounterRow {
            rank: row.get(0)?,
            number: row.get(1)?,
            name: row.get::<_, Text>(2)?.0,
            unit: row.get::<_, Text>(3)?.0,
        })
    })
}

/// Where a sum comes from, in terms of SQL.
pub(crate) struct SumSource {
    tables: String,
    /// The table whose operation says where.
    place: &'static str,
    value: &'static str,
    sum: String,
    /// When it counts.
    timestamp: &'static str,
    /// The number of the counter.
    number: &'static str,
}

/// A sum of one rank and place.
pub(crate) struct PlaceSum {
    pub rank: RankKey,
    pub call_id: i64,
    pub call_path_id: Option<i64>,
    /// The number of the counter; `None`: it is of none.
    pub number: Option<i64>,
    pub sum: i64,
    /// Rows that it is the sum of.
    pub rows: u64,
}

impl SumSource {
    /// CPU time in calls: columns of `call`.
    pub fn of_calls(column: &'static str) -> SumSource {
        SumSource { number: "NULL", ..SumSource::of_call_values("call c", column) }
    }

    /// Counted in calls.
    pub fn of_call_counters() -> SumSource {
        let tables = "call_counter k JOIN call c ON c.id = k.call_row_id";
        SumSource::of_call_values(tables, "k.value")
    }

    /// What requests have of the CPU time of the calls that completed them.
    pub fn of_shares(column: &'static str) -> SumSource {
        SumSource { number: "NULL", ..SumSource::of_share_values("", column) }
    }

    /// What they have of what was counted there.
    pub fn of_counter_shares() -> SumSource {
        SumSource::of_share_values("JOIN call_counter k ON k.call_row_id = c.id", "k.value")
    }

    /// Counted outside of MPI in the windows of requests.
    pub fn of_overlap_windows() -> SumSource {
        SumSource {
            tables: "request_counter k JOIN request r ON r.id = k.request_id
                     LEFT JOIN call c ON c.id = r.completion_id"
                .to_owned(),
            place: "r",
            value: "k.value",
            sum: "sum(k.value)".to_owned(),
            timestamp: "coalesce(c.begin_ns, r.post_begin_ns)",
            number: "k.number",
        }
    }

    fn of_call_values(tables: &str, value: &'static str) -> SumSource {
        let (tables, sum) = (tables.to_owned(), format!("sum({value})"));
        SumSource { tables, place: "c", value, sum, timestamp: "c.begin_ns", number: "k.number" }
    }

    fn of_share_values(more: &str, value: &'static str) -> SumSource {
        SumSource {
            tables: format!("request r JOIN call c ON c.id = r.completion_id {more}"),
            place: "r",
            value,
            sum: format!("CAST(round(sum({value} * 1.0 / c.completed)) AS INTEGER)"),
            timestamp: "c.begin_ns",
            number: "k.number",
        }
    }

    /// Gives the sums to `take`, by rank, place and counter, where the value is known. `windows`: what counts of each rank; `None`: all.
    pub fn read(
        &self,
        connection: &Connection,
        windows: Option<&[(RankKey, Range<Nanos>)]>,
        mut take: impl FnMut(PlaceSum),
    ) -> rusqlite::Result<()> {
        let SumSource { tables, place, value, sum, timestamp, number } = self;
        let (windows, join) = only_counted(windows, timestamp);
        let sql = format!(
            "{windows} SELECT o.rank, o.call_id, o.call_path_id, {number}, {sum}, count(*)
             FROM {tables} JOIN operation o ON o.id = {place}.operation_id {join}
             WHERE {value} IS NOT NULL GROUP BY 1, 2, 3, 4"
        );
        for_each(connection, &sql, [], |row| {
            take(PlaceSum {
                rank: row.get(0)?,
                call_id: row.get(1)?,
                call_path_id: row.get(2)?,
                number: row.get(3)?,
                sum: row.get(4)?,
                rows: row.get::<_, i64>(5)? as u64,
            });
            Ok(())
        })
    }
}

/// As SQL, what leaves of the rows of `o` those whose timestamp is in their rank's window: a table of windows, and a join with it.
fn only_counted(windows: Option<&[(RankKey, Range<Nanos>)]>, timestamp: &str) -> (String, String) {
    let Some(windows) = windows else { return Default::default() };
    let of_rank = |(key, window): &(RankKey, Range<Nanos>)| {
        format!("({}, {}, {})", key.0, window.start.0, window.end.0)
    };
    let all: Vec<String> = windows.iter().map(of_rank).collect();
    let table = format!("WITH counts(rank, first, behind) AS (VALUES {})", all.join(", "));
    let join = format!(
        "JOIN counts w ON w.rank = o.rank AND {timestamp} >= w.first AND {timestamp} < w.behind"
    );
    (table, join)
}
