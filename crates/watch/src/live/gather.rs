//! Sums of what was recorded between two looks.

use std::collections::HashMap;
use std::ops::AddAssign;

use rustc_hash::FxHashMap;

use lapscope_data::model::{Kind, Nanos, Rank};
use lapscope_data::state::{
    RankState, SeenCall, SeenCalls, SeenCount, SeenInjection, SeenOperation, SeenRequests, Sink,
};

/// A call and its path: indices of the state of the job.
pub type CallAndPath = (u32, Option<u32>);

/// Time in calls of a site, and how many returned.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    pub time: Nanos,
    pub calls: u64,
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.time += other.time;
        self.calls += other.calls;
    }
}

/// What ranks did since the last look, by rank and life.
#[derive(Debug, Default)]
pub struct Gatherer {
    ranks: FxHashMap<(Rank, i64), Gathered>,
}

impl Gatherer {
    pub fn rank_mut(&mut self, rank: Rank, life: i64) -> &mut Gathered {
        self.ranks.entry((rank, life)).or_default()
    }
}

impl Sink for Gatherer {
    fn call(&mut self, seen: &SeenCall) {
        let rank = self.rank_mut(seen.by.rank, seen.by.life);
        let site = (seen.operation.call, seen.operation.path);
        rank.call(seen.thread, site, seen.begin, seen.end);
        rank.communicated(&seen.operation, 1);
    }

    fn calls(&mut self, seen: &SeenCalls) {
        let rank = self.rank_mut(seen.by.rank, seen.by.life);
        rank.add((seen.operation.call, seen.operation.path), seen.inside, seen.count);
        rank.communicated(&seen.operation, seen.count);
    }

    fn requests(&mut self, seen: &SeenRequests) {
        self.rank_mut(seen.by.rank, seen.by.life).communicated(&seen.operation, seen.count);
    }

    fn counted(&mut self, seen: &SeenCount) {
        if !seen.is_unsuccessful {
            let rank = self.rank_mut(seen.by.rank, seen.by.life);
            rank.left_out(seen.thread, (seen.call, seen.path), seen.count, seen.inside);
        }
    }

    fn injected(&mut self, seen: &SeenInjection) {
        self.rank_mut(seen.by.rank, seen.by.life).injected_tests += seen.tests;
    }
}

/// What one rank did since the last look.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    pub sites: FxHashMap<CallAndPath, Spent>,
    /// Sends that ended.
    pub messages: u64,
    pub bytes: u64,
    pub injected_tests: u64,
    /// Up to where each thread's time is in the sums, of this look and those before: a call that was open at a look is
    /// counted up to there, and from there on when it ends.
    counted: HashMap<u32, Nanos>,
    /// What of open calls is in the sums that no row of a call has told of since.
    open: HashMap<u32, Nanos>,
    /// Where threads begin that are in no sum yet.
    begin: Nanos,
}

impl Gathered {
    /// A call that has returned. Of one thread in the order in which they did.
    pub fn call(&mut self, thread: u32, site: CallAndPath, begin: Nanos, end: Nanos) {
        let time = self.not_counted(thread, begin, end);
        self.open.remove(&thread);
        self.add(site, time, 1);
    }

    /// Calls of which only sums are kept, when the recording is full.
    pub fn left_out(&mut self, thread: u32, site: CallAndPath, calls: u64, inside: Nanos) {
        let before = self.open.entry(thread).or_default();
        let known = inside.min(*before);
        *before = *before - known;
        self.add(site, inside - known, calls);
    }

    fn add(&mut self, site: CallAndPath, time: Nanos, calls: u64) {
        *self.sites.entry(site).or_default() += Spent { time, calls };
    }

    fn communicated(&mut self, operation: &SeenOperation, count: u64) {
        if operation.kind == Kind::Send {
            self.messages += count;
            self.bytes = self.bytes.saturating_add(operation.bytes.saturating_mul(count));
        }
    }

    /// Calls that have not returned are counted up to now.
    pub fn open_calls(&mut self, rank: &RankState) {
        for thread in &rank.threads {
            let Some(open) = &thread.open else { continue };
            let site = (open.operation.call, open.operation.path);
            let time = self.not_counted(thread.number, open.begin, rank.now);
            *self.open.entry(thread.number).or_default() += time;
            self.add(site, time, 0);
        }
    }

    fn not_counted(&mut self, thread: u32, begin: Nanos, end: Nanos) -> Nanos {
        let counted = self.counted.entry(thread).or_insert(self.begin);
        let time = (end - begin.max(*counted)).max(Nanos(0));
        *counted = (*counted).max(end);
        time
    }

    /// Sums begin anew. `is_first`: nothing before `now` counts.
    pub fn begin(&mut self, now: Nanos, is_first: bool) {
        self.sites.clear();
        (self.messages, self.bytes, self.injected_tests) = (0, 0, 0);
        self.begin = now;
        if is_first {
            self.counted.values_mut().for_each(|counted| *counted = now);
            self.open.clear();
        }
    }
}
