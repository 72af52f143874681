//! Sums of some ranks or of all: what of ranks is put together in any order, and comes to the same.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::cells::LoopSums;
use super::cells::{Blame, OverlapCell, OverlapCellKey, RankOverlaps, Slices};
use super::sampled::SlotKey;
use super::sums::{BlockingSums, Sums};
use crate::gpu_efficiency::GpuUse;
use lapscope_data::model::{Kind, Nanos};
use lapscope_data::places::SiteId;
use lapscope_trace::sums::combine::{GpuCalls, LaidToGpu};
use lapscope_trace::{Locality, Trace};

/// Requests, or blocking calls, of one place: the site, the kind, and whether they are requests.
pub(super) type SiteKey = (SiteId, Kind, bool);

/// Post and completion of the other side.
pub(super) type Other = (Option<SiteId>, Option<SiteId>);

/// What is known of one place.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SiteSums {
    pub cell: OverlapCell,
    /// Ranks that have been there.
    pub ranks: u64,
    /// Time by the completing call's site.
    pub completed_in: BTreeMap<SiteId, i64>,
    /// Waiting for others, in all and by the rank that was waited for.
    pub waited_for: BTreeMap<Other, (Blame, BTreeMap<u32, Blame>)>,
}

/// One rank as a whole.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct RankSums {
    pub requests: Sums,
    pub blocking: BlockingSums,
    /// Completing time of requests whose start was not seen.
    pub unattributed: i64,
    /// Unsuccessful tests of loops that waited.
    pub polling: BlockingSums,
    /// Those loops, with what lies between their tests.
    pub waiting_loops: i64,
    /// What it computed is not known: several threads call MPI, or something is not on record.
    pub has_gaps: bool,
    pub gpus: GpuUse,
}

/// Sums of a run or of some of its ranks, not yet put together for reading. Ranks are places in
/// [`Trace::ranks`](lapscope_trace::Trace::ranks).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Those that were asked for.
    pub(super) ranks: BTreeMap<u32, RankSums>,
    pub(super) slices: Slices,
    pub(super) over_time: Vec<OverlapCell>,
    /// Sums of ranks that recorded a part of the run, by slot and stage.
    pub(super) slots: BTreeMap<SlotKey, OverlapCell>,
    pub(super) sites: FxHashMap<SiteKey, SiteSums>,
    pub(super) sizes: BTreeMap<(Kind, u8), Sums>,
    /// Requests without a single other side come last.
    pub(super) localities: BTreeMap<(bool, Option<Locality>), Sums>,
    /// Loops of tests, by rank and place.
    pub(super) loops: BTreeMap<(u32, SiteId), LoopSums>,
    /// Who waited for whom.
    pub(super) pairs: FxHashMap<(u32, u32), Blame>,
    /// For how long GPUs computed during calls: by rank, and site of the call or the post.
    beside_gpus: BTreeMap<(u32, SiteId, GpuCalls), i64>,
}

impl Measured {
    /// The sums of no rank.
    pub(super) fn nothing(slices: Slices) -> Measured {
        let over_time = vec![OverlapCell::default(); slices.count];
        Measured { slices, over_time, ..Measured::default() }
    }

    pub(super) fn of_rank(
        trace: &Trace,
        place: usize,
        found: RankOverlaps,
        slices: Slices,
    ) -> Self {
        let rank = &trace.ranks[place];
        let mut measured = Measured { slices, over_time: found.slices, ..Measured::default() };
        for (detail, cell) in rank.detail.iter().zip(&found.slots) {
            if !trace.is_counted(place, detail.begin) {
                continue; // a slot that is cut by a stretch's begin would stand for a whole one
            }
            *measured.slots.entry((detail.slot, detail.stage)).or_default() += cell;
        }
        let place = place as u32;
        let (unattributed, polling) = (found.unattributed, found.polling);
        let waiting_loops = found.waiting_loops;
        let has_gaps = rank.threads.count() > 1 || rank.leaves_time_open();
        let gpus = GpuUse::of_rank(rank.info(), &rank.devices, trace.own_span(place as usize));
        let mut whole = RankSums {
            unattributed,
            polling,
            waiting_loops,
            has_gaps,
            gpus,
            ..RankSums::default()
        };
        let site_of = |cell: u32| {
            let key = &found.cells[cell as usize].0;
            (key.site, key.kind, key.is_request)
        };
        for (index, (key, cell)) in (0..).zip(&found.cells) {
            whole.requests += &cell.requests;
            whole.blocking += &cell.blocking;
            if cell.requests.requests + cell.blocking.calls == 0 {
                continue;
            }
            let site = measured.sites.entry(site_of(index)).or_default();
            site.cell += cell;
            site.ranks = 1;
            if cell.requests.requests > 0 {
                *measured.sizes.entry((key.kind, key.size_class)).or_default() += &cell.requests;
                let locality = (key.locality.is_none(), key.locality);
                *measured.localities.entry(locality).or_default() += &cell.requests;
            }
        }
        measured.ranks.insert(place, whole);
        measured.loops = found.loops.iter().map(|(&site, &it)| ((place, site), it)).collect();
        for (&(cell, by), exposed) in &found.completed_in {
            let by = rank.operations[by as usize].site;
            if let Some(site) = measured.sites.get_mut(&site_of(cell)) {
                *site.completed_in.entry(by).or_default() += exposed.total();
            }
            let OverlapCellKey { site, size_class, .. } = found.cells[cell as usize].0;
            let calls = GpuCalls::Completing { size_class, site: by };
            measured.add_beside_gpu(place, site, calls, exposed.beside_gpu);
        }
        for (key, cell) in &found.cells {
            let own = cell.requests.post_beside_gpu + cell.blocking.exposed.beside_gpu;
            let calls = GpuCalls::Own { size_class: key.size_class };
            // files are no communication, and nothing of them is exposed
            let own = if key.kind == Kind::Io { 0 } else { own };
            measured.add_beside_gpu(place, key.site, calls, own);
        }
        for (&site, &ns) in &found.polled_beside_gpu {
            measured.add_beside_gpu(place, site, GpuCalls::Tests, ns);
        }
        for (key, blame) in &found.culprits {
            *measured.pairs.entry((place, key.rank)).or_default() += *blame;
            if let Some(site) = measured.sites.get_mut(&site_of(key.cell)) {
                let (sum, ranks) = site.waited_for.entry((key.site, key.completing)).or_default();
                *sum += *blame;
                *ranks.entry(key.rank).or_default() += *blame;
            }
        }
        measured
    }

