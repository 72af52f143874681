//! How the messages of a part were paired, on clocks that are settled: kept, so that later stages read what they would find again.

use std::hash::Hasher;
use std::io::{self, Read, Write};

use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use super::cache::Cache;
use super::clock::Settled;
use super::collective::CommunicatorCollectives;
use super::matching::Matching;
use super::packed::{read_numbers, read_small, write_numbers, write_small};
use super::roster::CommKey;
use super::RankTrace;

/// The pairs of a part.
pub(super) struct KeptPairs {
    pub matching: Matching,
    pub groups: Vec<CommunicatorCollectives>,
    /// Places of ranks, with the partner of each of their endpoints.
    partners: Vec<(u32, Vec<u32>)>,
}

/// What is small: what the lists of numbers are of that follow, and how long they are.
#[derive(Serialize, Deserialize)]
struct Small {
    matching: Matching,
    ranks: Vec<(u32, u64)>,
    groups: Vec<(CommKey, Vec<(u32, u64)>)>,
}

impl KeptPairs {
    /// Tells ranks of the other ends of their messages; whether these are the ranks that were paired.
    pub fn apply(&self, ranks: &mut [RankTrace]) -> bool {
        let endpoints = |place: u32| ranks.get(place as usize).map_or(0, |it| it.endpoints.len());
        if self.partners.iter().any(|(place, all)| all.len() != endpoints(*place)) {
            return false;
        }
        for (place, partners) in &self.partners {
            for (endpoint, &partner) in ranks[*place as usize].endpoints.iter_mut().zip(partners) {
                endpoint.partner = partner;
            }
        }
        true
    }

    /// The pairs of the part of this focus on these clocks, if they are kept.
    pub fn get(cache: &Cache, focus: &[u32], clocks: &Settled) -> Option<KeptPairs> {
        KeptPairs::read(&mut cache.open(&name(focus, clocks))?).ok()
    }

    /// Keeps pairs, unless the disk is full.
    pub fn keep(
        cache: &Cache,
        (focus, clocks): (&[u32], &Settled),
        ranks: &[RankTrace],
        (groups, matching): (&[CommunicatorCollectives], Matching),
    ) {
        let with_rows =
            || (0..).zip(ranks).filter(|(_, rank): &(u32, _)| !rank.endpoints.is_empty());
        let lengths = |(rank, endpoints): &(u32, Vec<u32>)| (*rank, endpoints.len() as u64);
        let of_group = |group: &CommunicatorCollectives| {
            (group.key, group.members.iter().map(lengths).collect())
        };
        let small = Small {
            matching,
            ranks: with_rows().map(|(place, rank)| (place, rank.endpoints.len() as u64)).collect(),
            groups: groups.iter().map(of_group).collect(),
        };
        cache.write(&name(focus, clocks), |out: &mut dyn Write| {
            write_small(out, &small)?;
            for (_, rank) in with_rows() {
                write_numbers(out, rank.endpoints.iter().map(|endpoint| endpoint.partner))?;
            }
            for (_, endpoints) in groups.iter().flat_map(|group| &group.members) {
                write_numbers(out, endpoints.iter().copied())?;
            }
            Ok(())
        });
    }

    fn read(input: &mut impl Read) -> io::Result<KeptPairs> {
        let Small { matching, ranks, groups } = read_small(input)?;
        let mut lists = |lengths: Vec<(u32, u64)>| -> io::Result<Vec<(u32, Vec<u32>)>> {
            let list = |(rank, length)| Ok((rank, read_numbers(input, length)?));
            lengths.into_iter().map(list).collect()
        };
        let partners = lists(ranks)?;
        let group = |(key, members)| {
            let members = lists(members)?;
            Ok(CommunicatorCollectives { key, first: 0, count: 0, members })
        };
        let groups = groups.into_iter().map(group).collect::<io::Result<_>>()?;
        Ok(KeptPairs { matching, groups, partners })
    }
}

fn name(focus: &[u32], clocks: &Settled) -> String {
    let mut hasher = FxHasher::default();
    focus.iter().for_each(|&place| hasher.write_u32(place));
    clocks.hash(&mut hasher);
    format!("pairs-{}-{:016x}", focus.first().copied().unwrap_or(0), hasher.finish())
}
