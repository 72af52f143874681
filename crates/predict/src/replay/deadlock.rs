//! Why a replay does not end: who waits for whom.
//!
//! A call needs all that it waits for, so a circle of such waits is a deadlock under that scenario, whatever else
//! happens, and nothing else is called one. Without a circle somebody waits for a rank whose record has nothing of what
//! is waited for: it was killed, ran out of room, or was cut off. Nor is it one when records were lost, as then
//! messages may be matched wrongly, or when the run replayed as it was does not end: the run did.

use rustc_hash::FxHashMap;

use super::collective::needs;
use super::outcome::{Outcome, Stuck};
use lapscope_data::model::Needs;
use lapscope_trace::{Direction, Trace, NONE};

/// Members of a collective that are looked at to find a circle.
const MEMBERS: usize = 256;

/// What keeps a replay from its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standstill {
    pub reason: Reason,
    /// Ranks that do not go on.
    pub ranks: usize,
    /// Since when, on the run's clock.
    pub since: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Each waits for the next, the last for the first.
    Circle(Vec<Waiting>),
    /// It waits for a rank that goes on without doing what it waits for.
    Missing(Waiting),
}

/// A thread that waits for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub stuck: Stuck,
    /// Ranks that have not done what it waits for, the one that matters first.
    pub ranks: Vec<u32>,
}

/// `None` of a run that ends.
pub fn standstill(trace: &Trace, outcome: &Outcome) -> Option<Standstill> {
    let first = outcome.stuck.first()?;
    let graph = Graph::new(trace, outcome);
    let mut ranks: Vec<u32> = outcome.stuck.iter().map(|stuck| stuck.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let (reason, since) = match graph.circle() {
        Some(circle) => {
            let since = circle.iter().map(|&(place, _)| outcome.stuck[place].since).max();
            let waiting = circle.into_iter().map(|(place, via)| graph.waiting(place, via));
            (Reason::Circle(waiting.collect()), since)
        }
        None => {
            let missing = (0..outcome.stuck.len()).find_map(|place| graph.missing(place));
            let waiting = missing.unwrap_or(Waiting { stuck: *first, ranks: Vec::new() });
            let since = waiting.stuck.since;
            (Reason::Missing(waiting), Some(since))
        }
    };
    Some(Standstill { reason, ranks: ranks.len(), since: since.unwrap_or(first.since) })
}

/// Whom each stuck thread waits for: a rank, and the thread of it that would have to act where that is stuck, too.
struct Graph<'a> {
    outcome: &'a Outcome,
    edges: Vec<Vec<(u32, Option<usize>)>>,
}

impl<'a> Graph<'a> {
    fn new(trace: &Trace, outcome: &'a Outcome) -> Graph<'a> {
        let places: FxHashMap<(u32, u16), usize> =
            (0..).zip(&outcome.stuck).map(|(place, it)| ((it.rank, it.thread), place)).collect();
        let edges = |stuck: &Stuck| {
            let waited = waited_for(trace, outcome, stuck);
            let edge = |(rank, thread)| (rank, places.get(&(rank, thread)).copied());
            waited.into_iter().map(edge).collect()
        };
        Graph { outcome, edges: outcome.stuck.iter().map(edges).collect() }
    }

    /// The circle that closes a chain of waits from a thread that stopped early: places in [`Outcome::stuck`], and the rank that
    /// each waits for.
    fn circle(&self) -> Option<Vec<(usize, u32)>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            OnWay,
            Done,
        }
        let mut states = vec![State::New; self.edges.len()];
        for first in 0..self.edges.len() {
            // place, and the number of the next of its edges
            let mut way: Vec<(usize, usize)> = Vec::new();
            let mut enter = (states[first] == State::New).then_some(first);
            loop {
                if let Some(place) = enter.take() {
                    states[place] = State::OnWay;
                    way.push((place, 0));
                }
                let Some((place, next)) = way.last_mut() else { break };
                let Some(&(_, to)) = self.edges[*place].get(*next) else {
                    states[*place] = State::Done;
                    way.pop();
                    continue;
                };
                *next += 1;
                match to.map(|to| (to, states[to])) {
                    Some((to, State::New)) => enter = Some(to),
                    Some((to, State::OnWay)) => {
                        let begin = way.iter().position(|&(place, _)| place == to).unwrap_or(0);
                        let rank = |&(place, next): &(usize, usize)| {
                            (place, self.edges[place][next - 1].0)
                        };
                        return Some(from_smallest(way[begin..].iter().map(rank).collect()));
                    }
                    _ => {}
                }
            }
        }
        None
    }

    fn waiting(&self, place: usize, first: u32) -> Waiting {
        let others = self.edges[place].iter().map(|&(rank, _)| rank);
        let mut ranks = vec![first];
        ranks.extend(others.filter(|&rank| rank != first));
        Waiting { stuck: self.outcome.stuck[place], ranks }
    }

    /// Whether it waits for one that is not stuck.
    fn missing(&self, place: usize) -> Option<Waiting> {
        let edge = self.edges[place].iter().find(|(_, stuck)| stuck.is_none());
        edge.map(|&(rank, _)| self.waiting(place, rank))
    }
}

/// A circle has no begin: the rank with the smallest number stands there.
fn from_smallest(mut circle: Vec<(usize, u32)>) -> Vec<(usize, u32)> {
    // each is waited for by the one before it
    let ranks: Vec<u32> = (0..circle.len())
        .map(|index| circle[(index + circle.len() - 1) % circle.len()].1)
        .collect();
    let smallest = (0..ranks.len()).min_by_key(|&index| ranks[index]).unwrap_or(0);
    circle.rotate_left(smallest);
    circle
}

/// Ranks and their threads that have to act before a thread goes on.
fn waited_for(trace: &Trace, outcome: &Outcome, stuck: &Stuck) -> Vec<(u32, u16)> {
    let of_rank = &trace.ranks[stuck.rank as usize];
    if stuck.endpoint == NONE || stuck.endpoint as usize >= of_rank.endpoints.len() {
        return Vec::new();
    }
    let half = trace.half(stuck.rank as usize, stuck.endpoint as usize);
    if half.operation.direction != Direction::Collective {
        let other = half.operation.peer.zip(trace.partner(&half));
        return other
            .map(|(peer, other)| (peer, poster(trace, other.rank, other.index)))
            .into_iter()
            .collect();
    }
    let has_not_come = |rank: usize, index: usize| outcome.ranks[rank].posted[index] == i64::MAX;
    let Some(collective) = trace.collective(&half) else { return Vec::new() };
    // all but the root wait for the root alone
    let root = collective.root.filter(|_| needs(trace, collective) == Some(Needs::Root));
    let is_needed = |rank: usize| root.map_or(true, |root| root == rank as u32);
    let members = trace.members(&half).filter(|other| is_needed(other.rank));
    let members = members.filter(|other| has_not_come(other.rank, other.index));
    let members = members.map(|other| (other.rank as u32, poster(trace, other.rank, other.index)));
    members.take(MEMBERS).collect()
}

/// The thread that posts an endpoint.
fn poster(trace: &Trace, rank: usize, endpoint: usize) -> u16 {
    let of_rank = &trace.ranks[rank];
    let row = &of_rank.endpoints[endpoint];
    let is_request = of_rank.operations[row.operation as usize].is_request;
    match is_request || row.call == NONE {
        true => of_rank.threads.of_endpoint(endpoint as u32),
        false => of_rank.threads.of_call(row.call),
    }
}
