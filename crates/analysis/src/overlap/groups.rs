//! Puts the sums of ranks together: by call site, size, path, kind, rank and over time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::sums::{BlockingNumbers, Numbers, Sums};
use super::walk::{Blame, CellKey, Measured, OverlapCell};
use crate::trace::{Locality, Trace};
use lapscope_data::model::{Kind, Nanos, Rank};
use lapscope_data::places::SiteId;
use lapscope_data::symbols::{FrameName, NameFrames};

/// Pairs of ranks that are listed.
const PAIRS: usize = 10;

/// Requests of one kind.
#[derive(Debug, Serialize)]
pub struct KindRow {
    pub kind: Kind,
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// Requests of one kind and of similar size.
#[derive(Debug, Serialize)]
pub struct SizeRow {
    pub kind: Kind,
    pub from_bytes: u64,
    /// The first size that is too large.
    pub below_bytes: u64,
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// Requests whose other side is in the same locality.
#[derive(Debug, Serialize)]
pub struct LocalityRow {
    /// `None`: collectives, and requests whose other side is not known.
    pub locality: Option<Locality>,
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// One rank.
#[derive(Debug, Serialize)]
pub struct RankRow {
    pub rank: Rank,
    pub life: i64,
    pub run_ns: Nanos,
    #[serde(flatten)]
    pub numbers: Numbers,
    pub blocking: BlockingNumbers,
}

/// A part of the run, since the first rank's MPI_Init returned.
#[derive(Debug, Serialize)]
pub struct TimeRow {
    pub begin_ns: Nanos,
    pub end_ns: Nanos,
    #[serde(flatten)]
    pub numbers: Numbers,
    pub blocking: BlockingNumbers,
}

/// A place, and how much of a site's time is tied to it.
#[derive(Debug, Clone, Serialize)]
pub struct CompletedIn {
    pub call: String,
    pub site: Option<FrameName>,
    pub exposed_ns: Nanos,
}

/// The other side that a site waited for longest.
#[derive(Debug, Clone, Serialize)]
pub struct WaitedFor {
    /// Ranks that were waited for, the longest first, a few of them.
    pub ranks: Vec<Rank>,
    /// Its post or blocking call; `None` for collectives, where it is the same call.
    pub call: Option<String>,
    pub site: Option<FrameName>,
    /// What completed its request.
    pub completed_call: Option<String>,
    pub completed_site: Option<FrameName>,
    pub late_partner_ns: Nanos,
    pub no_remote_progress_ns: Nanos,
}

/// Requests made at one place.
#[derive(Debug, Clone, Serialize)]
pub struct SiteRow {
    #[serde(skip)]
    pub id: SiteId,
    pub call: String,
    pub kind: Kind,
    pub site: Option<FrameName>,
    pub ranks: usize,
    #[serde(flatten)]
    pub numbers: Numbers,
    /// Where most of the exposed time went by.
    pub completed_in: Option<CompletedIn>,
    pub waited_for: Option<WaitedFor>,
}

/// Blocking calls at one place.
#[derive(Debug, Clone, Serialize)]
pub struct BlockingRow {
    #[serde(skip)]
    pub id: SiteId,
    pub call: String,
    pub kind: Kind,
    pub site: Option<FrameName>,
    pub ranks: usize,
    #[serde(flatten)]
    pub numbers: BlockingNumbers,
    pub waited_for: Option<WaitedFor>,
}

/// How long one rank waited for another.
#[derive(Debug, Clone, Serialize)]
pub struct LatePair {
    pub rank: Rank,
    pub waited_for: Rank,
    pub late_partner_ns: Nanos,
    pub no_remote_progress_ns: Nanos,
}

fn cells(measured: &Measured) -> impl Iterator<Item = &(CellKey, OverlapCell)> {
    measured.ranks.iter().flat_map(|(_, found)| &found.cells)
}

fn requests_by<K: Ord>(measured: &Measured, key: impl Fn(&CellKey) -> K) -> BTreeMap<K, Sums> {
    let mut rows: BTreeMap<K, Sums> = BTreeMap::new();
    for (cell, sums) in cells(measured).filter(|(_, cell)| cell.requests.requests > 0) {
        *rows.entry(key(cell)).or_default() += &sums.requests;
    }
    rows
}

pub(super) fn kinds(measured: &Measured) -> Vec<KindRow> {
    let rows = requests_by(measured, |cell| cell.kind);
    rows.iter().map(|(&kind, sums)| KindRow { kind, numbers: Numbers::from(sums) }).collect()
}

pub(super) fn sizes(measured: &Measured) -> Vec<SizeRow> {
    let rows = requests_by(measured, |cell| (cell.kind, cell.size_class));
    rows.iter()
        .map(|(&(kind, class), sums)| SizeRow {
            kind,
            from_bytes: class.checked_sub(1).map_or(0, |exponent| 1 << exponent.min(63)),
            below_bytes: 1u64.checked_shl(class.into()).unwrap_or(u64::MAX),
            numbers: Numbers::from(sums),
        })
        .collect()
}

pub(super) fn localities(measured: &Measured) -> Vec<LocalityRow> {
    let rows = requests_by(measured, |cell| (cell.locality.is_none(), cell.locality));
    rows.iter()
        .map(|(&(_, locality), sums)| LocalityRow { locality, numbers: Numbers::from(sums) })
        .collect()
}

pub(super) fn ranks(trace: &Trace, measured: &Measured) -> Vec<RankRow> {
    let row = |(place, found): &(usize, super::walk::RankFound)| {
        let info = trace.ranks[*place].info();
        let mut sum = OverlapCell::default();
        for (_, cell) in &found.cells {
            sum.requests += &cell.requests;
            sum.blocking += &cell.blocking;
        }
        RankRow {
            rank: info.rank,
            life: info.life,
            run_ns: info.run_time(),
            numbers: Numbers::from(&sum.requests),
            blocking: BlockingNumbers::from(&sum.blocking),
        }
    };
    measured.ranks.iter().map(row).collect()
}

pub(super) fn over_time(measured: &Measured) -> Vec<TimeRow> {
    let slices = measured.slices;
    (0..slices.count)
        .map(|number| {
            let mut sum = OverlapCell::default();
            for (_, found) in &measured.ranks {
                sum.requests += &found.slices[number].requests;
                sum.blocking += &found.slices[number].blocking;
            }
            let begin = number as i64 * slices.length;
            TimeRow {
                begin_ns: Nanos(begin),
                end_ns: Nanos(begin + slices.length),
                numbers: Numbers::from(&sum.requests),
                blocking: BlockingNumbers::from(&sum.blocking),
            }
        })
        .collect()
}

pub(super) fn late_pairs(trace: &Trace, measured: &Measured) -> Vec<LatePair> {
    let mut pairs: FxHashMap<(usize, u32), Blame> = FxHashMap::default();
    for (rank, found) in &measured.ranks {
        for (key, blame) in &found.culprits {
            let sum = pairs.entry((*rank, key.rank)).or_default();
            sum.late += blame.late;
            sum.outside += blame.outside;
        }
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by_key(|&(pair, blame)| (-(blame.late + blame.outside), pair));
    pairs.truncate(PAIRS);
    let name = |place: usize| trace.ranks[place].info().rank;
    pairs
        .into_iter()
        .map(|((rank, other), blame)| LatePair {
            rank: name(rank),
            waited_for: name(other as usize),
            late_partner_ns: Nanos(blame.late),
            no_remote_progress_ns: Nanos(blame.outside),
        })
        .collect()
}

impl Measured {
    /// Places in [`Trace::ranks`] of the ranks that were asked for.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranks.iter().map(|&(place, _)| place)
    }

    /// Time in calls that completed requests, by where these were posted and by the call; of blocking calls both are theirs.
    pub(crate) fn exposed_by_completion(&self, trace: &Trace) -> BTreeMap<(SiteId, SiteId), Nanos> {
        let mut exposed: BTreeMap<(SiteId, SiteId), Nanos> = BTreeMap::new();
        for (rank, found) in &self.ranks {
            for (&(cell, by), &time) in &found.completed_in {
                let by = trace.ranks[*rank].operations[by as usize].site;
                *exposed.entry((found.cells[cell as usize].0.site, by)).or_default() += Nanos(time);
            }
            for (key, cell) in found.cells.iter().filter(|(key, _)| !key.is_request) {
                let time = Nanos(cell.blocking.exposed.total());
                *exposed.entry((key.site, key.site)).or_default() += time;
            }
        }
        exposed
    }

    /// What calls waited for their other sides, by where these had posted.
    pub(crate) fn waited_for(&self) -> BTreeMap<SiteId, Nanos> {
        let mut waited: BTreeMap<SiteId, Nanos> = BTreeMap::new();
        for (key, blame) in self.ranks.iter().flat_map(|(_, found)| &found.culprits) {
            if let Some(site) = key.site {
                *waited.entry(site).or_default() += Nanos(blame.late.saturating_add(blame.outside));
            }
        }
        waited
    }
}

type SiteKey = (SiteId, Kind, bool);

/// Call sites with their names.
pub(super) struct Named<'a> {
    trace: &'a Trace,
    measured: &'a Measured,
    names: &'a mut dyn NameFrames,
}

#[derive(Default)]
struct SiteSums {
    cell: OverlapCell,
    ranks: BTreeSet<usize>,
    completed_in: HashMap<SiteId, i64>,
    waited_for: HashMap<Other, (Blame, HashMap<u32, Blame>)>,
}

/// Post and completion of the other side.
type Other = (Option<SiteId>, Option<SiteId>);

impl<'a> Named<'a> {
    pub fn new(
        trace: &'a Trace,
        measured: &'a Measured,
        names: &'a mut dyn NameFrames,
    ) -> Named<'a> {
        Named { trace, measured, names }
    }

