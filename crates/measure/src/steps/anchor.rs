//! Looks for what begins each step in the order of a rank's calls: a place that is visited once a step.
//!
//! Steps are found in what a rank does, not in when: a step that is missed or counted twice shifts all others.
//!
//! - A candidate is an MPI call with its call path, or a function on that path, whose visits are runs of calls with
//!   nothing else in between. Paths tell a loop from its warm-up that calls the same function.
//! - It qualifies if other places are visited either in nearly all segments between its visits or in few of them, and
//!   if it is most of the run. So LAMMPS's steps are counted by the forces that are sent back in each, though every
//!   tenth sends atoms in place of positions.
//! - Computation is what is looked at, since time inside MPI depends on others, and noise is mostly there.
//! - Where what is rare has about a step's computation on both sides, it may stand for a step that the candidate does
//!   not see. Then there are no steps, rather than nine tenths of them.
//! - Of those that qualify the one that is visited most often is taken: an outer loop qualifies, too.

use rustc_hash::FxHashMap;

use super::events::{Events, Path, Tree, NOBODY};
use super::visits::{bursts, counts_between, APART};
use serde::{Deserialize, Serialize};

/// A place whose visits begin steps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Anchor {
    pub path: Path,
    /// Only those of its visits count that begin a burst.
    pub is_burst: bool,
}

/// With fewer steps nothing is known.
pub(super) const FEWEST: usize = 5;
/// A place that is visited in at most the first part of steps is rare, and one in at least the second belongs to each: of what
/// lies between, steps are no steps.
const RARE: f64 = 0.25;
const USUAL: f64 = 0.75;
/// At most this part of steps has something rare.
const MOST_ARE_USUAL: f64 = 0.5;
/// Steps are at least this part of the time, or of the calls.
const MOST: f64 = 0.5;
const SOME: f64 = 0.1;
/// Rare segments that are so many times as long, and so much of the time, are what an outer loop does.
const LONG: i64 = 5;
const MUCH: f64 = 0.4;
/// Part of a typical step's computation in one go.
const AS_MUCH: f64 = 0.6;
/// Of segments in which the same is rare at least this part is as long as two steps where that takes the place of a step.
const MOST_DOUBLE: f64 = 0.7;
/// Between visits of a loop in a step so many times less is computed than between steps.
const CLOSE: i64 = 4;
/// What holds for nearly all of something.
const NEARLY_ALL: f64 = 0.9;
/// Of a place that is visited for several neighbours in turn none has more of the visits.
const ONE_OF_SEVERAL: f64 = 0.6;
/// Events of a rank that are looked at.
const MOST_EVENTS: usize = 400_000;

/// An anchor that qualifies on a rank.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub anchor: Anchor,
    pub visits: usize,
    /// The place of its first visit in the rank's events.
    first: u32,
    /// At times as much is done from one visit to the next as in two steps: it may miss some.
    may_miss: bool,
}

/// Every anchor that qualifies on a rank; `events` may be cut.
pub(super) fn candidates(events: &mut Events) -> Vec<Candidate> {
    events.list.truncate(MOST_EVENTS);
    let found = AnchorVisits::find(events);
    (1..events.tree.len() as u32).filter_map(|node| found.candidate(node)).collect()
}

/// Of candidates on several ranks the one that most of these have, then that is visited most often; `None` where fewer than half
/// of them agree. Candidates that differ by little, as one that a program also calls in front of its loop, are taken to mean the
/// same steps: as many as most of them say.
pub(super) fn choose(ranks: &[Vec<Candidate>]) -> Option<Anchor> {
    let mut by_anchor: FxHashMap<&Anchor, Vec<&Candidate>> = FxHashMap::default();
    for candidate in ranks.iter().flatten() {
        by_anchor.entry(&candidate.anchor).or_default().push(candidate);
    }
    let agreed = by_anchor.into_values().filter_map(|of| {
        let (visits, count) = most_common(of.iter().map(|it| it.visits))?;
        let mut same = of.iter().filter(|it| it.visits == visits);
        let may_miss = same.clone().filter(|it| it.may_miss).count() * 2 > count;
        let first = same.next()?;
        (count * 2 > ranks.len()).then(|| Candidate { may_miss, ..(*first).clone() })
    });
    let agreed: Vec<Candidate> = agreed.collect();
    let most = agreed.iter().map(|it| it.visits).max()?;
    let about = agreed.iter().filter(|it| it.visits + 1 + most / 50 >= most);
    let (visits, _) = most_common(about.map(|it| it.visits))?;
    let same = agreed.iter().filter(|it| it.visits == visits);
    // bursts are told by time, which other processes on the same processors disturb
    let chosen = same.min_by_key(|it| (it.may_miss, it.anchor.is_burst, it.first, &it.anchor))?;
    (!chosen.may_miss).then(|| chosen.anchor.clone())
}

