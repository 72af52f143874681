//! Puts the sums of ranks together: by call site, size, path, kind, rank and over time.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells::{Blame, OverlapCell, Slices};
use super::measured::{Measured, RankSums, SiteKey, SiteSums};
use super::sums::{BlockingNumbers, OverlapNumbers, Sums};
use lapscope_data::model::{Kind, Nanos, Rank};
use lapscope_data::places::SiteId;
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_trace::{Locality, Trace};

/// Pairs of ranks that are listed.
const PAIRS: usize = 10;

/// Requests of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct KindRow {
    pub kind: Kind,
    #[serde(flatten)]
    pub numbers: OverlapNumbers,
}

/// Requests of one kind and of similar size.
#[derive(Debug, Serialize)]
pub struct SizeRow {
    pub kind: Kind,
    pub from_bytes: u64,
    /// The first size that is too large.
    pub below_bytes: u64,
    #[serde(flatten)]
    pub numbers: OverlapNumbers,
}

/// Requests whose other side is in the same locality.
#[derive(Debug, Serialize)]
pub struct LocalityRow {
    /// `None`: collectives, and requests whose other side is not known.
    pub locality: Option<Locality>,
    #[serde(flatten)]
    pub numbers: OverlapNumbers,
}

/// One rank.
#[derive(Debug, Serialize)]
pub struct RankOverlap {
    pub rank: Rank,
    pub life: i64,
    pub host: String,
    pub run_ns: Nanos,
    #[serde(flatten)]
    pub numbers: OverlapNumbers,
    pub blocking: BlockingNumbers,
    /// In loops of tests that waited, with what lies between their tests.
    pub waiting_loop_ns: Nanos,
    /// What it computed is not known: several threads call MPI, or something is not on record.
    #[serde(skip)]
    pub has_gaps: bool,
}

/// A part of the run, since the first rank's MPI_Init returned.
#[derive(Debug, Serialize)]
pub struct TimeRow {
    pub begin_ns: Nanos,
    pub end_ns: Nanos,
    #[serde(flatten)]
    pub numbers: OverlapNumbers,
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
    pub numbers: OverlapNumbers,
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

pub(super) fn kinds(measured: &Measured) -> Vec<KindRow> {
    let mut kinds: BTreeMap<Kind, Sums> = BTreeMap::new();
    for (&(kind, _), sums) in &measured.sizes {
        *kinds.entry(kind).or_default() += sums;
    }
    kinds
        .iter()
        .map(|(&kind, sums)| KindRow { kind, numbers: OverlapNumbers::from(sums) })
        .collect()
}

pub(super) fn sizes(measured: &Measured) -> Vec<SizeRow> {
    let row = |(&(kind, class), sums): (&(Kind, u8), &Sums)| SizeRow {
        kind,
        from_bytes: class.checked_sub(1).map_or(0, |exponent| 1 << exponent.min(63)),
        below_bytes: 1u64.checked_shl(class.into()).unwrap_or(u64::MAX),
        numbers: OverlapNumbers::from(sums),
    };
    measured.sizes.iter().map(row).collect()
}

pub(super) fn localities(measured: &Measured) -> Vec<LocalityRow> {
    let rows = measured.localities.iter();
    rows.map(|(&(_, locality), sums)| LocalityRow { locality, numbers: OverlapNumbers::from(sums) })
        .collect()
}

pub(super) fn ranks(trace: &Trace, measured: &Measured) -> Vec<RankOverlap> {
    let row = |(&place, sums): (&u32, &RankSums)| {
        let info = trace.ranks[place as usize].info();
        RankOverlap {
            rank: info.rank,
            life: info.life,
            host: info.host.clone(),
            run_ns: trace.run_time(place as usize),
            numbers: OverlapNumbers::from(&sums.requests),
            blocking: BlockingNumbers::from(&sums.blocking),
            waiting_loop_ns: Nanos(sums.waiting_loops),
            has_gaps: sums.has_gaps,
        }
    };
    measured.ranks.iter().map(row).collect()
}

/// `begin`: of the run.
pub(super) fn over_time(measured: &Measured, begin: i64) -> Vec<TimeRow> {
    let Slices { length, begin: first, .. } = measured.slices;
    let at = |number: i64| Nanos(first - begin + number * length);
    let row = |(number, sum): (i64, &OverlapCell)| TimeRow {
        begin_ns: at(number),
        end_ns: at(number + 1),
        numbers: OverlapNumbers::from(&sum.requests),
        blocking: BlockingNumbers::from(&sum.blocking),
    };
    (0..).zip(&measured.over_time).map(row).collect()
}

pub(super) fn late_pairs(trace: &Trace, measured: &Measured) -> Vec<LatePair> {
    let mut pairs: Vec<(&(u32, u32), &Blame)> = measured.pairs.iter().collect();
    pairs.sort_by_key(|&(pair, blame)| (-blame.total(), pair));
    pairs.truncate(PAIRS);
    let name = |place: u32| trace.ranks[place as usize].info().rank;
    pairs
        .into_iter()
        .map(|(&(rank, other), blame)| LatePair {
            rank: name(rank),
            waited_for: name(other),
            late_partner_ns: Nanos(blame.late),
            no_remote_progress_ns: Nanos(blame.outside),
        })
        .collect()
}

/// Call sites with their names.
pub(super) struct NamedSites<'a> {
    trace: &'a Trace,
    measured: &'a Measured,
    names: &'a mut dyn NameFrames,
}

impl<'a> NamedSites<'a> {
    pub fn new(
        trace: &'a Trace,
        measured: &'a Measured,
        names: &'a mut dyn NameFrames,
    ) -> NamedSites<'a> {
        NamedSites { trace, measured, names }
    }

    pub fn name(&mut self, site: SiteId) -> Option<FrameName> {
        let frame = self.trace.places.site(site).frame;
        frame.and_then(|frame| self.names.name(frame).into_iter().next())
    }

    pub fn call(&self, site: SiteId) -> String {
        self.trace.places.call(site).name.clone()
    }

    fn group(&self, is_request: bool) -> Vec<(SiteKey, &'a SiteSums)> {
        let mut sites: Vec<(SiteKey, &SiteSums)> = self
            .measured
            .sites
            .iter()
            .filter(|(key, _)| key.2 == is_request)
            .map(|(&key, site)| (key, site))
            .collect();
        let time = |site: &SiteSums| {
            site.cell.requests.exposed.total() + site.cell.blocking.exposed.total()
        };
        sites.sort_by(|a, b| {
            let place =
                |key: &SiteKey| (self.call(key.0), key.1, self.trace.places.site(key.0).frame);
            time(b.1).cmp(&time(a.1)).then_with(|| place(&a.0).cmp(&place(&b.0)))
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
                ranks: site.ranks as usize,
                numbers: OverlapNumbers::from(&site.cell.requests),
                completed_in: self.completed_in(site),
                waited_for: self.waited_for(site),
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
                ranks: site.ranks as usize,
                numbers: BlockingNumbers::from(&site.cell.blocking),
                waited_for: self.waited_for(site),
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
        let most = site.waited_for.iter().max_by_key(|(&other, (blame, _))| (blame.total(), other));
        let (&(post, completing), (blame, ranks)) = most?;
        let mut ranks: Vec<(i64, u32)> =
            ranks.iter().map(|(&rank, blame)| (-blame.total(), rank)).collect();
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
