//! What of a run is drawn rather than told: ranks over time, who sent how much to whom, and one stretch of time in detail.
//! All of it is put into bins before it leaves here, so that a page on ten thousand ranks is as large as one on a hundred.
//!
//! They are painted in the walk that measures overlap ([`crate::findings`]), since a heat map, a matrix and advice are
//! made of the same thing: what each call waited for.
//!
//! - A call that lasts for several slices is spread over them. Otherwise a wait of a second would be a bright point of
//!   more than all the time that its rank had there.
//! - A place in the matrix has the waits of both ends. A late message costs its receiver, a rendezvous its sender; who
//!   looks for the pair that costs most wants both.
//! - A timeline is bounded in what it shows, not in what it may be asked for. Short calls are joined with their
//!   neighbours and counted; of requests those with the longest lives are kept, of messages the largest, and what is
//!   not shown is counted.

mod bins;
mod heat;
mod matrix;
mod paint;
#[cfg(test)]
mod tests;
pub mod timeline;

use serde::Serialize;

pub use bins::{Bins, RankBin};
pub use heat::Heat;
pub use matrix::{Matrix, MatrixCell};
pub use paint::{Drawn, Painter};
pub use timeline::Timeline;

use lapscope_data::model::Nanos;
use lapscope_data::text::units::MeanOfRanks;
use lapscope_trace::Trace;

/// Pictures of a run. Times are nanoseconds, moments since the first rank's MPI_Init returned.
#[derive(Debug, Serialize)]
pub struct Pictures {
    /// Ranks in order, several in one where there are many: rows of `heat`, rows and columns of `matrix`.
    pub bins: Vec<RankBin>,
    pub heat: Heat,
    pub matrix: Matrix,
    /// `None`: nothing was recorded that could be shown; `no_timeline` says why.
    pub timeline: Option<Timeline>,
    pub no_timeline: Option<String>,
}

impl Pictures {
    /// Puts together what painters have seen.
    pub fn build(trace: &Trace, drawn: &Drawn, timeline: Result<Timeline, String>) -> Pictures {
        let bins = Bins::for_ranks(trace);
        let (timeline, no_timeline) = match timeline {
            Ok(timeline) => (Some(timeline), None),
            Err(why) => (None, Some(why)),
        };
        Pictures {
            heat: Heat::build(trace, &bins, drawn),
            matrix: Matrix::build(drawn),
            bins: bins.named(trace),
            timeline,
            no_timeline,
        }
    }

    /// What the ranks at both ends of a cell waited for its messages, a mean over them.
    pub fn waited_at_ends(&self, cell: &MatrixCell) -> Nanos {
        let ranks = |bin: u32| self.bins.get(bin as usize).map_or(0, |bin| bin.ranks as u64);
        let others = if cell.from == cell.to { 0 } else { ranks(cell.to) };
        MeanOfRanks(ranks(cell.from) + others).of(cell.exposed_ns)
    }
}
