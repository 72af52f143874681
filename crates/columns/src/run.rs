//! A run, or a part of it, as its tables need it: measured, and with the names that rows have.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lapscope_data::model::Rank;
use lapscope_data::places::SiteId;
use lapscope_measure::overlap::exposure::Exposure;
use lapscope_measure::overlap::{EagerLimits, Measuring};
use lapscope_measure::reference::Reference;
use lapscope_report::pipeline::overlap::Prepared;
use lapscope_trace::{Direction, Half, Operation, RankTrace, Trace};
use rayon::prelude::*;

use super::causes::{CallCauses, Overlapped};
use super::words;

/// What the first look at a run found: of each rank the causes of its calls' time, by place in [`Trace::ranks`].
pub(super) enum FirstLook {
    InMemory(Vec<CallCauses>),
    /// Files in this directory, for a run that is looked at in parts.
    Files(PathBuf),
}

impl FirstLook {
    /// Looks at every request once; `progress` is told how many more were done. `directory` is for files.
    pub fn look(
        prepared: &Prepared,
        directory: PathBuf,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<FirstLook> {
        let Prepared { view, reference, eager, .. } = prepared;
        let measure = |trace: &Trace| {
            let witness = |rank: usize| CallCauses::new(&trace.ranks[rank]);
            Measuring { trace, reference, eager: *eager, ranks: &[], progress }.tell(witness).1
        };
        if view.is_whole() {
            return Ok(FirstLook::InMemory(measure(&view.trace)));
        }
        std::fs::create_dir(&directory).with_context(|| directory.display().to_string())?;
        view.each_part(|trace| {
            trace.focus().zip(measure(trace)).try_for_each(|(place, causes)| {
                let path = file(&directory, place);
                causes.save(&path).with_context(|| path.display().to_string())
            })
        })?;
        Ok(FirstLook::Files(directory))
    }
}

fn file(directory: &Path, place: usize) -> PathBuf {
    directory.join(place.to_string())
}

/// Ranks whose rows are in memory, with the causes of their calls' time.
pub struct RunRows<'a> {
    trace: &'a Trace,
    reference: &'a Reference,
    eager: EagerLimits,
    causes: Cow<'a, [CallCauses]>,
    /// By place in [`Trace::ranks`].
    keys: Vec<i64>,
}

impl<'a> RunRows<'a> {
    /// A part of the run, or the whole.
    pub(super) fn prepare(
        prepared: &'a Prepared,
        trace: &'a Trace,
        found: &'a FirstLook,
    ) -> Result<RunRows<'a>> {
        let causes = match found {
            FirstLook::InMemory(causes) => causes.as_slice().into(),
            FirstLook::Files(directory) => {
                let load = |(place, rank): (usize, &RankTrace)| match rank.calls.is_empty() {
                    true => Ok(CallCauses::new(rank)),
                    false => {
                        let path = file(directory, place);
                        CallCauses::load(rank, &path).with_context(|| path.display().to_string())
                    }
                };
                let all = trace.ranks.par_iter().enumerate().map(load);
                all.collect::<Result<Vec<CallCauses>>>()?.into()
            }
        };
        let Prepared { reference, eager, .. } = prepared;
        Ok(RunRows { trace, reference, eager: *eager, causes, keys: keys(&trace.ranks) })
    }

    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    pub fn rank(&self, place: usize) -> &'a RankTrace {
        &self.trace.ranks[place]
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
        let rank = self.rank(place).info().rank;
        let (reference, eager) = (self.reference, self.eager);
        // further lives of the same rank are looked at, too
        let (trace, ranks, progress) = (self.trace, &[rank], &|_| ());
        let (_, found) =
            Measuring { trace, reference, eager, ranks, progress }.tell(Overlapped::new);
        let of_place = found.into_iter().find(|found| found.place == place);
        of_place.with_context(|| format!("rank {rank} is not in the run"))
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
