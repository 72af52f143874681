//! Which ranks did alike, which stand apart and by what, and how each number is spread over ranks: what can be said of ten
//! thousand ranks on one screen. A pure function of the rows of ranks, whatever their order.

mod groups;
mod levels;
mod measure;

use std::collections::BTreeSet;

use serde::Serialize;

use self::groups::Levels;
pub use self::groups::{AlikeGroup, Difference};
use self::measure::Compared;
pub use self::measure::{Measure, MeasureUnit};
use crate::overlap::groups::RankOverlap as OverlapRow;
use crate::totals::RankRow;
use lapscope_data::model::{Nanos, Rank};
use lapscope_trace::stats::{median, quantile};

/// Above so many ranks tables say how numbers are spread, not a line a rank.
pub const MOST_ROWS: usize = 32;

/// Times that differ by less than this fraction of the run time do not tell ranks apart.
const WORTH_TELLING: f64 = 0.02;
/// Counts and bytes that differ by less than this fraction of the median do not.
const MUCH_OF_A_COUNT: f64 = 0.1;
/// Ranks are alike when no time of theirs differs by more than this fraction of the run time, and no count by
/// [`MUCH_OF_A_COUNT`].
const NEARLY_ALIKE: f64 = 0.05;

/// What ranks have in common. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alike {
    pub verdict: Likeness,
    /// Ranks that were compared.
    pub ranks: usize,
    /// Nodes that they were on.
    pub hosts: usize,
    /// Median of their run times, MPI_Init to MPI_Finalize.
    pub run_ns: Nanos,
    /// The distribution of every measure that is not the same nothing on all ranks.
    pub distributions: Vec<Distribution>,
    /// The largest group first; then those that differ most from it first.
    pub groups: Vec<AlikeGroup>,
    /// Ranks that are in none of `groups`, as there are too many of these.
    pub ungrouped: usize,
}

/// What can be said of all ranks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// Fewer ranks than a spread can be told of.
    Few,
    /// They differ by next to nothing.
    Alike,
    /// They differ, and no rank stands apart.
    Spread,
    /// There are groups, of one rank or more.
    Groups,
    /// So many groups that these tell nothing.
    Different,
}

/// A measure over ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distribution {
    pub measure: Measure,
    pub min: i64,
    /// The first of those that have it.
    pub min_rank: Rank,
    pub quartile_1: i64,
    pub median: i64,
    pub quartile_3: i64,
    pub max: i64,
    pub max_rank: Rank,
    /// Ranks in parts of equal width from `min` to `max`; empty where these are the same.
    pub histogram: Vec<u64>,
}

impl Alike {
    /// By where time went, requests and bytes.
    pub fn of_totals(rows: &[RankRow]) -> Alike {
        let compared = |row| {
            let RankRow { rank, host, totals, .. }: &RankRow = row;
            let values = measure::of_totals(row);
            Compared { rank: *rank, host, run_ns: totals.run_ns, values }
        };
        Alike::compare(&Measure::OF_TOTALS, rows.iter().map(compared).collect())
    }

    /// By exposed time, its causes, requests and bytes.
    pub fn of_overlap(rows: &[OverlapRow]) -> Alike {
        let compared = |row| {
            let OverlapRow { rank, host, run_ns, .. }: &OverlapRow = row;
            Compared { rank: *rank, host, run_ns: *run_ns, values: measure::of_overlap(row) }
        };
        Alike::compare(&Measure::OF_OVERLAP, rows.iter().map(compared).collect())
    }

