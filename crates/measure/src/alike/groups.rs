//! Ranks with the same levels in all measures are a group.
//!
//! A group has the same level in every measure. It is named by the time that differs most. Ranks of a node that differ
//! in the same direction are one group, though they differ in other measures, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::levels::cuts;
use super::measure::{Compared, Measure, MeasureUnit};
use lapscope_data::model::{Nanos, Rank};
use lapscope_trace::stats::median;

/// More groups are not told.
pub(super) const MOST: usize = 12;
/// With more groups than [`MOST`], of which the largest has not even this fraction of all ranks, groups tell nothing.
const TYPICAL: f64 = 1.0 / 3.0;
/// Of a time that differs nearly as much as another the one that comes first is told first: a rank that computes longer waits
/// shorter.
const NEARLY: f64 = 0.8;

/// Ranks that did alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlikeGroup {
    pub count: usize,
    /// First and last of each stretch of ranks.
    pub ranges: Vec<[Rank; 2]>,
    /// Nodes that these are on.
    pub hosts: Vec<String>,
    /// No other rank is on these nodes.
    pub whole_hosts: bool,
    /// By what it differs from the largest group, what differs most first; none for that group itself.
    pub differences: Vec<Difference>,
    #[serde(skip)]
    pub ranks: Vec<Rank>,
}

/// A measure that is on another level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub measure: Measure,
    /// Median of the group.
    pub value: i64,
    /// Median of the largest group.
    pub typical: i64,
}

/// Where a measure is cut.
pub(super) struct Levels {
    measure: Measure,
    /// The least value of each level but the lowest.
    from: Vec<f64>,
}

impl Levels {
    /// Takes values that rise.
    pub fn new(measure: Measure, sorted: &[f64], least: f64) -> Levels {
        let from = cuts(sorted, least).into_iter().map(|at| sorted[at]).collect();
        Levels { measure, from }
    }

    fn level(&self, value: i64) -> u8 {
        self.from.partition_point(|&from| from <= value as f64) as u8
    }
}

type Signature = Vec<u8>;

/// Groups of `ranks`, which are in order; `None` where they are too many to tell anything.
pub(super) fn find(
    levels: &[Levels],
    ranks: &[Compared<'_>],
    run_ns: Nanos,
) -> Option<Vec<AlikeGroup>> {
    let mut signatures: Vec<Signature> = ranks
        .iter()
        .map(|rank| rank.values.iter().zip(levels).map(|(&value, of)| of.level(value)).collect())
        .collect();
    let typical = typical(&signatures)?;
    join_on_hosts(&mut signatures, &typical, ranks);
    let mut members: BTreeMap<&Signature, Vec<usize>> = BTreeMap::new();
    for (place, signature) in signatures.iter().enumerate() {
        members.entry(signature).or_default().push(place);
    }
    let largest = members[&typical].len();
    if members.len() > MOST && (largest as f64) < TYPICAL * ranks.len() as f64 {
        return None;
    }
    let on_host = count_hosts(ranks);
    let medians = |places: &[usize], at: usize| {
        let values = places.iter().map(|&place| ranks[place].values[at] as f64);
        median(values.collect()).unwrap_or(0.0) as i64
    };
    let mut groups: Vec<AlikeGroup> = members
        .iter()
        .map(|(signature, places)| {
            let differs = |&at: &usize| signature[at] != typical[at];
            let differences = (0..levels.len()).filter(differs).map(|at| Difference {
                measure: levels[at].measure,
                value: medians(places, at),
                typical: medians(&members[&typical], at),
            });
            group(places, ranks, &on_host, ordered(differences.collect(), run_ns))
        })
        .collect();
    let weight = |group: &AlikeGroup| {
        group.differences.first().map_or(f64::INFINITY, |it| it.weight(run_ns))
    };
    groups.sort_by(|a, b| {
        let sizes = b.count.cmp(&a.count).then(a.ranks.cmp(&b.ranks));
        weight(b).total_cmp(&weight(a)).then(sizes)
    });
    Some(groups)
}

/// The most frequent; of equally frequent ones that of the first rank.
fn typical(signatures: &[Signature]) -> Option<Signature> {
    let mut counts: HashMap<&Signature, (usize, usize)> = HashMap::new();
    for (place, signature) in signatures.iter().enumerate() {
        counts.entry(signature).or_insert((0, usize::MAX - place)).0 += 1;
    }
    counts.into_iter().max_by_key(|(_, order)| *order).map(|(signature, _)| signature.clone())
}

fn count_hosts<'a>(ranks: &[Compared<'a>]) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    for rank in ranks {
        *counts.entry(rank.host).or_default() += 1;
    }
    counts
}

