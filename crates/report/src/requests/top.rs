//! The first requests in an order, in memory for just these.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::row::ListedRow;
use super::{Request, RequestRanking};
use lapscope_data::model::{CallRow, Nanos};

#[derive(Debug)]
pub(super) struct Top {
    order: RequestRanking,
    limit: usize,
    /// The worst of those kept is on top.
    heap: BinaryHeap<Reverse<Ranked>>,
    seen: u64,
}

#[derive(Debug)]
struct Ranked {
    weight: i64,
    /// Earlier rows win ties.
    place: Reverse<u64>,
    row: ListedRow,
    call: Option<CallRow>,
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.weight, self.place).cmp(&(other.weight, other.place))
    }
}

impl Top {
    /// `limit` 0 keeps all.
    pub fn new(order: RequestRanking, limit: usize) -> Self {
        let limit = if limit == 0 { usize::MAX } else { limit };
        Top { order, limit, heap: BinaryHeap::new(), seen: 0 }
    }

    /// `bytes` are those of the request's operation; `init_end` is when its rank's MPI_Init returned.
    pub fn add(&mut self, row: ListedRow, call: Option<CallRow>, bytes: u64, init_end: Nanos) {
        self.seen += 1;
        let weight = match self.order {
            // Ranks have epochs of their own, which say nothing.
            RequestRanking::Begin => (init_end - row.post_begin).0,
            order => weight(order, &row, call.as_ref(), bytes),
        };
        if self.heap.len() >= self.limit {
            // Most rows end here. Equal to the worst is not better: it came later.
            if self.heap.peek().is_some_and(|Reverse(worst)| weight <= worst.weight) {
                return;
            }
            self.heap.pop();
        }
        self.heap.push(Reverse(Ranked { weight, place: Reverse(self.seen), row, call }));
    }

    /// What was kept, best first, and how many there were.
    pub fn into_sorted(self) -> (Vec<(i64, ListedRow, Option<CallRow>)>, u64) {
        // Ascending by `Reverse` is descending by weight.
        let sorted = self.heap.into_sorted_vec().into_iter();
        (sorted.map(|Reverse(kept)| (kept.weight, kept.row, kept.call)).collect(), self.seen)
    }
}

/// The larger, the earlier in the list.
fn weight(order: RequestRanking, row: &ListedRow, call: Option<&CallRow>, bytes: u64) -> i64 {
    let ns = |time: Option<Nanos>| time.map_or(-1, |time| time.0);
    match order {
        RequestRanking::Completion => ns(call.and_then(|call| call.duration)),
        RequestRanking::Post => row.post.0,
        RequestRanking::OverlapWindow => {
            ns(call.map(|call| call.begin - row.post_begin - row.post))
        }
        RequestRanking::Bytes => bytes as i64,
        RequestRanking::UnsuccessfulTests => row.unsuccessful_tests as i64,
        RequestRanking::Begin | RequestRanking::Stored => 0,
    }
}

/// The first `limit` of several files' firsts; each list is in the order already, earlier files win ties.
pub fn merge_top(files: Vec<Vec<(i64, Request)>>, limit: usize) -> Vec<Request> {
    let mut all: Vec<(i64, Request)> = files.into_iter().flatten().collect();
    all.sort_by_key(|(weight, _)| Reverse(*weight));
    let limit = if limit == 0 { all.len() } else { limit };
    all.into_iter().take(limit).map(|(_, request)| request).collect()
}