/// The number that comes most often, and how often; of several the largest.
pub(super) fn most_common(numbers: impl Iterator<Item = usize>) -> Option<(usize, usize)> {
    let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
    numbers.for_each(|number| *counts.entry(number).or_default() += 1);
    counts.into_iter().max_by_key(|&(number, count)| (count, number))
}

/// All visits of a rank.
struct AnchorVisits<'a> {
    events: &'a Events,
    /// By node.
    visits: Vec<Vec<u32>>,
    /// From the first to the last of all events.
    span: i64,
}

impl<'a> AnchorVisits<'a> {
    fn find(events: &'a Events) -> AnchorVisits<'a> {
        let tree = &events.tree;
        let mut visits: Vec<Vec<u32>> = vec![Vec::new(); tree.len()];
        let mut last = Tree::ROOT;
        for (at, event) in (0..).zip(&events.list) {
            let shared = common(tree, last, event.leaf);
            visits[event.leaf as usize].push(at);
            let mut node = tree.parent(event.leaf);
            while node != Tree::ROOT && tree.depth(node) > tree.depth(shared) {
                visits[node as usize].push(at);
                node = tree.parent(node);
            }
            last = event.leaf;
        }
        let begin = events.list.first().map_or(0, |event| event.begin);
        let end = events.list.iter().map(|event| event.end).max().unwrap_or(begin);
        AnchorVisits { events, visits, span: end - begin }
    }

    fn candidate(&self, node: u32) -> Option<Candidate> {
        let all = &self.visits[node as usize];
        if all.len() < FEWEST {
            return None;
        }
        let is_call = self.events.tree.is_call(node);
        let of_bursts = if is_call { bursts(self.events, all) } else { None };
        let is_burst = of_bursts.is_some();
        let visits = of_bursts.as_ref().unwrap_or(all);
        let is_one_place = is_burst || !is_call || !self.is_for_neighbors(all);
        let is_it = is_one_place
            && visits.len() >= FEWEST
            && self.covers(visits)
            && (is_call || self.calls_below(node).nth(1).is_some())
            && (is_burst || !self.is_inner(node))
            && (is_burst || !is_call || !self.is_loop_of_function(node))
            && (is_call || !self.is_merged(node));
        let may_miss = is_it.then(|| self.may_miss(visits)).flatten()?;
        let anchor = Anchor { path: self.events.tree.path(node), is_burst };
        Some(Candidate { anchor, visits: visits.len(), first: visits[0], may_miss })
    }

    /// Whether a call is made for several neighbours, one after the other.
    fn is_for_neighbors(&self, visits: &[u32]) -> bool {
        let mut of_peers: FxHashMap<u32, usize> = FxHashMap::default();
        let peers = visits.iter().map(|&at| self.events.list[at as usize].peer);
        peers
            .filter(|peer| *peer != NOBODY)
            .for_each(|peer| *of_peers.entry(peer).or_default() += 1);
        let most = of_peers.values().max().copied().unwrap_or(0);
        of_peers.len() > 1 && (most as f64) <= ONE_OF_SEVERAL * visits.len() as f64
    }

    /// Whether steps are most of the run's communication.
    fn covers(&self, visits: &[u32]) -> bool {
        let [first, last] = [visits[0], visits[visits.len() - 1]];
        let and_the_last = visits.len() as f64 / (visits.len() - 1) as f64;
        let time = (self.events.begin(last) - self.events.begin(first)) as f64;
        let time = time * and_the_last / self.span.max(1) as f64;
        let calls = f64::from(last - first) * and_the_last / self.events.list.len() as f64;
        time >= MOST || calls >= MOST && time >= SOME
    }

    /// `None`: not nearly the same is done from each visit to the next, or what is done rarely is an outer loop. Else whether what is
    /// done rarely takes the place of a step.
    fn may_miss(&self, visits: &[u32]) -> Option<bool> {
        let segments = visits.len() - 1;
        let mut present = vec![0u32; self.events.tree.len()];
        let each =
            |number: usize| &self.events.list[visits[number] as usize..visits[number + 1] as usize];
        let mut seen = vec![u32::MAX; self.events.tree.len()];
        for number in 0..segments {
            for event in each(number) {
                let leaf = event.leaf as usize;
                if std::mem::replace(&mut seen[leaf], number as u32) != number as u32 {
                    present[leaf] += 1;
                }
            }
        }
        let share = |count: u32| f64::from(count) / segments as f64;
        if present.iter().any(|&count| share(count) > RARE && share(count) < USUAL) {
            return None;
        }
        let is_rare = |leaf: u32| share(present[leaf as usize]) <= RARE;
        let length = |number: usize| {
            self.events.begin(visits[number + 1]) - self.events.begin(visits[number])
        };
        let (rare, usual): (Vec<usize>, Vec<usize>) =
            (0..segments).partition(|&number| each(number).iter().any(|event| is_rare(event.leaf)));
        if rare.len() as f64 > MOST_ARE_USUAL * segments as f64 {
            return None;
        }
        let mut computes: Vec<i64> = usual
            .iter()
            .filter_map(|&number| self.computed(visits[number], visits[number + 1]).max())
            .collect();
        computes.sort_unstable();
        let compute = computes[computes.len() / 2];
        // by what is rare in them: what takes the place of a step does so each time, and what only disturbs does not
        let mut kinds: FxHashMap<Vec<u32>, (usize, usize)> = FxHashMap::default();
        for &number in &rare {
            let mut kind: Vec<u32> =
                each(number).iter().map(|event| event.leaf).filter(|&leaf| is_rare(leaf)).collect();
            kind.sort_unstable();
            kind.dedup();
            let segment = (visits[number], visits[number + 1]);
            let (doubles, all) = kinds.entry(kind).or_default();
            *doubles += usize::from(self.is_double(segment, compute, &is_rare));
            *all += 1;
        }
        let may_miss = kinds
            .values()
            .any(|&(doubles, all)| doubles >= 2 && doubles as f64 >= MOST_DOUBLE * all as f64);
        let mut lengths: Vec<i64> = usual.into_iter().map(length).collect();
        lengths.sort_unstable();
        let typical = lengths[lengths.len() / 2];
        let long = rare.into_iter().map(length).filter(|&it| it >= LONG * typical.max(1));
        let long: Vec<i64> = long.collect();
        let all = self.events.begin(visits[segments]) - self.events.begin(visits[0]);
        let is_outer = long.len() >= 3 && long.iter().sum::<i64>() as f64 >= MUCH * all as f64;
        (!is_outer).then_some(may_miss)
    }

    /// Times outside of MPI from each event to the next.
    fn computed(&self, from: u32, to: u32) -> impl Iterator<Item = i64> + '_ {
        (from..to).map(|at| self.events.outside(at, at + 1))
    }

