//! Sums of calls that found nothing.

use rusqlite::Connection;

use super::collect;
use lapscope_data::model::{Count, Nanos, RankKey};

/// Probes of one place on one rank that found nothing.
pub(crate) struct VainProbesRow {
    pub rank: RankKey,
    pub call_id: i64,
    pub call_path_id: Option<i64>,
    pub count: u64,
    pub inside: Nanos,
}

pub(crate) fn vain_probes(connection: &Connection) -> rusqlite::Result<Vec<VainProbesRow>> {
    let sql =
        "SELECT t.rank, t.call_id, t.call_path_id, sum(t.count), sum(t.inside_ns) FROM tally t
               JOIN call_name c ON c.id = t.call_id
               WHERE t.reason = 'unsuccessful_test' AND c.role = 'PROBE' GROUP BY 1, 2, 3";
    collect(connection, sql, [], |row| {
        Ok(VainProbesRow {
            rank: row.get(0)?,
            call_id: row.get(1)?,
            call_path_id: row.get(2)?,
            count: row.get::<_, Count>(3)?.0,
            inside: row.get(4)?,
        })
    })
}
