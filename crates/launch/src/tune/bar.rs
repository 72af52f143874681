//! How far the search is: a bar on standard error where that is a terminal, and lines between.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::confirm::RunPair;
use super::trial::Trial;
use lapscope_data::text::say::say;
use lapscope_data::text::units::{percent, time};
use lapscope_data::text::visible::visible;
use lapscope_trace::stats::Interval;

/// Progress through runs that take about as long as the first.
pub struct TrialBar {
    bar: ProgressBar,
    /// Runs that have ended.
    done: Cell<u32>,
    /// There will be at most.
    runs: Cell<u32>,
    usual: Cell<Option<Duration>>,
    began: Cell<Instant>,
}

impl TrialBar {
    pub fn new(runs: u32) -> TrialBar {
        // stderr() draws nothing where standard error is no terminal
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
            .with_style(style("{spinner} {msg}, {elapsed}"));
        let began = Cell::new(Instant::now());
        TrialBar { bar, done: Cell::new(0), runs: Cell::new(runs), usual: Cell::new(None), began }
    }

    /// A run begins.
    pub fn begin(&self, what: &str) {
        self.began.set(Instant::now());
        let (number, runs) = (self.done.get() + 1, self.runs.get());
        self.bar.set_message(format!("run {number} of at most {runs}: {}", visible(what)));
        self.tick();
    }

    /// Time goes by.
    pub fn tick(&self) {
        let elapsed = self.began.get().elapsed();
        match self.usual.get() {
            Some(usual) => self
                .bar
                .set_position((usual * self.done.get() + elapsed.min(usual)).as_millis() as u64),
            None => self.bar.tick(),
        }
    }

    /// It has ended.
    pub fn end(&self) {
        self.done.set(self.done.get() + 1);
        if self.usual.get().is_none() {
            self.usual.set(Some(self.began.get().elapsed()));
            self.bar.set_style(style("{msg} {wide_bar} {eta} left"));
        }
        self.expect(self.runs.get());
    }

    /// There will be so many more runs.
    pub fn expect_more(&self, runs: u32) {
        self.expect(self.done.get() + runs);
    }

    /// There will be at most so many runs.
    fn expect(&self, runs: u32) {
        self.runs.set(runs);
        if let Some(usual) = self.usual.get() {
            self.bar.set_length((usual * runs).as_millis() as u64);
            self.bar.set_position((usual * self.done.get()).as_millis() as u64);
        }
    }

    /// Lines of standard error.
    pub fn say<S: AsRef<str>>(&self, lines: &[S]) {
        self.bar.suspend(|| lines.iter().for_each(|line| say(line.as_ref())));
    }
}

/// One run, while others are still to come.
pub fn trial_line(trial: &Trial) -> String {
    let gain = match trial.gain() {
        Some(gain) => format!("gain {}", between(gain)),
        None => "gain not known".to_owned(),
    };
    format!("{}: {gain}, cost {}", trial.name, percent(trial.cost()))
}

/// A pair of whole runs, while others are still to come.
pub fn pair_line(number: usize, pair: &RunPair) -> String {
    let (bare, injected) = (time(pair.bare_ns), time(pair.injected_ns));
    let gain = signed_percent(pair.gain);
    format!("pair {number}: {bare} without lapscope, {injected} with injection: gain {gain}")
}

pub fn signed_percent(gain: f64) -> String {
    format!("{:.1} %", 100.0 * gain)
}

/// "22.1 to 26.3 %"
pub fn limits(gain: Interval) -> String {
    format!("{:.1} to {:.1} %", 100.0 * gain.low, 100.0 * gain.high)
}

fn between(gain: Interval) -> String {
    format!("{:.1} % ({})", 100.0 * gain.estimate, limits(gain))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for TrialBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