    fn name(&mut self, site: SiteId) -> Option<FrameName> {
        let frame = self.trace.places.site(site).frame;
        frame.and_then(|frame| self.names.name(frame).into_iter().next())
    }

    fn call(&self, site: SiteId) -> String {
        self.trace.places.call(site).name.clone()
    }

    fn group(&self, is_request: bool) -> Vec<(SiteKey, SiteSums)> {
        let mut sites: HashMap<SiteKey, SiteSums> = HashMap::new();
        for (rank, found) in &self.measured.ranks {
            let key_of = |cell: u32| {
                let key = &found.cells[cell as usize].0;
                (key.site, key.kind, key.is_request)
            };
            for (index, (_, cell)) in (0..).zip(&found.cells) {
                let key = key_of(index);
                if key.2 == is_request && cell.requests.requests + cell.blocking.calls > 0 {
                    let site = sites.entry(key).or_default();
                    site.cell.requests += &cell.requests;
                    site.cell.blocking += &cell.blocking;
                    site.ranks.insert(*rank);
                }
            }
            for (&(cell, by), time) in &found.completed_in {
                let by = &self.trace.ranks[*rank].operations[by as usize];
                if let Some(site) = sites.get_mut(&key_of(cell)) {
                    *site.completed_in.entry(by.site).or_default() += time;
                }
            }
            for (key, blame) in &found.culprits {
                if let Some(site) = sites.get_mut(&key_of(key.cell)) {
                    let other = (key.site, key.completing);
                    let (sum, ranks) = site.waited_for.entry(other).or_default();
                    for sum in [sum, ranks.entry(key.rank).or_default()] {
                        sum.late += blame.late;
                        sum.outside += blame.outside;
                    }
                }
            }
        }
        let mut sites: Vec<_> = sites.into_iter().collect();
        let time = |site: &SiteSums| {
            site.cell.requests.exposed.total() + site.cell.blocking.exposed.total()
        };
        sites.sort_by(|a, b| {
            let place =
                |key: &SiteKey| (self.call(key.0), key.1, self.trace.places.site(key.0).frame);
            time(&b.1).cmp(&time(&a.1)).then_with(|| place(&a.0).cmp(&place(&b.0)))
        });
        sites
    }

