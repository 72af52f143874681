//! Ranks in an order, and many ranks as few lines.
//!
//! Ranks are told apart by who waits least: calls a second are alike in a program whose ranks wait for each other,
//! whoever is slow.

use super::document::RankPace;
use lapscope_data::model::{Nanos, Rank};

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RankOrder {
    #[default]
    Rank,
    /// The others wait for those that wait least.
    LeastExposed,
    /// Whose last call has ended longest ago.
    Quiet,
    FewestCalls,
}

impl RankOrder {
    pub fn next(self) -> RankOrder {
        match self {
            RankOrder::Rank => RankOrder::LeastExposed,
            RankOrder::LeastExposed => RankOrder::Quiet,
            RankOrder::Quiet => RankOrder::FewestCalls,
            RankOrder::FewestCalls => RankOrder::Rank,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            RankOrder::Rank => "rank",
            RankOrder::LeastExposed => "least exposed",
            RankOrder::Quiet => "quiet",
            RankOrder::FewestCalls => "fewest calls",
        }
    }

    pub fn sort(self, ranks: &mut [&RankPace]) {
        match self {
            RankOrder::Rank => ranks.sort_by_key(|rank| rank.rank),
            RankOrder::LeastExposed => {
                ranks.sort_by(|a, b| a.pace.exposed_share.total_cmp(&b.pace.exposed_share));
            }
            RankOrder::Quiet => ranks.sort_by_key(|rank| std::cmp::Reverse(rank.quiet_ns)),
            RankOrder::FewestCalls => {
                ranks.sort_by(|a, b| a.pace.calls_per_s.total_cmp(&b.pace.calls_per_s));
            }
        }
    }
}

/// Ranks that follow each other.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveBin {
    pub first: Rank,
    pub last: Rank,
    pub count: usize,
    /// That have ended.
    pub over: usize,
    /// Means.
    pub calls_per_s: f64,
    pub exposed_share: f64,
    pub least_exposed: f64,
    pub most_exposed: f64,
    /// The rank whose last call has ended longest ago, and when; `None`: all have ended.
    pub quietest: Option<(Rank, Nanos)>,
}

/// `ranks`, in the order of their numbers, as at most `most` bins, all but the last of the same size: one, two or five times
/// a power of ten, as such limits are easily read.
pub fn bins(ranks: &[RankPace], most: usize) -> Vec<LiveBin> {
    let mut sizes = (0..).flat_map(|power| [1, 2, 5].map(|times| times * 10usize.pow(power)));
    let size = sizes.find(|size| ranks.len().div_ceil(*size) <= most.max(1)).unwrap_or(ranks.len());
    ranks.chunks(size.max(1)).map(bin).collect()
}

fn bin(ranks: &[RankPace]) -> LiveBin {
    let mean = |of: fn(&RankPace) -> f64| ranks.iter().map(of).sum::<f64>() / ranks.len() as f64;
    let exposed = |rank: &RankPace| rank.pace.exposed_share;
    let is_left = |rank: &&RankPace| !rank.condition.is_over();
    let quietest = ranks.iter().filter(is_left).max_by_key(|rank| rank.quiet_ns);
    LiveBin {
        first: ranks[0].rank,
        last: ranks[ranks.len() - 1].rank,
        count: ranks.len(),
        over: ranks.iter().filter(|rank| !is_left(rank)).count(),
        calls_per_s: mean(|rank| rank.pace.calls_per_s),
        exposed_share: mean(|rank| rank.pace.exposed_share),
        least_exposed: ranks.iter().map(exposed).fold(f64::INFINITY, f64::min),
        most_exposed: ranks.iter().map(exposed).fold(0.0, f64::max),
        quietest: quietest.map(|rank| (rank.rank, rank.quiet_ns)),
    }
}