    fn compare(measures: &[Measure], mut ranks: Vec<Compared<'_>>) -> Alike {
        ranks.sort();
        let run_ns = median(ranks.iter().map(|it| it.run_ns.0 as f64).collect()).unwrap_or(0.0);
        let sorted: Vec<Vec<f64>> = (0..measures.len())
            .map(|at| {
                let mut values: Vec<f64> = ranks.iter().map(|it| it.values[at] as f64).collect();
                values.sort_unstable_by(f64::total_cmp);
                values
            })
            .collect();
        let levels: Vec<Levels> = measures
            .iter()
            .zip(&sorted)
            .map(|(&measure, sorted)| Levels::new(measure, sorted, least(measure, sorted, run_ns)))
            .collect();
        let distributions: Vec<Distribution> = (0..measures.len())
            .filter_map(|at| distribution(measures[at], at, &ranks, &sorted[at]))
            .collect();
        let mut alike = Alike {
            verdict: Likeness::Few,
            ranks: ranks.len(),
            hosts: ranks.iter().map(|it| it.host).collect::<BTreeSet<_>>().len(),
            run_ns: Nanos(run_ns as i64),
            distributions,
            groups: Vec::new(),
            ungrouped: 0,
        };
        if ranks.len() >= levels::FEWEST {
            alike.group(&levels, &ranks);
        }
        alike
    }

    fn group(&mut self, levels: &[Levels], ranks: &[Compared<'_>]) {
        match groups::find(levels, ranks, self.run_ns) {
            None => (self.verdict, self.ungrouped) = (Likeness::Different, ranks.len()),
            Some(groups) if groups.len() == 1 => {
                self.verdict = match self.distributions.iter().all(|it| it.is_narrow(self.run_ns)) {
                    true => Likeness::Alike,
                    false => Likeness::Spread,
                };
                self.groups = groups;
            }
            Some(mut groups) => {
                groups.truncate(groups::MOST);
                self.verdict = Likeness::Groups;
                self.ungrouped =
                    ranks.len() - groups.iter().map(|group| group.count).sum::<usize>();
                self.groups = groups;
            }
        }
    }
}

/// What differences are worth telling.
fn least(measure: Measure, sorted: &[f64], run_ns: f64) -> f64 {
    match measure.unit() {
        MeasureUnit::Nanoseconds => (WORTH_TELLING * run_ns).max(1.0),
        MeasureUnit::Requests => (MUCH_OF_A_COUNT * quantile(sorted, 0.5).unwrap_or(0.0)).max(10.0),
        MeasureUnit::Bytes => (MUCH_OF_A_COUNT * quantile(sorted, 0.5).unwrap_or(0.0)).max(1024.0),
    }
}

/// Parts of a histogram.
const PARTS: usize = 12;

fn distribution(
    measure: Measure,
    at: usize,
    ranks: &[Compared<'_>],
    sorted: &[f64],
) -> Option<Distribution> {
    let value = |rank: &&Compared<'_>| rank.values[at];
    let least = ranks.iter().min_by_key(value)?;
    let most = ranks.iter().rev().max_by_key(value)?;
    let (min, max) = (least.values[at], most.values[at]);
    let share = |share| quantile(sorted, share).map_or(0, |value| value.round() as i64);
    let mut histogram = Vec::new();
    if max > min {
        histogram.resize(PARTS, 0);
        let part = |value: f64| (value - min as f64) / (max as f64 - min as f64) * PARTS as f64;
        for &value in sorted {
            histogram[(part(value) as usize).min(PARTS - 1)] += 1;
        }
    }
    (max > 0).then(|| Distribution {
        measure,
        min,
        min_rank: least.rank,
        quartile_1: share(0.25),
        median: share(0.5),
        quartile_3: share(0.75),
        max,
        max_rank: most.rank,
        histogram,
    })
}

impl Distribution {
    fn is_narrow(&self, run_ns: Nanos) -> bool {
        let width = (self.max - self.min) as f64;
        match self.measure.unit() {
            MeasureUnit::Nanoseconds => width <= NEARLY_ALIKE * run_ns.0 as f64,
            _ => width <= MUCH_OF_A_COUNT * self.median as f64,
        }
    }
}

#[cfg(test)]
mod tests;
