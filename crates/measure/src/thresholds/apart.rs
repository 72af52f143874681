//! The limit beyond which sends wait for their receive, where from a smaller size on they wait for the receiver to be
//! inside MPI.
//!
//! Between the two limits a send is complete without a receive only where its receiver happened to be inside MPI before, in
//! a share of cases that is not known beforehand; beyond the second it never is. So the rate changes at the limit, from
//! some share to almost none, and a limit is possible where this explains the messages nearly as well as with the best one.

use super::cells::{Extent, SizeCell};
use super::evidence::Completion;
use super::split::Split;
use super::{BEFORE_RECEIVE, WAITED};

/// How much less likely than the best a limit may be and still count as possible.
const ODDS: f64 = 20.0;
/// Share of messages that are complete without a receive beyond the limit by accident, at least and at most.
const ERRORS: (f64, f64) = (0.002, 0.1);
/// Share of messages that waited for their receive below it: of senders that were inside MPI and had no processor.
const STARVED: f64 = 0.1;

/// Messages of one size.
#[derive(Debug, Clone, Copy)]
struct ApartRow {
    sizes: Extent,
    eager: u64,
    /// For the receiver or the receive; for the receive in any case.
    waited: u64,
    certain: u64,
}

/// `eager`: the largest size that needs nobody, below which there is nothing to be found.
pub(super) fn split(sizes: &[SizeCell], eager: Option<u64>) -> Split {
    let rows: Vec<ApartRow> = sizes.iter().map(row).collect();
    let first = rows.partition_point(|row| eager.is_some_and(|eager| row.sizes.least <= eager));
    let (below, rows) = rows.split_at(first);
    let costs = costs(rows, error_of(rows));
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let is_possible = |limit: &usize| costs[*limit] - least <= ODDS.ln();
    let low = (0..costs.len()).find(is_possible).unwrap_or(0);
    let high = (0..costs.len()).rev().find(is_possible).unwrap_or(rows.len());
    let sum = |rows: &[ApartRow], count: fn(&ApartRow) -> u64| rows.iter().map(count).sum::<u64>();
    let largest = rows[..low].iter().filter(|row| row.eager > 0).map(|row| row.sizes.least).max();
    let waits = |row: &&ApartRow| row.waited + row.certain > 0;
    Split {
        largest_eager: largest.or(eager),
        smallest_waiting: rows[high..].iter().filter(waits).map(|row| row.sizes.most).min(),
        eager: sum(below, |row| row.eager) + sum(&rows[..low], |row| row.eager),
        waiting: sum(&rows[high..], |row| row.waited + row.certain),
        contradictions: sum(below, |row| row.certain)
            + sum(&rows[..low], |row| row.certain)
            + sum(&rows[high..], |row| row.eager),
        unsettled: sum(&rows[low..high], |row| row.eager + row.waited + row.certain),
        is_unclear: false,
    }
}

fn row(cell: &SizeCell) -> ApartRow {
    let certain = cell.completion(&[Completion::WaitedForReceive]);
    ApartRow {
        sizes: cell.bytes,
        eager: cell.completion(&BEFORE_RECEIVE),
        waited: cell.completion(&WAITED) - certain,
        certain,
    }
}

/// The share of sends that were complete without a receive beyond the best limit.
fn error_of(rows: &[ApartRow]) -> f64 {
    let costs = costs(rows, ERRORS.0);
    let best = (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0);
    let above = &rows[best..];
    let eager: u64 = above.iter().map(|row| row.eager).sum();
    let all: u64 = above.iter().map(|row| row.eager + row.waited + row.certain).sum();
    (eager as f64 / (all as f64).max(1.0)).clamp(ERRORS.0, ERRORS.1)
}

/// For a limit behind the first 0, 1, ... rows: minus the logarithm of the likelihood.
fn costs(rows: &[ApartRow], error: f64) -> Vec<f64> {
    let certain_cost = -STARVED.ln();
    let (wrong, right) = (-error.ln(), -(1.0 - error).ln());
    let above =
        |row: &ApartRow| row.eager as f64 * wrong + (row.waited + row.certain) as f64 * right;
    let mut cost_above: f64 = rows.iter().map(above).sum();
    let (mut eager, mut waited, mut certain) = (0u64, 0u64, 0u64);
    let mut costs = vec![cost_above];
    for row in rows {
        cost_above -= above(row);
        eager += row.eager;
        waited += row.waited;
        certain += row.certain;
        costs.push(cost_above + entropy(eager, waited) + certain as f64 * certain_cost);
    }
    costs
}

/// Minus the logarithm of the likelihood of so many of each, at the share that makes it most likely.
fn entropy(a: u64, b: u64) -> f64 {
    let all = (a + b) as f64;
    let part =
        |count: u64| if count == 0 { 0.0 } else { -(count as f64) * (count as f64 / all).ln() };
    part(a) + part(b)
}

#[cfg(test)]
mod tests {
    use super::super::cells::Cells;
    use super::*;

    /// As of Open MPI on shared memory: to 256 bytes nobody is needed, to `limit` the receiver; of three receivers one looks
    /// into MPI before it posts, and of these `seen` are recorded.
    fn cells(sizes: &[u64], limit: u64, rounds: u64, seen: bool) -> Vec<SizeCell> {
        let mut cells = Cells::default();
        for &bytes in sizes {
            for round in 0..rounds * 3 {
                let has_looked = round % 3 == 0;
                let evidence = match (bytes <= 256, bytes <= limit, has_looked) {
                    (true, ..) => Completion::Early,
                    (_, true, true) => Completion::AfterReceiverProgress,
                    (_, false, true) if seen => Completion::WaitedForReceive,
                    _ => Completion::WaitedForReceiver,
                };
                cells.cell_mut(bytes, 0).add_completion(evidence);
            }
        }
        cells.iter().copied().collect()
    }

    fn edges(cells: &[SizeCell]) -> (Option<u64>, Option<u64>) {
        let eager = super::super::ThresholdView::ReceiverProgress.split(cells).largest_eager;
        let found = split(cells, eager);
        (found.largest_eager, found.smallest_waiting)
    }

    #[test]
    fn the_limit_of_the_receive_is_found_behind_that_of_the_receiver() {
        let sizes: Vec<u64> = (0..40).map(|step| (64.0 * 1.25f64.powi(step)) as u64).collect();
        for limit in [1_500, 4_096, 50_000] {
            for seen in [true, false] {
                let (low, high) = edges(&cells(&sizes, limit, 4, seen));
                let (low, high) = (low.unwrap(), high.unwrap());
                assert!(low <= limit && high > limit && high < 2 * low, "{limit}: {low} {high}");
            }
        }
    }

    #[test]
    fn two_sizes_give_a_wide_bracket() {
        let found = cells(&[16, 1_000, 100_000], 4_096, 4, false);
        assert_eq!(edges(&found), (Some(1_000), Some(100_000)));
    }

    #[test]
    fn sums_are_of_all_messages_but_those_that_tell_nothing() {
        let cells = cells(&[100, 1_000, 10_000], 4_096, 4, true);
        let found = split(&cells, Some(100));
        assert_eq!((found.eager, found.waiting), (12 + 4, 12));
        assert_eq!((found.contradictions, found.unsettled), (0, 0));
    }
}
