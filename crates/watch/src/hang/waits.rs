//! Who waits for whom, thread by thread.

use super::document::{Needs, On, ThreadWait};
use super::graph::{Need, Target};
use super::needs::{Reason, Why};
use super::words::Words;
use super::HangEvidence;

/// `standing`: places of nodes that never go on.
pub fn waits(
    found: &HangEvidence<'_>,
    standing: &[usize],
    words: &mut Words<'_>,
) -> Vec<ThreadWait> {
    let mut stuck = vec![false; found.graph.nodes.len()];
    standing.iter().for_each(|&at| stuck[at] = true);
    let mut waits = Vec::new();
    for (at, node) in found.graph.nodes.iter().enumerate() {
        let rank = found.job.rank(node.rank);
        let is_told =
            |need: &&Need<Why>| need.why.reason != Reason::Nothing && need.target != Target::Free;
        let on = node.needs.iter().filter(is_told).map(|need| {
            let why = words.wait(node, need, found);
            let (first, others) = who(found, need.target);
            let rank = first.map(|at| found.job.rank(at).rank);
            On { rank, others, certain: need.is_sure, why }
        });
        let on: Vec<On> = on.collect();
        if !on.is_empty() {
            let needs = if node.is_any { Needs::Any } else { Needs::All };
            let thread = rank.threads.get(node.thread).map_or(0, |it| it.number);
            waits.push(ThreadWait { from: rank.rank, thread, needs, on, stuck: stuck[at] });
        }
    }
    waits
}

/// The first of those who are waited for, and how many more there are.
fn who(found: &HangEvidence<'_>, target: Target) -> (Option<usize>, usize) {
    match target {
        Target::Rank(at) => (Some(at), 0),
        Target::Junction(at) => {
            let over = &found.graph.junctions[at].over;
            (over.first().copied(), over.len().saturating_sub(1))
        }
        Target::Free | Target::Nobody => (None, 0),
    }
}
