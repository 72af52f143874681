//! How much moves while ranks compute: what `lapscope doctor --progress` measured, in its recorded run. The regions that
//! interposer/calibrate/progress.c marks say what lies in them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use lapscope_trace::{Mark, Trace};

/// What was posted before the computation. As in interposer/calibrate/progress.c, as `Computing` and `MovedBetween` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MovedKind {
    /// A message above every eager limit.
    Send,
    /// One below, as a control.
    SmallSend,
    /// MPI_Put into memory of the program's (MPI_Win_create), passive target.
    Put,
    /// Into memory that MPI allocated (MPI_Win_allocate).
    PutAllocated,
    Iallreduce,
    Ibcast,
}

/// Who computed between post and wait, while everybody else waited inside MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Computing {
    Nobody,
    /// Sender, origin, or rank 0 of a collective, which is the root.
    First,
    /// Receiver, target, or all ranks of a collective but rank 0.
    Second,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MovedBetween {
    Node,
    Network,
    /// All ranks.
    All,
}

/// The share of a transfer that moved while a rank computed for several times as long as the transfer takes alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MovedShare {
    pub posted: MovedKind,
    pub computing: Computing,
    pub between: MovedBetween,
    pub bytes: u64,
    /// 1 - wait / alone, within 0 and 1: the median, and the quartiles.
    pub moved: f64,
    pub moved_low: f64,
    pub moved_high: f64,
    /// The quickest transfer while everybody was inside MPI, nanoseconds: what disturbs one makes it longer.
    pub alone_ns: f64,
    pub rounds: u64,
}

impl MovedShare {
    /// The quartiles agree that it moved, or that it stood still; `None`: they do not.
    pub fn verdict(&self) -> Option<Moving> {
        /// Less than so much is what goes along with the request to send, more than the other all but the end.
        const LITTLE: f64 = 0.25;
        const MOST: f64 = 0.75;
        match (self.moved_low, self.moved_high) {
            (_, high) if high <= LITTLE => Some(Moving::StandsStill),
            (low, _) if low >= MOST => Some(Moving::Moves),
            (low, high) if low > LITTLE && high < MOST => Some(Moving::MovesInPart),
            _ => None,
        }
    }

    /// Numbers of a file that somebody else may have written.
    pub fn is_sound(&self) -> bool {
        let shares = [self.moved_low, self.moved, self.moved_high];
        shares.iter().all(|share| (0.0..=1.0).contains(share))
            && shares.windows(2).all(|pair| pair[0] <= pair[1])
            && self.alone_ns.is_finite()
            && self.alone_ns > 0.0
    }
}

/// Whether transfers make progress without the rank that computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moving {
    StandsStill,
    MovesInPart,
    Moves,
}

/// What a region is of: its name, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Timed {
    posted: MovedKind,
    between: MovedBetween,
    bytes: u64,
    computing: Computing,
    computed_ns: i64,
}

/// A region that lasts as long as marking and a wait for what is complete.
const NOTHING: &str = "moved nothing";

/// `moved send second node 4194304 3600`
fn parse(name: &str) -> Option<Timed> {
    let mut words = name.strip_prefix("moved ")?.split(' ');
    let posted = word(words.next()?)?;
    let computing = word(words.next()?)?;
    let between = word(words.next()?)?;
    let bytes = words.next()?.parse().ok()?;
    let computed_us: i64 = words.next()?.parse().ok()?;
    Some(Timed { posted, between, bytes, computing, computed_ns: computed_us.checked_mul(1_000)? })
}

/// An enumeration's member by the name that serde knows.
fn word<'w, T: Deserialize<'w>>(word: &'w str) -> Option<T> {
    T::deserialize(serde::de::value::BorrowedStrDeserializer::<serde::de::value::Error>::new(word))
        .ok()
}

/// Nothing of any run but that of `lapscope doctor --progress`.
pub fn moved_shares(trace: &Trace) -> Vec<MovedShare> {
    let regions = trace.ranks.iter().flat_map(|rank| regions(&rank.marks, &trace.mark_names));
    shares(regions)
}

/// Name and length of each; they are not nested.
fn regions<'t>(marks: &'t [Mark], names: &'t [String]) -> impl Iterator<Item = (&'t str, i64)> {
    marks.windows(2).filter_map(|pair| {
        let name = names.get(pair[0].name? as usize)?;
        (pair[0].level == 1 && pair[1].level == -1).then(|| (&**name, pair[1].at - pair[0].at))
    })
}

/// Waits are compared with no less: after a computation a wait for nothing takes some microseconds itself.
const LEAST_NS: f64 = 20_000.0;

