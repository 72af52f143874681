//! What files number for themselves, numbered run-wide: calls, modules, call paths.

use std::collections::HashMap;
use std::hash::Hash;

use crate::db::Definitions;
use crate::model::{CallName, CallPath, Frame, Module};

/// Of a call whose name its file does not have.
pub fn unknown_call(id: i64) -> CallName {
    CallName::unknown(format!("call {id}"))
}

/// Gives equal values equal indices.
#[derive(Debug)]
pub struct Interner<T> {
    pub values: Vec<T>,
    index: HashMap<T, usize>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner { values: Vec::new(), index: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    pub fn intern(&mut self, value: T) -> usize {
        let values = &mut self.values;
        *self.index.entry(value).or_insert_with_key(|value| {
            values.push(value.clone());
            values.len() - 1
        })
    }
}

/// Call paths with modules numbered run-wide.
#[derive(Debug, Default)]
pub struct Paths {
    pub modules: Interner<Module>,
    pub paths: Interner<CallPath>,
}

impl Paths {
    /// The run-wide index of path `id` of a file; `None` when the file does not hold it.
    pub fn intern(&mut self, definitions: &Definitions, id: i64) -> Option<usize> {
        let path = definitions.paths.get(&id)?;
        let frames = path.frames.iter().map(|frame| {
            let module = frame.module.map(|module| {
                self.modules.intern(definitions.modules[module as usize].clone()) as u32
            });
            Frame { module, ..*frame }
        });
        let path = CallPath { frames: frames.collect(), truncated: path.truncated, caller: None };
        Some(self.paths.intern(path))
    }

    /// The modules and paths, to be indexed by what [`Paths::intern`] returned.
    pub fn into_parts(self) -> (Vec<Module>, Vec<CallPath>) {
        (self.modules.values, self.paths.values)
    }
}