    pub fn sites(&mut self) -> Vec<SiteRow> {
        let groups = self.group(true);
        groups
            .into_iter()
            .map(|((id, kind, _), site)| SiteRow {
                id,
                call: self.call(id),
                kind,
                site: self.name(id),
                ranks: site.ranks.len(),
                numbers: Numbers::from(&site.cell.requests),
                completed_in: self.completed_in(&site),
                waited_for: self.waited_for(&site),
            })
            .collect()
    }

    pub fn blocking(&mut self) -> Vec<BlockingRow> {
        let groups = self.group(false);
        groups
            .into_iter()
            .map(|((id, kind, _), site)| BlockingRow {
                id,
                call: self.call(id),
                kind,
                site: self.name(id),
                ranks: site.ranks.len(),
                numbers: BlockingNumbers::from(&site.cell.blocking),
                waited_for: self.waited_for(&site),
            })
            .collect()
    }

    /// Ties are broken by place, so that the answer does not depend on the order of a hash table.
    fn completed_in(&mut self, site: &SiteSums) -> Option<CompletedIn> {
        let most = site.completed_in.iter().max_by_key(|(&place, &time)| (time, place));
        let (&completing, &time) = most?;
        let (call, site) = (self.call(completing), self.name(completing));
        Some(CompletedIn { call, site, exposed_ns: Nanos(time) })
    }

    fn waited_for(&mut self, site: &SiteSums) -> Option<WaitedFor> {
        const SHOWN: usize = 8;
        let time = |blame: &Blame| blame.late + blame.outside;
        let most = site.waited_for.iter().max_by_key(|(&other, (blame, _))| (time(blame), other));
        let (&(post, completing), (blame, ranks)) = most?;
        let mut ranks: Vec<(i64, u32)> =
            ranks.iter().map(|(&rank, blame)| (-time(blame), rank)).collect();
        ranks.sort_unstable();
        let rank = |&(_, place): &(i64, u32)| self.trace.ranks[place as usize].info().rank;
        Some(WaitedFor {
            ranks: ranks.iter().take(SHOWN).map(rank).collect(),
            call: post.map(|post| self.call(post)),
            site: post.and_then(|post| self.name(post)),
            completed_call: completing.map(|completing| self.call(completing)),
            completed_site: completing.and_then(|completing| self.name(completing)),
            late_partner_ns: Nanos(blame.late),
            no_remote_progress_ns: Nanos(blame.outside),
        })
    }
}
