//! Whether ranks take unequally long for the same work, and which: by visits that all of them make, the k-th of each rank held against
//! the k-th of the others.
//!
//! A visit is uneven where the rank that takes longest takes a quarter longer than the others in the mean. In uneven visits the ranks
//! fall into two groups, such that their times differ least within them; where the longest is nearly always of the slower group, that
//! is who has more to do, else it is one rank or another.

use serde::Serialize;

use lapscope_data::model::Nanos;

/// Who takes longest, visit by visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnevenPattern {
    /// The same ranks in most visits.
    Always,
    /// The same ranks, in some of the visits.
    NowAndThen,
    /// One or another.
    ByTurns,
}

/// How unequally long ranks take for the same work.
#[derive(Debug, Clone, PartialEq)]
pub struct Unevenness {
    pub pattern: UnevenPattern,
    /// Places of the ranks that take longest; by turns, of that which does so most often.
    pub slow: Vec<usize>,
    /// Of each rank.
    pub visits: u64,
    pub uneven_visits: u64,
    /// Of uneven visits those in which one of `slow` took longest, as a share.
    pub same: f64,
    /// In uneven visits: what `slow` takes, by turns what the longest takes, and what the others do; means.
    pub slow_ns: Nanos,
    pub others_ns: Nanos,
}

/// An uneven visit, as whose longest takes so many times as long as the others.
const UNEVEN: f64 = 1.25;

impl Unevenness {
    /// `times`: by rank, and visit; nanoseconds. `None`: ranks take equally long, or their visits do not line up.
    pub fn find(times: &[Vec<i64>]) -> Option<Unevenness> {
        /// From this part of the visits on they are most of them.
        const MOST: f64 = 0.75;
        /// So much of the uneven visits has its longest among the same ranks, which take so many times as long as the others.
        const SAME: f64 = 0.9;
        const SLOWER: f64 = 1.2;
        let uneven = UnevenVisits::gather(times)?;
        let count = uneven.count as f64;
        let groups = split(&uneven.sums);
        let of_slow: u64 = groups.slow.iter().map(|&rank| uneven.longest[rank]).sum();
        let is_same = of_slow as f64 >= SAME * count && groups.means[0] >= SLOWER * groups.means[1];
        let all = times[0].len() as u64;
        let mean = |sum: f64| Nanos((sum / count).round() as i64);
        let found = Unevenness {
            pattern: UnevenPattern::Always,
            slow: groups.slow,
            visits: all,
            uneven_visits: uneven.count,
            same: of_slow as f64 / count,
            slow_ns: mean(groups.means[0]),
            others_ns: mean(groups.means[1]),
        };
        if !is_same {
            let often = (0..times.len()).rev().max_by_key(|&rank| uneven.longest[rank])?;
            return Some(Unevenness {
                pattern: UnevenPattern::ByTurns,
                slow: vec![often],
                same: uneven.longest[often] as f64 / count,
                slow_ns: mean(uneven.of_longest),
                others_ns: mean(uneven.of_others),
                ..found
            });
        }
        let is_most = count >= MOST * all as f64;
        let pattern = if is_most { UnevenPattern::Always } else { UnevenPattern::NowAndThen };
        Some(Unevenness { pattern, ..found })
    }

    /// Whether the same is said of who it is and how often.
    pub fn agrees(&self, other: &Unevenness) -> bool {
        self.pattern == other.pattern
            && (self.pattern == UnevenPattern::ByTurns || self.slow == other.slow)
    }

    /// How many times as long as the others.
    pub fn factor(&self) -> f64 {
        self.slow_ns.0 as f64 / self.others_ns.0.max(1) as f64
    }
}

/// Uneven visits, summed up.
struct UnevenVisits {
    count: u64,
    /// By rank, nanoseconds; and how often it took longest.
    sums: Vec<f64>,
    longest: Vec<u64>,
    /// Of the longest of each, and of the mean of the others.
    of_longest: f64,
    of_others: f64,
}

