//! The watched buffers of one call site, on one side and of similar sizes: what is said of them, and who touched them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::bounds::{median, ConfidenceBounds};
use super::estimate::{estimate, BufferTimes};
use lapscope_data::model::{LetGo, Rank, Side, WatchResult};
use lapscope_data::places::{InstructionId, SiteId};
use lapscope_trace::watched::bounds::TimeBounds;
use lapscope_trace::watched::words::Buffer;
use lapscope_trace::watched::{Touch, Watched, WatchedWord};

/// Buffers of one site are looked at apart where their sizes differ by more than this factor.
pub(super) const SIMILAR: u64 = 4;

/// What one site sends or receives.
#[derive(Debug)]
pub struct SiteWatches {
    pub id: SiteId,
    pub side: Side,
    pub buffers: Vec<Watched>,
    pub found: BufferTimes,
    /// The same of the copies that the program makes of it.
    pub copied: BufferTimes,
}

/// Words by who touched them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched {
    pub words: u64,
    /// Buffers whose worst word, of those that were watched, was touched there: of sends the one written last, of receives the
    /// one needed first.
    pub worst: u64,
}

/// Words that were copied, and what became of the copies.
#[derive(Debug, Default)]
pub struct Copied {
    pub words: u64,
    /// The first use of the copy, or the last write of what was copied; of each buffer the worst.
    pub away: Vec<TimeBounds>,
    pub touches: BTreeMap<Touch, Touched>,
}

/// How many words are noted for something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub untouched: u64,
    pub often: u64,
    pub on_stack: u64,
    pub sparse: u64,
    pub reused: u64,
}

/// Puts together what belongs to one site.
pub fn group(watched: Vec<Watched>, nearest: f64) -> Vec<SiteWatches> {
    let mut sites: BTreeMap<(SiteId, Side), Vec<Watched>> = BTreeMap::new();
    for buffer in watched {
        sites.entry((buffer.site, buffer.side)).or_default().push(buffer);
    }
    let split = |((id, side), mut buffers): ((SiteId, Side), Vec<Watched>)| {
        // in the order of time within a rank: neighbours are compared
        buffers.sort_by_key(|buffer| (buffer.bytes, buffer.rank, buffer.life, buffer.begin));
        let mut groups: Vec<Vec<Watched>> = Vec::new();
        for buffer in buffers {
            let first = groups.last().map(|group| group[0].bytes);
            if first.map_or(true, |first| buffer.bytes > first.saturating_mul(SIMILAR)) {
                groups.push(Vec::new());
            }
            groups.last_mut().expect("there is one now").push(buffer);
        }
        groups.into_iter().map(move |mut buffers| {
            buffers.sort_by_key(|buffer| (buffer.rank, buffer.life, buffer.begin));
            let own: Vec<Buffer> = buffers.iter().map(Watched::buffer).collect();
            let copied: Vec<Buffer> = buffers.iter().filter_map(Watched::copied).collect();
            SiteWatches {
                id,
                side,
                found: estimate(&own, side, nearest),
                copied: estimate(&copied, side, nearest),
                buffers,
            }
        })
    };
    sites.into_iter().flat_map(split).collect()
}

impl SiteWatches {
    /// The smallest and the largest buffer.
    pub fn bytes(&self) -> (u64, u64) {
        let bytes = || self.buffers.iter().map(|buffer| buffer.bytes);
        (bytes().min().unwrap_or(0), bytes().max().unwrap_or(0))
    }

    pub fn ranks(&self) -> BTreeSet<Rank> {
        self.buffers.iter().map(|buffer| buffer.rank).collect()
    }

    /// Words of the buffers themselves.
    pub fn words(&self) -> impl Iterator<Item = &WatchedWord> {
        self.buffers.iter().flat_map(Watched::own_words)
    }

    /// The call that completed most of them.
    pub fn completing(&self) -> Option<SiteId> {
        let mut calls: BTreeMap<SiteId, usize> = BTreeMap::new();
        for site in self.buffers.iter().filter_map(|buffer| buffer.completing) {
            *calls.entry(site).or_default() += 1;
        }
        calls.into_iter().max_by_key(|&(site, count)| (count, Reverse(site))).map(|(site, _)| site)
    }

    pub fn counts(&self) -> Counts {
        let count =
            |is: fn(&WatchedWord) -> bool| self.words().filter(|word| is(word)).count() as u64;
        Counts {
            untouched: count(|word| word.result == WatchResult::Untouched),
            often: count(|word| word.result == WatchResult::Often),
            on_stack: count(|word| word.is_on_stack),
            sparse: count(|word| word.is_sparse),
            reused: count(|word| word.let_go == Some(LetGo::Reused)),
        }
    }

    /// Who touched words.
    pub fn touches(&self) -> BTreeMap<Touch, Touched> {
        touches(self.buffers.iter().map(|buffer| buffer.own_words().collect()))
    }

    /// By the instruction that copied.
    pub fn copies(&self) -> BTreeMap<InstructionId, Copied> {
        let mut copies: BTreeMap<InstructionId, Vec<Vec<&WatchedWord>>> = BTreeMap::new();
        for buffer in &self.buffers {
            let mut of_buffer: BTreeMap<InstructionId, Vec<&WatchedWord>> = BTreeMap::new();
            for word in &buffer.words {
                if let Some(by) = word.copied {
                    of_buffer.entry(by).or_default().push(word);
                }
            }
            for (by, words) in of_buffer {
                copies.entry(by).or_default().push(words);
            }
        }
        let sum = |buffers: Vec<Vec<&WatchedWord>>| {
            let worst = |words: &Vec<&WatchedWord>| {
                words.iter().map(|word| word.word.away).reduce(TimeBounds::min)
            };
            Copied {
                words: buffers.iter().map(|words| words.len() as u64).sum(),
                away: buffers.iter().filter_map(worst).collect(),
                touches: touches(buffers.into_iter()),
            }
        };
        copies.into_iter().map(|(by, buffers)| (by, sum(buffers))).collect()
    }
}

impl Copied {
    /// Another instruction that copied words.
    pub fn merge(&mut self, other: Copied) {
        self.words += other.words;
        self.away.extend(other.away);
        for (touch, touched) in other.touches {
            let sum = self.touches.entry(touch).or_default();
            sum.words += touched.words;
            sum.worst += touched.worst;
        }
    }

    /// The median over buffers of their worst word.
    pub fn median(&self) -> Option<ConfidenceBounds> {
        median(&self.away)
    }
}

/// `buffers`: the words of each.
fn touches<'w>(buffers: impl Iterator<Item = Vec<&'w WatchedWord>>) -> BTreeMap<Touch, Touched> {
    let mut touches: BTreeMap<Touch, Touched> = BTreeMap::new();
    for words in buffers {
        for touch in words.iter().filter_map(|word| word.touch) {
            touches.entry(touch).or_default().words += 1;
        }
        let is_nearer =
            |a: &&&WatchedWord, b: &&&WatchedWord| a.word.away.most.total_cmp(&b.word.away.most);
        let worst = words.iter().min_by(is_nearer).and_then(|word| word.touch);
        if let Some(touch) = worst {
            touches.entry(touch).or_default().worst += 1;
        }
    }
    touches
}
