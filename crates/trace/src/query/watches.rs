//! Watched buffers.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::collect;
use lapscope_data::model::RankKey;

/// Buffers and words that were watched, by rank.
pub(crate) fn watched_words(
    connection: &Connection,
) -> rusqlite::Result<BTreeMap<RankKey, (u64, u64)>> {
    let sql = "SELECT rank, count(*), sum(words) FROM (
                 SELECT t.rank AS rank, count(*) AS words FROM watch w JOIN thread t ON t.id = w.thread_id
                 GROUP BY w.thread_id, w.begin_ns, w.side)
               GROUP BY rank";
    collect(connection, sql, [], |row| {
        let number = |column| row.get::<_, i64>(column).map(|number| number.max(0) as u64);
        Ok((row.get(0)?, (number(1)?, number(2)?)))
    })
}
