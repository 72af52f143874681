//! Brings the sums of many files together: the same call at the same place is one thing on all ranks, although every
//! file has ids of its own.

use std::collections::{HashMap, HashSet};

use super::aggregate::FileSums;
use super::cell::Cell;
use super::measures::{Counter, Measure, RunMeasures};
use lapscope_data::db::Definitions;
use lapscope_data::model::{
    site_frame, CallName, CallPath, Category, Frame, Kind, Module, Nanos, Rank, RankInfo,
};
use lapscope_data::places::{unknown_call, Interner, Paths};
use lapscope_data::symbols::{FrameName, NameFrames};

/// The sums of a run. Indices of entries are into the vectors beside them.
#[derive(Debug, Default)]
pub struct RunSums {
    /// In the order of rank and life.
    pub ranks: Vec<RankSums>,
    pub calls: Vec<CallName>,
    pub modules: Vec<Module>,
    pub paths: Vec<CallPath>,
    pub entries: Vec<Entry>,
    /// (posting entry, completing entry, time): where requests were waited for.
    pub waits: Vec<(usize, usize, Nanos)>,
    pub measures: RunMeasures,
    /// Ranks in which more than one thread made MPI calls.
    pub threaded_ranks: u64,
}

/// A rank and what is known of it as a whole.
#[derive(Debug)]
pub struct RankSums {
    pub info: RankInfo,
    /// How much of the time in completing calls computation in the windows of their requests could at most have hidden.
    pub possible_overlap: Nanos,
}

/// One cell with run-wide indices.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub rank: usize,
    pub call: usize,
    pub path: Option<usize>,
    pub kind: Kind,
    pub size_class: u8,
    pub is_unsuccessful: bool,
    pub cell: Cell,
}

/// How entries are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// By the frame that the site is named by.
    Frame,
    /// By the whole call path.
    Path,
}

impl RunSums {
    /// Combines files; the answer does not depend on their order, nor on how ranks are spread over them.
    pub fn combine(files: Vec<(Definitions, FileSums)>) -> RunSums {
        let mut run = RunSums::default();
        let mut calls = Interner::default();
        let mut paths = Paths::default();
        let mut counters = Interner::<Counter>::default();
        for (definitions, sums) in files {
            let first_rank = run.ranks.len();
            let first_entry = run.entries.len();
            run.threaded_ranks += definitions.threaded_ranks;
            for (key, cell) in &sums.cells {
                let name = definitions.calls.get(&key.call_id).cloned();
                run.entries.push(Entry {
                    rank: first_rank + key.rank as usize,
                    call: calls.intern(name.unwrap_or_else(|| unknown_call(key.call_id))),
                    path: key.call_path_id.and_then(|id| paths.intern(&definitions, id)),
                    kind: key.kind,
                    size_class: key.size_class,
                    is_unsuccessful: key.is_unsuccessful,
                    cell: *cell,
                });
            }
            run.waits.extend(sums.waits.iter().map(|&(post, wait, time)| {
                (first_entry + post as usize, first_entry + wait as usize, time)
            }));
            let counter: Vec<usize> = sums
                .measures
                .counters
                .into_iter()
                .map(|counter| counters.intern(counter))
                .collect();
            for sum in &sums.measures.sums {
                let name = definitions.calls.get(&sum.call).cloned();
                run.measures.sums.push(Measure {
                    rank: first_rank + sum.rank,
                    call: calls.intern(name.unwrap_or_else(|| unknown_call(sum.call))),
                    path: sum.path.and_then(|id| paths.intern(&definitions, id)),
                    quantity: sum.quantity.of_counter(|of_file| counter[of_file]),
                    sum: sum.sum,
                    rows: sum.rows,
                });
            }
            let ranks = definitions.ranks.into_iter().zip(sums.possible_overlap);
            run.ranks
                .extend(ranks.map(|(info, possible_overlap)| RankSums { info, possible_overlap }));
        }
        run.calls = calls.values;
        run.measures.counters = counters.values;
        run.modules = paths.modules.values;
        run.paths = paths.paths.values;
        run.sort_ranks();
        run
    }

    /// A file of one rank may come behind a merged one.
    fn sort_ranks(&mut self) {
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        order.sort_by_key(|&index| (self.ranks[index].info.rank, self.ranks[index].info.life));
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        self.ranks.sort_by_key(|rank| (rank.info.rank, rank.info.life));
        for entry in &mut self.entries {
            entry.rank = place[entry.rank];
        }
        for measure in &mut self.measures.sums {
            measure.rank = place[measure.rank];
        }
    }

