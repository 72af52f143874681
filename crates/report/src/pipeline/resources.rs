//! What an analysis may use, and what follows from that: how a run is cut into parts, and who looks at them.

use std::path::Path;

use anyhow::Result;

use crate::parts::plan::{overhead, plan, plan_count, BYTES_PER_ROW};
use crate::parts::{Engine, Local, Remote};
use lapscope_data::files::machine_memory;
use lapscope_trace::survey::Survey;

/// What an analysis may use.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    /// Bytes; `None`: a quarter of the machine's memory.
    pub memory: Option<u64>,
    /// So many parts, however large they are.
    pub parts: Option<usize>,
    /// Who looks at parts; `None`: this process.
    pub engine: Option<String>,
}

impl Resources {
    fn memory(&self) -> u64 {
        self.memory.unwrap_or_else(|| machine_memory() / 4)
    }

    /// Bytes that parts may take together.
    fn for_parts(&self) -> u64 {
        self.memory().saturating_sub(OWN_BYTES).max(OWN_BYTES)
    }

    /// Parts that are looked at side by side; a worker of an engine has a share of its machine, which is not known here.
    fn at_once(&self) -> u64 {
        match self.engine {
            Some(_) => 4,
            None => rayon::current_num_threads().max(1) as u64,
        }
    }

    /// Whether so many rows fit into memory.
    pub fn fits(&self, rows: u64) -> bool {
        rows.saturating_mul(BYTES_PER_ROW) <= self.memory()
    }

    /// Whether so many rows are looked at in parts.
    pub fn is_in_parts(&self, rows: u64) -> bool {
        self.parts.is_some() || self.engine.is_some() || !self.fits(rows)
    }

    /// Who looks at parts of the run in this directory.
    ///
    /// # Errors
    /// An engine that is not ours does not start.
    pub fn engine(&self, run: &Path) -> Result<Box<dyn Engine>> {
        match &self.engine {
            Some(engine) => Ok(Box::new(Remote::start(engine, run)?)),
            None => Ok(Box::new(Local::default())),
        }
    }

    /// Files are read side by side: the most rows that one of them may have to be held in memory as a whole.
    pub fn rows_of_a_file(&self) -> u64 {
        self.for_parts() / self.at_once() / BYTES_PER_ROW
    }

    /// Parts, and how many of them are looked at side by side.
    pub fn plan(&self, survey: &Survey) -> (Vec<Vec<u32>>, usize) {
        if let Some(count) = self.parts {
            return (plan_count(survey, count), rayon::current_num_threads());
        }
        let (at_once, memory) = (self.at_once() as usize, self.for_parts());
        let parts = plan(survey, memory / at_once as u64);
        if self.engine.is_some() || overhead(survey, &parts) < MUCH_OVERHEAD {
            return (parts, at_once);
        }
        // small parts would read every rank many times: rather large ones, whose ranks are looked at side by side
        (plan(survey, memory), 1)
    }
}

/// What the process takes besides, about.
const OWN_BYTES: u64 = 48 << 20;
/// Ranks are read so many times as often as there are ranks.
const MUCH_OVERHEAD: f64 = 1.5;
