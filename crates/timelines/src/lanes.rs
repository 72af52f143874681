//! Which of several things that are under way at once is drawn in which line: in each of them one ends before the next begins.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Lines from 0, the lowest free one first.
#[derive(Debug, Default)]
pub(crate) struct FreeLines {
    /// By the end: what is under way, and in which line.
    open: BinaryHeap<Reverse<(i64, u32, u32)>>,
    free: BinaryHeap<Reverse<u32>>,
    count: u32,
}

impl FreeLines {
    /// Something begins that ends at `end`; the line that it is drawn in.
    pub fn begin(&mut self, index: u32, end: i64) -> u32 {
        let lane = self.free.pop().map_or(self.count, |Reverse(lane)| lane);
        self.count = self.count.max(lane + 1);
        self.open.push(Reverse((end, index, lane)));
        lane
    }

    /// The next that ends, and when, if that is not after `moment`.
    pub fn ended(&mut self, moment: i64) -> Option<(i64, u32)> {
        let &Reverse((end, index, lane)) = self.open.peek()?;
        if end > moment {
            return None;
        }
        self.open.pop();
        self.free.push(Reverse(lane));
        Some((end, index))
    }

    /// How many lines there are.
    pub fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_has_lines_of_its_own() {
        let mut lanes = FreeLines::default();
        assert_eq!(
            [(0, 10), (1, 5), (2, 7)].map(|(index, end)| lanes.begin(index, end)),
            [0, 1, 2]
        );
        assert_eq!(lanes.ended(4), None);
        assert_eq!(lanes.ended(7), Some((5, 1)));
        assert_eq!(lanes.begin(3, 20), 1, "the lowest that is free");
        assert_eq!((lanes.ended(7), lanes.ended(7)), (Some((7, 2)), None));
        assert_eq!((lanes.begin(4, 9), lanes.begin(5, 9), lanes.count()), (2, 3, 4));
    }
}
