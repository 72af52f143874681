//! What is known of one buffer: when the words of it that were watched were needed, or ready.

use super::bounds::TimeBounds;

/// Bytes of a word, by which data are counted.
pub const WORD_BYTES: u64 = 8;

/// A watched word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Word {
    /// Where it is in the buffer: 0 is the first word, 1 the last.
    pub position: f64,
    /// Application time from the completion to the first touch, or from the last write to the post.
    pub away: TimeBounds,
}

/// The watched words of one request's buffer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Buffer {
    pub bytes: u64,
    /// By position.
    pub words: Vec<Word>,
}

impl Word {
    /// `offset` of a word in a buffer of so many bytes. Words begin at multiples of eight, buffers may begin elsewhere.
    pub fn at(offset: u64, bytes: u64, away: TimeBounds) -> Word {
        let position = if offset < WORD_BYTES {
            0.0
        } else if offset + 2 * WORD_BYTES > bytes {
            1.0
        } else {
            offset as f64 / (bytes - WORD_BYTES) as f64
        };
        Word { position, away }
    }

    /// The first and the last word are watched of every buffer, the others are drawn.
    pub fn is_end(&self) -> bool {
        self.is_first() || self.is_last()
    }

    pub fn is_first(&self) -> bool {
        self.position <= 0.0
    }

    pub fn is_last(&self) -> bool {
        self.position >= 1.0
    }
}

impl Buffer {
    pub fn new(bytes: u64, mut words: Vec<Word>) -> Buffer {
        words.sort_by(|a, b| a.position.total_cmp(&b.position));
        Buffer { bytes, words }
    }

    /// Words that it has.
    pub fn length(&self) -> f64 {
        self.bytes.div_ceil(WORD_BYTES).max(1) as f64
    }

    /// When its worst word was needed, or ready, of those that were watched.
    pub fn least(&self) -> Option<TimeBounds> {
        self.words.iter().map(|word| word.away).reduce(TimeBounds::min)
    }
}
