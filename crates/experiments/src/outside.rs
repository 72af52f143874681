//! What lapscope recorded of a run, message tag by message tag.
//!
//! Reference times are those of the recorded run alone. The programs compute a little in their warm-ups, which
//! therefore are no samples.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::results::Spread;
use lapscope_advise::thresholds_in_words;
use lapscope_data::db::{list_files, Database};
use lapscope_measure::overlap::request::Achieved;
use lapscope_measure::overlap::witness::Witness;
use lapscope_measure::overlap::{EagerLimits, Measuring};
use lapscope_measure::reference::Reference;
use lapscope_measure::thresholds::Thresholds;
use lapscope_report::cvars;
use lapscope_trace::query::{split_collectives, CollectiveTimes};
use lapscope_trace::stats::quantile;
use lapscope_trace::{Half, Trace};

/// A recorded run in memory.
pub struct RecordedRun {
    pub databases: Vec<PathBuf>,
    pub trace: Trace,
    pub thresholds: Thresholds,
    /// (rank, tag): endpoints of that rank, in the order of their posts.
    by_tag: BTreeMap<(usize, i64), Vec<usize>>,
    /// (rank, tag): what was overlapped of its requests.
    achieved: HashMap<(usize, i64), Vec<Achieved>>,
}

#[derive(Default)]
struct ByTag(HashMap<(usize, i64), Vec<Achieved>>);

impl Witness for ByTag {
    fn request(&mut self, half: &Half<'_>, achieved: &Achieved) {
        if let Some(tag) = half.operation.tag {
            self.0.entry((half.rank, tag)).or_default().push(*achieved);
        }
    }
}

impl RecordedRun {
    /// # Errors
    /// A database cannot be read, or there is none.
    pub fn read(directory: &Path) -> anyhow::Result<RecordedRun> {
        let databases = list_files(directory)?.databases;
        let (trace, failed) = Trace::read(&databases, &|_| ())?;
        if let Some(error) = failed.into_iter().next() {
            return Err(error.into());
        }
        let (declared, _) = cvars::declared(&databases)?;
        // times that other runs took are no part of what this one shows
        let reference = Reference::of_run(&trace);
        let mut thresholds = Thresholds::find(&trace, &reference, &[], declared);
        thresholds_in_words::fill(&mut thresholds, &trace);
        let eager = EagerLimits::from_thresholds(&thresholds);
        let measuring = Measuring {
            trace: &trace,
            reference: &reference,
            eager,
            ranks: &[],
            progress: &|_| (),
        };
        let (_, found) = measuring.tell(|_| ByTag::default());
        let achieved = found.into_iter().flat_map(|rank| rank.0).collect();
        let by_tag = by_tag(&trace);
        Ok(RecordedRun { databases, trace, thresholds, by_tag, achieved })
    }

    /// Requests and blocking calls of a rank with that tag, in the order in which they were posted.
    pub fn halves(&self, rank: usize, tag: i64) -> Vec<Half<'_>> {
        let indices = self.by_tag.get(&(rank, tag)).map_or(&[][..], Vec::as_slice);
        indices.iter().map(|&index| self.trace.half(rank, index)).collect()
    }

    /// Percent of its transfer that each request hid, where lapscope has a reference time for it.
    pub fn hidden_percent(&self, rank: usize, tag: i64) -> Option<Spread> {
        let requests = self.achieved.get(&(rank, tag))?;
        let share = |achieved: &Achieved| {
            let middle = (achieved.low + achieved.high) as f64 / 2.0;
            (achieved.transfer > 0).then(|| 100.0 * middle / achieved.transfer as f64)
        };
        spread(requests.iter().filter_map(share).collect())
    }

    /// Blocking collectives on communicators that MPI_Comm_split made, rank by rank in the order of their calls.
    ///
    /// # Errors
    /// A database cannot be read.
    pub fn collectives(&self) -> anyhow::Result<Collectives> {
        let mut found = Collectives::new();
        for path in &self.databases {
            let database = Database::open(path)?;
            read_collectives(&database, &mut found).with_context(|| path.display().to_string())?;
        }
        Ok(found)
    }
}

/// Collectives that a row of a table is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectiveKey {
    pub ranks: u32,
    /// MPI_Allreduce, …
    pub call: String,
    pub bytes: u64,
}

/// Calls, rank by rank in the order in which they were made.
pub type Collectives = BTreeMap<CollectiveKey, Vec<Vec<CpuTimes>>>;

/// Processor time of one call on one rank, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    pub wall: i64,
    pub user: i64,
    pub system: i64,
}

fn read_collectives(database: &Database, found: &mut Collectives) -> rusqlite::Result<()> {
    let mut own: BTreeMap<CollectiveKey, Vec<CpuTimes>> = BTreeMap::new();
    for row in split_collectives(&database.connection)? {
        let CollectiveTimes { ranks, call, bytes, wall, user, system } = row;
        let times = CpuTimes { wall, user, system };
        own.entry(CollectiveKey { ranks, call, bytes }).or_default().push(times);
    }
    for (key, times) in own {
        found.entry(key).or_default().push(times);
    }
    Ok(())
}

fn by_tag(trace: &Trace) -> BTreeMap<(usize, i64), Vec<usize>> {
    let mut places: BTreeMap<(usize, i64), Vec<usize>> = BTreeMap::new();
    for rank in 0..trace.ranks.len() {
        for half in trace.halves(rank) {
            if let Some(tag) = half.operation.tag {
                places.entry((rank, tag)).or_default().push(half.index);
            }
        }
    }
    for ((rank, _), indices) in &mut places {
        indices.sort_by_key(|&index| trace.ranks[*rank].endpoints[index].begin);
    }
    places
}

/// Median and quartiles, as the experiments have them; `None` of nothing.
pub fn spread(mut values: Vec<f64>) -> Option<Spread> {
    values.sort_by(f64::total_cmp);
    Some(Spread {
        median: quantile(&values, 0.5)?,
        low: quantile(&values, 0.25),
        high: quantile(&values, 0.75),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_between_values() {
        assert_eq!(spread(vec![]), None);
        let one = Spread { median: 3.0, low: Some(3.0), high: Some(3.0) };
        assert_eq!(spread(vec![3.0]), Some(one));
        let four = Spread { median: 2.5, low: Some(1.75), high: Some(3.25) };
        assert_eq!(spread(vec![4.0, 1.0, 3.0, 2.0]), Some(four));
    }
}
