//! What is summed of each step and of each region on the way through the requests of a rank.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::marked::{regions, Regions};
use super::Plan;
use crate::efficiency::Useful;
use crate::overlap::exposure::Exposure;
use crate::overlap::request::Achieved;
use crate::overlap::witness::{Waited, Witness};
use lapscope_trace::{Half, Trace};

/// Most rows; where there are more steps, as many are put together as that takes.
const MOST_CELLS: u64 = 4_096;

/// Time of calls by cause, and what of requests with a reference time was overlapped. Nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spent {
    /// Completing and blocking calls.
    pub exposed: Exposure,
    pub transfer: i64,
    pub possible_low: i64,
    pub possible_high: i64,
    pub lost_low: i64,
    pub lost_high: i64,
    pub achieved_low: i64,
    pub achieved_high: i64,
    /// Loops of tests that waited, without other calls.
    pub loops: i64,
}

impl Spent {
    fn add_request(&mut self, achieved: &Achieved) {
        self.transfer = self.transfer.saturating_add(achieved.transfer);
        self.possible_low = self.possible_low.saturating_add(achieved.possible_low);
        self.possible_high = self.possible_high.saturating_add(achieved.possible_high);
        self.lost_low = self.lost_low.saturating_add(achieved.lost_low);
        self.lost_high = self.lost_high.saturating_add(achieved.lost_high());
        self.achieved_low = self.achieved_low.saturating_add(achieved.low);
        self.achieved_high = self.achieved_high.saturating_add(achieved.high);
    }

    fn merge(&mut self, other: &Spent) {
        self.exposed += other.exposed;
        self.transfer = self.transfer.saturating_add(other.transfer);
        self.possible_low = self.possible_low.saturating_add(other.possible_low);
        self.possible_high = self.possible_high.saturating_add(other.possible_high);
        self.lost_low = self.lost_low.saturating_add(other.lost_low);
        self.lost_high = self.lost_high.saturating_add(other.lost_high);
        self.achieved_low = self.achieved_low.saturating_add(other.achieved_low);
        self.achieved_high = self.achieved_high.saturating_add(other.achieved_high);
        self.loops = self.loops.saturating_add(other.loops);
    }
}

/// The longest of something, with the first step and rank that had it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Longest {
    pub ns: i64,
    /// From 0.
    pub step: u64,
    /// Place.
    pub rank: u32,
}

impl Longest {
    fn offer(&mut self, other: Longest) {
        let order = |it: &Longest| (-it.ns, it.step, it.rank);
        if order(&other) < order(self) {
            *self = other;
        }
    }
}

/// One step, or several, on all ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StepCell {
    /// Steps times ranks, and the sum of their durations.
    pub times: u64,
    pub ns: i64,
    pub longest: Longest,
    /// Moments: the first begin and the last end.
    pub begin: i64,
    pub end: i64,
    pub spent: Spent,
}

impl StepCell {
    fn add(&mut self, (begin, end): (i64, i64), step: u64, rank: u32) {
        let longest = Longest { ns: end - begin, step, rank };
        let one =
            StepCell { times: 1, ns: end - begin, longest, begin, end, spent: Spent::default() };
        self.merge(&one);
    }

    fn merge(&mut self, other: &StepCell) {
        self.spent.merge(&other.spent);
        if other.times == 0 {
            return;
        }
        if self.times == 0 {
            let spent = self.spent;
            *self = StepCell { spent, ..other.clone() };
            return;
        }
        self.times += other.times;
        self.ns = self.ns.saturating_add(other.ns);
        self.longest.offer(other.longest);
        self.begin = self.begin.min(other.begin);
        self.end = self.end.max(other.end);
    }
}

/// A region that the program marks, on all ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RegionSums {
    pub ranks: u64,
    pub count: u64,
    pub ns: i64,
    pub longest: Longest,
    pub spent: Spent,
    pub useful: Useful,
}

/// What is known of steps and regions; what is merged in any order comes to the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSums {
    /// Each of so many steps, in order; empty where there are none.
    pub(super) cells: Vec<StepCell>,
    /// A power of two.
    pub(super) steps_in_cell: u64,
    pub(super) regions: BTreeMap<String, RegionSums>,
    /// Of all steps.
    pub(super) useful: Useful,
}

/// The first and the last of some steps, from 1 on, and from when to when they are on the run's clock.
pub type StepSpan = ((u64, u64), (i64, i64));