/// Ranks of a node that all differ in the same direction are one group, though they differ in other measures, too: what they
/// have in common is the node.
fn join_on_hosts(signatures: &mut [Signature], typical: &Signature, ranks: &[Compared<'_>]) {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, rank) in ranks.iter().enumerate() {
        places.entry(rank.host).or_default().push(place);
    }
    for on_host in
        places.values().filter(|on_host| on_host.len() > 1 && on_host.len() < ranks.len())
    {
        let all = |at: usize, is: fn(&u8, &u8) -> bool| {
            on_host.iter().all(|&place| is(&signatures[place][at], &typical[at]))
        };
        let in_common = (0..typical.len()).any(|at| all(at, u8::gt) || all(at, u8::lt));
        if !in_common {
            continue;
        }
        let joined: Signature = (0..typical.len())
            .map(|at| {
                let mut levels: Vec<u8> =
                    on_host.iter().map(|&place| signatures[place][at]).collect();
                levels.sort_unstable();
                levels[levels.len() / 2]
            })
            .collect();
        for &place in on_host {
            signatures[place].clone_from(&joined);
        }
    }
}

fn group(
    places: &[usize],
    ranks: &[Compared<'_>],
    on_host: &HashMap<&str, usize>,
    differences: Vec<Difference>,
) -> AlikeGroup {
    let members = || places.iter().map(|&place| &ranks[place]);
    let hosts: BTreeSet<&str> = members().map(|it| it.host).collect();
    let all: usize = hosts.iter().map(|host| on_host[host]).sum();
    let ranks: Vec<Rank> = members().map(|it| it.rank).collect();
    AlikeGroup {
        count: places.len(),
        ranges: ranges(&ranks),
        whole_hosts: all == places.len(),
        hosts: hosts.into_iter().map(str::to_owned).collect(),
        differences,
        ranks,
    }
}

fn ranges(ranks: &[Rank]) -> Vec<[Rank; 2]> {
    let mut ranges: Vec<[Rank; 2]> = Vec::new();
    for &rank in ranks {
        match ranges.last_mut() {
            Some([_, last]) if last.world == rank.world && rank.number - last.number <= 1 => {
                *last = rank;
            }
            _ => ranges.push([rank, rank]),
        }
    }
    ranges
}

/// Times first, that which differs most first; then counts likewise.
fn ordered(mut differences: Vec<Difference>, run_ns: Nanos) -> Vec<Difference> {
    differences.sort_by(|a, b| {
        let counts = a.is_time().cmp(&b.is_time()).reverse();
        counts.then(b.weight(run_ns).total_cmp(&a.weight(run_ns)))
    });
    let most = differences.first().filter(|it| it.is_time()).map(|it| it.weight(run_ns));
    let is_near = |it: &Difference| {
        it.is_time() && most.is_some_and(|most| it.weight(run_ns) >= NEARLY * most)
    };
    let near = differences.iter().enumerate().filter(|(_, it)| is_near(it));
    if let Some((first, _)) = near.min_by_key(|(_, it)| it.measure) {
        differences[..=first].rotate_right(1);
    }
    differences
}

impl Difference {
    fn is_time(&self) -> bool {
        self.measure.unit() == MeasureUnit::Nanoseconds
    }

    /// Of times the fraction of the run time that they differ by; of counts a part of the fraction of the larger.
    fn weight(&self, run_ns: Nanos) -> f64 {
        const OF_COUNTS: f64 = 0.05;
        let distance = (self.value - self.typical).abs() as f64;
        match self.is_time() {
            true => distance / run_ns.0.max(1) as f64,
            false => OF_COUNTS * distance / self.value.max(self.typical).max(1) as f64,
        }
    }
}
