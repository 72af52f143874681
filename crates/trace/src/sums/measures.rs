//! What was measured of calls and requests besides their time, where it was asked for: CPU time and counters, summed by
//! place.

use serde::{Deserialize, Serialize};

use rusqlite::Connection;

use crate::stretch::TimeRange;
use lapscope_data::db::FileDefinitions;
use lapscope_data::model::{RankInfo, RankKey, Text};
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
        let found = MeasureSums::default();
        let mut reader = Reader { connection, definitions, of_file, windows, found };
        if reader.has_cpu_time()? {
            for (quantity, value) in
                [(Quantity::User, "c.user_ns"), (Quantity::System, "c.system_ns")]
            {
                reader.add(&SumSource::of_calls("call c", value), &[], |_| quantity)?;
                reader.add(&SumSource::of_shares("", value), &[], |_| quantity)?;
            }
        }
        let numbers = reader.read_counters()?;
        if !numbers.is_empty() {
            let of_calls = SumSource::of_calls(
                "call_counter k JOIN call c ON c.id = k.call_row_id",
                "k.value",
            );
            let of_shares =
                SumSource::of_shares("JOIN call_counter k ON k.call_row_id = c.id", "k.value");
            reader.add(&of_calls, &numbers, Quantity::InCalls)?;
            reader.add(&of_shares, &numbers, Quantity::InCalls)?;
            reader.add(&SumSource::of_overlap_windows(), &numbers, Quantity::InOverlapWindows)?;
        }
        Ok(reader.found)
    }
}

/// Where a sum comes from, in terms of SQL.
struct SumSource {
    tables: String,
    /// The table whose operation says where.
    place: &'static str,
    value: &'static str,
    sum: String,
    /// When it counts.
    moment: &'static str,
}

impl SumSource {
    fn of_calls(tables: &str, value: &'static str) -> SumSource {
        let (tables, sum) = (tables.to_owned(), format!("sum({value})"));
        SumSource { tables, place: "c", value, sum, moment: "c.begin_ns" }
    }

    fn of_shares(more: &str, value: &'static str) -> SumSource {
        SumSource {
            tables: format!("request r JOIN call c ON c.id = r.completion_id {more}"),
            place: "r",
            value,
            sum: format!("CAST(round(sum({value} * 1.0 / c.completed)) AS INTEGER)"),
            moment: "c.begin_ns",
        }
    }

    fn of_overlap_windows() -> SumSource {
        SumSource {
            tables: "request_counter k JOIN request r ON r.id = k.request_id
                     LEFT JOIN call c ON c.id = r.completion_id"
                .to_owned(),
            place: "r",
            value: "k.value",
            sum: "sum(k.value)".to_owned(),
            moment: "coalesce(c.begin_ns, r.post_begin_ns)",
        }
    }
}

struct Reader<'a> {
    connection: &'a Connection,
    definitions: &'a FileDefinitions,
    of_file: PlacesOfFile<'a>,
    /// For each rank of the file what counts; `None`: all of it.
    windows: Option<Vec<TimeRange>>,
    found: MeasureSums,
}

impl Reader<'_> {
    /// Asked of the options, so that nobody pays for looking through all calls.
    fn has_cpu_time(&self) -> rusqlite::Result<bool> {
        let sql = "SELECT count(*) FROM option WHERE name = 'LAPSCOPE_CPU_TIME' AND lower(value) IN ('on', '1', 'yes', 'true')";
        self.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|count| count > 0)
    }

    /// The counters that were counted: (rank, number, index into the found ones).
    fn read_counters(&mut self) -> rusqlite::Result<Vec<(RankKey, i64, usize)>> {
        let sql = "SELECT rank, number, name, unit FROM counter WHERE problem IS NULL ORDER BY rank, number";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut numbers = Vec::new();
        while let Some(row) = rows.next()? {
            let counter =
                Counter { name: row.get::<_, Text>(2)?.0, unit: row.get::<_, Text>(3)?.0 };
            let counters = &mut self.found.counters;
            let at = counters.iter().position(|known| *known == counter).unwrap_or_else(|| {
                counters.push(counter);
                counters.len() - 1
            });
            numbers.push((row.get(0)?, row.get(1)?, at));
        }
        Ok(numbers)
    }

    /// As SQL, what leaves of the rows of `o` those whose moment is in their rank's window: a table of windows, and a join with it.
    fn only_counted(&self, moment: &str) -> (String, String) {
        let Some(windows) = &self.windows else { return Default::default() };
        let of_rank = |(info, (begin, end)): (&RankInfo, &TimeRange)| {
            format!("({}, {}, {})", info.key.0, begin.0, end.0)
        };
        let all: Vec<String> = self.definitions.ranks.iter().zip(windows).map(of_rank).collect();
        let table = format!("WITH counts(rank, first, behind) AS (VALUES {})", all.join(", "));
        let join = format!(
            "JOIN counts w ON w.rank = o.rank AND {moment} >= w.first AND {moment} < w.behind"
        );
        (table, join)
    }

    /// Adds the sums by place of a source, where its value is known. `numbers` are the counters that it is of; empty: it is
    /// of none.
    fn add(
        &mut self,
        source: &SumSource,
        numbers: &[(RankKey, i64, usize)],
        quantity: impl Fn(usize) -> Quantity,
    ) -> rusqlite::Result<()> {
        let SumSource { tables, place, value, sum, moment } = source;
        let (windows, join) = self.only_counted(moment);
        let number = if numbers.is_empty() { "NULL" } else { "k.number" };
        let mut statement = self.connection.prepare(&format!(
            "{windows} SELECT o.rank, o.call_id, o.call_path_id, {number}, {sum}, count(*)
             FROM {tables} JOIN operation o ON o.id = {place}.operation_id {join}
             WHERE {value} IS NOT NULL GROUP BY 1, 2, 3, 4"
        ))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let key: RankKey = row.get(0)?;
            let rank = self.definitions.ranks.iter().position(|info| info.key == key);
            let number: Option<i64> = row.get(3)?;
            let counter = numbers
                .iter()
                .find(|(of_rank, of_number, _)| *of_rank == key && Some(*of_number) == number);
            let site = self.of_file.site(row.get(1)?, row.get(2)?);
            let place = rank.zip(site).filter(|_| counter.is_some() || numbers.is_empty());
            let Some((rank, site)) = place else {
                continue; // a damaged file
            };
            self.found.sums.push(Measure {
                rank,
                site,
                quantity: quantity(counter.map_or(0, |(_, _, at)| *at)),
                sum: row.get(4)?,
                rows: row.get::<_, i64>(5)? as u64,
            });
        }
        Ok(())
    }
}
