//! Calls, places and communicators as all ranks of a job name them.

use rustc_hash::FxHashMap;

use super::{Communicator, JobState, Members};
use crate::model::{CallName, CallPath, Frame, Module};
use crate::places::Interner;

/// What tells communicators apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommunicatorKey {
    pub world: i64,
    pub identity: u64,
    pub ordinal: u32,
    pub is_inter: bool,
}

/// What was met so far. Indices stay.
#[derive(Debug, Default)]
pub struct Names {
    modules: Interner<Module>,
    paths: Interner<CallPath>,
    calls: Interner<CallName>,
    communicators: Vec<Communicator>,
    keys: FxHashMap<CommunicatorKey, u32>,
    command: String,
    mpi_library: String,
}

impl Names {
    pub fn call(&mut self, call: &CallName) -> u32 {
        self.calls.intern(call.clone()) as u32
    }

    pub fn module(&mut self, module: &Module) -> u32 {
        self.modules.intern(module.clone()) as u32
    }

    pub fn path(&mut self, frames: Vec<Frame>, truncated: bool) -> u32 {
        self.paths.intern(CallPath { frames, truncated, caller: None }) as u32
    }

    pub fn name(&self, call: u32) -> &CallName {
        &self.calls.values[call as usize]
    }

    /// Keeps what the first rank says that knows.
    pub fn describe(&mut self, command: &str, mpi_library: &str) {
        for (mine, said) in [(&mut self.command, command), (&mut self.mpi_library, mpi_library)] {
            if mine.is_empty() {
                said.clone_into(mine);
            }
        }
    }

    /// What one rank knows of its members serves the others.
    pub fn communicator(
        &mut self,
        key: CommunicatorKey,
        describe: impl FnOnce() -> (String, Members),
    ) -> u32 {
        let known = self.keys.get(&key).copied();
        let has_members = |at: u32| self.communicators[at as usize].members != Members::Unknown;
        if let Some(known) = known.filter(|&known| has_members(known)) {
            return known;
        }
        let (name, members) = describe();
        if let Some(known) = known {
            self.communicators[known as usize].members = members;
            return known;
        }
        let CommunicatorKey { world, identity, ordinal, is_inter } = key;
        self.communicators.push(Communicator { name, world, identity, ordinal, is_inter, members });
        let at = (self.communicators.len() - 1) as u32;
        self.keys.insert(key, at);
        at
    }

    /// What is known by now, without ranks.
    pub fn job(&self) -> JobState {
        JobState {
            command: self.command.clone(),
            mpi_library: self.mpi_library.clone(),
            modules: self.modules.values.clone(),
            paths: self.paths.values.clone(),
            calls: self.calls.values.clone(),
            communicators: self.communicators.clone(),
            ..JobState::default()
        }
    }
}