impl StepSums {
    /// The step with most exposed time; where a cell has several, all of these. `None`: there are no steps, or none waits.
    pub fn costliest(&self) -> Option<StepSpan> {
        let exposed = |cell: &StepCell| cell.spent.exposed.total();
        let cells = self.cells.iter().enumerate().rev().filter(|(_, cell)| cell.times > 0);
        let (place, cell) = cells.max_by_key(|(_, cell)| exposed(cell))?;
        (exposed(cell) > 0).then(|| self.span_of(place, place)).flatten()
    }

    /// Where these steps lie, with those that are in one cell with them. `None`: there are not so many.
    pub fn span(&self, first: u64, last: u64) -> Option<StepSpan> {
        let cell = |step: u64| step.checked_sub(1).map(|step| (step / self.steps_in_cell) as usize);
        self.span_of(cell(first)?, cell(last)?)
    }

    fn span_of(&self, first: usize, last: usize) -> Option<StepSpan> {
        let cells = self.cells.get(first..=last)?;
        let known = || cells.iter().filter(|cell| cell.times > 0);
        let (begin, end) = (known().map(|it| it.begin).min()?, known().map(|it| it.end).max()?);
        let per_cell = self.steps_in_cell;
        let number = first as u64 * per_cell + 1;
        Some(((number, (last as u64 + 1) * per_cell), (begin, end)))
    }

    /// Adds those of other ranks.
    pub fn merge(&mut self, other: StepSums) {
        if self.cells.is_empty() {
            (self.cells, self.steps_in_cell) = (other.cells, other.steps_in_cell);
        } else {
            self.cells.iter_mut().zip(&other.cells).for_each(|(sum, cell)| sum.merge(cell));
        }
        for (name, more) in other.regions {
            let sum = self.regions.entry(name).or_default();
            sum.ranks += more.ranks;
            sum.count += more.count;
            sum.ns = sum.ns.saturating_add(more.ns);
            sum.longest.offer(more.longest);
            sum.spent.merge(&more.spent);
            sum.useful.merge(&more.useful);
        }
        self.useful.merge(&other.useful);
    }
}

/// Takes the calls and requests of one rank.
#[derive(Debug)]
pub struct Stepper<'a> {
    trace: &'a Trace,
    rank: usize,
    /// Steps of this rank; none where it made another number of them than most.
    steps: Vec<(i64, i64)>,
    /// Where a timestamp was found last: calls come nearly in order.
    near: usize,
    /// Regions in the order of their begins: from, to, name, and the one around it.
    regions: Vec<(i64, i64, u32, Option<u32>)>,
    names: Vec<String>,
    of_names: Vec<RegionSums>,
    sums: StepSums,
}

