//! Parts on settled clocks, whose messages are paired: kept, so that later stages only map what they would find again.

use std::hash::Hasher;
use std::io::{self, Write};

use rustc_hash::FxHasher;

use super::cache::Cache;
use super::clock::Settled;
use super::collective::CommunicatorCollectives;
use super::matching::Matching;
use super::packed::{write_small, Lengths, Lists, Packed};
use super::roster::CommKey;
use super::row_list;
use super::{RankTrace, Trace};

/// A part as it is before collectives of the whole run are known.
pub(super) struct KeptPart {
    pub matching: Matching,
    pub groups: Vec<CommunicatorCollectives>,
    communicators: Vec<CommKey>,
    mark_names: Vec<String>,
    /// By their places.
    ranks: Vec<(u32, RankTrace)>,
}

/// What is small: what the lists are of that follow, and how long they are.
type Small<R> = (
    Matching,
    Vec<CommKey>,
    Vec<String>,
    Vec<(u32, R, Lengths)>,
    Vec<(CommKey, Vec<(u32, usize)>)>,
);

impl KeptPart {
    /// The part of this focus on these clocks, if it is kept.
    pub fn get(cache: &Cache, focus: &[u32], clocks: &Settled) -> Option<KeptPart> {
        KeptPart::read(&mut cache.open(&name(focus, clocks))?).ok()
    }

    /// Keeps the ranks at these places, unless the disk is full.
    pub fn keep(
        cache: &Cache,
        (focus, clocks): (&[u32], &Settled),
        (trace, places): (&Trace, &[u32]),
        (groups, matching): (&[CommunicatorCollectives], Matching),
    ) {
        let ranks = || places.iter().map(|&place| (place, &trace.ranks[place as usize]));
        let lengths = |(rank, endpoints): &(u32, Vec<u32>)| (*rank, endpoints.len());
        let of_group = |group: &CommunicatorCollectives| {
            (group.key, group.members.iter().map(lengths).collect())
        };
        let small: Small<&RankTrace> = (
            matching,
            trace.communicators.clone(),
            trace.mark_names.clone(),
            ranks().map(|(place, rank)| (place, rank, lists(rank).lengths())).collect(),
            groups.iter().map(of_group).collect(),
        );
        cache.write(&name(focus, clocks), |out: &mut dyn Write| {
            write_small(out, &small)?;
            ranks().try_for_each(|(_, rank)| lists(rank).write(out))?;
            let mut members = groups.iter().flat_map(|group| &group.members);
            members.try_for_each(|(_, endpoints)| row_list::write(out, endpoints))
        });
    }

    fn read(input: &mut Packed) -> io::Result<KeptPart> {
        let (matching, communicators, mark_names, ranks, groups): Small<RankTrace> =
            input.small()?;
        let rank = |(place, rank, lengths): (u32, RankTrace, Lengths)| -> io::Result<_> {
            let endpoints = input.column(lengths.endpoints)?;
            let calls = input.column(lengths.calls)?;
            let presence = input.presence(&lengths)?;
            Ok((place, RankTrace { endpoints, calls, presence, ..rank }))
        };
        let ranks = ranks.into_iter().map(rank).collect::<io::Result<_>>()?;
        let mut group = |(key, members): (CommKey, Vec<(u32, usize)>)| -> io::Result<_> {
            let member = |(rank, length)| Ok((rank, input.rows(length)?));
            let members = members.into_iter().map(member).collect::<io::Result<_>>()?;
            Ok(CommunicatorCollectives { key, first: 0, count: 0, members })
        };
        let groups = groups.into_iter().map(&mut group).collect::<io::Result<_>>()?;
        Ok(KeptPart { matching, groups, communicators, mark_names, ranks })
    }

    /// Puts its rows into a trace of ranks without rows, on the same clocks.
    pub fn fill(self, trace: &mut Trace) -> (Matching, Vec<CommunicatorCollectives>) {
        for (place, kept) in self.ranks {
            let rank = &mut trace.ranks[place as usize];
            let RankTrace { node, epoch, init_end, end, line, .. } = *rank;
            let info = rank.info.take();
            *rank = RankTrace { info, node, epoch, init_end, end, line, ..kept };
        }
        (trace.communicators, trace.mark_names) = (self.communicators, self.mark_names);
        (self.matching, self.groups)
    }
}

fn lists(rank: &RankTrace) -> Lists<'_> {
    Lists { endpoints: &rank.endpoints, calls: &rank.calls, presence: &rank.presence }
}

fn name(focus: &[u32], clocks: &Settled) -> String {
    let mut hasher = FxHasher::default();
    focus.iter().for_each(|&place| hasher.write_u32(place));
    clocks.hash(&mut hasher);
    format!("part-{}-{:016x}", focus.first().copied().unwrap_or(0), hasher.finish())
}
