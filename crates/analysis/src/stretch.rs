//! A stretch of a run: from when to when on each rank. What begins in it counts, whole: a call where it begins, a request where
//! the call begins that completed it, or where it was posted, if nothing did.

use std::collections::HashMap;

use anyhow::{bail, Result};
use serde::{Deserialize, Serialize};

use crate::problem::{Problem, ProblemKind};
use crate::trace::{Trace, NONE};
use lapscope_data::model::{Nanos, Rank, RankInfo};
use lapscope_data::text::units::time;

/// From begin to end, which is not part of it, on each rank: by place in [`Trace::ranks`], nanoseconds on the run's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    pub ranks: Vec<(i64, i64)>,
}

/// What the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Nanoseconds since the first rank's MPI_Init returned; open where it is `None`.
    Between { from: Option<i64>, to: Option<i64> },
    /// From the first to the last of these steps, numbered from 1.
    Steps { first: u64, last: u64 },
}

/// A stretch as documents name it. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Since the first rank's MPI_Init returned: the first begin and the last end on any rank.
    pub from_ns: Nanos,
    pub to_ns: Nanos,
    /// Of how many steps it is which, where steps were asked for.
    pub first_step: Option<u64>,
    pub last_step: Option<u64>,
    pub steps: Option<u64>,
}

impl Stretch {
    /// From and to a moment that is the same on all ranks, nanoseconds since the first rank's MPI_Init returned.
    ///
    /// # Errors
    /// There is nothing of the run between these.
    pub fn between(trace: &Trace, from: Option<i64>, to: Option<i64>) -> Result<Stretch> {
        let (start, length) = (trace.begin(), trace.run_ns());
        let (begin, end) = (from.unwrap_or(0), to.unwrap_or(i64::MAX));
        let words = |ns: i64| time(Nanos(ns));
        if begin >= end {
            let (from, to) = (words(begin), words(end));
            bail!("nothing lies between --from {from} and --to {to}: --to has to be the later one");
        }
        if begin >= length {
            let (from, length) = (words(begin), words(length));
            bail!("--from {from}: the run ends {length} behind MPI_Init");
        }
        // what begins behind the end of a rank's run, as calls behind MPI_Finalize's entry, is part of it where nothing ends it
        let end = if to.is_none() { i64::MAX } else { start.saturating_add(end) };
        let begin = if from.is_none() { i64::MIN } else { start.saturating_add(begin) };
        Ok(Stretch { ranks: vec![(begin, end); trace.ranks.len()] })
    }

    #[inline]
    pub fn has(&self, place: usize, moment: i64) -> bool {
        self.ranks.get(place).is_some_and(|&(begin, end)| begin <= moment && moment < end)
    }

    /// The first begin and the last end of any rank within the run; `None` where no rank has a part of it.
    pub fn span(&self, trace: &Trace) -> Option<(i64, i64)> {
        let within = self
            .ranks
            .iter()
            .zip(&trace.ranks)
            .map(|(&(begin, end), rank)| (begin.max(rank.init_end), end.min(rank.end)));
        let spans = within.filter(|(begin, end)| begin < end);
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// As documents name it; `steps`: the first and the last of how many, where these were asked for.
    pub fn named(&self, trace: &Trace, steps: Option<(u64, u64, u64)>) -> Named {
        let start = trace.begin();
        let (begin, end) = self.span(trace).unwrap_or((start, start));
        Named {
            from_ns: Nanos(begin - start),
            to_ns: Nanos(end - start),
            first_step: steps.map(|(first, _, _)| first),
            last_step: steps.map(|(_, last, _)| last),
            steps: steps.map(|(_, _, of)| of),
        }
    }
}

impl Trace {
    /// The first return of MPI_Init.
    pub fn begin(&self) -> i64 {
        self.ranks.iter().map(|rank| rank.init_end).min().unwrap_or(0)
    }

    /// From when to when what counts is looked at.
    pub fn span(&self) -> (i64, i64) {
        let stretch = self.stretch.as_ref();
        stretch.and_then(|stretch| stretch.span(self)).unwrap_or_else(|| {
            let end = self.ranks.iter().map(|rank| rank.end).max().unwrap_or(0);
            (self.begin(), end)
        })
    }

    /// Whether what begins then on a rank counts.
    #[inline]
    pub fn is_counted(&self, place: usize, moment: i64) -> bool {
        self.stretch.as_ref().map_or(true, |stretch| stretch.has(place, moment))
    }

    /// Whether an endpoint of a rank counts.
    #[inline]
    pub fn is_endpoint_counted(&self, place: usize, index: usize) -> bool {
        let rank = &self.ranks[place];
        let endpoint = &rank.endpoints[index];
        self.is_counted(
            place,
            match endpoint.call {
                NONE => endpoint.begin,
                call => rank.calls[call as usize].begin,
            },
        )
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
pub type Window = (Nanos, Nanos);

impl Windows {
    /// Of the ranks of a trace whose clocks are settled; it needs no rows.
    pub fn of(trace: &Trace, stretch: &Stretch) -> Windows {
        let window = |place: usize| {
            let info = trace.ranks[place].info();
            ((info.rank, info.life), trace.own_window(stretch, place))
        };
        Windows((0..trace.ranks.len()).map(window).collect())
    }

    /// What of a rank counts; nothing of one that is not in the trace.
    pub fn of_rank(&self, info: &RankInfo) -> Window {
        self.0.get(&(info.rank, info.life)).copied().unwrap_or_default()
    }

    /// Leaves of a rank's run what counts.
    pub fn clip(&self, info: &mut RankInfo) {
        (info.init_end, info.end) = clipped(info, self.of_rank(info));
    }
}

/// The part of a rank's run that a window has.
fn clipped(info: &RankInfo, (begin, end): Window) -> Window {
    let begin = begin.max(info.init_end).min(info.end.max(info.init_end));
    (begin, end.min(info.end).max(begin))
}

/// What was only summed up in a file and so is in no stretch: these have no moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untold {
    pub tests: u64,
    pub calls: u64,
    pub time: Nanos,
}

impl Untold {
    pub fn add(&mut self, other: &Untold) {
        self.tests = self.tests.saturating_add(other.tests);
        self.calls = self.calls.saturating_add(other.calls);
        self.time += other.time;
    }

    /// `None` where there is none.
    pub fn problem(&self) -> Option<Problem> {
        let tests = format!("{} unsuccessful tests and probes", self.tests);
        let calls = format!("{} calls that were only summed up", self.calls);
        let what = match (self.tests, self.calls) {
            (0, 0) => return None,
            (_, 0) => tests,
            (0, _) => calls,
            _ => format!("{tests} and {calls}"),
        };
        let message = format!(
            "{what} ({} in all of the run) have no moments: they are not in these numbers, which are of a part of the run; \
             without --from, --to and --step they are",
            time(self.time)
        );
        Some(Problem::new(ProblemKind::NoMoments, message, vec![]))
    }
}

#[cfg(test)]
mod tests;
