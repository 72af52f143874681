//! Groups the sums of a run by place: by call site, or by whole call path.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::overlap::sums::OverlapTimes;
use lapscope_data::model::{Category, Frame, Nanos};
use lapscope_data::places::SiteId;
use lapscope_data::symbols::{name_path, FrameName, NameFrames};
use lapscope_trace::sums::cell::CallCell;
use lapscope_trace::sums::combine::RunSums;
use lapscope_trace::sums::measures::Quantity;

/// What kind of calls a site holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteKind {
    /// Makes requests; the time of the calls that ended them is shared out to these sites.
    Request,
    Blocking,
    Collective,
    Rma,
    Io,
    /// Ends requests; its time is also that which is shared out to the sites of these requests.
    Completing,
    /// Tests and probes that found nothing.
    UnsuccessfulTest,
    Other,
}

impl SiteKind {
    /// `None` for what lies outside of the run time.
    pub fn from_category(category: Category) -> Option<SiteKind> {
        match category {
            Category::Posting => Some(SiteKind::Request),
            Category::BlockingPointToPoint => Some(SiteKind::Blocking),
            Category::Collective => Some(SiteKind::Collective),
            Category::Rma => Some(SiteKind::Rma),
            Category::Io => Some(SiteKind::Io),
            Category::UnsuccessfulTest => Some(SiteKind::UnsuccessfulTest),
            Category::Other => Some(SiteKind::Other),
            Category::Completing => Some(SiteKind::Completing),
            Category::Outside => None,
        }
    }
}

/// Order of call sites, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SiteRanking {
    /// Time inside MPI
    #[default]
    Time,
    /// Exposed time: in calls that complete requests
    Exposed,
    /// Time in calls that make requests
    Posting,
    /// Number of calls
    Calls,
    /// Bytes transferred
    Bytes,
    /// Overlap window: from post to completing call
    OverlapWindow,
}

/// The calls of one MPI function at one place, over all ranks; nothing is named yet.
#[derive(Debug, Clone)]
pub struct SiteSums {
    pub id: SiteId,
    pub kind: SiteKind,
    pub cell: CallCell,
    /// Ranks that called it.
    pub ranks: usize,
    /// Where most of the time went that is shared out to its requests.
    pub completed: Option<(SiteId, Nanos)>,
    /// What was measured besides time: sums, and the rows that they are of.
    pub measures: BTreeMap<Quantity, (i64, u64)>,
}

type SiteKey = (SiteId, SiteKind);

/// The sites at which a run's time is counted once, the first in `order` first. Completing calls are left out: their time
/// is with the requests that they ended.
pub fn group_sites(run: &RunSums, order: SiteRanking) -> Vec<SiteSums> {
    group(run, order, |kind| kind != SiteKind::Completing)
}

/// The sites that end requests, those that took longest first.
pub fn group_completing(run: &RunSums) -> Vec<SiteSums> {
    group(run, SiteRanking::Time, |kind| kind == SiteKind::Completing)
}

fn group(run: &RunSums, order: SiteRanking, is_wanted: impl Fn(SiteKind) -> bool) -> Vec<SiteSums> {
    let mut index: HashMap<SiteKey, usize> = HashMap::new();
    let mut sites: Vec<SiteSums> = Vec::new();
    let mut ranks: Vec<BTreeSet<usize>> = Vec::new();
    let mut site_of_entry: Vec<Option<usize>> = Vec::with_capacity(run.entries.len());
    for entry in &run.entries {
        let kind = SiteKind::from_category(run.category(entry)).filter(|kind| is_wanted(*kind));
        let Some(kind) = kind.filter(|_| entry.cell.count > 0) else {
            site_of_entry.push(None);
            continue;
        };
        let at = *index.entry((entry.site, kind)).or_insert_with(|| {
            let (cell, ranks_of_site) = (CallCell::default(), BTreeSet::new());
            sites.push(SiteSums {
                id: entry.site,
                kind,
                cell,
                ranks: 0,
                completed: None,
                measures: BTreeMap::new(),
            });
            ranks.push(ranks_of_site);
            sites.len() - 1
        });
        sites[at].cell += &entry.cell;
        ranks[at].insert(entry.rank);
        site_of_entry.push(Some(at));
    }
    for (site, ranks) in sites.iter_mut().zip(ranks) {
        site.ranks = ranks.len();
    }
    find_waits(run, &site_of_entry, &mut sites);
    add_measures(run, &index, &mut sites);
    sort_sites(run, &mut sites, order);
    sites
}

