//! Sentences that follow from the numbers, each with the numbers it follows from.

use std::collections::BTreeMap;

use serde::Serialize;

use lapscope_data::model::{Category, Nanos, Rank};
use lapscope_measure::totals::{min_mean_max, RankRow, Totals};
use lapscope_trace::sums::combine::RunSums;

/// Below this fraction of the run time nothing is said: it would not pay to act on it.
const WORTH_SAYING: f64 = 0.01;

/// What the numbers mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Insight {
    /// Time in completing calls, and how much computation their overlap windows held: the bound on possible overlap.
    ExposedCommunication {
        exposed_ns: Nanos,
        completing_calls: u64,
        possible_overlap_ns: Nanos,
        in_detail: bool,
    },
    /// Calls that make requests are supposed to return at once, and here they did not.
    ExpensivePosting { posting_ns: Nanos, requests: u64, mean_ns: Nanos },
    /// Calls that block: nothing is computed meanwhile.
    BlockingCalls { blocking_ns: Nanos, call: String, call_ns: Nanos },
    /// One rank is in collectives for a much shorter time than the others: it arrives last.
    UnevenCollectives { rank: Rank, rank_ns: Nanos, mean_ns: Nanos },
    /// Unsuccessful tests.
    UnsuccessfulTests { unsuccessful_test_ns: Nanos, unsuccessful_tests: u64 },
    /// Nothing to win here.
    LittleMpi { mpi_share: f64 },
}

/// What stands out in the sums of a run.
pub fn find_insights(run: &RunSums, totals: &Totals, ranks: &[RankRow]) -> Vec<Insight> {
    let is_worth = |time: Nanos| time.share_of(totals.run_ns) >= WORTH_SAYING;
    let mut insights = Vec::new();
    if totals.run_ns.0 > 0 && !is_worth(totals.mpi_ns) {
        return vec![Insight::LittleMpi { mpi_share: totals.mpi_share }];
    }
    if is_worth(totals.exposed_ns) {
        insights.push(Insight::ExposedCommunication {
            exposed_ns: totals.exposed_ns,
            completing_calls: totals.completing_calls,
            possible_overlap_ns: totals.possible_overlap_ns,
            in_detail: !run.is_summarized(),
        });
    }
    if let Some(mean_ns) =
        totals.posting_ns.mean(totals.requests).filter(|_| is_worth(totals.posting_ns))
    {
        insights.push(Insight::ExpensivePosting {
            posting_ns: totals.posting_ns,
            requests: totals.requests,
            mean_ns,
        });
    }
    insights.extend(blocking_calls(run, totals).filter(|_| is_worth(totals.blocking_ns)));
    insights.extend(uneven_collectives(run, ranks).filter(|_| is_worth(totals.collective_ns)));
    if is_worth(totals.unsuccessful_test_ns) {
        insights.push(Insight::UnsuccessfulTests {
            unsuccessful_test_ns: totals.unsuccessful_test_ns,
            unsuccessful_tests: totals.unsuccessful_tests,
        });
    }
    insights
}

/// Names the function that most of the time in blocking point-to-point calls went into.
fn blocking_calls(run: &RunSums, totals: &Totals) -> Option<Insight> {
    let mut times: BTreeMap<&str, Nanos> = BTreeMap::new();
    for entry in &run.entries {
        if run.category(entry) == Category::BlockingPointToPoint {
            *times.entry(&run.places.call(entry.site).name).or_default() += entry.cell.inside;
        }
    }
    let (call, call_ns) = times.into_iter().max_by_key(|(_, time)| *time)?;
    Some(Insight::BlockingCalls { blocking_ns: totals.blocking_ns, call: call.to_owned(), call_ns })
}

/// Names the rank that is in collectives for less than half of the mean time, if there is one among several.
fn uneven_collectives(run: &RunSums, ranks: &[RankRow]) -> Option<Insight> {
    // Ranks that take part in no collective at all (servers, I/O ranks) say nothing about who is late.
    let mut takes_part = vec![false; ranks.len()];
    for entry in run.entries.iter().filter(|entry| entry.cell.count > 0) {
        takes_part[entry.rank] |= run.category(entry) == Category::Collective;
    }
    // Ranks of different worlds are in different collectives.
    let is_one_world = ranks.iter().all(|row| row.rank.world == ranks[0].rank.world);
    if ranks.len() < 2 || !is_one_world || takes_part.contains(&false) {
        return None;
    }
    let spread = min_mean_max(ranks, |row| row.totals.collective_ns.0 as f64);
    (spread.min < 0.5 * spread.mean).then_some(Insight::UnevenCollectives {
        rank: spread.min_rank,
        rank_ns: Nanos(spread.min as i64),
        mean_ns: Nanos(spread.mean as i64),
    })
}
