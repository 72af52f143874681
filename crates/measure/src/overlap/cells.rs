//! What is found of one rank: sums by cell, over time, and by whom was waited for.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::exposure::Exposure;
use super::sums::{BlockingSums, Sums};
use lapscope_data::model::Kind;
use lapscope_data::places::SiteId;
use lapscope_trace::{Locality, Trace};

/// What requests, or blocking calls, of a cell have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OverlapCellKey {
    pub site: SiteId,
    pub kind: Kind,
    pub size_class: u8,
    /// Where the other side is; `None` for what has no single other side.
    pub locality: Option<Locality>,
    pub is_request: bool,
}

/// Whom calls of a cell waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CulpritKey {
    pub cell: u32,
    /// Place of the rank.
    pub rank: u32,
    /// Its post, or its blocking call. `None`: the same collective.
    pub site: Option<SiteId>,
    /// What completed it.
    pub completing: Option<SiteId>,
}

/// Time waited for somebody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Blame {
    pub late: i64,
    pub outside: i64,
}

impl Blame {
    pub fn total(&self) -> i64 {
        self.late.saturating_add(self.outside)
    }
}

impl AddAssign for Blame {
    fn add_assign(&mut self, other: Blame) {
        self.late = self.late.saturating_add(other.late);
        self.outside = self.outside.saturating_add(other.outside);
    }
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct OverlapCell {
    pub requests: Sums,
    pub blocking: BlockingSums,
}

impl AddAssign<&OverlapCell> for OverlapCell {
    fn add_assign(&mut self, other: &OverlapCell) {
        self.requests += &other.requests;
        self.blocking += &other.blocking;
    }
}

/// Equal parts of the run.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Slices {
    /// A moment on the run's clock; nanoseconds, as the next.
    pub begin: i64,
    pub length: i64,
    pub count: usize,
}

impl Slices {
    /// The time from the first return of MPI_Init to the last end, or that of the stretch that counts.
    pub fn cut(trace: &Trace, count: usize) -> Slices {
        let (begin, end) = trace.span();
        let length = (end - begin).max(1);
        Slices { begin, length: (length + count as i64 - 1) / count as i64, count }
    }

    pub fn slice_at(&self, moment: i64) -> usize {
        let slice = (moment - self.begin).max(0) / self.length.max(1);
        (slice as usize).min(self.count - 1)
    }

    /// Tells of every slice that an interval has a part in, with the nanoseconds of that. What is before the first or behind
    /// the last counts there.
    pub fn spread(&self, begin: i64, end: i64, mut tell: impl FnMut(usize, i64)) {
        let mut from = begin;
        while from < end {
            let slice = self.slice_at(from);
            let until = match slice + 1 < self.count {
                true => (self.begin + (slice as i64 + 1) * self.length).min(end),
                false => end,
            };
            tell(slice, until - from);
            from = until;
        }
    }
}

/// Sums over one rank.
#[derive(Debug, Default)]
pub(super) struct RankOverlaps {
    pub cells: Vec<(OverlapCellKey, OverlapCell)>,
    pub slices: Vec<OverlapCell>,
    /// By [`RankTrace::detail`](lapscope_trace::RankTrace::detail).
    pub slots: Vec<OverlapCell>,
    pub culprits: FxHashMap<CulpritKey, Blame>,
    /// By cell of the post and operation of the completing call.
    pub completed_in: FxHashMap<(u32, u32), Exposure>,
    /// Completing time of requests whose start was not seen.
    pub unattributed: i64,
    /// Unsuccessful tests of loops that waited.
    pub polling: BlockingSums,
    /// Of them, by their site: while a GPU of the rank computed.
    pub polled_beside_gpu: BTreeMap<SiteId, i64>,
    /// Loops of tests that waited, with what lies between their tests.
    pub waiting_loops: i64,
    /// By the site of the tests.
    pub loops: BTreeMap<SiteId, LoopSums>,
}

/// Where something counts that happened then: a slice of the run, and the slot in which it was recorded, where not all was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub slice: usize,
    pub slot: Option<usize>,
}

impl RankOverlaps {
    pub fn add(&mut self, moment: Moment, add: impl Fn(&mut OverlapCell)) {
        add(&mut self.slices[moment.slice]);
        if let Some(slot) = moment.slot.and_then(|slot| self.slots.get_mut(slot)) {
            add(slot);
        }
    }
}

/// Loops whose tests completed something at one place of one rank. Nanoseconds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct LoopSums {
    pub loops: u64,
    /// That found nothing.
    pub tests: u64,
    /// From the first test of each to the one that completed it.
    pub span: i64,
    /// Of that, before the other side had posted.
    pub late: i64,
    /// Of that, in loops whose tests follow each other at once.
    pub tight: i64,
    /// From one test to the next, in the mean of a loop: the shortest and the longest of them.
    pub apart: Option<(i64, i64)>,
}

impl AddAssign<&LoopSums> for LoopSums {
    fn add_assign(&mut self, other: &LoopSums) {
        self.loops += other.loops;
        self.tests += other.tests;
        self.span += other.span;
        self.late += other.late;
        self.tight += other.tight;
        self.apart = match (self.apart, other.apart) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (apart, more) => apart.or(more),
        };
    }
}
