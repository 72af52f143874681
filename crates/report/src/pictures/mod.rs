//! What of a run is drawn rather than told: ranks over time, who sent how much to whom, and one stretch of time in detail.
//! All of it is put into bins before it leaves here, so that a page on ten thousand ranks is as large as one on a hundred.

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
}
