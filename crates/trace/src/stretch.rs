//! A stretch of a run: from when to when on each rank. What begins in it counts, whole: a call where it begins, a request where
//! the call begins that completed it, or where it was posted, if nothing did.

pub mod counted;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{Stretch, Trace};
use lapscope_data::model::{Nanos, Rank, RankInfo};
use lapscope_data::text::units::time;

/// What the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StretchChoice {
    /// Nanoseconds since the first rank's MPI_Init returned; open where it is `None`.
    Between { from: Option<i64>, to: Option<i64> },
    /// From the first to the last of these steps, numbered from 1.
    Steps { first: u64, last: u64 },
}

/// A stretch as documents name it. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NamedStretch {
    /// Since the first rank's MPI_Init returned: the first begin and the last end on any rank.
    pub from_ns: Nanos,
    pub to_ns: Nanos,
    /// The first step, the last one, and how many the run has, where steps were asked for.
    pub first_step: Option<u64>,
    pub last_step: Option<u64>,
    pub steps: Option<u64>,
}

impl Stretch {
    /// From and to a moment that is the same on all ranks, nanoseconds since the first rank's MPI_Init returned.
    ///
    /// # Errors
    /// There is nothing of the run between these.
    pub fn between(trace: &Trace, from: Option<i64>, to: Option<i64>) -> Result<Stretch, String> {
        let (start, length) = (trace.begin(), trace.run_ns());
        let (begin, end) = (from.unwrap_or(0), to.unwrap_or(i64::MAX));
        let words = |ns: i64| time(Nanos(ns));
        if begin >= end {
            let (from, to) = (words(begin), words(end));
            return Err(format!(
                "nothing lies between --from {from} and --to {to}: --to has to be the later one"
            ));
        }
        if begin >= length {
            let (from, length) = (words(begin), words(length));
            return Err(format!("--from {from}: the run ends {length} after MPI_Init"));
        }
        // what begins behind the end of a rank's run, as calls behind MPI_Finalize's entry, is part of it where nothing ends it
        let end = if to.is_none() { i64::MAX } else { start.saturating_add(end) };
        let begin = if from.is_none() { i64::MIN } else { start.saturating_add(begin) };
        Ok(Stretch { ranks: vec![(begin, end); trace.ranks.len()] })
    }

    /// As documents name it; `steps`: the first and the last of how many, where these were asked for.
    pub fn named(&self, trace: &Trace, steps: Option<(u64, u64, u64)>) -> NamedStretch {
        let start = trace.begin();
        let (begin, end) = self.span(trace).unwrap_or((start, start));
        NamedStretch {
            from_ns: Nanos(begin - start),
            to_ns: Nanos(end - start),
            first_step: steps.map(|(first, _, _)| first),
            last_step: steps.map(|(_, last, _)| last),
            steps: steps.map(|(_, _, of)| of),
        }
    }
}

impl Trace {
    /// From when to when what a rank does counts, on the run's clock.
    pub fn own_span(&self, place: usize) -> (i64, i64) {
        let rank = &self.ranks[place];
        let stretch = self.stretch.as_ref().and_then(|stretch| stretch.ranks.get(place));
        let &(begin, end) = stretch.unwrap_or(&(rank.init_end, rank.end));
        (begin.max(rank.init_end), end.min(rank.end).max(begin.max(rank.init_end)))
    }

    /// The part of a rank's run that counts, MPI_Init to MPI_Finalize.
    pub fn run_time(&self, place: usize) -> Nanos {
        let rank = &self.ranks[place];
        match &self.stretch {
            None => rank.info().run_time(),
            Some(stretch) => {
                let (begin, end) = clipped(rank.info(), self.own_window(stretch, place));
                end - begin
            }
        }
    }

    /// A stretch as a rank's own records have it.
    fn own_window(&self, stretch: &Stretch, place: usize) -> (Nanos, Nanos) {
        let (begin, end) = stretch.ranks.get(place).copied().unwrap_or((0, 0));
        let rank = &self.ranks[place];
        (Nanos(rank.recorded(begin)), Nanos(rank.recorded(end)))
    }
}

/// A stretch in terms of the rows of files, each rank's by its own clock.
#[derive(Debug, Clone, Default)]
pub struct Windows(HashMap<(Rank, i64), (Nanos, Nanos)>);

/// From begin to end, which is not part of it, by a rank's own clock.
pub type TimeRange = (Nanos, Nanos);

impl Windows {
    /// Places a stretch on the ranks of a trace whose clocks are settled; it needs no rows.
    pub fn place(trace: &Trace, stretch: &Stretch) -> Windows {
        let window = |place: usize| {
            let info = trace.ranks[place].info();
            ((info.rank, info.life), trace.own_window(stretch, place))
        };
        Windows((0..trace.ranks.len()).map(window).collect())
    }

    /// What of a rank counts; nothing of one that is not in the trace.
    pub fn of_rank(&self, info: &RankInfo) -> TimeRange {
        self.0.get(&(info.rank, info.life)).copied().unwrap_or_default()
    }

    /// Leaves of a rank's run what counts.
    pub fn clip(&self, info: &mut RankInfo) {
        (info.init_end, info.end) = clipped(info, self.of_rank(info));
    }
}

/// The part of a rank's run that a window has.
fn clipped(info: &RankInfo, (begin, end): TimeRange) -> TimeRange {
    let begin = begin.max(info.init_end).min(info.end.max(info.init_end));
    (begin, end.min(info.end).max(begin))
}

/// What was only summed up in a file and so is in no stretch: these have no moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummedUp {
    pub tests: u64,
    pub calls: u64,
    pub time: Nanos,
}

impl SummedUp {
    pub fn add(&mut self, other: &SummedUp) {
        self.tests = self.tests.saturating_add(other.tests);
        self.calls = self.calls.saturating_add(other.calls);
        self.time += other.time;
    }
}

#[cfg(test)]
mod tests;
