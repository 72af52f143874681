//! For which requests tests were made.
//!
//! The recorder lays tests to the site of the request posted last, but they move whatever is under way, and the call that
//! completes several requests gets shorter for all of them. So what tests cost is shared out as their gain is: equally
//! to the requests that were pending.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// From the post of a request that tests were made for to the call that completed it. Sites are numbers.
#[derive(Debug, Clone, Copy)]
pub struct OverlapWindow {
    pub begin: i64,
    pub end: i64,
    pub site: u32,
}

/// Time in which requests were pending, each instant once: by the site posted last, and by those whose requests were pending.
#[derive(Debug, Clone, Default)]
pub struct Shares(FxHashMap<(u32, u32), f64>);

impl Shares {
    /// Measures one rank's windows.
    pub fn measure(windows: &[OverlapWindow]) -> Shares {
        let mut events: Vec<(i64, bool, u32)> = Vec::with_capacity(2 * windows.len());
        for window in windows.iter().filter(|window| window.begin < window.end) {
            events.push((window.end, false, window.site));
            events.push((window.begin, true, window.site));
        }
        events.sort_unstable();
        let mut shares = Shares::default();
        let mut pending: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut last, mut before) = (0, 0);
        for (moment, is_post, site) in events {
            shares.add(last, (moment - before) as f64, &pending);
            before = moment;
            if is_post {
                last = site;
                *pending.entry(site).or_default() += 1;
            } else if let Some(left) = pending.get_mut(&site) {
                *left -= 1;
            }
            pending.retain(|_, count| *count > 0);
        }
        shares
    }

    fn add(&mut self, last: u32, time: f64, pending: &BTreeMap<u32, u32>) {
        let all: u32 = pending.values().sum();
        for (&site, &count) in pending.iter().filter(|_| time > 0.0) {
            *self.0.entry((last, site)).or_default() += time * f64::from(count) / f64::from(all);
        }
    }

    /// Adds those of another rank; `place` is what its sites are called here.
    pub fn merge(&mut self, other: &Shares, place: impl Fn(u32) -> u32) {
        for (&(last, site), time) in &other.0 {
            *self.0.entry((place(last), place(site))).or_default() += time;
        }
    }

    /// What was laid to the sites posted last, shared out. What is laid to a site with no window stays there.
    pub fn share_out(&self, laid: &BTreeMap<u32, f64>) -> BTreeMap<u32, f64> {
        let mut rows: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
        for (&(last, site), &time) in &self.0 {
            rows.entry(last).or_default().insert(site, time);
        }
        let mut shared = BTreeMap::new();
        for (&last, &amount) in laid {
            let alone = BTreeMap::from([(last, 1.0)]);
            let row = rows.get(&last).unwrap_or(&alone);
            let whole: f64 = row.values().sum();
            for (&site, time) in row {
                *shared.entry(site).or_default() += amount * time / whole;
            }
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Site 0 is pending from 0 to 30, site 1 from 10 to 40: so 10 for 0 alone, 20 for both with 1 posted last, 10 for 1.
    #[test]
    fn each_instant_is_shared_by_those_that_are_pending() {
        let windows = [
            OverlapWindow { begin: 0, end: 30, site: 0 },
            OverlapWindow { begin: 10, end: 40, site: 1 },
        ];
        let shares = Shares::measure(&windows);
        assert_eq!(
            shares.0,
            FxHashMap::from_iter([((0, 0), 10.0), ((1, 0), 10.0), ((1, 1), 20.0)])
        );
        let shared = shares.share_out(&BTreeMap::from([(0, 5.0), (1, 60.0), (2, 7.0)]));
        assert_eq!(shared, BTreeMap::from([(0, 5.0 + 20.0), (1, 40.0), (2, 7.0)]));
    }

    /// Two requests of one site count twice.
    #[test]
    fn requests_share_not_sites() {
        let window = |site| OverlapWindow { begin: 5, end: 35, site };
        let shares = Shares::measure(&[window(0), window(0), window(1)]);
        assert_eq!(shares.0, FxHashMap::from_iter([((1, 0), 20.0), ((1, 1), 10.0)]));
    }
}
