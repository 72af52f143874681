//! Evidence summed up by message size, and by the bytes that were on their way to the same receiver.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::evidence::{Completion, PostOutcome};

/// Cells of one path beyond which sizes are put together.
const MOST_CELLS: usize = 1 << 15;
/// Significant bits that are kept of the bytes on their way.
const BITS_TOGETHER: u32 = 7;

/// The smallest and the largest of some sizes, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    pub least: u64,
    pub most: u64,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { least: u64::MAX, most: 0 }
    }
}

impl Extent {
    pub fn merge(&mut self, other: &Extent) {
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }
}

/// Messages of one size, with as many bytes on their way to the same receiver.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct SizeCell {
    post: [u64; 2],
    completion: [u64; 7],
    /// One size, but where there were too many.
    pub bytes: Extent,
    /// Bytes on their way, the message's own included.
    pub together: Extent,
}

impl SizeCell {
    pub fn add_post(&mut self, evidence: PostOutcome) {
        self.post[evidence as usize] += 1;
    }

    pub fn add_completion(&mut self, evidence: Completion) {
        self.completion[evidence as usize] += 1;
    }

    pub fn post(&self, evidence: PostOutcome) -> u64 {
        self.post[evidence as usize]
    }

    pub fn completion(&self, evidence: &[Completion]) -> u64 {
        evidence.iter().map(|&evidence| self.completion[evidence as usize]).sum()
    }

    pub fn merge(&mut self, other: &SizeCell) {
        for (count, more) in self.post.iter_mut().zip(other.post) {
            *count += more;
        }
        for (count, more) in self.completion.iter_mut().zip(other.completion) {
            *count += more;
        }
        self.bytes.merge(&other.bytes);
        self.together.merge(&other.together);
    }
}

/// Where a message counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct SizeAndLoad {
    /// Lower limit where sizes were put together.
    bytes: u64,
    /// Bytes on their way, this message's own included, rounded down; 0: it was alone.
    together: u64,
}

/// Cells in bounded memory: too many sizes are put together, with fewer and fewer significant bits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cells {
    bits: u32,
    cells: BTreeMap<SizeAndLoad, SizeCell>,
}

impl Default for Cells {
    fn default() -> Cells {
        Cells { bits: u64::BITS, cells: BTreeMap::new() }
    }
}

impl Cells {
    /// The cell of a message. `earlier`: bytes on their way to the receiver before it.
    pub fn cell_mut(&mut self, bytes: u64, earlier: u64) -> &mut SizeCell {
        let together = bytes.saturating_add(earlier);
        let rounded = if earlier == 0 { 0 } else { keep_bits(together, BITS_TOGETHER) };
        let exactly = |size| Extent { least: size, most: size };
        let alone =
            SizeCell { bytes: exactly(bytes), together: exactly(together), ..SizeCell::default() };
        let key = SizeAndLoad { bytes, together: rounded };
        self.add(key, &alone);
        self.cells.entry(SizeAndLoad { bytes: keep_bits(bytes, self.bits), ..key }).or_default()
    }

    pub fn merge(&mut self, other: Cells) {
        while self.bits > other.bits {
            self.coarsen();
        }
        for (key, cell) in other.cells {
            self.add(key, &cell);
        }
    }

    /// Of all keys that come the most significant bits are kept with which there are not too many: in whatever order they
    /// come, these are the same.
    fn add(&mut self, key: SizeAndLoad, cell: &SizeCell) {
        let key = SizeAndLoad { bytes: keep_bits(key.bytes, self.bits), ..key };
        self.cells.entry(key).or_default().merge(cell);
        while self.cells.len() > MOST_CELLS && self.bits > 1 {
            self.coarsen();
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &SizeCell> {
        self.cells.values()
    }

    fn coarsen(&mut self) {
        self.bits = match self.bits {
            u64::BITS => 12,
            bits => bits - 1,
        };
        for (key, cell) in std::mem::take(&mut self.cells) {
            let key = SizeAndLoad { bytes: keep_bits(key.bytes, self.bits), ..key };
            self.cells.entry(key).or_default().merge(&cell);
        }
    }
}

/// The number with all but its most significant `bits` cleared.
fn keep_bits(number: u64, bits: u32) -> u64 {
    let length = u64::BITS - number.leading_zeros();
    let cut = length.saturating_sub(bits);
    number >> cut << cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_until_there_are_too_many() {
        let mut cells = Cells::default();
        for bytes in 0..200_000 {
            cells.cell_mut(bytes, 0).add_post(PostOutcome::Returned);
        }
        assert!(cells.cells.len() <= MOST_CELLS);
        assert_eq!(cells.iter().map(|cell| cell.post(PostOutcome::Returned)).sum::<u64>(), 200_000);
        let mut next = 0;
        for cell in cells.iter() {
            assert_eq!(cell.bytes.least, next);
            next = cell.bytes.most + 1;
        }
        assert_eq!(next, 200_000);
    }

    #[test]
    fn coarse_and_fine_are_merged() {
        let (mut fine, mut coarse) = (Cells::default(), Cells::default());
        fine.cell_mut(5_001, 0).add_completion(Completion::Eager);
        coarse.cell_mut(5_000, 0).add_completion(Completion::Early);
        coarse.coarsen();
        fine.merge(coarse);
        let all: Vec<&SizeCell> = fine.iter().collect();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].completion(&[Completion::Eager, Completion::Early]), 2);
        assert_eq!(all[0].bytes, Extent { least: 5_000, most: 5_001 });
    }

    #[test]
    fn significant_bits() {
        assert_eq!(keep_bits(0b1_1111_1111, 7), 0b1_1111_1100);
        assert_eq!(keep_bits(100, 7), 100);
        assert_eq!(keep_bits(0, 7), 0);
        assert_eq!(keep_bits(u64::MAX, 64), u64::MAX);
    }
}
