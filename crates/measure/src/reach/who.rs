//! Names who touched a word: the line of the program, or the MPI call that it was handed to.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::sites::Touched;
use lapscope_data::model::{site_frame, CallPath, Frame, Toucher};
use lapscope_data::places::{InstructionId, Places};
use lapscope_data::symbols::{base_name, FrameName, NameFrames};
use lapscope_trace::watched::Touch;

/// A line that touched watched words. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Serialize)]
pub struct TouchedBy {
    pub toucher: Toucher,
    /// The MPI call that read or wrote the buffer.
    pub call: Option<String>,
    /// The line of the program; of a library routine that of its caller, where that is known.
    pub site: Option<FrameName>,
    /// The instruction and what it was inlined into and called from, innermost first, as far as that is certain.
    pub frames: Vec<FrameName>,
    pub words: u64,
    /// Share of the words that were touched.
    pub share: f64,
    /// Share of the buffers whose worst watched word it touched: first behind the completion, or last before the post.
    pub decisive_share: f64,
}

/// Names instructions.
pub struct Who<'a> {
    places: &'a Places,
    names: &'a mut dyn NameFrames,
    /// Index into [`Places::calls`].
    calls: HashMap<&'a [Frame], usize>,
}

impl<'a> Who<'a> {
    pub fn new(places: &'a Places, names: &'a mut dyn NameFrames) -> Who<'a> {
        let calls = places
            .uses()
            .map(|(call, path)| (places.paths[path].frames.as_slice(), call))
            .collect();
        Who { places, names, calls }
    }

    /// The name of a frame as sites have it.
    pub fn frame(&mut self, frame: Frame) -> FrameName {
        self.names.name(frame).swap_remove(0)
    }

    /// A line for each that touched words; what decided most comes first.
    pub fn touched(&mut self, touches: &BTreeMap<Touch, Touched>) -> Vec<TouchedBy> {
        let words: u64 = touches.values().map(|touched| touched.words).sum();
        let buffers: u64 = touches.values().map(|touched| touched.worst).sum();
        let mut lines: Vec<(TouchedBy, u64)> = Vec::new();
        for (touch, touched) in touches {
            let (site, frames) = match touch.by {
                Some(by) => self.instruction(by, touch.toucher),
                None => (None, Vec::new()),
            };
            let call =
                touch.by.filter(|_| touch.toucher == Toucher::Mpi).and_then(|by| self.call(by));
            let is_same = |(line, _): &&mut (TouchedBy, u64)| {
                line.toucher == touch.toucher
                    && line.call == call
                    && label(&line.site) == label(&site)
            };
            match lines.iter_mut().find(is_same) {
                Some((line, worst)) => {
                    line.words += touched.words;
                    *worst += touched.worst;
                }
                None => {
                    let by = TouchedBy {
                        toucher: touch.toucher,
                        call,
                        site,
                        frames,
                        words: touched.words,
                        share: 0.0,
                        decisive_share: 0.0,
                    };
                    lines.push((by, touched.worst));
                }
            }
        }
        lines.sort_by(|(a, a_worst), (b, b_worst)| {
            (b_worst, b.words)
                .cmp(&(a_worst, a.words))
                .then_with(|| label(&a.site).cmp(&label(&b.site)))
        });
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let lines = lines.into_iter().map(|(line, worst)| TouchedBy {
            share: share(line.words, words),
            decisive_share: share(worst, buffers),
            ..line
        });
        lines.collect()
    }

    /// The line that names an instruction, and all its frames.
    pub fn instruction(
        &mut self,
        by: InstructionId,
        toucher: Toucher,
    ) -> (Option<FrameName>, Vec<FrameName>) {
        let places: &'a Places = self.places;
        let path = places.instruction(by);
        let frames: Vec<FrameName> =
            path.frames.iter().flat_map(|&frame| self.names.name(frame)).collect();
        let site = match toucher {
            Toucher::Mpi => site_frame(path, &places.modules),
            Toucher::Program => self.own_frame(path),
        };
        (site.map(|frame| in_function(self.frame(frame))), frames)
    }

    /// The innermost frame that is not in a library of the system; else the innermost.
    fn own_frame(&mut self, path: &CallPath) -> Option<Frame> {
        let module = |frame: &&Frame| {
            frame.module.map(|module| self.places.modules[module as usize].path.as_str())
        };
        let is_own = |frame: &&Frame| !module(frame).is_some_and(is_system_library);
        path.frames.iter().find(is_own).or(path.frames.first()).copied()
    }

    /// The MPI call that was made by this path.
    fn call(&self, by: InstructionId) -> Option<String> {
        let path = self.places.instruction(by);
        let call = self.calls.get(path.frames.as_slice())?;
        Some(self.places.calls[*call].name.clone())
    }
}

/// Where no line is known, the instructions of a function are one place: loops have many.
fn in_function(name: FrameName) -> FrameName {
    match name.function {
        Some(_) => FrameName { offset: None, ..name },
        None => name,
    }
}

/// Same lines have the same.
fn label(site: &Option<FrameName>) -> String {
    site.as_ref().map(FrameName::short).unwrap_or_default()
}

/// Libraries whose routines touch what their callers mean.
fn is_system_library(path: &str) -> bool {
    const NAMES: [&str; 7] =
        ["libc.so", "libc-", "ld-linux", "libm.so", "libmvec.so", "libstdc++.so", "libgfortran.so"];
    NAMES.iter().any(|name| base_name(path).starts_with(name))
}
