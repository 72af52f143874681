//! What a running job does: rates, the share of time that communication is exposed, the worst sites and what somebody should
//! look at, from one look at its state to the next. Looks come from `lapscope_data::state`; nothing here knows files or screens.

mod alerts;
pub mod bins;
mod document;
mod gather;
mod window;

use std::collections::{HashMap, VecDeque};

use lapscope_data::model::{site_frame, Category, Nanos, Rank};
use lapscope_data::state::{JobState, RankState, SystemState};
use lapscope_data::symbols::{FrameName, NameFrames};

pub use document::{Alert, AlertKind, Moment, Pace, RankPace, SitePace, UnreturnedCall};
pub use gather::{CallAndPath, Gathered, Gatherer};
use window::{RankSlice, Slice, Window};

/// Exposed shares that are kept for a picture of how they went.
const KEPT_SHARES: usize = 240;
/// The rank for which the others wait has at least so much smaller a share of exposed time than most.
const WAITS_LESS: f64 = 0.2;

/// A job that is looked at again and again.
pub struct Live {
    window: Window,
    alert: Nanos,
    known: HashMap<(Rank, i64), LastLook>,
    shares: VecDeque<f64>,
}

/// A rank as it was at the last look.
struct LastLook {
    now: Nanos,
    progress: u64,
    unsuccessful_tests: u64,
    mpi: Nanos,
    /// When its last call ended, as far as is known.
    last_end: Nanos,
}

impl Live {
    /// Rates are of the last `window`; no progress for `alert` is worth an alert.
    pub fn new(window: Nanos, alert: Nanos) -> Live {
        let (known, shares) = (HashMap::new(), VecDeque::new());
        Live { window: Window::new(window), alert, known, shares }
    }

    /// What to show of `state`, with what its ranks did since the last look. The first look at a rank has no rates.
    pub fn look(
        &mut self,
        state: &JobState,
        gatherer: &mut Gatherer,
        names: &mut dyn NameFrames,
    ) -> Moment {
        let exposing: Vec<bool> =
            state.calls.iter().map(|call| is_exposed(call.category())).collect();
        let mut slice = Slice::default();
        for rank in &state.ranks {
            self.add(&mut slice, rank, gatherer.rank_mut(rank.rank, rank.life), &exposing);
        }
        if slice.interval > Nanos(0) {
            self.shares.push_back(slice.exposed_share());
            self.shares.drain(..self.shares.len().saturating_sub(KEPT_SHARES));
        }
        let interval_ns = slice.interval;
        self.window.push(slice);
        let mut moment = self.describe(state, names);
        moment.interval_ns = interval_ns;
        moment.alerts = alerts::find(&moment, state, self.alert);
        moment
    }

    fn add(
        &mut self,
        slice: &mut Slice,
        rank: &RankState,
        gathered: &mut Gathered,
        exposing: &[bool],
    ) {
        gathered.open_calls(rank);
        let key = (rank.rank, rank.life);
        let progress = rank.progress();
        let unsuccessful_tests: u64 =
            rank.threads.iter().map(|thread| thread.unsuccessful_tests).sum();
        let mpi: Nanos = rank.threads.iter().map(|thread| thread.mpi).sum();
        let last_end = rank.threads.iter().filter_map(|thread| thread.last).map(|last| last.end);
        let mut last_end = last_end.max().unwrap_or(rank.init_end);
        let before = self.known.get(&key);
        if let Some(before) = before {
            // what only begins something leaves no moment behind
            let is_silent = progress > before.progress && last_end <= before.last_end;
            last_end = if is_silent { rank.now } else { last_end.max(before.last_end) };
            let wall = (rank.now - before.now).max(Nanos(0));
            let mut sums = RankSlice {
                wall,
                calls: progress.saturating_sub(before.progress),
                unsuccessful_tests: unsuccessful_tests.saturating_sub(before.unsuccessful_tests),
                injected_tests: gathered.injected_tests,
                messages: gathered.messages,
                bytes: gathered.bytes,
                exposed: Nanos(0),
                // counters are read a moment before the clock, and no thread is inside for longer than the time that passed
                mpi: (mpi - before.mpi).clamp(Nanos(0), Nanos(wall.0 * rank.threads.len() as i64)),
            };
            for (site, spent) in &gathered.sites {
                if exposing.get(site.0 as usize) == Some(&true) {
                    sums.exposed += spent.time;
                    slice.add_site(*site, *spent);
                }
            }
            slice.add_rank(key, sums);
        }
        gathered.begin(rank.now, before.is_none());
        let known = LastLook { now: rank.now, progress, unsuccessful_tests, mpi, last_end };
        self.known.insert(key, known);
    }

