//! Overlap: what was overlapped with computation, what could have been, what was lost, and what exposed time was spent
//! waiting for. Hidden and lost are sums over requests ([`request`]); exposed time is that of the completing calls, each
//! counted once ([`exposure`]) and shared out to the requests that it completed.

mod cells;
pub mod exposure;
pub mod groups;
mod later;
pub mod loops;
mod measured;
pub mod request;
pub mod sampled;
mod side;
pub mod sums;
mod together;
mod waited;
mod walk;
pub mod witness;

use rayon::prelude::*;
use serde::Serialize;

pub use self::cells::Slices;
use self::groups::{
    KindRow, LatePair, LocalityRow, NamedSites, RankOverlap, SiteRow, SizeRow, TimeRow,
};
use self::loops::TestLoop;
pub use self::measured::Measured;
use self::sampled::Sampled;
pub use self::side::EagerLimits;
use self::side::Sides;
use self::sums::{BlockingNumbers, BlockingSums, OverlapNumbers, Sums};
pub(crate) use self::walk::reference_time;
use self::walk::Walk;
use self::witness::Witness;
use crate::gpu_efficiency::GpuUse;
use crate::reference::{Description, Reference, ReferenceSource};
use lapscope_data::model::{Full, Kind, Nanos, Rank};
use lapscope_data::symbols::NameFrames;
use lapscope_data::JSON_VERSION;
use lapscope_trace::problem::Problem;
use lapscope_trace::stretch::NamedStretch;
use lapscope_trace::sums::combine::LaidToGpu;
use lapscope_trace::{Clocks, Matching, Trace};

/// Parts into which the run is cut over time.
const SLICES: usize = 60;

/// The overlap of a run. Keys are documented in `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct Overlap {
    pub json_version: u32,
    pub run: String,
    /// What of the run this is of; `None`: all of it.
    pub stretch: Option<NamedStretch>,
    pub problems: Vec<Problem>,
    pub reference: ReferenceNotes,
    /// What to know of the numbers; nobody has said it yet.
    #[serde(skip)]
    pub notes: Vec<OverlapNote>,
    /// Of some rank it is recorded when its GPUs worked.
    #[serde(skip)]
    pub has_device_time: bool,
    #[serde(skip)]
    pub laid_to_gpus: Vec<LaidToGpu>,
    #[serde(skip)]
    pub gpus: GpuUse,
    pub clocks: Clocks,
    pub matching: Matching,
    pub totals: OverlapTotals,
    pub kinds: Vec<KindRow>,
    /// Requests by the call site that made them; those that were waited for longest first.
    pub sites: Vec<SiteRow>,
    pub site_count: usize,
    pub sizes: Vec<SizeRow>,
    pub localities: Vec<LocalityRow>,
    pub ranks: Vec<RankOverlap>,
    pub over_time: Vec<TimeRow>,
    /// Where only a part of the run has rows, and chance has drawn it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    pub blocking: Blocking,
    /// Unsuccessful tests of loops that waited.
    pub polling: BlockingNumbers,
    /// Ranks that waited in loops of tests, the longest first.
    pub test_loops: Vec<TestLoop>,
    /// Who was waited for, the longest first.
    pub late_pairs: Vec<LatePair>,
}

/// Reference times, and what to know of them.
#[derive(Debug, Clone, Serialize)]
pub struct ReferenceNotes {
    #[serde(flatten)]
    pub description: Description,
    /// Empty until somebody writes them.
    pub notes: Vec<String>,
}

/// What limits the numbers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlapNote {
    NoReferenceTimes,
    /// So many requests have no reference time.
    FewReferenceTimes {
        without: u64,
        transfers: u64,
    },
    /// So many ranks kept sums alone from some point on, the first of them for this.
    SummedUp {
        why: Full,
        ranks: u64,
    },
}

/// All requests.
#[derive(Debug, Clone, Serialize)]
pub struct OverlapTotals {
    /// MPI_Init to MPI_Finalize, summed over the ranks that were asked for.
    pub run_ns: Nanos,
    #[serde(flatten)]
    pub numbers: OverlapNumbers,
    /// Completing time of requests whose start was not seen; not part of `exposed_ns`.
    pub unattributed_ns: Nanos,
}

/// Blocking sends, receives and collectives, and one-sided calls that waited for their target.
#[derive(Debug, Serialize)]
pub struct Blocking {
    #[serde(flatten)]
    pub totals: BlockingNumbers,
    pub sites: Vec<groups::BlockingRow>,
    pub site_count: usize,
}

/// What the user asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct OverlapOptions<'a> {
    /// Call sites wanted; 0 means all.
    pub top: usize,
    /// Ranks wanted; none means all.
    pub ranks: &'a [Rank],
}

