//! Takes the ranks of a run one after the other, and gives each to a writer.

use anyhow::{bail, Result};
use lapscope_report::pipeline::view::View;
use lapscope_trace::{Direction, Trace};
use rayon::prelude::*;

use crate::definitions::Definitions;
use crate::rank::RankEvents;
use crate::shown::ShownWindows;

/// A format.
pub trait Writer {
    /// Once, before all ranks.
    ///
    /// # Errors
    /// The file cannot be written.
    fn begin(&mut self, run: &Definitions) -> Result<()>;

    /// # Errors
    /// The file cannot be written, or gets larger than anybody opens.
    fn rank(&mut self, run: &Definitions, rank: &RankEvents<'_>) -> Result<()>;

    /// Once, behind all ranks.
    ///
    /// # Errors
    /// The file cannot be written.
    fn finish(&mut self, run: &Definitions) -> Result<()>;
}

/// Who is told how far writing is, and says whether to go on.
pub struct WriteProgress<'a> {
    /// So many more rows were written.
    pub wrote: &'a dyn Fn(u64),
    /// Asked behind every rank.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    pub ranks: u64,
    pub calls: u64,
    pub requests: u64,
    /// Matched ones of which both ends are shown.
    pub messages: u64,
    /// Sends that are shown and end nowhere: no receive is known, or it is not shown.
    pub lone_sends: u64,
    /// Calls that had not returned when the recording ended, and requests that nothing ended.
    pub unreturned: u64,
    pub pending: u64,
}

/// Writes what is shown of a run.
///
/// # Errors
/// A file of the run cannot be read any more or the result not be written, or `told` wants to stop.
pub fn write(
    view: &View,
    run: &Definitions,
    shown: &ShownWindows,
    writer: &mut dyn Writer,
    told: &WriteProgress<'_>,
) -> Result<Written> {
    let mut written = Written::default();
    writer.begin(run)?;
    view.each_part(|part| {
        let places: Vec<usize> = part.focus().filter(|&place| shown.has_rank(place)).collect();
        for some in places.chunks(rayon::current_num_threads()) {
            let ranks: Vec<RankEvents<'_>> =
                some.par_iter().map(|&place| RankEvents::collect(part, shown, place)).collect();
            for rank in &ranks {
                writer.rank(run, rank)?;
                written.add(rank);
                (told.wrote)(rows(part, rank.place));
                if (told.is_stopped)() {
                    bail!("interrupted");
                }
            }
        }
        Ok(())
    })?;
    writer.finish(run)?;
    Ok(written)
}

fn rows(trace: &Trace, place: usize) -> u64 {
    let rank = &trace.ranks[place];
    (rank.calls.len() + rank.other_calls.len() + rank.endpoints.len()) as u64
}

impl Written {
    fn add(&mut self, rank: &RankEvents<'_>) {
        self.ranks += 1;
        self.calls += rank.visits.len() as u64;
        self.requests += rank.lifetimes.len() as u64;
        self.unreturned += rank.visits.iter().filter(|visit| !visit.returned).count() as u64;
        self.pending += rank.lifetimes.iter().filter(|lifetime| lifetime.is_pending).count() as u64;
        for visit in 0..rank.visits.len() as u32 {
            for &endpoint in rank.began(visit) {
                if rank.operation_of(endpoint).direction == Direction::Send {
                    let half = rank.trace.half(rank.place, endpoint as usize);
                    match rank.shown.message(rank.trace, &half) {
                        Some(_) => self.messages += 1,
                        None => self.lone_sends += 1,
                    }
                }
            }
        }
    }
}