    fn describe(&self, state: &JobState, names: &mut dyn NameFrames) -> Moment {
        let ranks: Vec<RankPace> =
            state.ranks.iter().map(|rank| self.describe_rank(rank, state, names)).collect();
        let mut hosts: Vec<&str> = state.ranks.iter().map(|rank| rank.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let age = |rank: &RankState| rank.now - rank.init_end;
        let observed = |rank: &RankState| rank.epoch_unix_ns.saturating_add(rank.now.0);
        Moment {
            mpi_library: state.mpi_library.clone(),
            command: state.command.clone(),
            observed_ns: Nanos(state.ranks.iter().map(observed).max().unwrap_or(0)),
            age_ns: state.ranks.iter().map(age).max().unwrap_or_default(),
            world_size: state.ranks.iter().map(|rank| rank.world_size).max().unwrap_or(0),
            hosts: hosts.len(),
            is_over: !state.ranks.is_empty() && state.ranks.iter().all(RankState::is_over),
            window_ns: self.window.length(),
            total: self.window.total(),
            awaited: awaited(&ranks),
            sites: self.describe_sites(state, names),
            unseen: state.unseen.clone(),
            exposed_shares: self.shares.iter().copied().collect(),
            ranks,
            ..Moment::default()
        }
    }

    fn describe_rank(
        &self,
        rank: &RankState,
        state: &JobState,
        names: &mut dyn NameFrames,
    ) -> RankPace {
        let open = rank.threads.iter().filter_map(|thread| thread.open.as_ref());
        let inside = open.min_by_key(|open| open.begin).map(|open| UnreturnedCall {
            call: call_name(state, open.operation.call),
            site: site_name(state, open.operation.path, names),
            since_ns: (rank.now - open.begin).max(Nanos(0)),
        });
        let key = (rank.rank, rank.life);
        let last_end = self.known.get(&key).map_or(rank.now, |known| known.last_end);
        let is_stopped = |system: &SystemState| matches!(system.state, 'T' | 't');
        RankPace {
            rank: rank.rank,
            host: rank.host.clone(),
            condition: rank.condition,
            is_stopped: rank
                .threads
                .iter()
                .filter_map(|thread| thread.system.as_ref())
                .any(is_stopped),
            calls: rank.progress(),
            pace: self.window.pace(key),
            quiet_ns: (rank.now - last_end).max(Nanos(0)),
            inside: inside.filter(|_| !rank.is_over()),
        }
    }

    fn describe_sites(&self, state: &JobState, names: &mut dyn NameFrames) -> Vec<SitePace> {
        let mut inside: HashMap<CallAndPath, usize> = HashMap::new();
        for rank in state.ranks.iter().filter(|rank| !rank.is_over()) {
            for open in rank.threads.iter().filter_map(|thread| thread.open.as_ref()) {
                *inside.entry((open.operation.call, open.operation.path)).or_default() += 1;
            }
        }
        // several call paths may lead to one line
        let mut sites: HashMap<(String, Option<FrameName>), SitePace> = HashMap::new();
        let wall = self.window.wall();
        for (site, spent) in self.window.sites() {
            let (call, frame) = (call_name(state, site.0), site_name(state, site.1, names));
            let it = sites.entry((call.clone(), frame.clone())).or_insert_with(|| SitePace {
                call,
                site: frame,
                exposed_ns: Nanos(0),
                exposed_share: 0.0,
                calls: 0,
                ranks_inside: 0,
            });
            it.exposed_ns += spent.time;
            it.exposed_share += spent.time.share_of(wall);
            it.calls += spent.calls;
            it.ranks_inside += inside.get(&site).copied().unwrap_or(0);
        }
        let mut sites: Vec<SitePace> = sites.into_values().collect();
        let name = |site: &SitePace| (site.call.clone(), site.site.as_ref().map(FrameName::short));
        sites.sort_by(|a, b| b.exposed_ns.cmp(&a.exposed_ns).then_with(|| name(a).cmp(&name(b))));
        sites
    }
}

/// Whether time in these calls is communication that nothing hides.
fn is_exposed(category: Category) -> bool {
    use Category::{BlockingPointToPoint, Collective, Completing};
    matches!(category, Completing | BlockingPointToPoint | Collective)
}

fn call_name(state: &JobState, call: u32) -> String {
    state.calls.get(call as usize).map_or_else(|| "?".into(), |call| call.name.clone())
}

fn site_name(state: &JobState, path: Option<u32>, names: &mut dyn NameFrames) -> Option<FrameName> {
    let path = state.paths.get(path? as usize)?;
    let frame = site_frame(path, &state.modules)?;
    names.name(frame).into_iter().next()
}

/// Nobody waits for a rank that computes as long as all the others do.
fn awaited(ranks: &[RankPace]) -> Option<Rank> {
    let mut shares: Vec<(f64, Rank)> =
        ranks.iter().map(|rank| (rank.pace.exposed_share, rank.rank)).collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (least, others) = shares.split_first()?;
    let next = others.first()?;
    let is_alone = next.0 - least.0 >= WAITS_LESS;
    is_alone.then_some(least.1)
}

#[cfg(test)]
mod tests;