    fn add_beside_gpu(&mut self, place: u32, site: SiteId, calls: GpuCalls, ns: i64) {
        if ns > 0 {
            *self.beside_gpus.entry((place, site, calls)).or_default() += ns;
        }
    }

    /// For how long GPUs computed during calls of these ranks.
    pub fn laid_to_gpus(&self, trace: &Trace) -> Vec<LaidToGpu> {
        let laid = |(&(place, site, calls), &ns): (&(u32, SiteId, GpuCalls), &i64)| {
            let info = trace.ranks[place as usize].info();
            LaidToGpu { rank: info.rank, life: info.life, site, calls, ns: Nanos(ns) }
        };
        self.beside_gpus.iter().map(laid).collect()
    }

    /// Adds what was found of other ranks.
    #[must_use]
    pub fn merge(mut self, other: Measured) -> Measured {
        if self.ranks.is_empty() {
            return other;
        }
        for (rank, sums) in other.ranks {
            self.ranks.insert(rank, sums);
        }
        for (slice, more) in self.over_time.iter_mut().zip(&other.over_time) {
            *slice += more;
        }
        for (key, more) in &other.slots {
            *self.slots.entry(*key).or_default() += more;
        }
        for (key, more) in other.sites {
            self.sites.entry(key).or_default().merge(more);
        }
        for (key, more) in &other.sizes {
            *self.sizes.entry(*key).or_default() += more;
        }
        for (key, more) in &other.localities {
            *self.localities.entry(*key).or_default() += more;
        }
        self.loops.extend(other.loops);
        self.beside_gpus.extend(other.beside_gpus);
        for (pair, blame) in other.pairs {
            *self.pairs.entry(pair).or_default() += blame;
        }
        self
    }

    /// What the GPUs of these ranks did.
    pub(super) fn gpus(&self) -> GpuUse {
        let mut all = GpuUse::default();
        self.ranks.values().for_each(|rank| all.merge(&rank.gpus));
        all
    }

    /// Places in [`Trace::ranks`](lapscope_trace::Trace::ranks) of the ranks that were asked for.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranks.keys().map(|&place| place as usize)
    }

    /// The place of the rank that was exposed longest.
    pub fn costliest_rank(&self) -> Option<u32> {
        let exposed = |sums: &RankSums| {
            sums.requests.exposed.total().saturating_add(sums.blocking.exposed.total())
        };
        self.ranks.iter().rev().max_by_key(|(_, sums)| exposed(sums)).map(|(&place, _)| place)
    }

    /// Time in calls that completed requests, by where these were posted and by the call; of blocking calls both are theirs.
    pub(crate) fn exposed_by_completion(&self) -> BTreeMap<(SiteId, SiteId), Nanos> {
        let mut exposed: BTreeMap<(SiteId, SiteId), Nanos> = BTreeMap::new();
        for (&(site, _, is_request), sums) in &self.sites {
            for (&by, &time) in &sums.completed_in {
                *exposed.entry((site, by)).or_default() += Nanos(time);
            }
            if !is_request {
                let time = Nanos(sums.cell.blocking.exposed.total());
                *exposed.entry((site, site)).or_default() += time;
            }
        }
        exposed
    }

    /// What calls waited for their other sides, by where these had posted.
    pub(crate) fn waited_for(&self) -> BTreeMap<SiteId, Nanos> {
        let mut waited: BTreeMap<SiteId, Nanos> = BTreeMap::new();
        for (other, (blame, _)) in self.sites.values().flat_map(|site| &site.waited_for) {
            if let Some(site) = other.0 {
                *waited.entry(site).or_default() += Nanos(blame.total());
            }
        }
        waited
    }
}

impl SiteSums {
    fn merge(&mut self, other: SiteSums) {
        self.cell += &other.cell;
        self.ranks += other.ranks;
        for (by, time) in other.completed_in {
            *self.completed_in.entry(by).or_default() += time;
        }
        for (key, (blame, by_rank)) in other.waited_for {
            let (sum, ranks) = self.waited_for.entry(key).or_default();
            *sum += blame;
            for (rank, blame) in by_rank {
                *ranks.entry(rank).or_default() += blame;
            }
        }
    }
}