fn add_measures(run: &RunSums, index: &HashMap<SiteKey, usize>, sites: &mut [SiteSums]) {
    for measure in &run.measures.sums {
        let category = run.places.call(measure.site).category();
        let Some(kind) = SiteKind::from_category(category) else { continue };
        if let Some(&at) = index.get(&(measure.site, kind)) {
            let (sum, rows) = sites[at].measures.entry(measure.quantity).or_default();
            *sum = sum.saturating_add(measure.sum);
            *rows += measure.rows;
        }
    }
}

fn find_waits(run: &RunSums, site_of_entry: &[Option<usize>], sites: &mut [SiteSums]) {
    let mut waits: HashMap<(usize, SiteId), Nanos> = HashMap::new();
    for &(post, wait, time) in &run.waits {
        if let Some(site) = site_of_entry[post] {
            let completing = run.places.first_of_name(run.entries[wait].site);
            *waits.entry((site, completing)).or_default() += time;
        }
    }
    for ((site, completing), time) in waits {
        let completed = &mut sites[site].completed;
        // Ties are broken by place, so that the answer does not depend on the order of a hash table.
        if completed.map_or(true, |(old_site, old)| (time, completing) > (old, old_site)) {
            *completed = Some((completing, time));
        }
    }
}

fn sort_sites(run: &RunSums, sites: &mut [SiteSums], order: SiteRanking) {
    let weight = |site: &SiteSums| match order {
        SiteRanking::Time => site.cell.time().0,
        SiteRanking::Exposed => site.cell.completion.0,
        SiteRanking::Posting => site.cell.inside.0,
        SiteRanking::Calls => site.cell.count as i64,
        SiteRanking::Bytes => site.cell.bytes.0 as i64,
        SiteRanking::OverlapWindow => site.cell.window.0,
    };
    let place = |site: &SiteSums| {
        let place = run.places.site(site.id);
        (&run.places.call(site.id).name, place.frame, place.path)
    };
    sites.sort_by(|a, b| weight(b).cmp(&weight(a)).then_with(|| place(a).cmp(&place(b))));
}

/// Sums with names: one line of a table, one object of the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct Site {
    #[serde(skip)]
    pub id: SiteId,
    /// MPI function.
    pub call: String,
    pub kind: SiteKind,
    pub site: Option<FrameName>,
    /// Ranks that called it.
    pub ranks: usize,
    #[serde(flatten)]
    pub numbers: CallNumbers,
    /// For requests: the call in which most of the time went by that is shared out to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_in: Option<CompletedIn>,
    /// What overlap says of the same calls, where it is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapTimes>,
    /// What was measured besides time, where it was asked for.
    #[serde(flatten)]
    pub measures: Measures,
    /// Innermost first, inlined functions included; only where call paths are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Vec<FrameName>>,
    /// The call path is longer than was recorded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// CPU time and counters of a site's calls: of posts, of their requests' shares of the calls that ended them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Measures {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_ns: Option<Nanos>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_ns: Option<Nanos>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterSums>,
}

/// What was counted at a site.
#[derive(Debug, Clone, Serialize)]
pub struct CounterSums {
    pub name: String,
    /// Empty: plain counts.
    pub unit: String,
    /// In `counted_calls` calls.
    pub in_calls: i64,
    pub counted_calls: u64,
    /// Outside of MPI in the windows of `counted_requests` requests.
    pub in_overlap_windows: i64,
    pub counted_requests: u64,
}

