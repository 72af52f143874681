//! The places of a run, numbered once. Files have ids of their own for calls, modules and call paths; here these get numbers of
//! the run, and every call site an id, by which everything is summed. Names are looked up when something is printed.

pub mod group;
mod read;

pub(crate) use read::{read_calls, read_paths};

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use crate::model::{site_frame, CallName, CallPath, Frame, Module};

pub use read::FilePlaces;

/// The name of a call whose name its file does not have.
fn unknown_call(id: i64) -> CallName {
    CallName::unknown(format!("call {id}"))
}

/// Gives equal values equal indices.
#[derive(Debug)]
pub struct Interner<T, S = RandomState> {
    pub values: Vec<T>,
    index: HashMap<T, usize, S>,
}

impl<T, S: Default> Default for Interner<T, S> {
    fn default() -> Self {
        Interner { values: Vec::new(), index: HashMap::default() }
    }
}

impl<T: Clone + Eq + Hash, S: BuildHasher> Interner<T, S> {
    pub fn intern(&mut self, value: T) -> usize {
        let values = &mut self.values;
        *self.index.entry(value).or_insert_with_key(|value| {
            values.push(value.clone());
            values.len() - 1
        })
    }
}

/// A call path of the run. Never zero, so that none at all takes no room of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallPathId(NonZeroU32);

impl CallPathId {
    fn at(index: usize) -> CallPathId {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        CallPathId(number.expect("no run has four billion call paths"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A path to an instruction of the run that touched a watched word, or that a sample was taken at. It is no call path by which MPI was called, so that it makes
/// no call site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InstructionId(u32);

/// A call site of the run: what is summed by place is summed by this. In the order of [`UnnamedSite`].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SiteId(u32);

impl SiteId {
    /// From 0, for whom names it elsewhere: it holds for this reading of the run alone.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// One MPI function called at one place, not named yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnnamedSite {
    /// Index into [`Places::calls`].
    pub call: u32,
    /// The frame that it is named by; of several that are one place the first.
    pub frame: Option<Frame>,
    /// Only where whole call paths are told apart; of several that are one the first.
    pub path: Option<CallPathId>,
}

/// All places of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Places {
    /// Those that were called.
    pub calls: Vec<CallName>,
    /// Frames index into this.
    pub modules: Vec<Module>,
    /// Those by which something was called.
    pub paths: Vec<CallPath>,
    /// Instructions that touched watched words, or that samples were taken at, and what they were called from as far as that is certain.
    pub instructions: Vec<CallPath>,
    /// Every pair of a call and a path that there is, and its site.
    uses: FxHashMap<(u32, Option<CallPathId>), SiteId>,
    sites: Vec<UnnamedSite>,
    files: HashMap<PathBuf, FileIds>,
}

/// What a file's ids are in the run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct FileIds {
    /// By `call_name.id`.
    calls: FxHashMap<i64, u32>,
    /// By `call_path.id`.
    paths: FxHashMap<i64, CallPathId>,
    /// Likewise.
    instructions: FxHashMap<i64, InstructionId>,
}

impl Places {
    pub fn site(&self, site: SiteId) -> &UnnamedSite {
        &self.sites[site.0 as usize]
    }

    pub fn site_ids(&self) -> impl Iterator<Item = SiteId> {
        (0..self.sites.len() as u32).map(SiteId)
    }

    /// The first site of that name: call paths of one are told apart only where that was asked for.
    pub fn first_of_name(&self, site: SiteId) -> SiteId {
        let UnnamedSite { call, frame, .. } = *self.site(site);
        let is_before = |known: &UnnamedSite| (known.call, known.frame) < (call, frame);
        SiteId(self.sites.partition_point(is_before) as u32)
    }

    /// The function that is called there.
    pub fn call(&self, site: SiteId) -> &CallName {
        &self.calls[self.site(site).call as usize]
    }

    pub fn path(&self, path: CallPathId) -> &CallPath {
        &self.paths[path.index()]
    }

    pub fn path_ids(&self) -> impl Iterator<Item = CallPathId> {
        (0..self.paths.len()).map(CallPathId::at)
    }

    /// The frame that a call path is named by.
    pub fn frame_of(&self, path: CallPathId) -> Option<Frame> {
        site_frame(self.path(path), &self.modules)
    }

    /// The instruction behind the one that touched, innermost, as a call path has return addresses: the same look-up names it. Of
    /// a touch inside MPI, the call path of that call.
    pub fn instruction(&self, instruction: InstructionId) -> &CallPath {
        &self.instructions[instruction.0 as usize]
    }

    /// What is called by which path: indices into `calls` and `paths`.
    pub fn uses(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.uses.keys().filter_map(|&(call, path)| Some((call as usize, path?.index())))
    }

    /// By which paths each site was called, in the order of sites.
    pub fn paths_of_sites(&self) -> Vec<(SiteId, CallPathId)> {
        let uses = self.uses.iter().filter_map(|(&(_, path), &site)| Some((site, path?)));
        let mut paths: Vec<(SiteId, CallPathId)> = uses.collect();
        paths.sort_unstable();
        paths
    }

    /// To look up ids of a file.
    pub fn of_file(&self, path: &Path) -> PlacesOfFile<'_> {
        PlacesOfFile { places: self, ids: self.files.get(path) }
    }
}

/// The places of a run by the ids of one of its files.
#[derive(Debug, Clone, Copy)]
pub struct PlacesOfFile<'p> {
    places: &'p Places,
    ids: Option<&'p FileIds>,
}

impl<'p> PlacesOfFile<'p> {
    /// Index into [`Places::calls`].
    pub fn call_index(self, id: i64) -> Option<u32> {
        self.ids?.calls.get(&id).copied()
    }

    pub fn call(self, id: i64) -> Option<&'p CallName> {
        self.call_index(id).map(|call| &self.places.calls[call as usize])
    }

    pub fn call_name(self, id: i64) -> String {
        self.call(id).map_or_else(|| unknown_call(id).name, |call| call.name.clone())
    }

    /// `None` when the file does not hold it.
    pub fn path(self, id: i64) -> Option<CallPathId> {
        self.ids?.paths.get(&id).copied()
    }

    /// The instruction of `watch.call_path_id`, `watch.copy_path_id` and `sample.call_path_id`; `None` when the file does not hold
    /// it.
    pub fn instruction(self, id: i64) -> Option<InstructionId> {
        self.ids?.instructions.get(&id).copied()
    }

    /// Where a call was made: `call_id` and `call_path_id` of a row. `None` of rows that were not there when the places were read.
    pub fn site(self, call: i64, path: Option<i64>) -> Option<SiteId> {
        let path = path.and_then(|path| self.path(path));
        self.places.uses.get(&(self.call_index(call)?, path)).copied()
    }

    pub fn places(self) -> &'p Places {
        self.places
    }
}
