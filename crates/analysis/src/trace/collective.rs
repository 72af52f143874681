//! Brings the members of collectives together: all members of a communicator call its collectives in the same order
//! (MPI-4.1 6.1), so the k-th of each belong together.

use super::endpoint::NONE;
use super::matching::{LaneKey, Order};
use super::{Half, RankTrace, Trace};
use lapscope_data::model::Needs;

/// One collective, over all its members.
#[derive(Debug, Clone, Copy)]
pub struct Collective {
    /// Index into [`Trace::calls`]: the blocking call that does the same.
    pub blocking_call: u32,
    /// Members that were recorded, of so many.
    pub members: u32,
    pub comm_size: u32,
    /// When the last of them began, and its place in [`Trace::ranks`].
    pub last_begin: i64,
    pub last_rank: u32,
    /// Place of the root, and when it began.
    pub root: Option<u32>,
    pub root_begin: Option<i64>,
    /// Whether all members called the same function with the same root.
    pub agrees: bool,
}

/// For one communicator: its collectives, and which endpoints of each member take part, in order.
#[derive(Debug)]
pub(super) struct Group {
    /// Index of its first in [`Trace::collectives`].
    pub first: u32,
    /// Place of a rank, and its endpoints.
    pub members: Vec<(u32, Vec<u32>)>,
}

/// The members of all collectives.
#[derive(Debug, Default)]
pub struct Members(Vec<Group>);

impl Members {
    pub(super) fn new(mut groups: Vec<Group>) -> Members {
        groups.sort_by_key(|group| group.first);
        Members(groups)
    }

    /// Place of each member's rank, and its endpoint.
    fn of(&self, collective: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let behind = self.0.partition_point(|group| group.first <= collective);
        let group = behind.checked_sub(1).map(|index| &self.0[index]);
        group.into_iter().flat_map(move |group| {
            let number = (collective - group.first) as usize;
            group.members.iter().filter_map(move |(rank, all)| Some((*rank, *all.get(number)?)))
        })
    }
}

impl Collective {
    fn is_complete(&self) -> bool {
        self.agrees && self.members == self.comm_size
    }
}

impl Trace {
    /// When the last member of its collective began, and the place of that rank, where all members are known.
    pub fn last_member(&self, half: &Half<'_>) -> Option<(i64, u32)> {
        let collective = self.collective(half).filter(|collective| collective.is_complete())?;
        Some((collective.last_begin, collective.last_rank))
    }

    /// All that take part in the collective of `half`, itself among them.
    pub fn members<'a>(&'a self, half: &Half<'_>) -> impl Iterator<Item = Half<'a>> + 'a {
        let collective = self.collective(half).map(|_| half.partner);
        collective
            .into_iter()
            .flat_map(|collective| self.members.of(collective))
            .map(|(rank, endpoint)| self.half(rank as usize, endpoint as usize))
    }

    /// When everything began that a member of a collective had to wait for, and the place of the rank that was last: the
    /// root in a broadcast, all members at the root of a reduction. `None` when it waits for nobody or it is not known.
    pub fn awaited(&self, half: &Half<'_>) -> Option<(i64, u32)> {
        let collective = self.collective(half).filter(|collective| collective.is_complete())?;
        let is_root = collective.root == Some(half.rank as u32);
        let all = Some((collective.last_begin, collective.last_rank));
        match self.blocking_calls[collective.blocking_call as usize].needs? {
            Needs::All => all,
            Needs::Root => collective.root_begin.zip(collective.root).filter(|_| !is_root),
            Needs::AllAtRoot => all.filter(|_| is_root),
            Needs::Lower | Needs::Neighbors | Needs::Other => None,
        }
    }
}

impl Trace {
    /// Notes anew when members began, after these moments were changed.
    pub fn time_collectives(&mut self) {
        for collective in &mut self.collectives {
            (collective.last_begin, collective.root_begin) = (i64::MIN, None);
        }
        let members = std::mem::take(&mut self.members);
        time(self, &members.0);
        self.members = members;
    }
}

/// Numbers the collectives of every communicator and tells each endpoint which one it takes part in.
pub(super) fn assemble(trace: &mut Trace, lanes: &[LaneKey], orders: &[Order]) -> Vec<Group> {
    let mut groups = Vec::new();
    for lane in (0..lanes.len()).filter(|&lane| lanes[lane].is_collective) {
        let members: Vec<(u32, Vec<u32>)> = (0..)
            .zip(orders)
            .map(|(rank, order)| (rank, order.of(lane as u32, false).to_vec()))
            .filter(|(_, endpoints)| !endpoints.is_empty())
            .collect();
        let group = Group { first: trace.collectives.len() as u32, members };
        add_collectives(trace, &group);
        groups.push(group);
    }
    groups
}

fn add_collectives(trace: &mut Trace, group: &Group) {
    let first = group.first as usize;
    let Trace { ranks, collectives, .. } = trace;
    for (rank, endpoints) in &group.members {
        let RankTrace { operations, endpoints: rows, .. } = &mut ranks[*rank as usize];
        for (number, &index) in endpoints.iter().enumerate() {
            let endpoint = &mut rows[index as usize];
            let operation = &operations[endpoint.operation as usize];
            endpoint.partner = (first + number) as u32;
            let of_member = Collective {
                blocking_call: operation.blocking_call,
                members: 0,
                comm_size: operation.comm_size,
                last_begin: i64::MIN,
                last_rank: NONE,
                root: operation.peer,
                root_begin: None,
                agrees: true,
            };
            if collectives.len() == first + number {
                collectives.push(of_member);
            }
            let collective = &mut collectives[first + number];
            collective.members += 1;
            collective.agrees &= collective.blocking_call == of_member.blocking_call
                && collective.root == of_member.root;
        }
    }
}

/// Notes when members began; after the clocks were corrected.
pub(super) fn time(trace: &mut Trace, groups: &[Group]) {
    let Trace { ranks, collectives, .. } = trace;
    for group in groups {
        for (rank, endpoints) in &group.members {
            for (number, &index) in endpoints.iter().enumerate() {
                let collective = &mut collectives[group.first as usize + number];
                let begin = ranks[*rank as usize].endpoints[index as usize].begin;
                if begin > collective.last_begin {
                    (collective.last_begin, collective.last_rank) = (begin, *rank);
                }
                if collective.root == Some(*rank) {
                    collective.root_begin = Some(begin);
                }
            }
        }
    }
}
