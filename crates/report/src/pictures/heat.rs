//! Ranks over time: how much of their time was exposed, and why.

use serde::Serialize;

use super::bins::Bins;
use super::paint::{Drawn, SLICES};
use lapscope_data::model::Nanos;
use lapscope_measure::overlap::sums::{ByCause, Cause};
use lapscope_measure::overlap::Slices;
use lapscope_trace::Trace;

/// A grid of bins and slices, row by row: the slices of the first bin first.
#[derive(Debug, Serialize)]
pub struct Heat {
    pub slice_ns: Nanos,
    pub slices: usize,
    /// What the ranks of a bin ran in a slice, summed; nothing before their MPI_Init returned and behind their end.
    pub run_ns: Vec<Nanos>,
    /// The part of that in MPI calls that waited or blocked, by cause in the order of [`Cause::ALL`].
    pub exposed_ns: Vec<ByCause>,
    /// The largest share that is exposed in a place of the grid.
    pub worst: Option<Worst>,
}

/// A place in the grid.
#[derive(Debug, Serialize)]
pub struct Worst {
    pub bin: usize,
    pub slice: usize,
    pub share: f64,
    pub cause: Cause,
}

impl Heat {
    pub(super) fn build(trace: &Trace, bins: &Bins, drawn: &Drawn) -> Heat {
        let slices = Slices::cut(trace, SLICES);
        let mut run_ns = vec![Nanos(0); bins.count() * SLICES];
        for (place, rank) in trace.ranks.iter().enumerate() {
            let row = bins.of_place(place) * SLICES;
            slices.spread(rank.init_end, rank.end, |slice, ns| run_ns[row + slice] += Nanos(ns));
        }
        let mut exposed_ns = vec![ByCause::default(); run_ns.len()];
        for (&bin, row) in &drawn.rows {
            let start = bin as usize * SLICES;
            for (cell, exposure) in exposed_ns[start..start + SLICES].iter_mut().zip(row) {
                *cell = Cause::ALL.map(|cause| exposure.by_cause(cause));
            }
        }
        let worst = worst(&run_ns, &exposed_ns);
        Heat { slice_ns: Nanos(slices.length), slices: SLICES, run_ns, exposed_ns, worst }
    }
}

/// Places in which ranks ran for a short time only tell little.
fn worst(run_ns: &[Nanos], exposed_ns: &[ByCause]) -> Option<Worst> {
    let longest = run_ns.iter().max()?.0;
    let total = |parts: &ByCause| parts.iter().map(|part| part.0).sum::<i64>();
    let told = |index: &usize| run_ns[*index].0 > 0 && run_ns[*index].0 * 2 >= longest;
    let share = |index: usize| total(&exposed_ns[index]) as f64 / run_ns[index].0 as f64;
    let index = (0..run_ns.len()).filter(told).max_by(|&a, &b| share(a).total_cmp(&share(b)))?;
    let parts = &exposed_ns[index];
    let largest = (0..parts.len()).rev().max_by_key(|&cause| parts[cause].0)?;
    (total(parts) > 0).then(|| Worst {
        bin: index / SLICES,
        slice: index % SLICES,
        share: share(index),
        cause: Cause::ALL[largest],
    })
}
