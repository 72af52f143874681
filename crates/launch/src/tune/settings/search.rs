//! Which setting is tried next. Every candidate is screened by at most two pairs of runs, then the best two together; the best of
//! all is proved by pairs of its own ([`Proof`]). One question is put to that test, with runs that did not choose it, so
//! a search finds a gain where there is none in at most 5 % of all cases, however many settings it tried.

use super::proof::{scale, Proof};
use lapscope_trace::stats::median;

/// Pairs that screen a candidate.
const SCREENING: usize = 2;
/// Less is no gain to speak of, as a fraction of the run time.
pub const NEGLIGIBLE: f64 = 0.005;
/// A first pair that loses more needs no second; less may be noise.
const LOSES: f64 = -0.1;

/// What is to be done; numbers are places in [`SettingsSearch::screened`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchStep {
    /// A pair of runs of this candidate.
    Screen(usize),
    /// Make a candidate of these two.
    Combine(usize, usize),
    /// A pair of runs that proves this one.
    Prove(usize),
}

/// A candidate as far as it was screened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Screened {
    /// Logarithms of run times, without the setting over with it.
    pub logs: Vec<f64>,
    pub failed: bool,
    /// Candidates that set the same variable have the same number; what is combined has none.
    pub variable: Option<usize>,
}

impl Screened {
    fn is_done(&self) -> bool {
        let loses = self.logs.last().is_some_and(|&log| log < LOSES);
        self.failed || loses || self.logs.len() >= SCREENING
    }

    /// `None`: it failed, lost, or was not tried.
    fn gain(&self) -> Option<f64> {
        let log = median(self.logs.clone()).filter(|_| !self.failed)?;
        (log > NEGLIGIBLE).then_some(log)
    }
}

/// A search under way.
#[derive(Debug, Clone, Default)]
pub struct SettingsSearch {
    /// In the order of their rank; combinations come last.
    pub screened: Vec<Screened>,
    is_combined: bool,
    /// Which one, and its pairs.
    proof: Option<(usize, Proof)>,
    /// No further candidate is to be screened: what is left of the time is for the proof.
    is_closed: bool,
}

impl SettingsSearch {
    pub fn new(screened: Vec<Screened>) -> SettingsSearch {
        SettingsSearch { screened, ..SettingsSearch::default() }
    }

