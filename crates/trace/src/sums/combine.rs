//! Brings the sums of many files together: the same call at the same place is one site on all ranks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::stretch::SummedUp;
use crate::sums::aggregate::FileSums;
use crate::sums::cell::CallCell;
use crate::sums::measures::{Counter, Measure, MeasureSums};
use lapscope_data::db::FileDefinitions;
use lapscope_data::model::{Category, Kind, Nanos, Rank, RankInfo};
use lapscope_data::places::{Interner, Places, SiteId};

/// The sums of a run. Indices of entries are into the vectors beside them.
#[derive(Debug, Default)]
pub struct RunSums {
    /// In the order of rank and life.
    pub ranks: Vec<RankSums>,
    pub places: Arc<Places>,
    pub entries: Vec<Entry>,
    /// (posting entry, completing entry, time): where requests were waited for.
    pub waits: Vec<(usize, usize, Nanos)>,
    pub measures: MeasureSums,
    /// Ranks in which more than one thread made MPI calls.
    pub threaded_ranks: u64,
    /// Left out of a stretch, as it has no moments.
    pub untold: SummedUp,
}

/// A rank and what is known of it as a whole.
#[derive(Debug)]
pub struct RankSums {
    pub info: RankInfo,
    /// Possible overlap of the time in completing calls: computation in the overlap windows of their requests, at most.
    pub possible_overlap: Nanos,
}

/// One cell with the run's index of its rank.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub rank: usize,
    pub site: SiteId,
    pub kind: Kind,
    pub size_class: u8,
    pub is_unsuccessful: bool,
    pub cell: CallCell,
}

/// How long a GPU of a rank computed during calls that have something in common.
#[derive(Debug, Clone, Copy)]
pub struct LaidToGpu {
    pub rank: Rank,
    pub life: i64,
    /// Of a request where it was posted.
    pub site: SiteId,
    pub calls: GpuCalls,
    pub ns: Nanos,
}

/// Which calls that was in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GpuCalls {
    /// The calls of the site themselves: they post, or they block. Of such a size.
    Own { size_class: u8 },
    /// The shares that its requests, of such a size, have of the calls there that ended them.
    Completing { size_class: u8, site: SiteId },
    /// Unsuccessful tests at the site.
    Tests,
}

