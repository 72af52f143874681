//! A progress bar on standard error, for what takes longer than a second, on a terminal only.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Counts rows; may be shared between threads.
#[derive(Debug)]
pub struct Progress {
    /// What is being done.
    doing: &'static str,
    total: AtomicU64,
    done: AtomicU64,
    started: Instant,
    is_terminal: bool,
    bar: OnceLock<ProgressBar>,
}

impl Default for Progress {
    fn default() -> Self {
        Progress::of("reading")
    }
}

impl Progress {
    /// `doing` stands in front of the bar.
    #[allow(clippy::disallowed_methods)] // standard error is only asked what it is
    pub fn of(doing: &'static str) -> Progress {
        Progress {
            doing,
            total: AtomicU64::new(0),
            done: AtomicU64::new(0),
            started: Instant::now(),
            is_terminal: std::io::stderr().is_terminal(),
            bar: OnceLock::new(),
        }
    }

    /// There are `rows` more.
    pub fn expect(&self, rows: u64) {
        let total = self.total.fetch_add(rows, Ordering::Relaxed) + rows;
        if let Some(bar) = self.bar.get() {
            bar.set_length(total);
        }
    }

    /// `rows` more are done.
    pub fn add(&self, rows: u64) {
        let done = self.done.fetch_add(rows, Ordering::Relaxed) + rows;
        if !self.is_terminal || self.started.elapsed() < Duration::from_secs(1) {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let template = format!("{} {{bar:40}} {{percent}} % {{eta}}", self.doing);
            let style = ProgressStyle::with_template(&template);
            ProgressBar::new(self.total.load(Ordering::Relaxed))
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