fn shares<'t>(regions: impl Iterator<Item = (&'t str, i64)>) -> Vec<MovedShare> {
    let mut marking = Vec::new();
    let mut alone: BTreeMap<(MovedKind, MovedBetween, u64), Vec<f64>> = BTreeMap::new();
    let mut waits: BTreeMap<(MovedKind, MovedBetween, u64, Computing), Vec<f64>> = BTreeMap::new();
    for (name, ns) in regions {
        if name == NOTHING {
            marking.push(ns as f64);
            continue;
        }
        let Some(timed) = parse(name) else { continue };
        let Timed { posted, between, bytes, computing, computed_ns } = timed;
        // an origin is timed from when its target begins to compute
        let beside = if is_put(posted) { computed_ns } else { 0 };
        match computing {
            Computing::Nobody => {
                alone.entry((posted, between, bytes)).or_default().push(ns as f64);
            }
            _ => {
                let key = (posted, between, bytes, computing);
                waits.entry(key).or_default().push((ns - beside) as f64);
            }
        }
    }
    let marking = quartiles(&mut marking).map_or(0.0, |[_, median, _]| median);
    let share = |((posted, between, bytes, computing), mut waits): (_, Vec<f64>)| {
        let alone = alone.get(&(posted, between, bytes))?.iter().copied();
        let alone_ns = alone.fold(f64::INFINITY, f64::min) - marking;
        let [low, median, high] = quartiles(&mut waits)?;
        let compared_ns = alone_ns.max(LEAST_NS);
        let moved = |wait: f64| (1.0 - (wait - marking) / compared_ns).clamp(0.0, 1.0);
        let found = MovedShare {
            posted,
            computing,
            between,
            bytes,
            moved: moved(median),
            moved_low: moved(high),
            moved_high: moved(low),
            alone_ns,
            rounds: waits.len() as u64,
        };
        found.is_sound().then_some(found)
    };
    waits.into_iter().filter_map(share).collect()
}

pub fn is_put(posted: MovedKind) -> bool {
    matches!(posted, MovedKind::Put | MovedKind::PutAllocated)
}

fn quartiles(all: &mut [f64]) -> Option<[f64; 3]> {
    all.sort_unstable_by(f64::total_cmp);
    let at = |quarter: usize| all.get(all.len().checked_sub(1)? * quarter / 4).copied();
    Some([at(1)?, at(2)?, at(3)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(regions: &[(&str, i64)]) -> Vec<MovedShare> {
        shares(regions.iter().copied())
    }

    /// Marking takes 10, alone 100,000: of waits of 100,000 and 0 nothing and all had moved.
    #[test]
    fn what_is_not_waited_for_has_moved() {
        let found = of(&[
            (NOTHING, 10),
            ("moved send nobody node 4096 0", 900_010),
            ("moved send nobody node 4096 3", 100_010),
            ("moved send first node 4096 3", 10),
            ("moved send second node 4096 3", 100_010),
            ("moved send both node 4096 3", 50_010),
            ("moved send both node 8192 3", 50_010),
            ("the program's own", 5),
        ]);
        let shares: Vec<_> = found.iter().map(|it| (it.computing, it.moved)).collect();
        let expected = [(Computing::First, 1.0), (Computing::Second, 0.0), (Computing::Both, 0.5)];
        assert_eq!(shares, expected);
        let verdicts: Vec<_> = found.iter().map(|it| it.verdict().unwrap()).collect();
        assert_eq!(verdicts, [Moving::Moves, Moving::StandsStill, Moving::MovesInPart]);
        assert_eq!((found[0].alone_ns, found[0].rounds), (100_000.0, 1));
    }

    /// An origin waits through the computation of its target where nothing moves meanwhile, and not at all where all does.
    #[test]
    fn of_a_put_the_computation_of_the_target_is_no_wait() {
        let found = of(&[
            ("moved put nobody node 4096 3", 100_000),
            ("moved put second node 4096 3", 103_000),
            ("moved put_allocated nobody node 4096 3", 100_000),
            ("moved put_allocated second node 4096 3", 3_000),
        ]);
        assert_eq!([found[0].moved, found[1].moved], [0.0, 1.0]);
    }

    #[test]
    fn rounds_that_disagree_give_no_verdict() {
        let mut rounds = vec![("moved ibcast nobody all 8 3", 100_000)];
        rounds.extend([0, 0, 100_000, 100_000].map(|ns| ("moved ibcast second all 8 3", ns)));
        let found = of(&rounds);
        assert_eq!((found[0].moved_low, found[0].moved_high), (0.0, 1.0));
        assert_eq!(found[0].verdict(), None);
    }
}
