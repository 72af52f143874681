//! Whether the limit is one for each message, or one for all that is on its way to a receiver.
//!
//! Published: a 60 KB socket buffer held three messages of 20 KB as it held one of 60 KB (Saif and Parashar 2004).
//!
//! Messages are counted together since their receiver was last inside MPI, not since their requests ended: a socket's
//! buffer is full of messages whose requests are long complete. A limit of all together is believed when it explains
//! some messages, and twice as many as it leaves unexplained, that waited and would not have by themselves.

use serde::Serialize;

use super::cells::SizeCell;
use super::split::{split, SplitRow};
use super::{by_size, ThresholdView};

/// Messages that have to be explained by others on their way before that is believed.
const FEWEST: u64 = 3;
/// This share of the messages behind others is more than chance makes wait.
const MANY: f64 = 0.05;

/// What the limit is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CumulativeVerdict {
    /// Messages that do not wait when sent alone do not wait behind others either.
    PerMessage,
    /// They do, from so many bytes on.
    Cumulative,
    /// Some do and some do not, and neither their size nor the bytes on their way tell which.
    Unclear,
    /// Such messages were never sent behind others that the receiver had not come for.
    NotEnough,
}

/// How sends fare behind others to the same receiver. Bytes on their way are those sent to it since it was last inside MPI,
/// the message's own included, but for those known to wait on the sender's side.
#[derive(Debug, Clone, Serialize)]
pub struct Cumulative {
    pub verdict: CumulativeVerdict,
    /// Bytes on their way with which messages surely did not wait, and from which on they surely did.
    pub largest_eager_bytes: Option<u64>,
    pub smallest_blocking_bytes: Option<u64>,
    pub eager: u64,
    pub waiting: u64,
    pub contradictions: u64,
    /// Messages that say the contrary of a limit for each message.
    pub contradictions_per_message: u64,
    pub sentence: String,
}

/// `cells` by size and by bytes on their way.
pub(super) fn find(cells: &[SizeCell], view: ThresholdView) -> Cumulative {
    let mut found = Cumulative {
        verdict: CumulativeVerdict::NotEnough,
        largest_eager_bytes: None,
        smallest_blocking_bytes: None,
        eager: 0,
        waiting: 0,
        contradictions: 0,
        contradictions_per_message: 0,
        sentence: String::new(),
    };
    let Some(limit) = limit_of_one(cells, view) else { return found };
    let rows = by_bytes_together(cells, view, limit);
    let is_behind = |cell: &&SizeCell| cell.bytes.most <= limit && !is_alone(cell);
    let behind: u64 = cells.iter().filter(is_behind).map(|cell| view.row(cell)).map(total).sum();
    if behind == 0 {
        return found;
    }
    let parts = split(&rows);
    let waited: u64 = rows.iter().map(|row| row.waited).sum();
    found.contradictions_per_message = waited;
    found.largest_eager_bytes = parts.largest_eager;
    found.eager = parts.eager;
    let unexplained = parts.contradictions + parts.unsettled;
    let is_explained = parts.waiting >= FEWEST && 2 * unexplained < waited.max(1);
    if parts.smallest_waiting.is_some() && is_explained {
        found.verdict = CumulativeVerdict::Cumulative;
        found.smallest_blocking_bytes = parts.smallest_waiting;
        found.waiting = parts.waiting;
        found.contradictions = parts.contradictions;
    } else if waited >= FEWEST && waited as f64 > MANY * behind as f64 {
        found.verdict = CumulativeVerdict::Unclear;
        found.waiting = waited;
    } else if parts.largest_eager.is_some() {
        found.verdict = CumulativeVerdict::PerMessage;
        found.contradictions = parts.contradictions + parts.waiting;
    }
    found
}

fn total(row: SplitRow) -> u64 {
    row.eager + row.waited
}

/// Nothing else was on its way.
fn is_alone(cell: &SizeCell) -> bool {
    cell.together == cell.bytes
}

