//! What this crate, and those above it, ask a file of a run in SQL: rows as values. What they mean is for those who ask.

mod communicators;
mod injection;
mod measures;
mod operations;
mod ranks;
mod tallies;
mod watches;

use rusqlite::{Connection, Params, Row};

pub(crate) use communicators::{communicators, CommunicatorRow};
pub(crate) use injection::{injection_budget, injection_sums, injectors};
pub(crate) use measures::{counters, has_cpu_time, CounterRow, SumSource};
pub(crate) use operations::{
    collectives, left_out, operation_sites, operations, peers, request_sites, OperationRow,
    OperationSite,
};
pub use operations::{posts, split_collectives, CollectiveTimes, PostRow, PostSelection};
pub(crate) use ranks::{details, device_busy, epochs, marks, starved};
pub(crate) use tallies::vain_probes;
pub(crate) use watches::watched_words;

/// Gives every row of a query to `take`.
fn for_each(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}

/// All rows of a query.
fn collect<T, All: FromIterator<T>>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<All> {
    connection.prepare_cached(sql)?.query_map(parameters, read)?.collect()
}
