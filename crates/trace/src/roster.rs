//! Who took part: what has to be known of all ranks before any of them is looked at.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use lapscope_data::model::{Rank, RankInfo};

/// A communicator, by the world of its members, the hash of these and how many there were of them before.
pub type CommKey = (i64, i64, i64);

/// All ranks of a run and their communicators. A place is an index into the ranks, which are in the order of rank and life.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Roster {
    pub(super) ranks: Vec<Member>,
    /// Places of their members, in order.
    pub communicators: BTreeMap<CommKey, Vec<u32>>,
    #[serde(skip)]
    slots: HashMap<(Rank, i64), u32>,
}

/// A rank.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Member {
    pub info: Arc<RankInfo>,
    /// CLOCK_MONOTONIC of its host when recording began, nanoseconds.
    pub epoch: i64,
    /// It had to do without a processor at times.
    pub is_starved: bool,
    /// Rows of `call` and `request` in its file; 0 of all ranks of a file but its first.
    pub rows: u64,
    pub communicators: Vec<CommKey>,
}

impl Roster {
    /// Takes ranks in any order.
    pub fn new(mut ranks: Vec<Member>) -> Roster {
        ranks.sort_by_key(|member| (member.info.rank, member.info.life));
        let mut roster = Roster { ranks, ..Roster::default() };
        for (place, member) in (0..).zip(&roster.ranks) {
            for &key in &member.communicators {
                let members = roster.communicators.entry(key).or_default();
                if members.last() != Some(&place) {
                    members.push(place);
                }
            }
        }
        roster.number();
        roster
    }

    /// A roster of which nothing but communicators is known.
    #[cfg(test)]
    pub(super) fn of_communicators(communicators: BTreeMap<CommKey, Vec<u32>>) -> Roster {
        Roster { communicators, ..Roster::default() }
    }

    /// Finds places quickly from then on; after it was read.
    pub fn number(&mut self) {
        let key = |member: &Member| (member.info.rank, member.info.life);
        self.slots = (0..).zip(&self.ranks).map(|(place, member)| (key(member), place)).collect();
    }

    /// The place of a rank.
    pub fn place(&self, rank: Rank, life: i64) -> Option<u32> {
        self.slots.get(&(rank, life)).copied()
    }

    pub fn ranks(&self) -> &[Member] {
        &self.ranks
    }

    /// The member behind a place in a communicator, in a circle; `None` where it is alone or nothing is known of them.
    pub fn next_member(&self, key: CommKey, place: u32) -> Option<u32> {
        let members = self.communicators.get(&key)?;
        let at = members.binary_search(&place).ok()?;
        Some(members[(at + 1) % members.len()]).filter(|&next| next != place)
    }

    /// Rows of all files.
    pub fn rows(&self) -> u64 {
        self.ranks.iter().map(|member| member.rows).sum()
    }

    pub(super) fn is_starved(&self) -> bool {
        self.ranks.iter().any(|member| member.is_starved)
    }
}
