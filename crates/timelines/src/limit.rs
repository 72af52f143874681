//! How large a timeline becomes, and which ones nobody could look at.

use std::io::{self, Write};

use anyhow::{bail, Result};
use lapscope_data::text::units;
use lapscope_trace::{RankTrace, Trace};

use crate::shown::ShownWindows;

/// Viewers in a browser open files of 2 to 4 GB at most, and are slow long before.
pub const LARGEST: u64 = 1 << 30;

/// Bytes that a format takes, about.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    pub call: u64,
    /// In addition to the call that posts it.
    pub request: u64,
}

impl Cost {
    /// Bytes of so many rows, of which it is not known what they are of.
    fn of_rows(self, rows: u64) -> u64 {
        // as many requests as other calls
        rows.saturating_mul(2 * self.call + self.request) / 2
    }

    /// Bytes of what is shown of a run, about.
    pub fn estimate(self, trace: &Trace, shown: &ShownWindows, is_whole: bool) -> u64 {
        if is_whole {
            return shown.places().map(|place| self.of_rank(trace, shown, place)).sum();
        }
        // rows are not there: a share of them as of time and ranks
        let share: f64 = shown.places().map(|place| share(&trace.ranks[place], shown, place)).sum();
        let rows = trace.roster.rows() as f64 * share / trace.ranks.len().max(1) as f64;
        self.of_rows(rows as u64)
    }

    fn of_rank(self, trace: &Trace, shown: &ShownWindows, place: usize) -> u64 {
        let rank = &trace.ranks[place];
        let touches = |begin: i64, duration: i64| shown.touches(place, begin, begin + duration);
        let calls = rank.calls.iter().filter(|call| touches(call.begin, call.duration)).count();
        let others = rank.other_calls.iter().filter(|call| touches(call.begin, call.duration));
        let endpoints = rank.endpoints.iter().filter(|endpoint| {
            let is_request = rank.operations[endpoint.operation as usize].is_request;
            let window = endpoint.post.or_zero() + endpoint.window.or_zero();
            is_request && touches(endpoint.begin, window)
        });
        let requests = endpoints.count() as u64;
        self.call * (calls as u64 + others.count() as u64 + requests) + self.request * requests
    }

    /// # Errors
    /// So many rows give certainly more than a viewer opens.
    pub fn check_rows(self, rows: u64) -> Result<()> {
        check(rows.saturating_mul(self.call))
    }
}

/// The share of a rank's time that is shown.
fn share(rank: &RankTrace, shown: &ShownWindows, place: usize) -> f64 {
    let Some((from, to)) = shown.window(place) else { return 0.0 };
    let length = (rank.end - rank.init_end).max(1);
    let (from, to) = (from.max(rank.init_end), to.min(rank.end));
    (to - from).max(0) as f64 / length as f64
}

/// # Errors
/// A file of so many bytes is larger than viewers open; what to do is said.
pub fn check(bytes: u64) -> Result<()> {
    if bytes > LARGEST {
        bail!(
            "the timeline would take about {}, and viewers open {} at most: take a stretch of the run (--step, --from, --to) \
             or some of its ranks (--ranks)",
            units::bytes(bytes),
            units::bytes(LARGEST)
        );
    }
    Ok(())
}

/// Counts what goes through, and stops where estimates were wrong.
#[derive(Debug)]
pub struct CountingWriter<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> CountingWriter<W> {
    pub fn new(out: W) -> CountingWriter<W> {
        CountingWriter { out, bytes: 0 }
    }

    /// # Errors
    /// It cannot be written, or is more than viewers open.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        check(self.bytes)?;
        Ok(self.out.write_all(bytes)?)
    }

    /// # Errors
    /// What is left cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Cost = Cost { call: 50, request: 60 };

    #[test]
    fn what_nobody_can_open_is_refused_with_the_way_out() {
        COST.check_rows(20_000_000).unwrap();
        let said = COST.check_rows(30_000_000).unwrap_err().to_string();
        assert!(said.contains("1.40 GiB") && said.contains("1.00 GiB at most"), "{said}");
        assert!(
            ["--step", "--from", "--to", "--ranks"].iter().all(|it| said.contains(it)),
            "{said}"
        );
        assert_eq!(COST.of_rows(10), 10 * (50 + 30));
    }

    #[test]
    fn what_estimates_missed_is_stopped() {
        let mut out = CountingWriter::new(io::sink());
        out.put(&[0; 10]).unwrap();
        out.bytes = LARGEST;
        assert!(out.put(&[0]).is_err());
    }
}