impl RunSums {
    /// Takes out of all times what GPUs of the ranks computed in meanwhile. This decides what is exposed of them, by site, by size
    /// and by rank.
    pub fn lay_to_gpus(&mut self, all: &[LaidToGpu]) {
        if all.is_empty() {
            return;
        }
        let key = |rank: &RankSums| (rank.info.rank, rank.info.life);
        let ranks: HashMap<_, usize> = self.ranks.iter().map(key).zip(0..).collect();
        let mut entries: HashMap<(usize, SiteId, bool), Vec<usize>> = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            entries.entry((entry.rank, entry.site, entry.is_unsuccessful)).or_default().push(at);
        }
        let mut waits: HashMap<(usize, SiteId, SiteId), Vec<usize>> = HashMap::new();
        for (at, &(post, wait, _)) in self.waits.iter().enumerate() {
            let (post, wait) = (&self.entries[post], &self.entries[wait]);
            waits.entry((post.rank, post.site, wait.site)).or_default().push(at);
        }
        // a loop of tests that another call ended: which tests these were is not on record
        let mut of_others: BTreeMap<usize, Nanos> = BTreeMap::new();
        for laid in all {
            let Some(&rank) = ranks.get(&(laid.rank, laid.life)) else { continue };
            let places = match laid.calls {
                GpuCalls::Own { .. } => entries.get(&(rank, laid.site, false)),
                GpuCalls::Tests => entries.get(&(rank, laid.site, true)),
                GpuCalls::Completing { site, .. } => waits.get(&(rank, laid.site, site)),
            };
            let mut left = laid.ns;
            for &place in places.into_iter().flatten() {
                left = left - self.lay_to_gpu(laid.calls, place, left);
            }
            if laid.calls == GpuCalls::Tests && left.0 > 0 {
                let rest = of_others.entry(rank).or_default();
                *rest += left;
            }
        }
        let mut tests: Vec<usize> =
            entries.into_iter().filter(|(of, _)| of.2).flat_map(|(_, places)| places).collect();
        tests.sort_by_key(|&at| (self.entries[at].rank, self.entries[at].site, at));
        for at in tests {
            if let Some(left) = of_others.get_mut(&self.entries[at].rank) {
                *left = *left - self.lay_to_gpu(GpuCalls::Tests, at, *left);
            }
        }
    }

    /// Takes at most so much out of an entry, or a wait; of another size than is meant nothing.
    fn lay_to_gpu(&mut self, calls: GpuCalls, place: usize, most: Nanos) -> Nanos {
        match calls {
            GpuCalls::Own { size_class } if self.entries[place].size_class != size_class => {
                Nanos(0)
            }
            GpuCalls::Own { .. } | GpuCalls::Tests => self.entries[place].cell.lay_to_gpu(most),
            GpuCalls::Completing { size_class, .. } => {
                let (post, wait, waited) = &mut self.waits[place];
                if self.entries[*post].size_class != size_class {
                    return Nanos(0);
                }
                let taken = self.entries[*wait].cell.lay_to_gpu(most.min(*waited));
                *waited = *waited - taken;
                let completion = &mut self.entries[*post].cell.completion;
                *completion = (*completion - taken).max(Nanos(0));
                taken
            }
        }
    }

    /// Whether some rank kept sums alone from some time on.
    pub fn is_summarized(&self) -> bool {
        self.ranks.iter().any(|rank| rank.info.summarized.is_some())
    }

    /// Combines files; the answer does not depend on their order, nor on how ranks are spread over them.
    pub fn combine(places: Arc<Places>, files: Vec<(FileDefinitions, FileSums)>) -> RunSums {
        let mut run = RunSums { places, ..RunSums::default() };
        let mut counters = Interner::<Counter>::default();
        for (definitions, sums) in files {
            let first_rank = run.ranks.len();
            let first_entry = run.entries.len();
            run.threaded_ranks += definitions.threaded_ranks;
            run.untold.add(&sums.untold);
            for (key, cell) in &sums.cells {
                run.entries.push(Entry {
                    rank: first_rank + key.rank as usize,
                    site: key.site,
                    kind: key.kind,
                    size_class: key.size_class,
                    is_unsuccessful: key.is_unsuccessful,
                    cell: *cell,
                });
            }
            run.waits.extend(sums.waits.iter().map(|&(post, wait, time)| {
                (first_entry + post as usize, first_entry + wait as usize, time)
            }));
            let counter: Vec<usize> = sums
                .measures
                .counters
                .into_iter()
                .map(|counter| counters.intern(counter))
                .collect();
            for sum in &sums.measures.sums {
                let quantity = sum.quantity.of_counter(|of_file| counter[of_file]);
                let rank = first_rank + sum.rank;
                run.measures.sums.push(Measure { rank, quantity, ..*sum });
            }
            let ranks = definitions.ranks.into_iter().zip(sums.possible_overlap);
            run.ranks
                .extend(ranks.map(|(info, possible_overlap)| RankSums { info, possible_overlap }));
        }
        run.measures.counters = counters.values;
        run.sort_ranks();
        run
    }

    /// A file of one rank may come behind a merged one.
    fn sort_ranks(&mut self) {
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        order.sort_by_key(|&index| (self.ranks[index].info.rank, self.ranks[index].info.life));
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        self.ranks.sort_by_key(|rank| (rank.info.rank, rank.info.life));
        for entry in &mut self.entries {
            entry.rank = place[entry.rank];
        }
        for measure in &mut self.measures.sums {
            measure.rank = place[measure.rank];
        }
    }

    /// Leaves only these ranks in; all when `wanted` is empty.
    pub fn retain_ranks(&mut self, wanted: &[Rank]) {
        if wanted.is_empty() {
            return;
        }
        let keeps = |rank: &RankSums| wanted.contains(&rank.info.rank);
        let rank_place = renumber(self.ranks.iter().map(keeps));
        let entry_place =
            renumber(self.entries.iter().map(|entry| rank_place[entry.rank].is_some()));
        self.ranks.retain(keeps);
        self.entries.retain(|entry| rank_place[entry.rank].is_some());
        for entry in &mut self.entries {
            entry.rank = rank_place[entry.rank].unwrap_or_default();
        }
        self.measures.sums.retain(|measure| rank_place[measure.rank].is_some());
        for measure in &mut self.measures.sums {
            measure.rank = rank_place[measure.rank].unwrap_or_default();
        }
        self.waits = std::mem::take(&mut self.waits)
            .into_iter()
            .filter_map(|(post, wait, time)| Some((entry_place[post]?, entry_place[wait]?, time)))
            .collect();
    }

    /// Where an entry's time is counted.
    pub fn category(&self, entry: &Entry) -> Category {
        match self.places.call(entry.site).category() {
            Category::Outside => Category::Outside,
            _ if entry.is_unsuccessful => Category::UnsuccessfulTest,
            category => category,
        }
    }
}

/// For each element its index among those that stay; `None` when it goes.
fn renumber(stays: impl Iterator<Item = bool>) -> Vec<Option<usize>> {
    let mut next = 0..;
    stays.map(|stays| if stays { next.next() } else { None }).collect()
}
