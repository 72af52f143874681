//! Why threads stand that never go on again: the roots of what they wait for, and the circles among them.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::collectives::{GroupKey, Mismatch};
use super::graph::{circles, Goers, Need, Target};
use super::needs::{Reason, Why};
use super::{HangEvidence, ThreadIndex};
use lapscope_data::state::Condition;

/// Those who stand, and what is at the end of what they wait for.
#[derive(Debug, Default)]
pub struct HangCauses {
    /// Places in the graph's nodes.
    pub standing: Vec<usize>,
    /// Ranks that are dead, and whoever waits straight for one, by a node and its need.
    pub dead: HangCause,
    /// Ranks that have left, likewise.
    pub left: HangCause,
    pub mismatches: Vec<Mismatch>,
    /// Circles of nodes; each waits by the need for the next.
    pub circles: Vec<Vec<(usize, Need<Why>)>>,
}

#[derive(Debug, Default)]
pub struct HangCause {
    pub culprits: BTreeSet<usize>,
    pub waiters: Vec<(usize, Need<Why>)>,
}

impl HangCause {
    fn add(&mut self, culprits: &[usize], node: usize, need: Need<Why>) {
        if !culprits.is_empty() {
            self.culprits.extend(culprits);
            self.waiters.push((node, need));
        }
    }
}

/// Who of each junction is dead, who has left, and the first who stands.
struct JunctionFacts {
    dead: Vec<usize>,
    left: Vec<usize>,
    /// Two of them, as one may be who asks.
    standing: [Option<usize>; 2],
}

pub fn causes(found: &HangEvidence<'_>, goers: &Goers) -> HangCauses {
    let graph = &found.graph;
    let standing: Vec<usize> = (0..graph.nodes.len()).filter(|&at| !goers.nodes[at]).collect();
    let of_rank = first_standing(found, &standing);
    let facts: Vec<JunctionFacts> =
        graph.junctions.iter().map(|it| junction_facts(found, &it.over, &of_rank)).collect();
    let mut causes = HangCauses::default();
    let mut groups: FxHashSet<GroupKey> = FxHashSet::default();
    let mut next: Vec<Option<(usize, Need<Why>)>> = vec![None; graph.ranks.len()];
    for &at in &standing {
        let node = &graph.nodes[at];
        // Of what is sure to be missing, if anything is.
        for need in node.surest().into_iter().filter(|need| !goers.can(need.target)) {
            let (dead, left, on) = match need.target {
                Target::Rank(rank) => of_one(found, rank, &of_rank),
                Target::Junction(junction) => {
                    let JunctionFacts { dead, left, standing } = &facts[junction];
                    // who has gone is why, rather than that it might have helped itself
                    let is_why =
                        |on: &usize| *on != node.rank || (dead.is_empty() && left.is_empty());
                    let on = other_than(node.rank, standing).filter(is_why);
                    (dead.clone(), left.clone(), on)
                }
                Target::Free | Target::Nobody => Default::default(),
            };
            causes.dead.add(&dead, at, *need);
            causes.left.add(&left, at, *need);
            if let Reason::Meeting(meeting) = need.why.reason {
                groups.insert(found.collectives.meetings[meeting].group);
            }
            if of_rank[node.rank] == Some(at) && next[node.rank].is_none() {
                next[node.rank] = on.map(|on| (on, *need));
            }
        }
    }
    causes.mismatches = mismatches(found, groups);
    let targets: Vec<Option<usize>> = next.iter().map(|it| it.map(|(on, _)| on)).collect();
    let edge = |rank: usize| Some((of_rank[rank]?, next[rank]?.1));
    causes.circles = circles(&targets)
        .into_iter()
        .map(|circle| circle.into_iter().filter_map(edge).collect())
        .collect();
    causes.standing = standing;
    causes
}

/// The node that says why each rank stands: one that stands itself, of a rank that never acts again for others.
fn first_standing(found: &HangEvidence<'_>, standing: &[usize]) -> Vec<Option<usize>> {
    let mut first = vec![None; found.graph.ranks.len()];
    for &at in standing {
        let place: &mut ThreadIndex = &mut first[found.graph.nodes[at].rank];
        *place = place.or(Some(at));
    }
    first
}

type TargetFacts = (Vec<usize>, Vec<usize>, Option<usize>);

fn of_one(found: &HangEvidence<'_>, rank: usize, of_rank: &[Option<usize>]) -> TargetFacts {
    let JunctionFacts { dead, left, standing } = junction_facts(found, &[rank], of_rank);
    (dead, left, standing[0])
}

/// Chooses rather another of many who stand: a rank that waits for any, or for all of a group, seldom waits for itself alone.
fn other_than(rank: usize, standing: &[Option<usize>; 2]) -> Option<usize> {
    standing.iter().flatten().copied().find(|&it| it != rank).or(standing[0])
}

fn junction_facts(
    found: &HangEvidence<'_>,
    over: &[usize],
    of_rank: &[Option<usize>],
) -> JunctionFacts {
    let job = found.job;
    let is_exited = |at: usize| job.is_dead(at) && job.rank(at).condition == Condition::Exited;
    let dead = |at: &usize| job.is_dead(*at) && !is_exited(*at);
    let left = |at: &usize| job.has_left(*at) || is_exited(*at);
    let stands = |at: &usize| of_rank[*at].is_some() && !job.has_left(*at);
    let mut standing = over.iter().copied().filter(stands);
    JunctionFacts {
        dead: over.iter().copied().filter(dead).collect(),
        left: over.iter().copied().filter(left).collect(),
        standing: [standing.next(), standing.next()],
    }
}

/// Finds mismatches in communicators in whose collectives somebody stands.
fn mismatches(found: &HangEvidence<'_>, groups: FxHashSet<GroupKey>) -> Vec<Mismatch> {
    let mut groups: Vec<GroupKey> = groups.into_iter().collect();
    groups.sort_unstable();
    let of = |key| found.collectives.mismatch(found.job, key);
    groups.into_iter().filter_map(of).collect()
}
