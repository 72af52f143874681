//! Steps: the iterations of a program, marked by it or found from calls that recur, with what each cost and overlapped.
//!
//! A [`StepRule`] says what begins a step on each rank. It is found on a few ranks and asked of all; a [`Plan`] has it with the number
//! of steps that most ranks made. [`StepSums`] is what is summed of each step on the way through the requests, and [`Steps`] what is
//! told of that.
//!
//! A rule is looked for on three ranks. The number of steps that most ranks made counts, and the others are named:
//! shifted against each other, sums of the k-th step would be of nothing. Each rank has its own times, so a step is no
//! interval of the run: ranks drift apart by a step and more where little synchronises them, and a stretch has a begin
//! and an end for each rank.

mod anchor;
mod document;
mod drift;
mod events;
mod marked;
mod sums;
#[cfg(test)]
mod tests;
mod visits;

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::anchor::{candidates, choose};
use self::events::Events;
use self::marked::{of_most_time, Regions};
use lapscope_trace::{Stretch, Trace};

pub use anchor::Anchor;
pub use document::{Duration, Exposed, Hidden, RegionRow, StepRow, StepStart, Steps};
pub use drift::Drift;
pub use events::{Caller, Path};
pub use sums::{StepSpan, StepSums, Stepper};

/// A region that a program marks less often is no step of it.
const FEWEST_MARKED: usize = 3;

/// What begins a step, on each rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepRule {
    /// `MPI_Pcontrol(2)`.
    Marks,
    /// A region of this name is a step.
    Region(String),
    /// A place that is visited once a step.
    Anchor(Anchor),
}

/// Places of ranks by which a run is known: the first, one in the middle, the last.
pub fn sample(ranks: usize) -> Vec<usize> {
    let mut sample = vec![0, ranks / 2, ranks.saturating_sub(1)];
    sample.dedup();
    sample.retain(|&place| place < ranks);
    sample
}

impl StepRule {
    /// From the rows of the ranks at these places.
    ///
    /// # Errors
    /// Nothing that they do recurs in a way that is certain.
    pub fn find(trace: &Trace, sample: &[usize]) -> Result<StepRule, NoSteps> {
        let marks = |&place: &usize| marked::steps(trace, place).len();
        // ranks that do something else than the others need not mark anything
        if sample.iter().any(|place| marks(place) >= FEWEST_MARKED) {
            return Ok(StepRule::Marks);
        }
        let regions: Vec<Regions> =
            sample.iter().map(|&place| marked::regions(trace, place)).collect();
        let regions: Vec<Regions> = regions.into_iter().filter(|of| !of.is_empty()).collect();
        if let Some(name) = of_most_time(&regions, FEWEST_MARKED) {
            return Ok(StepRule::Region(name));
        }
        let of_rank = |&place: &usize| {
            let mut events = Events::collect(trace, place);
            (!events.list.is_empty()).then(|| candidates(&mut events))
        };
        let found: Vec<_> = sample.par_iter().filter_map(of_rank).collect();
        choose(&found).map(StepRule::Anchor).ok_or(NoSteps::NothingRecurs)
    }

    /// Itself, where all of the run is known by it: calls that were only summed up, and marks that were not kept, are no sign of
    /// steps.
    ///
    /// # Errors
    /// A part of the run is not known.
    pub fn known_of(self, trace: &Trace) -> Result<StepRule, NoSteps> {
        let is_cut = trace.is_summarized();
        let is_lost = trace.ranks.iter().any(|rank| rank.info().lost_marks > 0);
        match self {
            StepRule::Anchor(_) if is_cut => Err(NoSteps::SummedUp),
            StepRule::Marks | StepRule::Region(_) if is_lost => Err(NoSteps::MarksLost),
            rule => Ok(rule),
        }
    }

    /// From when to when each step of the rank at a place is, in order; its rows have to be there.
    pub fn boundaries(&self, trace: &Trace, place: usize) -> Vec<(i64, i64)> {
        match self {
            StepRule::Marks => marked::steps(trace, place),
            StepRule::Region(name) => {
                marked::regions(trace, place).remove(name).unwrap_or_default()
            }
            StepRule::Anchor(anchor) => anchor.boundaries(&Events::collect(trace, place)),
        }
    }
}

/// How many ranks made how many steps; of some ranks that were looked at, where steps of theirs lie.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StepCounts {
    ranks: BTreeMap<u64, u64>,
    /// By place: from the begin of the first to the end of the last step that was asked for.
    asked: BTreeMap<u32, (i64, i64)>,
}

impl StepCounts {
    /// Counts the steps of the focus of a trace; `asked`: the first and the last of so many steps.
    pub fn count(trace: &Trace, rule: &StepRule, asked: Option<(u64, u64, u64)>) -> StepCounts {
        let places: Vec<usize> = trace.focus().collect();
        let of_rank = |place: usize| {
            let steps = rule.boundaries(trace, place);
            let mut counted = StepCounts::default();
            counted.ranks.insert(steps.len() as u64, 1);
            if let Some((first, last, _)) = asked.filter(|(_, _, of)| *of == steps.len() as u64) {
                let step = |number: u64| steps.get((number as usize).checked_sub(1)?);
                let asked = step(first).zip(step(last)).map(|(first, last)| (first.0, last.1));
                counted.asked.extend(asked.map(|asked| (place as u32, asked)));
            }
            counted
        };
        places.into_par_iter().map(of_rank).reduce(StepCounts::default, StepCounts::merge)
    }

    #[must_use]
    pub fn merge(mut self, other: StepCounts) -> StepCounts {
        for (steps, ranks) in other.ranks {
            *self.ranks.entry(steps).or_default() += ranks;
        }
        self.asked.extend(other.asked);
        self
    }

    /// The stretch that the steps are which were asked for. A rank that made another number of steps has a part in it from the first
    /// begin to the last end of any.
    pub fn stretch(&self, ranks: usize) -> Stretch {
        let begin = self.asked.values().map(|it| it.0).min().unwrap_or(0);
        let end = self.asked.values().map(|it| it.1).max().unwrap_or(0);
        let of = |place: u32| self.asked.get(&place).copied().unwrap_or((begin, end));
        Stretch { ranks: (0..ranks as u32).map(of).collect() }
    }
}

/// The steps of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub rule: StepRule,
    /// On the ranks that count.
    pub count: u64,
    pub ranks: u64,
    /// Ranks that made another number of steps.
    pub others: u64,
    /// Ranks that made none.
    pub without: u64,
}

impl Plan {
    /// # Errors
    /// Ranks do not agree in how many steps there are, or make none.
    pub fn new(rule: StepRule, counted: &StepCounts) -> Result<Plan, NoSteps> {
        let some = || counted.ranks.iter().filter(|(steps, _)| **steps > 0);
        let all: u64 = some().map(|(_, ranks)| ranks).sum();
        let most = some().max_by_key(|(steps, ranks)| (**ranks, **steps));
        let Some((&count, &ranks)) = most else { return Err(NoSteps::NothingRecurs) };
        let without = counted.ranks.get(&0).copied().unwrap_or(0);
        if ranks * 2 <= all {
            return Err(NoSteps::RanksDiffer { all, ranks, count });
        }
        Ok(Plan { rule, count, ranks, others: all - ranks, without })
    }
}

/// Why there are no steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSteps {
    NothingRecurs,
    /// A part of the run was only summed up.
    SummedUp,
    /// Some of the marks were not kept.
    MarksLost,
    /// Of `all` ranks that make steps no more than half, `ranks`, agree in their number.
    RanksDiffer {
        all: u64,
        ranks: u64,
        count: u64,
    },
}