impl Measures {
    fn new(run: &RunSums, sums: &SiteSums) -> Measures {
        let sum = |quantity| sums.measures.get(&quantity).copied();
        let time = |quantity| sum(quantity).map(|(sum, _)| Nanos(sum));
        let counters = run.measures.counters.iter().enumerate().filter_map(|(at, counter)| {
            let (calls, windows) =
                (sum(Quantity::InCalls(at)), sum(Quantity::InOverlapWindows(at)));
            let _ = calls.or(windows)?;
            let (in_calls, counted_calls) = calls.unwrap_or_default();
            let (in_overlap_windows, counted_requests) = windows.unwrap_or_default();
            let (name, unit) = (counter.name.clone(), counter.unit.clone());
            Some(CounterSums {
                name,
                unit,
                in_calls,
                counted_calls,
                in_overlap_windows,
                counted_requests,
            })
        });
        Measures {
            user_ns: time(Quantity::User),
            system_ns: time(Quantity::System),
            counters: counters.collect(),
        }
    }
}

/// The call in which most of the time went by that is laid to a site's requests.
#[derive(Debug, Clone, Serialize)]
pub struct CompletedIn {
    pub call: String,
    pub site: Option<FrameName>,
    pub exposed_ns: Nanos,
}

/// A [`CallCell`] as it is shown. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CallNumbers {
    pub calls: u64,
    pub bytes: u64,
    pub time_ns: Nanos,
    /// `time_ns` as a fraction of the run time of all ranks.
    pub share: f64,
    pub inside_ns: Nanos,
    pub exposed_ns: Nanos,
    pub ended_requests: u64,
    pub overlap_window_ns: Nanos,
    pub timed_requests: u64,
    pub mpi_ns: Nanos,
    pub compute_ns: Nanos,
    pub unsuccessful_tests: u64,
    pub pending: u64,
}

impl CallNumbers {
    /// `run_time` is that of all ranks together.
    pub fn new(cell: &CallCell, run_time: Nanos) -> CallNumbers {
        CallNumbers {
            calls: cell.count,
            bytes: cell.bytes.0,
            time_ns: cell.time(),
            share: cell.time().share_of(run_time),
            inside_ns: cell.inside,
            exposed_ns: cell.completion,
            ended_requests: cell.ended,
            overlap_window_ns: cell.window,
            timed_requests: cell.timed,
            mpi_ns: cell.mpi,
            compute_ns: cell.compute,
            unsuccessful_tests: cell.unsuccessful_tests,
            pending: cell.pending,
        }
    }

    /// Computation as a fraction of the windows it was measured in; `None` without windows.
    pub fn compute_share(&self) -> Option<f64> {
        let measured = self.compute_ns + self.mpi_ns;
        (measured.0 > 0).then(|| self.compute_ns.share_of(measured))
    }
}

/// Names a site. Frames are given when it was grouped by path.
pub fn name_site(
    run: &RunSums,
    sums: &SiteSums,
    run_time: Nanos,
    names: &mut dyn NameFrames,
) -> Site {
    let mut innermost =
        |frame: Option<Frame>| frame.and_then(|frame| names.name(frame).into_iter().next());
    let places = &run.places;
    let place = places.site(sums.id);
    let site = innermost(place.frame);
    let completed_in = sums.completed.map(|(completing, exposed_ns)| CompletedIn {
        call: places.call(completing).name.clone(),
        site: innermost(places.site(completing).frame),
        exposed_ns,
    });
    let path = place.path.map(|path| places.path(path));
    let frames = path.map(|path| name_path(&path.frames, names));
    Site {
        id: sums.id,
        call: places.call(sums.id).name.clone(),
        kind: sums.kind,
        site,
        ranks: sums.ranks,
        numbers: CallNumbers::new(&sums.cell, run_time),
        completed_in,
        overlap: None,
        measures: Measures::new(run, sums),
        frames,
        truncated: path.is_some_and(|path| path.truncated),
    }
}
