//! Estimates of programs that were made up: what is said must hold what is true.

use super::bounds::ConfidenceBounds;
use super::estimate::{estimate, BufferTimes};
use lapscope_data::model::Side;
use lapscope_trace::watched::bounds::TimeBounds;
use lapscope_trace::watched::words::{Buffer, Word};

/// Numbers that are the same each time (xorshift64*, Vigna 2016).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        (self.share() * limit as f64) as usize
    }

    fn share(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        (1..count).rev().for_each(|at| all.swap(at, self.below(at + 1)));
        all
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Same,
    Reverse,
    /// An order of its own for each request, or one for all.
    Random {
        fixed: bool,
    },
}

/// Receives of buffers of `words` words: the first is needed `first` ns after the completion, give or take `unsteady`, and
/// one more every `word` ns.
#[derive(Debug, Clone, Copy)]
struct Program {
    kind: Kind,
    requests: usize,
    words: usize,
    first: f64,
    word: f64,
    unsteady: f64,
    /// Watched for no longer than that, ns.
    until: f64,
}

const SIMPLE: Program = Program {
    kind: Kind::Same,
    requests: 40,
    words: 1000,
    first: 500e3,
    word: 200.0,
    unsteady: 30e3,
    until: f64::INFINITY,
};

impl Program {
    /// Four words of each buffer are watched: the first, the last and two that are drawn.
    fn watch(&self, numbers: &mut Numbers) -> Vec<Buffer> {
        let fixed = numbers.shuffled(self.words);
        let request = |_| {
            let first = self.first + (numbers.share() - 0.5) * 2.0 * self.unsteady;
            let drawn = [numbers.below(self.words), numbers.below(self.words)];
            let word = |at: usize| {
                let place = match self.kind {
                    Kind::Same => at,
                    Kind::Reverse => self.words - 1 - at,
                    Kind::Random { fixed: true } => fixed[at],
                    Kind::Random { fixed: false } => numbers.below(self.words),
                };
                let ns = first + self.word * place as f64;
                let is_seen = ns <= self.until;
                let away = if is_seen {
                    TimeBounds::exactly(ns)
                } else {
                    TimeBounds::at_least(self.until)
                };
                Word::at(8 * at as u64, 8 * self.words as u64, away)
            };
            let words = [0, self.words - 1, drawn[0], drawn[1]].map(word);
            Buffer::new(8 * self.words as u64, words.into())
        };
        (0..self.requests).map(request).collect()
    }
}

const RUNS: usize = 200;

/// Counts, of many runs, those in which something is said of all, of half and of a word, and those in which that holds the truth.
fn runs_that_tell(program: Program) -> [(usize, usize); 3] {
    let mut numbers = Numbers(0x5EED_0F1A_B5C0_BE01);
    let mut runs = [(0, 0); 3];
    for _ in 0..RUNS {
        let found = estimate(&program.watch(&mut numbers), Side::Receive, 0.0);
        let BufferTimes { all, half, word, .. } = found;
        let middle = program.first + program.word * (program.words - 1) as f64 / 2.0;
        let truth = [(all, program.first), (half, middle), (word, program.word)];
        for ((told, held), (bounds, truth)) in runs.iter_mut().zip(truth) {
            let Some(ConfidenceBounds { low, high, .. }) = bounds else { continue };
            *told += 1;
            *held += usize::from(low <= truth && high.map_or(true, |high| truth <= high));
        }
    }
    runs
}

/// Which of these programs are told wrongly in more than a tenth of the runs, or not told often enough.
fn wrong(programs: impl IntoIterator<Item = Program>) -> Vec<String> {
    let mut wrong = Vec::new();
    for program in programs {
        let runs = runs_that_tell(program);
        // the time of a word hangs on the order, which few words do not tell
        let is_told = program.requests >= 40 && program.until.is_infinite();
        let least = [RUNS, RUNS, if is_told { RUNS * 3 / 4 } else { 0 }];
        let is_right = |(&(told, held), least): (&(usize, usize), usize)| {
            told >= least && held * 10 >= told * 9
        };
        if !runs.iter().zip(least).all(is_right) {
            wrong.push(format!("{runs:?}: {program:?}"));
        }
    }
    wrong
}

const KINDS: [Kind; 4] =
    [Kind::Same, Kind::Reverse, Kind::Random { fixed: true }, Kind::Random { fixed: false }];

#[test]
fn intervals_hold_the_truth_in_every_order() {
    let mut programs = Vec::new();
    for kind in KINDS {
        for requests in [6, 40, 150] {
            let steady = [0.0, 400e3];
            programs.extend(steady.map(|unsteady| Program { kind, requests, unsteady, ..SIMPLE }));
        }
    }
    assert_eq!(wrong(programs), [""; 0]);
}

#[test]
fn intervals_hold_the_truth_where_most_words_are_let_go_before() {
    let until = 550e3;
    assert_eq!(wrong(KINDS.map(|kind| Program { kind, until, ..SIMPLE })), [""; 0]);
    let mut numbers = Numbers(1);
    let all = Program { until: 100e3, ..SIMPLE };
    let found = estimate(&all.watch(&mut numbers), Side::Receive, 0.0);
    let at_least = Some(ConfidenceBounds { low: 100e3, estimate: None, high: None });
    assert_eq!((found.all, found.half, found.word), (at_least, at_least, None));
}
