//! What stands by rank: its epoch, where it lacked a processor, what was recorded in detail, what it marked.

use std::collections::HashMap;

use rusqlite::Connection;

use super::{collect, for_each};
use crate::detail::Detail;
use crate::device_time::{BusySpan, DeviceRow, DeviceWork};
use crate::starvation::Starved;
use lapscope_data::model::{RankKey, Text};
use lapscope_data::schema::lacks;

/// When each rank's timestamps begin, on the clock of its host, nanoseconds.
pub(crate) fn epochs(connection: &Connection) -> rusqlite::Result<HashMap<RankKey, i64>> {
    let sql = "SELECT rank, epoch_ns FROM rank";
    collect(connection, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Where ranks could have run and had no processor, in no order.
pub(crate) fn starved(connection: &Connection) -> rusqlite::Result<Vec<(RankKey, Starved)>> {
    let sql = "SELECT rank, begin_ns, end_ns, wait_ns FROM starvation";
    collect(connection, sql, [], |row| {
        Ok((row.get(0)?, Starved { begin: row.get(1)?, end: row.get(2)?, wait: row.get(3)? }))
    })
}

/// When GPUs worked, in no order.
pub(crate) fn device_busy(connection: &Connection) -> rusqlite::Result<Vec<(RankKey, DeviceRow)>> {
    if lacks(connection, "main", "device_busy")? {
        return Ok(Vec::new());
    }
    let sql = "SELECT rank, device, work, begin_ns, end_ns, busy_ns FROM device_busy";
    collect(connection, sql, [], |row| {
        let work = DeviceWork::from_name(&row.get::<_, Text>(2)?.0);
        let span = BusySpan { begin: row.get(3)?, end: row.get(4)?, busy: row.get(5)? };
        Ok((row.get(0)?, (row.get(1)?, work, span)))
    })
}

/// What was recorded row by row of a long run, in the order of time.
pub(crate) fn details(connection: &Connection) -> rusqlite::Result<Vec<(RankKey, Detail)>> {
    let sql = "SELECT rank, slot, stage, begin_ns, end_ns, cut FROM detail ORDER BY rank, begin_ns";
    collect(connection, sql, [], |row| {
        let detail = Detail {
            slot: row.get(1)?,
            stage: row.get(2)?,
            begin: row.get(3)?,
            end: row.get(4)?,
            is_cut: row.get(5)?,
        };
        Ok((row.get(0)?, detail))
    })
}

/// A row of `mark`.
pub(crate) struct MarkRow {
    pub rank: RankKey,
    pub at: i64,
    pub level: i32,
    pub name: Option<String>,
}

/// Gives every mark to `take`, rank by rank in the order of time.
pub(crate) fn marks(
    connection: &Connection,
    mut take: impl FnMut(MarkRow),
) -> rusqlite::Result<()> {
    let sql = "SELECT rank, begin_ns, level, name FROM mark ORDER BY rank, begin_ns, rowid";
    for_each(connection, sql, [], |row| {
        take(MarkRow { rank: row.get(0)?, at: row.get(1)?, level: row.get(2)?, name: row.get(3)? });
        Ok(())
    })
}
