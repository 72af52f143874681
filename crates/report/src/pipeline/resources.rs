//! What an analysis may use, and what follows from that: how a run is cut into parts, and who looks at them.

use std::path::Path;

use anyhow::{bail, Result};

use crate::parts::plan::{overhead, plan, plan_count, BYTES_PER_ROW};
use crate::parts::{Engine, Local, Remote};
use lapscope_data::files::machine_memory;
use lapscope_data::text::units::{bytes, count};
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

/// What a row takes of a run that is looked at whole and replayed, bytes.
const BYTES_PER_REPLAYED_ROW: u64 = 110;

/// Refuses what needs a whole run of so many rows in this `memory`, where that is too small: a process that the system ends in the
/// middle of it says nothing.
///
/// # Errors
/// It is too small; and what to do.
pub fn check_fits_whole(rows: u64, memory: u64) -> Result<()> {
    let needed = rows.saturating_mul(BYTES_PER_REPLAYED_ROW);
    if needed <= memory {
        return Ok(());
    }
    let (rows, needed, memory) = (count(rows), bytes(needed), bytes(memory));
    bail!(
        "this needs all of the run in memory at once: its {rows} calls and requests take about {needed}, and this machine has {memory}. Look \
         at it on a machine with more, or record a stretch of the run: MPI_Pcontrol(0) and MPI_Pcontrol(1) pause recording and go on, \
         LAPSCOPE_MAX_MB bounds what a rank records. lapscope report and html take any run, with --step or --from and --to a stretch of it"
    )
}

/// What the process takes besides, about.
const OWN_BYTES: u64 = 48 << 20;
/// Ranks are read so many times as often as there are ranks.
const MUCH_OVERHEAD: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_cannot_hold_is_refused_with_ways_out() {
        assert!(check_fits_whole(1_000_000, 110_000_000).is_ok());
        let refused = check_fits_whole(100_000_000, 8 << 30).unwrap_err().to_string();
        for part in ["100 M calls and requests", "more", "MPI_Pcontrol(0)", "--step"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
}
