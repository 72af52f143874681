//! Which settings are tried, in which order, and how often the program is run at most.

use super::trial::{InjectionSetting, Trial};
use crate::run::Mode;

/// Every mode at the first interval, then the best mode at the others.
#[derive(Debug, Clone)]
pub struct Search {
    modes: Vec<Mode>,
    intervals: Vec<u32>,
    /// Runs with injection.
    most: usize,
}

impl Search {
    /// `runs` counts that without injection.
    pub fn new(modes: &[Mode], intervals: &[u32], runs: u32) -> Search {
        let most = runs.saturating_sub(1) as usize;
        Search { modes: distinct(modes), intervals: distinct(intervals), most }
    }

    /// To try copies of sends as well, or nothing else.
    pub fn add_sends(&mut self, only: bool) {
        if only {
            self.modes.clear();
        }
        self.modes.insert(0, Mode::Sends);
    }

    /// Not to try a mode, whatever was asked for; returns whether it was.
    pub fn leave_out(&mut self, mode: Mode) -> bool {
        let before = self.modes.len();
        self.modes.retain(|&other| other != mode);
        self.modes.len() < before
    }

    /// Runs with injection that there will be at most, one with a policy among them.
    pub fn longest(&self) -> usize {
        (self.modes.len() + self.intervals.len()).min(self.most)
    }

    /// Whether another run is allowed after these.
    pub fn has_room(&self, tried: &[Trial]) -> bool {
        tried.len() < self.most
    }

    /// What to try after these; `None`: nothing more.
    pub fn next(&self, tried: &[Trial]) -> Option<InjectionSetting> {
        if !self.has_room(tried) {
            return None;
        }
        let is_new =
            |setting: &InjectionSetting| tried.iter().all(|trial| trial.setting != *setting);
        let &first = self.intervals.first()?;
        let of_modes = self.modes.iter().map(|&mode| InjectionSetting { mode, interval_us: first });
        of_modes.clone().find(is_new).or_else(|| self.refine(tried).find(is_new))
    }

    /// The best mode of the first round at the other intervals, unless no mode did any good.
    fn refine(&self, tried: &[Trial]) -> impl Iterator<Item = InjectionSetting> + '_ {
        let round =
            tried.iter().filter(|trial| self.intervals.first() == Some(&trial.setting.interval_us));
        let best = super::choice::highest(round).map(|trial| trial.setting.mode);
        let best = best.filter(|&mode| mode != Mode::Sends); // which has no interval
        let others = self.intervals.iter().skip(1).copied();
        others
            .filter_map(move |interval_us| best.map(|mode| InjectionSetting { mode, interval_us }))
    }
}

/// In their order, each once.
fn distinct<T: PartialEq + Copy>(values: &[T]) -> Vec<T> {
    let mut distinct = Vec::new();
    for &value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}