/// Up to which size messages do not wait by themselves.
fn limit_of_one(cells: &[SizeCell], view: ThresholdView) -> Option<u64> {
    let alone: Vec<SizeCell> = cells.iter().filter(|cell| is_alone(cell)).copied().collect();
    let of_alone = view.split(&by_size(&alone)).largest_eager;
    of_alone.or_else(|| view.split(&by_size(cells)).largest_eager)
}

/// Messages up to `limit` bytes, by the bytes on their way.
fn by_bytes_together(cells: &[SizeCell], view: ThresholdView, limit: u64) -> Vec<SplitRow> {
    let small = cells.iter().filter(|cell| cell.bytes.most <= limit);
    let mut rows: Vec<SplitRow> = small
        .map(|cell| SplitRow { sizes: cell.together, ..view.row(cell) })
        .filter(|row| total(*row) > 0)
        .collect();
    rows.sort_by_key(|row| (row.sizes.least, row.sizes.most));
    let mut merged: Vec<SplitRow> = Vec::with_capacity(rows.len());
    for row in rows {
        match merged.last_mut() {
            Some(last) if row.sizes.least <= last.sizes.most => {
                last.sizes.merge(&row.sizes);
                last.eager += row.eager;
                last.waited += row.waited;
            }
            _ => merged.push(row),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::super::cells::Cells;
    use super::super::evidence::Completion;
    use super::*;

    const VIEW: ThresholdView = ThresholdView::Rendezvous { with_no_progress: true };

    /// Bursts of 1 to `most` messages of each size, with a limit for one message and for all of a burst.
    fn bursts(sizes: &[u64], most: u64, of_one: u64, of_all: u64) -> Vec<SizeCell> {
        let mut cells = Cells::default();
        for &bytes in sizes {
            for _ in 0..4 {
                let mut earlier = 0;
                for _ in 0..most {
                    let is_eager = bytes <= of_one && earlier + bytes <= of_all;
                    let evidence =
                        if is_eager { Completion::Early } else { Completion::WaitedForReceiver };
                    cells.cell_mut(bytes, earlier).add_completion(evidence);
                    earlier += if is_eager { bytes } else { 0 };
                }
            }
        }
        cells.iter().copied().collect()
    }

    #[test]
    fn a_limit_of_all_together_is_recovered() {
        let sizes: Vec<u64> = (1..=20).map(|step| step * 5_000).collect();
        let found = find(&bursts(&sizes, 8, 60_000, 60_000), VIEW);
        assert_eq!(found.verdict, CumulativeVerdict::Cumulative);
        assert_eq!(found.largest_eager_bytes, Some(60_000));
        assert_eq!(found.smallest_blocking_bytes, Some(70_000));
        assert_eq!(found.contradictions, 0);
        assert!(found.contradictions_per_message > 100);
    }

    #[test]
    fn one_size_in_bursts_is_enough() {
        let found = find(&bursts(&[20_000], 8, 60_000, 60_000), VIEW);
        assert_eq!(found.verdict, CumulativeVerdict::Cumulative);
        assert_eq!(found.largest_eager_bytes, Some(60_000));
        assert_eq!(found.smallest_blocking_bytes, Some(80_000));
    }

    #[test]
    fn a_limit_for_each_message() {
        let sizes: Vec<u64> = (1..=20).map(|step| step * 500).collect();
        let found = find(&bursts(&sizes, 8, 4_096, u64::MAX), VIEW);
        assert_eq!(found.verdict, CumulativeVerdict::PerMessage);
        assert_eq!(found.largest_eager_bytes, Some(32_000));
        assert_eq!((found.smallest_blocking_bytes, found.contradictions), (None, 0));
    }

    #[test]
    fn messages_alone_do_not_tell() {
        let found = find(&bursts(&[100, 1_000, 10_000], 1, 4_096, u64::MAX), VIEW);
        assert_eq!(found.verdict, CumulativeVerdict::NotEnough);
        let waiting = find(&bursts(&[10_000], 8, 4_096, u64::MAX), VIEW);
        assert_eq!(waiting.verdict, CumulativeVerdict::NotEnough);
    }
}
