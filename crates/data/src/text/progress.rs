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
    /// So many announcements are expected; 0: not known.
    announcements: u64,
    announced: AtomicU64,
    total: AtomicU64,
    done: AtomicU64,
    started: Instant,
    is_terminal: bool,
    bar: OnceLock<ProgressBar>,
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new("reading")
    }
}

impl Progress {
    /// `doing` stands in front of the bar.
    #[allow(clippy::disallowed_methods)] // standard error is only asked what it is
    pub fn new(doing: &'static str) -> Progress {
        Progress {
            doing,
            announcements: 0,
            announced: AtomicU64::new(0),
            total: AtomicU64::new(0),
            done: AtomicU64::new(0),
            started: Instant::now(),
            is_terminal: std::io::stderr().is_terminal(),
            bar: OnceLock::new(),
        }
    }

    /// Progress through the rows of so many files, each of which says what it has when its turn comes: until the last has, the others are taken to
    /// be as large.
    pub fn of_files(files: usize) -> Progress {
        let mut progress = Progress::default();
        progress.announcements = files as u64;
        progress
    }

    /// There are `rows` more.
    pub fn expect(&self, rows: u64) {
        self.total.fetch_add(rows, Ordering::Relaxed);
        self.announced.fetch_add(1, Ordering::Relaxed);
        if let Some(bar) = self.bar.get() {
            bar.set_length(self.all());
        }
    }

    /// Rows in all, as far as is known.
    fn all(&self) -> u64 {
        let total = self.total.load(Ordering::Relaxed);
        let announced = self.announced.load(Ordering::Relaxed);
        match self.announcements {
            all if all > announced && announced > 0 => {
                (u128::from(total) * u128::from(all) / u128::from(announced)) as u64
            }
            _ => total,
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
            ProgressBar::new(self.all())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_have_not_said_are_as_large_as_those_that_have() {
        let progress = Progress::of_files(10);
        assert_eq!(progress.all(), 0);
        progress.expect(100);
        assert_eq!(progress.all(), 1_000);
        progress.expect(300);
        assert_eq!(progress.all(), 2_000);
        (2..10).for_each(|_| progress.expect(100));
        assert_eq!(progress.all(), 1_200, "what they said, in the end");
        let unknown = Progress::default();
        unknown.expect(7);
        assert_eq!(unknown.all(), 7);
    }
}
