//! Runs of chance whose gain is known: does the interval hold it as often as it says?

use lapscope_fixture::random::Random;

use super::gain::{of_program, of_site};
use lapscope_data::model::Nanos;
use lapscope_trace::injected::arms::{Arms, Posted};
use lapscope_trace::stats::Interval;

const MS: f64 = 1e6;
const SLOT: i64 = 100_000_000;
const RUNS: u64 = 400;

/// A program that iterates through slots of 100 ms, its two ranks in step. Times are milliseconds.
#[derive(Clone, Copy)]
struct Program {
    pairs: usize,
    compute: f64,
    /// The wait of each iteration without injection; half as much at the begin of the run, and once more that at its end.
    wait: f64,
    /// What injection takes from each wait, and adds to the computation.
    gain: f64,
    cost: f64,
    /// Probability that an iteration loses its processor: for 10 ms, now and then for up to 200.
    disturbed: f64,
    /// Part of the pairs in which there is something to gain.
    useful: f64,
}

const PROGRAM: Program = Program {
    pairs: 60,
    compute: 12.0,
    wait: 6.0,
    gain: 3.0,
    cost: 0.5,
    disturbed: 0.0,
    useful: 1.0,
};
const BUSY: Program = Program { disturbed: 0.05, ..PROGRAM };
const NULL: Program = Program { gain: 0.0, cost: 0.0, ..PROGRAM };
const BUSY_NULL: Program = Program { disturbed: 0.05, ..NULL };

/// Means of what chance adds to a wait: for a whole slot, and for each iteration.
const OF_SLOT: f64 = 0.6;
const OF_ITERATION: f64 = 0.3;

impl Program {
    fn run(&self, random: &mut Random) -> Arms<u32> {
        let mut rank: Arms<u32> = Arms::new(Nanos(SLOT));
        let end = (2 * self.pairs) as f64 * SLOT as f64;
        let (mut now, mut slot) = (random.share() * 20.0 * MS, -1);
        let (mut is_first_on, mut is_useful, mut of_slot) = (false, false, 0.0);
        while now < end {
            let at = now as i64 / SLOT;
            if at / 2 != slot / 2 || slot < 0 {
                (is_first_on, is_useful) = (random.is(0.5), random.is(self.useful));
            }
            if at != slot {
                of_slot = OF_SLOT * random.exponential();
            }
            slot = at;
            let is_on = (at % 2 == 0) == is_first_on;
            let gain = if is_on && is_useful { self.gain } else { 0.0 };
            let cost = if is_on { self.cost } else { 0.0 };
            let disturbance =
                if random.is(self.disturbed) { 10.0 * random.heavy_tailed() } else { 0.0 };
            let usual = self.wait * (0.5 + now / end) - gain;
            let wait = usual + of_slot + OF_ITERATION * random.exponential() + disturbance;
            let (moment, exposed) = (now as i64, Some(wait * MS));
            rank.add(Posted { site: 7, is_on, moment, until: None, exposed });
            now += (self.compute + cost + wait) * MS;
        }
        let rank = rank.finish();
        let mut run = Arms::new(Nanos(SLOT));
        run.merge(&rank, |site| *site);
        run.merge(&rank, |site| *site);
        run
    }

    /// Milliseconds per request, of one run.
    fn of_requests(&self, random: &mut Random) -> Option<Interval> {
        let cost = Nanos((self.cost * MS) as i64);
        let gain = of_site(&self.run(random).of_site(7), cost, true);
        let ms = |ns: Option<Nanos>| ns.map(|ns| ns.0 as f64 / MS);
        let (estimate, low, high) = (ms(gain.estimate_ns)?, ms(gain.low_ns)?, ms(gain.high_ns)?);
        Some(Interval { estimate, low, high })
    }

    /// A fraction of the time, of one run.
    fn of_whole(&self, random: &mut Random) -> Option<Interval> {
        let whole = of_program(&self.run(random));
        Some(Interval { estimate: whole.estimate?, low: whole.low?, high: whole.high? })
    }
}

/// How often the interval holds the truth, how often it is above zero, and the mean of the estimates.
#[derive(Debug)]
struct Answers {
    covered: f64,
    gains: f64,
    mean: f64,
}

fn ask(truth: f64, run: impl Fn(&mut Random) -> Option<Interval>) -> Answers {
    let found: Vec<Interval> = (0..RUNS).filter_map(|seed| run(&mut Random(seed * 7919))).collect();
    assert_eq!(found.len() as u64, RUNS);
    let share = |is: &dyn Fn(&Interval) -> bool| {
        found.iter().filter(|interval| is(interval)).count() as f64 / RUNS as f64
    };
    Answers {
        covered: share(&|interval| interval.low <= truth && truth <= interval.high),
        gains: share(&|interval| interval.low > 0.0),
        mean: found.iter().map(|interval| interval.estimate).sum::<f64>() / RUNS as f64,
    }
}

#[test]
fn the_interval_holds_the_gain_of_a_request() {
    for pairs in [12, 60, 200] {
        for program in [PROGRAM, BUSY] {
            let program = Program { pairs, ..program };
            let found = ask(2.5, |random| program.of_requests(random));
            assert!((0.88..0.99).contains(&found.covered), "{pairs}: {found:?}");
            assert!((found.mean - 2.5).abs() < 0.15, "{pairs}: {found:?}");
        }
    }
}

#[test]
fn there_is_no_gain_where_there_is_none() {
    for program in [NULL, BUSY_NULL, Program { pairs: 12, ..BUSY_NULL }] {
        let found = ask(0.0, |random| program.of_requests(random));
        assert!(found.gains < 0.05, "{found:?}");
        assert!((0.88..0.99).contains(&found.covered), "{found:?}");
        let found = ask(0.0, |random| program.of_whole(random));
        assert!(found.gains < 0.05, "{found:?}");
        assert!((0.88..0.99).contains(&found.covered), "{found:?}");
    }
}

/// Where few pairs gain, these are the effect, no outliers to be drawn in.
#[test]
fn what_falls_on_one_side_is_kept() {
    let program = Program { pairs: 100, useful: 0.2, cost: 0.0, ..PROGRAM };
    let found = ask(0.6, |random| program.of_requests(random));
    assert!((0.5..0.75).contains(&found.mean), "{found:?}");
    assert!(found.covered > 0.85 && found.gains > 0.9, "{found:?}");
}

#[test]
fn the_interval_holds_the_gain_of_the_whole() {
    // As waits grow evenly over the run, the mean of an iteration is a harmonic one.
    let shortest = PROGRAM.compute + PROGRAM.wait / 2.0 + OF_SLOT + OF_ITERATION;
    let mean = |saved: f64| {
        let (from, to) = (shortest - saved, shortest - saved + PROGRAM.wait);
        PROGRAM.wait / (to / from).ln()
    };
    let truth = 1.0 - mean(PROGRAM.gain - PROGRAM.cost) / mean(0.0);
    for pairs in [12, 60, 200] {
        let program = Program { pairs, ..PROGRAM };
        let found = ask(truth, |random| program.of_whole(random));
        assert!((0.88..0.99).contains(&found.covered), "{pairs}: {found:?}");
        assert!(found.gains > 0.95, "{pairs}: {found:?}");
    }
}
