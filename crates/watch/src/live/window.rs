//! Sums of the last seconds.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::document::Pace;
use super::gather::{CallAndPath, Spent};
use lapscope_data::model::{Nanos, Rank};

/// What a rank did between two looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct RankSlice {
    pub wall: Nanos,
    pub exposed: Nanos,
    pub mpi: Nanos,
    pub calls: u64,
    pub unsuccessful_tests: u64,
    pub injected_tests: u64,
    pub messages: u64,
    pub bytes: u64,
}

/// What all ranks did between two looks.
#[derive(Debug, Default)]
pub struct Slice {
    /// The longest of its ranks.
    pub interval: Nanos,
    ranks: FxHashMap<(Rank, i64), RankSlice>,
    sites: FxHashMap<CallAndPath, Spent>,
}

impl Slice {
    pub fn add_rank(&mut self, rank: (Rank, i64), sums: RankSlice) {
        self.interval = self.interval.max(sums.wall);
        self.ranks.insert(rank, sums);
    }

    pub fn add_site(&mut self, site: CallAndPath, spent: Spent) {
        *self.sites.entry(site).or_default() += spent;
    }

    pub fn exposed_share(&self) -> f64 {
        sum(self.ranks.values()).pace().exposed_share
    }
}

/// The last slices, as many as a length of time has room for, one at the least.
pub struct Window {
    most: Nanos,
    slices: VecDeque<Slice>,
}

impl Window {
    pub fn new(most: Nanos) -> Window {
        Window { most, slices: VecDeque::new() }
    }

    pub fn push(&mut self, slice: Slice) {
        if slice.interval <= Nanos(0) {
            return;
        }
        self.slices.push_back(slice);
        while self.slices.len() > 1 && self.length() > self.most {
            self.slices.pop_front();
        }
    }

    pub fn length(&self) -> Nanos {
        self.slices.iter().map(|slice| slice.interval).sum()
    }

    /// The wall time of all ranks together.
    pub fn wall(&self) -> Nanos {
        self.all().map(|sums| sums.wall).sum()
    }

    pub fn pace(&self, rank: (Rank, i64)) -> Pace {
        sum(self.slices.iter().filter_map(|slice| slice.ranks.get(&rank))).pace()
    }

    /// Rates of the job, shares of the wall time of all its ranks.
    pub fn total(&self) -> Pace {
        let sums = sum(self.all());
        let of_ranks = sums.pace();
        let seconds = self.length().seconds();
        let by_job = |rate: f64| match seconds > 0.0 {
            true => rate * sums.wall.seconds() / seconds,
            false => 0.0,
        };
        Pace {
            calls_per_s: by_job(of_ranks.calls_per_s),
            unsuccessful_tests_per_s: by_job(of_ranks.unsuccessful_tests_per_s),
            injected_tests_per_s: by_job(of_ranks.injected_tests_per_s),
            messages_per_s: by_job(of_ranks.messages_per_s),
            bytes_per_s: by_job(of_ranks.bytes_per_s),
            ..of_ranks
        }
    }

    pub fn sites(&self) -> FxHashMap<CallAndPath, Spent> {
        let mut sites: FxHashMap<CallAndPath, Spent> = FxHashMap::default();
        for (site, spent) in self.slices.iter().flat_map(|slice| &slice.sites) {
            *sites.entry(*site).or_default() += *spent;
        }
        sites
    }

    fn all(&self) -> impl Iterator<Item = &RankSlice> {
        self.slices.iter().flat_map(|slice| slice.ranks.values())
    }
}

fn sum<'a>(slices: impl Iterator<Item = &'a RankSlice>) -> RankSlice {
    slices.fold(RankSlice::default(), |sum, it| RankSlice {
        wall: sum.wall + it.wall,
        exposed: sum.exposed + it.exposed,
        mpi: sum.mpi + it.mpi,
        calls: sum.calls + it.calls,
        unsuccessful_tests: sum.unsuccessful_tests + it.unsuccessful_tests,
        injected_tests: sum.injected_tests + it.injected_tests,
        messages: sum.messages + it.messages,
        bytes: sum.bytes.saturating_add(it.bytes),
    })
}

impl RankSlice {
    fn pace(&self) -> Pace {
        let seconds = self.wall.seconds();
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        Pace {
            calls_per_s: rate(self.calls),
            unsuccessful_tests_per_s: rate(self.unsuccessful_tests),
            injected_tests_per_s: rate(self.injected_tests),
            messages_per_s: rate(self.messages),
            bytes_per_s: rate(self.bytes),
            exposed_share: self.exposed.share_of(self.wall),
            mpi_share: self.mpi.share_of(self.wall),
        }
    }
}
