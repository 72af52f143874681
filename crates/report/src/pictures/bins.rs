//! Ranks in order, several in one bin where there are more than a picture has rows.

use serde::Serialize;

use lapscope_data::model::Rank;
use lapscope_trace::Trace;

/// Most rows of a picture.
const MOST: usize = 64;

/// How ranks are put into bins: by their place, as many in each as in the others.
#[derive(Debug, Clone, Copy)]
pub struct Bins {
    ranks: usize,
    per_bin: usize,
}

/// Some ranks in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankBin {
    pub first: Rank,
    pub last: Rank,
    pub ranks: usize,
    /// The host of its first rank.
    pub host: String,
    /// Hosts in it.
    pub hosts: usize,
    /// Its first rank is on another node than the rank before it.
    pub begins_node: bool,
}

impl Bins {
    pub fn for_ranks(trace: &Trace) -> Bins {
        Bins::of_count(trace.ranks.len())
    }

    pub(super) fn of_count(ranks: usize) -> Bins {
        Bins { ranks, per_bin: ranks.div_ceil(MOST).max(1) }
    }

    pub fn count(&self) -> usize {
        self.ranks.div_ceil(self.per_bin)
    }

    /// The bin of the rank at a place in [`Trace::ranks`].
    pub fn of_place(&self, place: usize) -> usize {
        place / self.per_bin
    }

    pub(super) fn places(&self, bin: usize) -> std::ops::Range<usize> {
        bin * self.per_bin..((bin + 1) * self.per_bin).min(self.ranks)
    }

    pub(super) fn named(&self, trace: &Trace) -> Vec<RankBin> {
        (0..self.count()).map(|bin| self.name(trace, bin)).collect()
    }

    fn name(&self, trace: &Trace, bin: usize) -> RankBin {
        let places = self.places(bin);
        let node = |place: usize| trace.ranks[place].node;
        let mut nodes: Vec<u32> = places.clone().map(node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let first = trace.ranks[places.start].info();
        RankBin {
            first: first.rank,
            last: trace.ranks[places.end - 1].info().rank,
            ranks: places.len(),
            host: first.host.clone(),
            hosts: nodes.len(),
            begins_node: places.start > 0 && node(places.start) != node(places.start - 1),
        }
    }
}
