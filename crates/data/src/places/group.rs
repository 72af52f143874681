//! Which addresses are one call site.
//!
//! Two calls of one line are two sites where their columns differ, and then the column is part of the name. Copies of
//! one call, as of a loop that was unrolled, have the same column and are one site; so are two calls that one macro
//! makes.

use std::collections::{HashMap, HashSet};

use super::{CallPathId, Places, SiteId, UnnamedSite};
use crate::model::{CallPath, Frame};
use crate::symbols::{FrameName, NameFrames};

/// Looking up more addresses than this takes too long: a run with more of them keeps them apart.
const MOST_NAMED: usize = 20_000;

/// What makes a call site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// The address of the frame that it is named by; nothing needs to have a name.
    Address,
    /// The line of that frame.
    Line,
    /// The whole call path.
    CallPath,
}

impl Places {
    /// Numbers the call sites anew. Addresses that have the same names are one: unrolled loops and instances of templates make
    /// several calls of one line.
    pub fn group(&mut self, grouping: Grouping, names: &mut dyn NameFrames) {
        let grouped: HashSet<Frame> = match grouping {
            Grouping::Address => HashSet::new(),
            Grouping::Line => self.path_ids().filter_map(|path| self.frame_of(path)).collect(),
            Grouping::CallPath => {
                let frames = |path: &CallPath| path.frames.clone().into_iter().chain(path.caller);
                self.paths.iter().flat_map(frames).collect()
            }
        };
        let same = match grouped.len() {
            0..=MOST_NAMED => same_places(grouped, grouping, names),
            _ => HashMap::new(),
        };
        let first = |frame: Frame| same.get(&frame).copied().unwrap_or(frame);
        let mut first_paths = HashMap::new();
        if grouping == Grouping::CallPath {
            for path in &mut self.paths {
                path.frames
                    .iter_mut()
                    .chain(&mut path.caller)
                    .for_each(|frame| *frame = first(*frame));
            }
            let mut known: HashMap<&CallPath, CallPathId> = HashMap::new();
            for id in self.path_ids() {
                first_paths.insert(id, *known.entry(self.path(id)).or_insert(id));
            }
        }
        self.number(|path| first_paths.get(&path).copied(), first);
    }

    /// Numbers the call sites; of paths, where they are told apart, and of frames the first of those that are one.
    pub(super) fn number(
        &mut self,
        first_path: impl Fn(CallPathId) -> Option<CallPathId>,
        first_frame: impl Fn(Frame) -> Frame,
    ) {
        let of_path: Vec<(Option<Frame>, Option<CallPathId>)> = self
            .path_ids()
            .map(|path| (self.frame_of(path).map(&first_frame), first_path(path)))
            .collect();
        let site = |&(call, path): &(u32, Option<CallPathId>)| {
            let (frame, path) = path.map_or((None, None), |path| of_path[path.index()]);
            UnnamedSite { call, frame, path }
        };
        self.sites = self.uses.keys().map(site).collect();
        self.sites.sort_unstable();
        self.sites.dedup();
        for (used, id) in &mut self.uses {
            let place = self.sites.partition_point(|known| *known < site(used));
            *id = SiteId(place as u32);
        }
    }
}

/// For each frame the one that stands for its place: the line and column is what counts for [`Grouping::Line`], not into what
/// it was inlined. Where one line has several, their names have columns from then on.
fn same_places(
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
            if grouping == Grouping::Line {
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