    /// Leaves only these ranks in; all when `wanted` is empty.
    pub fn retain_ranks(&mut self, wanted: &[Rank]) {
        if wanted.is_empty() {
            return;
        }
        let keeps = |rank: &RankSums| wanted.contains(&rank.info.rank);
        let rank_place = renumber(self.ranks.iter().map(keeps));
        let entry_place =
            renumber(self.entries.iter().map(|entry| rank_place[entry.rank].is_some()));
        self.ranks.retain(keeps);
        self.entries.retain(|entry| rank_place[entry.rank].is_some());
        for entry in &mut self.entries {
            entry.rank = rank_place[entry.rank].unwrap_or_default();
        }
        self.measures.sums.retain(|measure| rank_place[measure.rank].is_some());
        for measure in &mut self.measures.sums {
            measure.rank = rank_place[measure.rank].unwrap_or_default();
        }
        self.waits = std::mem::take(&mut self.waits)
            .into_iter()
            .filter_map(|(post, wait, time)| Some((entry_place[post]?, entry_place[wait]?, time)))
            .collect();
    }

    /// Makes addresses one that have the same names: unrolled loops and instances of templates make several calls of one
    /// line. Costs a look-up of every address that is grouped by, so a run with very many keeps them apart.
    pub fn unify(&mut self, grouping: Grouping, names: &mut dyn NameFrames) {
        const MOST: usize = 20_000;
        let grouped: HashSet<Frame> = match grouping {
            Grouping::Frame => {
                (0..self.paths.len()).filter_map(|path| self.site_frame(Some(path))).collect()
            }
            Grouping::Path => {
                let frames = |path: &CallPath| path.frames.clone().into_iter().chain(path.caller);
                self.paths.iter().flat_map(frames).collect()
            }
        };
        if grouped.len() > MOST {
            return;
        }
        let same = same_places(grouped, grouping, names);
        let mut paths = Interner::default();
        let place: Vec<usize> = std::mem::take(&mut self.paths)
            .into_iter()
            .map(|mut path| {
                for frame in path.frames.iter_mut().chain(&mut path.caller) {
                    *frame = same.get(frame).copied().unwrap_or(*frame);
                }
                paths.intern(path)
            })
            .collect();
        self.paths = paths.values;
        for entry in &mut self.entries {
            entry.path = entry.path.map(|path| place[path]);
        }
        for measure in &mut self.measures.sums {
            measure.path = measure.path.map(|path| place[path]);
        }
    }

    /// Where an entry's time is counted.
    pub fn category(&self, entry: &Entry) -> Category {
        match self.calls[entry.call].category() {
            Category::Outside => Category::Outside,
            _ if entry.is_unsuccessful => Category::UnsuccessfulTest,
            category => category,
        }
    }

    /// The frame that a call site is named by.
    pub fn site_frame(&self, path: Option<usize>) -> Option<Frame> {
        site_frame(&self.paths[path?], &self.modules)
    }
}

/// For each frame the one that stands for its place: the line and column is what counts for [`Grouping::Frame`], not into what
/// it was inlined. Where one line has several, their names have columns from then on.
pub fn same_places(
    frames: impl IntoIterator<Item = Frame>,
    grouping: Grouping,
    names: &mut dyn NameFrames,
) -> HashMap<Frame, Frame> {
    let mut frames: Vec<Frame> = frames.into_iter().collect();
    frames.sort_unstable();
    let mut first: HashMap<Vec<FrameName>, Vec<(Option<u32>, Frame)>> = HashMap::new();
    let same = frames
        .into_iter()
        .map(|frame| {
            let mut key = names.name(frame);
            if grouping == Grouping::Frame {
                key.truncate(1);
                key[0].inlined = false;
            }
            let has_lines = key.iter().all(|name| name.line.is_some());
            key.iter_mut().filter(|_| has_lines).for_each(|name| name.address = 0);
            key[0].column = None;
            let (column, of_line) = (names.column(frame), first.entry(key).or_default());
            let known = of_line.iter().find(|(known, _)| *known == column).map(|known| known.1);
            (
                frame,
                known.unwrap_or_else(|| {
                    of_line.push((column, frame));
                    frame
                }),
            )
        })
        .collect();
    for (_, frame) in first.values().filter(|of_line| of_line.len() > 1).flatten() {
        names.show_column(*frame);
    }
    same
}

/// For each element its index among those that stay; `None` when it goes.
fn renumber(stays: impl Iterator<Item = bool>) -> Vec<Option<usize>> {
    let mut next = 0..;
    stays.map(|stays| if stays { next.next() } else { None }).collect()
}
