//! What a program left over at MPI_Finalize: requests that it never completed, messages that nobody received, receives that
//! nothing was sent for, and what it made and never freed.
//!
//! Only what the record is certain of is counted: ranks that reached MPI_Finalize and were recorded without a gap; messages
//! between two such ranks of which no call failed, where no receive may have taken them whose source or tag is not known. Which
//! communicator a call frees is not recorded, so of communicators, windows, files and persistent requests those made less those
//! freed are counted, rank by rank. Datatypes and groups are not recorded.

use std::collections::{BTreeMap, HashMap, HashSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use lapscope_data::model::{CallName, Mode, Rank};
use lapscope_data::places::SiteId;
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_trace::{Direction, Endpoint, Half, Operation, RankTrace, RequestEnd, Trace, NONE};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOverKind {
    /// Never completed, and neither freed nor cancelled.
    Request,
    /// Sent, and received by nobody.
    Message,
    /// Posted, perhaps freed, and no message was sent for it; it is not among the requests.
    Receive,
    /// Never freed, as what follows.
    PersistentRequest,
    Communicator,
    Window,
    File,
}

/// All that was left over of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOver {
    pub what: LeftOverKind,
    pub count: u64,
    /// At whose end it was left.
    pub ranks: Vec<Rank>,
    /// Where they were made or posted, most first. Where some of those made there were freed their counts add up to more than `count`.
    pub sites: Vec<LeftOverSite>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOverSite {
    pub call: String,
    pub site: Option<FrameName>,
    pub count: u64,
}

impl LeftOver {
    /// Whether it is known of each site how many of them were left.
    pub fn is_certain_of_sites(&self) -> bool {
        self.sites.iter().map(|site| site.count).sum::<u64>() == self.count || self.sites.len() == 1
    }
}

impl LeftOverSums {
    /// What these ranks left over, as far as they are in the focus; `ranks` empty: all of them.
    pub fn collect(trace: &Trace, ranks: &[Rank]) -> LeftOverSums {
        let mut sums = LeftOverSums::default();
        let alone = Alone::find(trace);
        let is_wanted = |rank: Rank| ranks.is_empty() || ranks.contains(&rank);
        let looked_at = |&at: &usize| {
            let rank = &trace.ranks[at];
            rank.is_whole() && is_wanted(rank.info().rank)
        };
        let looked_at: Vec<usize> = trace.focus().filter(looked_at).collect();
        let of_ranks = looked_at.par_iter().map(|&at| LeftOverSums::of_rank(trace, at, &alone));
        of_ranks.collect::<Vec<_>>().into_iter().for_each(|of_rank| sums.merge(of_rank));
        for (place, index) in alone.sends.into_iter().filter(|(at, _)| trace.is_in_focus(*at)) {
            let (rank, half) = (trace.ranks[place].info().rank, trace.half(place, index));
            if is_wanted(rank) {
                sums.add(LeftOverKind::Message, rank, half.operation.site);
            }
        }
        sums
    }

    fn of_rank(trace: &Trace, at: usize, alone: &Alone) -> LeftOverSums {
        let mut sums = LeftOverSums::default();
        let rank = &trace.ranks[at];
        let may_be_cancelled = has_open_cancels(trace, rank);
        let is_open = |it: &Operation| {
            !it.is_second_half && matches!(it.ended, RequestEnd::Pending | RequestEnd::Freed)
        };
        for half in trace.halves_of(at, is_open) {
            let is_alone = alone.receives.contains(&(at, half.index)) && !may_be_cancelled;
            let what = match half.operation.ended {
                RequestEnd::Pending | RequestEnd::Freed if is_alone => LeftOverKind::Receive,
                RequestEnd::Pending => LeftOverKind::Request,
                _ => continue,
            };
            sums.add(what, rank.info().rank, half.operation.site);
        }
        sums.add_handles(trace, rank);
        sums
    }

    /// Adds what other ranks left over.
    pub fn merge(&mut self, other: LeftOverSums) {
        for (what, left) in other.kinds {
            let kind = self.kinds.entry(what).or_default();
            kind.count += left.count;
            kind.ranks.extend(left.ranks);
            for (site, count) in left.sites {
                *kind.sites.entry(site).or_default() += count;
            }
        }
    }
}

/// Messages that nobody received, and receives that nothing was sent for: by the places of their ranks and endpoints.
#[derive(Default)]
struct Alone {
    sends: Vec<(usize, usize)>,
    receives: HashSet<(usize, usize)>,
}

/// Sender, receiver, communicator, tag.
type MessageKey = (u32, u32, u32, i64);

impl Alone {
    fn find(trace: &Trace) -> Alone {
        if trace.matching.doubtful > 0 {
            return Alone::default();
        }
        let knows: Vec<bool> =
            trace.ranks.iter().map(|rank| rank.is_whole() && !has_failed(trace, rank)).collect();
        let hides: Vec<bool> = trace.ranks.iter().map(has_unknown_receives).collect();
        // of each key both sides in the order of their posts, in which they would match: a receive that was never completed has its
        // message all the same
        let mut sides: BTreeMap<MessageKey, [Vec<Half<'_>>; 2]> = BTreeMap::new();
        let known: Vec<usize> = (0..trace.ranks.len()).filter(|&at| knows[at]).collect();
        let unmatched: Vec<Vec<usize>> =
            known.par_iter().map(|&at| unmatched(&trace.ranks[at])).collect();
        for (at, unmatched) in known.into_iter().zip(unmatched) {
            for half in unmatched.into_iter().map(|index| trace.half(at, index)) {
                let operation = half.operation;
                let (Some(peer), Some(tag)) = (operation.peer, operation.tag) else { continue };
                let (key, side) = match operation.direction {
                    Direction::Send => ((at as u32, peer, operation.comm, tag), 0),
                    _ => ((peer, at as u32, operation.comm, tag), 1),
                };
                let is_here = [key.0, key.1].iter().any(|&it| trace.is_in_focus(it as usize));
                if is_here && knows[peer as usize] && !hides[key.1 as usize] {
                    sides.entry(key).or_default()[side].push(half);
                }
            }
        }
        let mut alone = Alone::default();
        for mut halves in sides.into_values() {
            halves.iter_mut().for_each(|side| side.sort_by_key(|half| half.post_begin));
            let pairs = halves[0].len().min(halves[1].len());
            let [sends, receives] =
                halves.map(|side| side.into_iter().skip(pairs).map(|half| (half.rank, half.index)));
            alone.sends.extend(sends);
            alone.receives.extend(receives);
        }
        alone
    }
}

/// Whether a rank cancelled requests of which the record has no end that says so: which ones, it does not say.
fn has_open_cancels(trace: &Trace, rank: &RankTrace) -> bool {
    let is_cancel = |it: &Operation| trace.call_of(it).name == "MPI_Cancel";
    let of_calls = rank.calls.iter().map(|call| &rank.operations[call.operation as usize]);
    let of_others = rank.other_operations().filter(|(it, _)| is_cancel(it));
    let asked = of_calls.filter(|it| is_cancel(it)).count() as u64
        + of_others.map(|(_, calls)| calls).sum::<u64>();
    let is_cancelled =
        |row: &&Endpoint| rank.operations[row.operation as usize].ended == RequestEnd::Cancelled;
    asked > rank.endpoints.iter().filter(is_cancelled).count() as u64
}

/// Whether a call returned an error: what it did is not known.
fn has_failed(trace: &Trace, rank: &RankTrace) -> bool {
    rank.operations.iter().any(|operation| {
        let has_communicator = operation.comm != NONE;
        operation.ended == RequestEnd::Failed
            || trace.call_of(operation).has_failed(operation.kind, has_communicator)
    })
}

/// Whether a receive of a rank may have taken a message that the record does not give it: of one that did not end, or was freed
/// before, source and tag are those that the program gave.
fn has_unknown_receives(rank: &RankTrace) -> bool {
    let is_unknown = |it: &Operation| {
        let names_none = it.peer.is_none() || it.tag.is_none();
        it.direction == Direction::Receive
            && (it.is_untraceable || (it.ended == RequestEnd::Pending && names_none))
    };
    rank.operations.iter().any(is_unknown)
}

/// The endpoints of a rank that [`is_unmatched`] says yes to.
fn unmatched(rank: &RankTrace) -> Vec<usize> {
    let endpoints = rank.endpoints.iter().enumerate();
    let unmatched = endpoints.filter(|(_, it)| is_unmatched(rank, it));
    unmatched.map(|(index, _)| index).collect()
}

/// A message that the record gives no receive, or a receive that was never completed, or was freed and got none.
fn is_unmatched(rank: &RankTrace, endpoint: &Endpoint) -> bool {
    let operation = &rank.operations[endpoint.operation as usize];
    if operation.mode == Mode::Partitioned || operation.is_untraceable {
        return false;
    }
    match (operation.direction, operation.ended) {
        (_, RequestEnd::Cancelled | RequestEnd::Failed) => false,
        (Direction::Send, _) | (Direction::Receive, RequestEnd::Freed) => endpoint.partner == NONE,
        (Direction::Receive, RequestEnd::Pending) => true,
        _ => false,
    }
}

/// What ranks left over, by kind. What is merged in any order comes to the same.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LeftOverSums {
    kinds: BTreeMap<LeftOverKind, KindLeft>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct KindLeft {
    count: u64,
    ranks: Vec<Rank>,
    sites: HashMap<SiteId, u64>,
}

impl LeftOverSums {
    fn add(&mut self, what: LeftOverKind, rank: Rank, site: SiteId) {
        let kind = self.kinds.entry(what).or_default();
        kind.count += 1;
        kind.ranks.push(rank);
        *kind.sites.entry(site).or_default() += 1;
    }

    /// What a rank made and never freed.
    fn add_handles(&mut self, trace: &Trace, rank: &RankTrace) {
        let mut made: BTreeMap<LeftOverKind, HashMap<SiteId, u64>> = BTreeMap::new();
        let mut freed: BTreeMap<LeftOverKind, u64> = BTreeMap::new();
        // made by a request, or freed while they are active
        let mut posts = vec![0; rank.operations.len()];
        rank.endpoints.iter().for_each(|row| posts[row.operation as usize] += 1);
        let requests = rank.operations.iter().zip(posts).filter(|&(_, posts)| posts > 0);
        for (operation, calls) in rank.other_operations().chain(requests) {
            match handle_of(trace.call_of(operation), operation.ended) {
                Some((what, true)) => {
                    *made.entry(what).or_default().entry(operation.site).or_default() += calls;
                }
                Some((what, false)) => *freed.entry(what).or_default() += calls,
                None => {}
            }
        }
        for (what, sites) in made {
            let calls: u64 = sites.values().sum();
            let made = match what {
                LeftOverKind::Communicator => calls.min(rank.made.communicators),
                LeftOverKind::Window => calls.min(rank.made.windows),
                LeftOverKind::File => calls.min(rank.made.files),
                _ => calls,
            };
            let left = made.saturating_sub(freed.get(&what).copied().unwrap_or(0));
            if left > 0 {
                let kind = self.kinds.entry(what).or_default();
                kind.count += left;
                kind.ranks.push(rank.info().rank);
                for (site, count) in sites {
                    *kind.sites.entry(site).or_default() += count;
                }
            }
        }
    }

    /// As the document has it; `trace`: of the whole run, with or without rows.
    pub fn name(self, trace: &Trace, names: &mut dyn NameFrames) -> Vec<LeftOver> {
        let mut name = |(site, count): (SiteId, u64)| {
            let frame = trace.places.site(site).frame;
            LeftOverSite {
                call: trace.places.call(site).name.clone(),
                site: frame.and_then(|frame| names.name(frame).into_iter().next()),
                count,
            }
        };
        let all = self.kinds.into_iter().map(|(what, mut left)| {
            left.ranks.sort_unstable();
            left.ranks.dedup();
            let mut sites: Vec<(SiteId, u64)> = left.sites.into_iter().collect();
            sites.sort_unstable_by_key(|&(site, count)| (std::cmp::Reverse(count), site));
            let sites = sites.into_iter().map(&mut name).collect();
            LeftOver { what, count: left.count, ranks: left.ranks, sites }
        });
        all.collect()
    }
}

/// What a call makes (`true`) or frees; `ended`: how the request that it started ended.
fn handle_of(call: &CallName, ended: RequestEnd) -> Option<(LeftOverKind, bool)> {
    use LeftOverKind::{Communicator, File, PersistentRequest, Window};
    let name = call.name.as_str();
    match (name, call.role.as_str()) {
        ("MPI_Request_free", _) => Some((PersistentRequest, false)),
        ("MPI_Comm_free" | "MPI_Comm_disconnect", _) => Some((Communicator, false)),
        ("MPI_Win_free", _) => Some((Window, false)),
        ("MPI_File_close", _) => Some((File, false)),
        ("MPI_Comm_set_name", _) => None,
        ("MPI_Start" | "MPI_Startall", _) if ended == RequestEnd::Freed => {
            Some((PersistentRequest, false))
        }
        (_, "INIT") => Some((PersistentRequest, true)),
        (_, "MANAGE") if name.starts_with("MPI_Win_") => Some((Window, true)),
        (_, "MANAGE") if name == "MPI_File_open" => Some((File, true)),
        (_, "MANAGE") => Some((Communicator, true)),
        _ if name.starts_with("MPI_Comm_idup") => Some((Communicator, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::no_names::NoNames;
    use lapscope_data::model::Ended;
    use lapscope_trace::made_up::MadeUp;

    /// Kinds and counts of what is left of a run whose last receives never ended.
    fn left(trace: &Trace) -> Vec<(LeftOverKind, u64)> {
        let left = LeftOverSums::collect(trace, &[]).name(trace, &mut NoNames);
        left.iter().map(|it| (it.what, it.count)).collect()
    }

    /// Three sends and as many receives as are asked for, of which the last `pending` never ended; those have no partner.
    fn run(receives: usize, pending: usize) -> Trace {
        let mut run = MadeUp::new(2);
        for _ in 0..3 {
            run.send(0, 1, 1, 8, 10);
        }
        let posted: Vec<u32> = (0..receives).map(|_| run.ireceive(1, 2, 0, 8, 10)).collect();
        run.wait(1, 3, &posted[..receives - pending]);
        let mut trace = run.finish();
        for &index in &posted[receives - pending..] {
            let row = &mut trace.ranks[1].endpoints[index as usize];
            let (operation, partner) = (row.operation, row.partner);
            row.partner = NONE;
            trace.ranks[1].operations[operation as usize].ended = RequestEnd::Pending;
            if partner != NONE {
                trace.ranks[0].endpoints[partner as usize].partner = NONE;
            }
        }
        trace
    }

    #[test]
    fn messages_and_receives_are_left_where_the_other_end_is_missing() {
        use LeftOverKind::{Message, Receive, Request};
        assert_eq!(left(&run(3, 0)), []);
        assert_eq!(left(&run(2, 0)), [(Message, 1)]);
        assert_eq!(left(&run(3, 1)), [(Request, 1)], "its message is there");
        assert_eq!(left(&run(5, 3)), [(Request, 1), (Receive, 2)]);
    }

    #[test]
    fn what_is_not_known_is_not_left() {
        let mut trace = run(2, 1);
        assert_eq!(left(&trace), [(LeftOverKind::Request, 1), (LeftOverKind::Message, 1)]);
        let last = trace.ranks[1].endpoints[1].operation as usize;
        trace.ranks[1].operations[last].peer = None;
        assert_eq!(left(&trace), [(LeftOverKind::Request, 1)], "it may have either message");
        trace.ranks[1].info_mut().ended = Ended::Killed;
        assert_eq!(left(&trace), []);
    }
}