/// A look at every request, once.
#[derive(Clone, Copy)]
pub struct Measuring<'a> {
    pub trace: &'a Trace,
    pub reference: &'a Reference,
    /// Which sends wait for nobody.
    pub eager: EagerLimits,
    /// Whose requests; none: of all ranks.
    pub ranks: &'a [Rank],
    /// Is told now and then how many more requests were done.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl Measuring<'_> {
    /// What is summed of all.
    pub fn sums(self) -> Measured {
        self.learn(|_| (), (|()| (), |(), ()| ())).0
    }

    /// Tells a witness of each rank of all its calls, too; returns these in the order of ranks.
    pub fn tell<W: Witness>(self, witness: impl Fn(usize) -> W + Sync) -> (Measured, Vec<W>) {
        let all = |mut some: Vec<W>, others: Vec<W>| {
            some.extend(others);
            some
        };
        self.learn(witness, (|witness| vec![witness], all))
    }

    /// With what each witness has learned in its place, put together as soon as its rank is done: of the witnesses of all ranks the
    /// memory would be needed at once.
    pub fn learn<W: Witness, T: Default + Send>(
        self,
        witness: impl Fn(usize) -> W + Sync,
        (learned, both): (impl Fn(W) -> T + Sync, impl Fn(T, T) -> T + Sync),
    ) -> (Measured, T) {
        let Measuring { trace, reference, eager, ranks, progress } = self;
        let slices = Slices::cut(trace, SLICES);
        let wanted: Vec<usize> = trace
            .focus()
            .filter(|&place| ranks.is_empty() || ranks.contains(&trace.ranks[place].info().rank))
            .collect();
        let sides = Sides { trace, eager };
        let walk = |rank: usize| {
            let walk = Walk::new(trace, rank, reference, sides, slices, witness(rank));
            let (found, witness) = walk.run(progress);
            (Measured::of_rank(trace, rank, found, slices), learned(witness))
        };
        let nothing = || (Measured::nothing(slices), T::default());
        wanted
            .into_par_iter()
            .map(walk)
            .reduce(nothing, |some, more| (some.0.merge(more.0), both(some.1, more.1)))
    }
}

impl Overlap {
    /// Puts sums together. Of problems it knows nothing.
    pub fn build(
        run: &str,
        trace: &Trace,
        reference: &Reference,
        measured: &Measured,
        options: OverlapOptions<'_>,
        names: &mut dyn NameFrames,
    ) -> Overlap {
        let mut totals = Sums::default();
        let mut blocking = BlockingSums::default();
        let mut polling = BlockingSums::default();
        for rank in measured.ranks.values() {
            totals += &rank.requests;
            blocking += &rank.blocking;
            polling += &rank.polling;
        }
        let unattributed = measured.ranks.values().map(|rank| rank.unattributed).sum();
        let run_ns = measured.places().map(|place| trace.run_time(place)).sum();
        let mut named = NamedSites::new(trace, measured, names);
        let mut sites = named.sites();
        let mut blocking_sites = named.blocking();
        let test_loops = loops::rows(trace, measured, &mut named);
        let (site_count, blocking_count) = (sites.len(), blocking_sites.len());
        if options.top > 0 {
            sites.truncate(options.top);
            blocking_sites.truncate(options.top);
        }
        let sizes = measured.sizes.iter();
        let generalized: u64 = sizes
            .filter(|((kind, _), _)| *kind == Kind::Generalized)
            .map(|(_, sums)| sums.requests)
            .sum();
        let few = reference_note(reference, &totals, generalized);
        let notes = few.into_iter().chain(summary_note(trace)).collect();
        let sampled = Sampled::estimate(&measured.slots);
        Overlap {
            json_version: JSON_VERSION,
            run: run.to_owned(),
            stretch: None,
            problems: Vec::new(),
            reference: ReferenceNotes { description: reference.describe(), notes: Vec::new() },
            notes,
            has_device_time: measured
                .places()
                .any(|place| trace.ranks[place].info().has_device_time()),
            laid_to_gpus: measured.laid_to_gpus(trace),
            gpus: measured.gpus(),
            clocks: trace.clocks.clone(),
            matching: trace.matching.clone(),
            totals: OverlapTotals {
                run_ns,
                numbers: OverlapNumbers::from(&totals),
                unattributed_ns: Nanos(unattributed),
            },
            kinds: groups::kinds(measured),
            sites,
            site_count,
            sizes: groups::sizes(measured),
            localities: groups::localities(measured),
            ranks: groups::ranks(trace, measured),
            over_time: groups::over_time(measured, trace.begin()),
            sampled,
            blocking: Blocking {
                totals: BlockingNumbers::from(&blocking),
                sites: blocking_sites,
                site_count: blocking_count,
            },
            polling: BlockingNumbers::from(&polling),
            test_loops,
            late_pairs: groups::late_pairs(trace, measured),
        }
    }
}

/// Sums that stand for requests have no partners.
fn summary_note(trace: &Trace) -> Option<OverlapNote> {
    let full: Vec<Full> = trace.ranks.iter().filter_map(|rank| rank.info().summarized).collect();
    full.first().map(|&why| OverlapNote::SummedUp { why, ranks: full.len() as u64 })
}

/// `generalized`: so many requests transfer nothing.
fn reference_note(reference: &Reference, totals: &Sums, generalized: u64) -> Option<OverlapNote> {
    let transfers = totals.requests - generalized;
    let without = transfers.saturating_sub(totals.measured);
    if transfers == 0 && generalized > 0 {
        None
    } else if reference.source == ReferenceSource::None || reference.is_empty() {
        Some(OverlapNote::NoReferenceTimes)
    } else {
        (without * 20 > transfers).then_some(OverlapNote::FewReferenceTimes { without, transfers })
    }
}
