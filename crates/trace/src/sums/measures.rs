//! What was measured of calls and requests besides their time, where it was asked for: CPU time and counters, summed by
//! place.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use rusqlite::Connection;

use crate::query::{self, CounterRow, SumSource};
use crate::stretch::TimeRange;
use lapscope_data::db::FileDefinitions;
use lapscope_data::model::{Nanos, RankKey};
use lapscope_data::places::{PlacesOfFile, SiteId};

/// An event that was counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counter {
    pub name: String,
    /// Empty: plain counts.
    pub unit: String,
}

/// What a sum is of. Counters are indices into the [`Counter`]s beside the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Quantity {
    /// Nanoseconds of the thread's CPU time in calls.
    User,
    System,
    /// Counted in calls.
    InCalls(usize),
    /// Counted outside of MPI in the windows of requests.
    InOverlapWindows(usize),
}

impl Quantity {
    /// With the counter that `renumber` gives for this one's.
    pub fn of_counter(self, renumber: impl Fn(usize) -> usize) -> Quantity {
        match self {
            Quantity::InCalls(counter) => Quantity::InCalls(renumber(counter)),
            Quantity::InOverlapWindows(counter) => Quantity::InOverlapWindows(renumber(counter)),
            other => other,
        }
    }
}

/// A sum over the calls or requests of a site. At the site of a post, what is of calls is of the requests' shares of
/// those that ended them: value / requests ended by that call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// Index of the rank.
    pub rank: usize,
    pub site: SiteId,
    pub quantity: Quantity,
    pub sum: i64,
    /// Rows that it is the sum of.
    pub rows: u64,
}

/// The measures of a file, or of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MeasureSums {
    pub counters: Vec<Counter>,
    pub sums: Vec<Measure>,
}

impl MeasureSums {
    /// Sums in the database, of all or of what begins in the windows of its ranks: nothing is read when nothing was measured.
    ///
    /// # Errors
    /// What SQLite says of a damaged file.
    pub fn read(
        connection: &Connection,
        definitions: &FileDefinitions,
        of_file: PlacesOfFile<'_>,
        windows: Option<Vec<TimeRange>>,
    ) -> rusqlite::Result<Self> {
        let windows: Option<Vec<(RankKey, Range<Nanos>)>> = windows.map(|windows| {
            let windows = windows.into_iter().map(|(begin, end)| begin..end);
            definitions.ranks.iter().map(|info| info.key).zip(windows).collect()
        });
        let found = MeasureSums::default();
        let mut reader = Reader { connection, definitions, of_file, windows, found };
        if query::has_cpu_time(connection)? {
            for (quantity, column) in
                [(Quantity::User, "c.user_ns"), (Quantity::System, "c.system_ns")]
            {
                reader.add(&SumSource::of_calls(column), &[], |_| quantity)?;
                reader.add(&SumSource::of_shares(column), &[], |_| quantity)?;
            }
        }
        let numbers = reader.read_counters()?;
        if !numbers.is_empty() {
            reader.add(&SumSource::of_call_counters(), &numbers, Quantity::InCalls)?;
            reader.add(&SumSource::of_counter_shares(), &numbers, Quantity::InCalls)?;
            reader.add(&SumSource::of_overlap_windows(), &numbers, Quantity::InOverlapWindows)?;
        }
        Ok(reader.found)
    }
}

struct Reader<'a> {
    connection: &'a Connection,
    definitions: &'a FileDefinitions,
    of_file: PlacesOfFile<'a>,
    /// For each rank of the file what counts; `None`: all of it.
    windows: Option<Vec<(RankKey, Range<Nanos>)>>,
    found: MeasureSums,
}

impl Reader<'_> {
    /// The counters that were counted: (rank, number, index into the found ones).
    fn read_counters(&mut self) -> rusqlite::Result<Vec<(RankKey, i64, usize)>> {
        let counters = &mut self.found.counters;
        let mut numbers = Vec::new();
        for CounterRow { rank, number, name, unit } in query::counters(self.connection)? {
            let counter = Counter { name, unit };
            let at = counters.iter().position(|known| *known == counter).unwrap_or_else(|| {
                counters.push(counter);
                counters.len() - 1
            });
            numbers.push((rank, number, at));
        }
        Ok(numbers)
    }

    /// Adds the sums by place of a source. `numbers` are the counters that it is of; empty: it is of none.
    fn add(
        &mut self,
        source: &SumSource,
        numbers: &[(RankKey, i64, usize)],
        quantity: impl Fn(usize) -> Quantity,
    ) -> rusqlite::Result<()> {
        source.read(self.connection, self.windows.as_deref(), |row| {
            let rank = self.definitions.ranks.iter().position(|info| info.key == row.rank);
            let counter = numbers
                .iter()
                .find(|(rank, number, _)| *rank == row.rank && Some(*number) == row.number);
            let site = self.of_file.site(row.call_id, row.call_path_id);
            let place = rank.zip(site).filter(|_| counter.is_some() || numbers.is_empty());
            // there is none in a damaged file
            if let Some((rank, site)) = place {
                self.found.sums.push(Measure {
                    rank,
                    site,
                    quantity: quantity(counter.map_or(0, |(_, _, at)| *at)),
                    sum: row.sum,
                    rows: row.rows,
                });
            }
        })
    }
}