    /// What is left of the time goes into the proof.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    pub fn proof(&self) -> Option<&(usize, Proof)> {
        self.proof.as_ref()
    }

    /// The pairs that there will be at most.
    pub fn most_pairs(&self) -> usize {
        let screening = self.screened.iter().filter(|it| !it.is_done());
        SCREENING * (screening.count() + usize::from(!self.is_combined)) + super::proof::MOST_PAIRS
    }

    /// `None`: the answer is known.
    pub fn next_step(&mut self) -> Option<SearchStep> {
        if let Some((which, proof)) = &self.proof {
            return (!proof.is_over(NEGLIGIBLE) && !self.screened[*which].failed)
                .then_some(SearchStep::Prove(*which));
        }
        let next = self.screened.iter().position(|it| !it.is_done());
        if let Some(next) = next.filter(|_| !self.is_closed) {
            return Some(SearchStep::Screen(next));
        }
        if let Some((one, other)) = self.best_two().filter(|_| !self.is_combined && !self.is_closed)
        {
            self.is_combined = true;
            return Some(SearchStep::Combine(one, other));
        }
        let best = self.best()?;
        self.proof = Some((best, Proof::new(scale(self.differences()))));
        Some(SearchStep::Prove(best))
    }

    /// What a pair of runs showed.
    pub fn learn(&mut self, step: SearchStep, log: f64) {
        match step {
            SearchStep::Screen(which) => self.screened[which].logs.push(log),
            SearchStep::Prove(_) => {
                if let Some((_, proof)) = &mut self.proof {
                    proof.add(log);
                }
            }
            SearchStep::Combine(..) => {}
        }
    }

    /// Between the two pairs of each candidate.
    fn differences(&self) -> Vec<f64> {
        let differences = self.screened.iter().filter_map(|it| match it.logs[..] {
            [first, second] => Some(first - second),
            _ => None,
        });
        differences.collect()
    }

    /// The one that gained most, so far; of a combination only if that is more than its better half.
    pub fn best(&self) -> Option<usize> {
        let gains = (0..self.screened.len()).filter_map(|it| Some((it, self.screened[it].gain()?)));
        let worth = |it: usize, gain: f64| match self.screened[it].variable {
            Some(_) => gain,
            None => gain - NEGLIGIBLE,
        };
        gains.max_by(|a, b| worth(a.0, a.1).total_cmp(&worth(b.0, b.1))).map(|(it, _)| it)
    }

    /// The best two of different variables.
    fn best_two(&self) -> Option<(usize, usize)> {
        let mut gains: Vec<(usize, f64)> = (0..self.screened.len())
            .filter_map(|it| Some((it, self.screened[it].gain()?)))
            .collect();
        gains.sort_by(|a, b| b.1.total_cmp(&a.1));
        let variable = |it: usize| self.screened[it].variable;
        let &(best, _) = gains.first()?;
        let other = gains.iter().find(|(it, _)| variable(*it) != variable(best))?;
        Some((best, other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_fixture::random::Random;

    fn candidates(count: usize) -> SettingsSearch {
        let of_one = |variable| Screened { variable: Some(variable), ..Screened::default() };
        SettingsSearch::new((0..count).map(of_one).collect())
    }

    /// Goes through a search: whether it proved a gain, of which one, and in how many pairs.
    fn search(
        count: usize,
        mut log: impl FnMut(&SettingsSearch, usize) -> f64,
    ) -> (Option<usize>, usize) {
        let (mut search, mut pairs) = (candidates(count), 0);
        while let Some(step) = search.next_step() {
            match step {
                SearchStep::Combine(..) => search.screened.push(Screened::default()),
                SearchStep::Screen(which) | SearchStep::Prove(which) => {
                    let log = log(&search, which);
                    search.learn(step, log);
                    pairs += 1;
                }
            }
        }
        let proved = search.proof().filter(|(_, proof)| proof.is_certain()).map(|(it, _)| *it);
        (proved, pairs)
    }

    /// The logarithm of a run time: most runs take about as long as each other, some much longer, by turns in other phases.
    fn noise(random: &mut Random, phase: f64) -> f64 {
        let bell: f64 = (0..4).map(|_| random.below(2_001) as f64 / 1_000.0 - 1.0).sum();
        let spike = if random.below(10) == 0 { random.below(400) as f64 / 1_000.0 } else { 0.0 };
        0.01 * bell + spike + phase
    }

    #[test]
    fn settings_that_change_nothing_gain_in_at_most_5_of_100_searches() {
        const SEARCHES: usize = 4_000;
        for count in [1, 2, 5] {
            let mut random = Random(38);
            let mut found = 0;
            for _ in 0..SEARCHES {
                let pair = |_: &SettingsSearch, _| {
                    let phase = random.below(2) as f64 * 0.1;
                    // the second run of a pair may be in the next phase
                    let other = if random.below(5) == 0 { 0.1 - phase } else { phase };
                    noise(&mut random, phase) - noise(&mut random, other)
                };
                found += usize::from(search(count, pair).0.is_some());
            }
            let share = found as f64 / SEARCHES as f64;
            assert!(share <= 0.05, "{share} of searches among {count}");
        }
    }

    #[test]
    fn gains_are_found_in_few_pairs() {
        const SEARCHES: usize = 500;
        let mut random = Random(7);
        let (mut found, mut all_pairs) = (0, 0);
        for _ in 0..SEARCHES {
            let pair = |_: &SettingsSearch, which| {
                let gain = if which == 1 { 0.2 } else { 0.0 };
                gain + noise(&mut random, 0.0) - noise(&mut random, 0.0)
            };
            let (proved, pairs) = search(3, pair);
            found += usize::from(matches!(proved, Some(1 | 3)));
            all_pairs += pairs;
        }
        assert!(found >= SEARCHES * 8 / 10, "{found} of {SEARCHES}");
        assert!(all_pairs <= 16 * SEARCHES, "{} a search", all_pairs as f64 / SEARCHES as f64);
    }

    #[test]
    fn the_best_two_are_tried_together_and_what_fails_is_left() {
        let (proved, pairs) = search(3, |_, which| [0.1, 0.2, -0.2, 0.28][which]);
        // two pairs of two, one of the loser, two of the combination, five that prove it
        assert_eq!((proved, pairs), (Some(3), 12));
        let mut failing = candidates(2);
        failing.screened[0].failed = true;
        assert_eq!(failing.next_step(), Some(SearchStep::Screen(1)));
        failing.screened[1].failed = true;
        assert_eq!(failing.next_step(), None);
    }

    #[test]
    fn a_combination_that_gains_no_more_is_not_chosen() {
        let (proved, _) = search(2, |_, which| [0.1, 0.2, 0.202][which]);
        assert_eq!(proved, Some(1));
    }

    #[test]
    fn when_time_is_short_the_best_so_far_is_proved() {
        let mut short = candidates(3);
        let step = short.next_step().unwrap();
        short.learn(step, 0.2);
        short.close();
        assert_eq!(short.next_step(), Some(SearchStep::Prove(0)));
        let mut none = candidates(3);
        none.close();
        assert_eq!(none.next_step(), None);
    }
}
