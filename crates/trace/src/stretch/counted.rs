//! From when to when a run is looked at. What begins in that time counts, whole: a call where it begins, a request where the call
//! begins that completed it, or where it was posted, if nothing did.

use serde::{Deserialize, Serialize};

use crate::{Trace, NONE};

/// From begin to end, which is not part of it, on each rank: by place in [`Trace::ranks`], nanoseconds on the run's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    pub ranks: Vec<(i64, i64)>,
}

impl Stretch {
    #[inline]
    pub fn has(&self, place: usize, moment: i64) -> bool {
        self.ranks.get(place).is_some_and(|&(begin, end)| begin <= moment && moment < end)
    }

    /// The first begin and the last end of any rank within the run; `None` where no rank has a part of it.
    pub fn span(&self, trace: &Trace) -> Option<(i64, i64)> {
        let within = self
            .ranks
            .iter()
            .zip(&trace.ranks)
            .map(|(&(begin, end), rank)| (begin.max(rank.init_end), end.min(rank.end)));
        let spans = within.filter(|(begin, end)| begin < end);
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}

impl Trace {
    /// The first return of MPI_Init.
    pub fn begin(&self) -> i64 {
        self.ranks.iter().map(|rank| rank.init_end).min().unwrap_or(0)
    }

    /// From when to when what counts is looked at.
    pub fn span(&self) -> (i64, i64) {
        let stretch = self.stretch.as_ref();
        stretch.and_then(|stretch| stretch.span(self)).unwrap_or_else(|| {
            let end = self.ranks.iter().map(|rank| rank.end).max().unwrap_or(0);
            (self.begin(), end)
        })
    }

    /// Whether what begins then on a rank counts.
    #[inline]
    pub fn is_counted(&self, place: usize, moment: i64) -> bool {
        self.stretch.as_ref().map_or(true, |stretch| stretch.has(place, moment))
    }

    /// Whether an endpoint of a rank counts.
    #[inline]
    pub fn is_endpoint_counted(&self, place: usize, index: usize) -> bool {
        let rank = &self.ranks[place];
        let endpoint = &rank.endpoints[index];
        self.is_counted(
            place,
            match endpoint.call {
                NONE => endpoint.begin,
                call => rank.calls[call as usize].begin,
            },
        )
    }
}
