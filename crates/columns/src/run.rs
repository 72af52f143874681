//! A run as its tables need it: measured, and with the names that rows have.

use anyhow::Result;
use lapscope_analysis::overlap::exposure::Exposure;
use lapscope_analysis::overlap::measure_with;
use lapscope_analysis::pipeline::overlap::Prepared;
use lapscope_analysis::trace::{Direction, Half, Operation, RankTrace, Trace};
use lapscope_data::model::Rank;
use lapscope_data::places::SiteId;

use super::causes::{Causes, Overlapped};
use super::words;

pub struct Run<'a> {
    prepared: &'a Prepared,
    /// Of all ranks.
    causes: Vec<Causes>,
    /// By place in [`Trace::ranks`].
    keys: Vec<i64>,
}

impl<'a> Run<'a> {
    /// Looks at every request once; `progress` is told how many more were done.
    pub fn measure(prepared: &'a Prepared, progress: &(dyn Fn(u64) + Sync)) -> Run<'a> {
        let Prepared { trace, reference, eager, .. } = prepared;
        let witness = |rank: usize| Causes::new(&trace.ranks[rank]);
        let (_, causes) = measure_with(trace, reference, *eager, &[], progress, witness);
        Run { prepared, causes, keys: keys(&trace.ranks) }
    }

    pub fn trace(&self) -> &'a Trace {
        &self.prepared.trace
    }

    pub fn rank(&self, place: usize) -> &'a RankTrace {
        &self.trace().ranks[place]
    }

    /// What a rank is called in every table: its world rank; processes of other worlds, and further lives, are numbered behind.
    pub fn key(&self, place: usize) -> i64 {
        self.keys[place]
    }

    pub fn peer(&self, operation: &Operation) -> Option<i64> {
        operation.peer.map(|place| self.key(place as usize))
    }

    /// Between which processes a message goes; `None` of what has no single other end.
    pub fn locality(&self, rank: usize, operation: &Operation) -> Option<&'static str> {
        let is_message = matches!(operation.direction, Direction::Send | Direction::Receive);
        let peer = operation.peer.filter(|_| is_message)? as usize;
        Some(words::locality(self.trace().locality(rank, peer)))
    }

    pub fn call_name(&self, site: SiteId) -> &'a str {
        &self.trace().places.call(site).name
    }

    pub fn exposed(&self, half: &Half<'_>) -> Option<Exposure> {
        self.causes[half.rank].of_half(self.trace(), half)
    }

    pub fn exposed_in_call(&self, rank: usize, call: u32) -> Option<Exposure> {
        self.causes[rank].of_call(call)
    }

    /// The rank that a call waited for.
    pub fn awaited(&self, rank: usize, call: u32) -> Option<i64> {
        self.causes[rank].awaited(call).map(|place| self.key(place as usize))
    }

    /// What was overlapped of the requests of one rank: looked at again when its rows are written, so that it is in memory of
    /// few ranks at a time.
    pub(super) fn overlapped(&self, place: usize) -> Result<Overlapped> {
        let Prepared { trace, reference, eager, .. } = self.prepared;
        let rank = self.rank(place).info().rank;
        let witness = |_: usize| Overlapped::default();
        let (_, found) = measure_with(trace, reference, *eager, &[rank], &|_| (), witness);
        // further lives of the same rank are looked at, too
        let is_of_rank = |other: &&RankTrace| other.info().rank == rank;
        let life = trace.ranks[..place].iter().filter(is_of_rank).count();
        let found = found.into_iter().nth(life);
        found.ok_or_else(|| anyhow::anyhow!("rank {rank} is not in the run"))
    }
}

fn keys(ranks: &[RankTrace]) -> Vec<i64> {
    let is_plain =
        |rank: &RankTrace| rank.info().rank.world == Rank::FIRST_WORLD && rank.info().life == 1;
    let numbers = ranks.iter().filter(|rank| is_plain(rank)).map(|rank| rank.info().rank.number);
    let mut next = numbers.max().unwrap_or(-1);
    let mut key = |rank: &RankTrace| match is_plain(rank) {
        true => rank.info().rank.number,
        false => {
            next = next.saturating_add(1);
            next
        }
    };
    ranks.iter().map(&mut key).collect()
}