impl UnevenVisits {
    /// `None`: there are none, or they have less of what is uneven than all the others.
    fn gather(times: &[Vec<i64>]) -> Option<UnevenVisits> {
        let (ranks, visits) = (times.len(), times.first()?.len());
        if ranks < 2 || times.iter().any(|of_rank| of_rank.len() != visits) {
            return None;
        }
        let mut found = UnevenVisits {
            count: 0,
            sums: vec![0.0; ranks],
            longest: vec![0; ranks],
            of_longest: 0.0,
            of_others: 0.0,
        };
        let mut excess = 0.0;
        for visit in 0..visits {
            let own = || times.iter().map(|of_rank| of_rank[visit]);
            let (last, longest) = own().enumerate().rev().max_by_key(|&(_, ns)| ns)?;
            let all: f64 = own().map(|ns| ns as f64).sum();
            let longest = longest as f64;
            let others = (all - longest) / (ranks - 1) as f64;
            excess += longest - others;
            if longest > UNEVEN * others {
                found.count += 1;
                found.longest[last] += 1;
                found.of_longest += longest;
                found.of_others += others;
                found.sums.iter_mut().zip(own()).for_each(|(sum, ns)| *sum += ns as f64);
            }
        }
        let is_most = 2.0 * (found.of_longest - found.of_others) >= excess;
        (found.count > 0 && is_most).then_some(found)
    }
}

/// Ranks in two groups, the slower ones first.
struct SpeedGroups {
    slow: Vec<usize>,
    means: [f64; 2],
}

/// The two groups whose means differ most for their sizes: within them times differ least.
fn split(sums: &[f64]) -> SpeedGroups {
    let mut order: Vec<usize> = (0..sums.len()).collect();
    order.sort_by(|&a, &b| sums[b].total_cmp(&sums[a]).then(a.cmp(&b)));
    let all: f64 = sums.iter().sum();
    let mut before = 0.0;
    let mut best = (f64::MIN, 1, [0.0; 2]);
    for count in 1..order.len() {
        before += sums[order[count - 1]];
        let rest = order.len() - count;
        let means = [before / count as f64, (all - before) / rest as f64];
        let between = (count * rest) as f64 * (means[0] - means[1]).powi(2);
        if between > best.0 {
            best = (between, count, means);
        }
    }
    let mut slow = order[..best.1].to_vec();
    slow.sort_unstable();
    SpeedGroups { slow, means: best.2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UnevenPattern::{Always, ByTurns, NowAndThen};

    /// 100 visits of each of four ranks.
    fn find(time: impl Fn(usize, usize) -> i64) -> Option<Unevenness> {
        let of_rank = |rank| (0..100).map(|visit| time(rank, visit)).collect();
        Unevenness::find(&(0..4).map(of_rank).collect::<Vec<_>>())
    }

    /// Within 3 % of a thousand nanoseconds.
    fn noise(rank: usize, visit: usize) -> i64 {
        970 + ((rank * 7 + visit * 13) % 61) as i64
    }

    #[test]
    fn equal_work_is_not_uneven() {
        assert_eq!(find(noise), None);
        assert_eq!(find(|_, _| 0), None);
        assert_eq!(Unevenness::find(&[vec![1, 2], vec![9]]), None, "visits do not line up");
        assert_eq!(Unevenness::find(&[vec![1, 2]]), None);
    }

    #[test]
    fn the_slow_ones_are_found_and_how_often_they_are() {
        let found = find(|rank, visit| noise(rank, visit) * if rank == 2 { 2 } else { 1 }).unwrap();
        assert_eq!((found.pattern, found.slow.as_slice()), (Always, [2].as_slice()));
        assert!((found.factor() - 2.0).abs() < 0.05 && found.uneven_visits == 100, "{found:?}");
        let found = find(|rank, visit| noise(rank, visit) * if rank < 2 { 3 } else { 1 }).unwrap();
        assert_eq!((found.pattern, found.slow.as_slice()), (Always, [0, 1].as_slice()));
        let slow = |rank, visit| if rank == 3 && visit % 10 == 4 { 5 } else { 1 };
        let found = find(|rank, visit| noise(rank, visit) * slow(rank, visit)).unwrap();
        assert_eq!((found.pattern, found.slow.as_slice()), (NowAndThen, [3].as_slice()));
        assert!((found.factor() - 5.0).abs() < 0.3 && found.uneven_visits == 10, "{found:?}");
    }

    #[test]
    fn turns_are_told_from_one_slow_rank() {
        let slow = |rank, visit| if visit % 4 == rank { 2 } else { 1 };
        let found = find(|rank, visit| noise(rank, visit) * slow(rank, visit)).unwrap();
        assert_eq!((found.pattern, found.same, found.uneven_visits), (ByTurns, 0.25, 100));
        assert!((found.factor() - 2.0).abs() < 0.1, "{found:?}");
    }
}