impl<'a> Stepper<'a> {
    /// Sums the steps that `plan` says, where there is one.
    pub fn new(trace: &'a Trace, rank: usize, plan: Option<&Plan>) -> Stepper<'a> {
        let boundaries = |plan: &Plan| plan.rule.boundaries(trace, rank);
        let is_one = |plan: &&Plan, steps: &Vec<(i64, i64)>| steps.len() as u64 == plan.count;
        let steps = plan.map(boundaries).unwrap_or_default();
        let steps = plan.filter(|plan| is_one(plan, &steps)).map(|_| steps).unwrap_or_default();
        let steps_in_cell = plan.map_or(1, |plan| in_cell(plan.count));
        let count = plan.map_or(0, |plan| plan.count.div_ceil(steps_in_cell));
        let mut sums = StepSums { steps_in_cell, ..StepSums::default() };
        sums.cells = vec![StepCell::default(); count as usize];
        for (step, &of_step) in (0..).zip(&steps) {
            if trace.is_counted(rank, of_step.0) {
                sums.cells[(step / steps_in_cell) as usize].add(of_step, step, rank as u32);
            }
        }
        let (regions, names, of_names) = in_order(regions(trace, rank), trace, rank);
        Stepper { trace, rank, steps, near: 0, regions, names, of_names, sums }
    }

    pub fn finish(mut self) -> StepSums {
        let cells = self.sums.cells.iter();
        let loops = cells.map(|cell| cell.spent.loops).fold(0, i64::saturating_add);
        let counted = |step: &&(i64, i64)| self.trace.is_counted(self.rank, step.0);
        self.sums.useful = self.useful(self.steps.iter().filter(counted).copied(), loops);
        for name in 0..self.of_names.len() {
            let of_name = self.regions.iter().filter(|region| region.2 as usize == name);
            let useful = self.useful(
                of_name.map(|&(begin, end, ..)| (begin, end)),
                self.of_names[name].spent.loops,
            );
            self.of_names[name].useful = useful;
        }
        let regions = self.names.into_iter().zip(self.of_names);
        StepSums { regions: regions.filter(|(_, of)| of.count > 0).collect(), ..self.sums }
    }

    /// What the rank computed in stretches that begin one after the other; what lies in several of them counts once.
    fn useful(&self, stretches: impl Iterator<Item = (i64, i64)>, loops: i64) -> Useful {
        let rank = &self.trace.ranks[self.rank];
        let (mut time, mut outside, mut until) = (0i64, 0i64, i64::MIN);
        for (begin, end) in stretches {
            let begin = begin.max(until);
            if end > begin {
                time = time.saturating_add(end - begin);
                outside = outside.saturating_add(rank.presence.outside(begin, end));
                until = end;
            }
        }
        match (until, rank.threads.count() > 1 || rank.has_gaps()) {
            (i64::MIN, _) => Useful::default(),
            (_, true) => Useful::unknown(),
            (_, false) => Useful::of_rank(time, outside - loops),
        }
    }

    /// The step that holds a moment.
    fn step_at(&mut self, moment: i64) -> Option<usize> {
        let begins_by = |at: usize| self.steps.get(at).is_some_and(|step| step.0 <= moment);
        if !begins_by(self.near) || begins_by(self.near + 1) {
            let behind = self.steps.partition_point(|step| step.0 <= moment);
            self.near = behind.checked_sub(1)?;
        }
        (moment < self.steps[self.near].1).then_some(self.near)
    }

    /// What holds a moment counts what begins then.
    fn each(&mut self, moment: i64, add: impl Fn(&mut Spent)) {
        if let Some(step) = self.step_at(moment) {
            let cell = step as u64 / self.sums.steps_in_cell;
            add(&mut self.sums.cells[cell as usize].spent);
        }
        let behind = self.regions.partition_point(|region| region.0 <= moment);
        let mut at = behind.checked_sub(1);
        let mut seen: Vec<u32> = Vec::new();
        while let Some(region) = at {
            let (_, end, name, around) = self.regions[region];
            if moment < end && !seen.contains(&name) {
                seen.push(name);
                add(&mut self.of_names[name as usize].spent);
            }
            at = around.map(|around| around as usize);
        }
    }

    /// When the call began that completed it, or that it is.
    fn moment(&self, half: &Half<'_>) -> i64 {
        let call = half.call.map(|call| self.trace.ranks[self.rank].calls[call as usize].begin);
        call.unwrap_or(half.post_begin)
    }
}

impl Witness for Stepper<'_> {
    fn call(&mut self, waited: &Waited<'_>) {
        self.each(self.moment(&waited.half), |spent| spent.exposed += waited.exposed);
    }

    fn looped(&mut self, begin: i64, ns: i64) {
        self.each(begin, |spent| spent.loops = spent.loops.saturating_add(ns));
    }

    fn request(&mut self, half: &Half<'_>, achieved: &Achieved) {
        self.each(self.moment(half), |spent| spent.add_request(achieved));
    }
}

fn in_cell(count: u64) -> u64 {
    let mut steps = 1;
    while count.div_ceil(steps) > MOST_CELLS {
        steps *= 2;
    }
    steps
}

type InOrder = (Vec<(i64, i64, u32, Option<u32>)>, Vec<String>, Vec<RegionSums>);

/// Regions of all names in the order of their begins, each with the one that it lies in.
fn in_order(regions: Regions, trace: &Trace, rank: usize) -> InOrder {
    let (mut all, mut names, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (name, of_name)) in (0u32..).zip(regions) {
        let counted = of_name.into_iter().filter(|region| trace.is_counted(rank, region.0));
        let counted: Vec<(i64, i64)> = counted.collect();
        let mut sum = RegionSums { ranks: u64::from(!counted.is_empty()), ..RegionSums::default() };
        for (step, &(begin, end)) in (0..).zip(&counted) {
            sum.count += 1;
            sum.ns = sum.ns.saturating_add(end - begin);
            sum.longest.offer(Longest { ns: end - begin, step, rank: rank as u32 });
        }
        all.extend(counted.into_iter().map(|(begin, end)| (begin, end, number, None)));
        names.push(name);
        sums.push(sum);
    }
    all.sort_by_key(|&(begin, end, name, _)| (begin, -end, name));
    let mut open: Vec<u32> = Vec::new();
    for at in 0..all.len() {
        let begin = all[at].0;
        while open.last().is_some_and(|&last| all[last as usize].1 <= begin) {
            open.pop();
        }
        all[at].3 = open.last().copied();
        open.push(at as u32);
    }
    (all, names, sums)
}