    /// Whether about as much is computed in one go as in a step both before and behind the rare events of a segment.
    fn is_double(
        &self,
        (from, to): (u32, u32),
        compute: i64,
        is_rare: &impl Fn(u32) -> bool,
    ) -> bool {
        let rare = |at: &u32| is_rare(self.events.list[*at as usize].leaf);
        let (Some(first), Some(last)) = ((from..to).find(rare), (from..to).rev().find(rare)) else {
            return false;
        };
        let is_much = |from, to| {
            self.computed(from, to).max().is_some_and(|it| it as f64 >= AS_MUCH * compute as f64)
        };
        is_much(from, first) && is_much(last, to)
    }

    /// Whether a call is made many times in a function that does something else once: it is a loop in a step.
    fn is_inner(&self, node: u32) -> bool {
        let own = &self.visits[node as usize];
        let tree = &self.events.tree;
        tree.upwards(tree.parent(node)).any(|above| {
            let runs = &self.visits[above as usize];
            if runs.len() < FEWEST || runs.len() >= own.len() {
                return false;
            }
            let nearly_all = |leaf: u32, is_it: fn(usize) -> bool| {
                let counts = counts_between(runs, &self.visits[leaf as usize]);
                let count = counts.iter().filter(|count| is_it(**count)).count();
                count as f64 >= NEARLY_ALL * runs.len() as f64
            };
            nearly_all(node, |count| count > 1)
                && self.calls_below(above).any(|leaf| nearly_all(leaf, |count| count == 1))
        })
    }

    /// Whether a function makes a call as often each time, with hardly any computation in between: a loop over neighbours that is no
    /// burst, as other processes had the processor now and then. Quarters are looked at that nobody disturbs.
    fn is_loop_of_function(&self, node: u32) -> bool {
        let own = &self.visits[node as usize];
        let tree = &self.events.tree;
        tree.upwards(tree.parent(node)).any(|above| {
            let runs = &self.visits[above as usize];
            if runs.len() < FEWEST || runs.len() * 2 > own.len() {
                return false;
            }
            let counts = counts_between(runs, own);
            let Some((usual, times)) = most_common(counts.into_iter()) else { return false };
            let is_usual = usual > 1 && times as f64 >= NEARLY_ALL * runs.len() as f64;
            let (mut within, mut between) = (Vec::new(), Vec::new());
            for pair in own.windows(2) {
                let is_new = runs.partition_point(|at| at <= &pair[0])
                    < runs.partition_point(|at| at <= &pair[1]);
                let gaps = if is_new { &mut between } else { &mut within };
                gaps.push(self.events.outside(pair[0], pair[1]));
            }
            is_usual && undisturbed(within).saturating_mul(APART) < undisturbed(between)
        })
    }

    /// Whether several calls of a function look like one, as nothing else is done in between: all that it does is done many times
    /// a visit, with about as much computation in between as from one visit to the next.
    fn is_merged(&self, node: u32) -> bool {
        let runs = &self.visits[node as usize];
        let usual = |leaf: u32| {
            let counts = counts_between(runs, &self.visits[leaf as usize]);
            most_common(counts.into_iter().filter(|count| *count > 0)).map_or(1, |it| it.0)
        };
        let calls = self.calls_below(node).map(|leaf| (usual(leaf), leaf));
        let Some((least, leaf)) = calls.min() else { return false };
        if least < 2 {
            return false;
        }
        let own = &self.visits[leaf as usize];
        let (mut within, mut between) = (Vec::new(), Vec::new());
        for pair in runs.windows(2) {
            let begin = own.partition_point(|&at| at < pair[0]);
            let end = own.partition_point(|&at| at < pair[1]);
            let inside = own[begin..end].windows(2).map(|two| self.events.outside(two[0], two[1]));
            within.extend(inside.max());
            let last = own[begin..end].last().zip(own.get(end));
            between.extend(last.map(|(&last, &next)| self.events.outside(last, next)));
        }
        within.sort_unstable();
        between.sort_unstable();
        let median = |sorted: &[i64]| sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        median(&within).saturating_mul(CLOSE) > median(&between)
    }

    fn calls_below(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let tree = &self.events.tree;
        (1..tree.len() as u32).filter(move |&it| {
            tree.is_call(it) && !self.visits[it as usize].is_empty() && tree.is_below(it, node)
        })
    }
}

/// A quarter of these times is not longer.
fn undisturbed(mut times: Vec<i64>) -> i64 {
    times.sort_unstable();
    times.get(times.len() / 4).copied().unwrap_or(0)
}

/// The lowest node that both are below of.
fn common(tree: &Tree, a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    while tree.depth(a) > tree.depth(b) {
        a = tree.parent(a);
    }
    while tree.depth(b) > tree.depth(a) {
        b = tree.parent(b);
    }
    while a != b {
        (a, b) = (tree.parent(a), tree.parent(b));
    }
    a
}

impl Anchor {
    /// From when to when the steps of a rank are; the last ends with the last call that belongs to such steps.
    pub(super) fn boundaries(&self, events: &Events) -> Vec<(i64, i64)> {
        let Some(node) = events.tree.find(&self.path) else { return Vec::new() };
        let all = events.visits(node);
        let visits = match self.is_burst {
            // with one neighbour there are no bursts
            true => bursts(events, &all).unwrap_or(all),
            false => all,
        };
        let (Some(&first), Some(&last)) = (visits.first(), visits.last()) else {
            return Vec::new();
        };
        let mut belongs = vec![false; events.tree.len()];
        let in_steps = &events.list[first as usize..last as usize];
        in_steps.iter().for_each(|event| belongs[event.leaf as usize] = true);
        belongs[events.list[last as usize].leaf as usize] = true;
        let behind = &events.list[last as usize..];
        let of_last = behind.iter().take_while(|event| belongs[event.leaf as usize]);
        let end = of_last.map(|event| event.end).max().unwrap_or(events.begin(last));
        let begins = visits.iter().map(|&at| events.begin(at));
        begins.clone().zip(begins.skip(1).chain([end])).collect()
    }
}
