//! Eligible requests of an A/B run by call site, pair of slots and arm: how long they were exposed, and how the program got on
//! behind them.

use std::collections::BTreeMap;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::windows::{OverlapWindow, Shares};

use super::distances::Distances;
use lapscope_data::model::Nanos;

/// A request that is injected for where its slot is on. `S` says where it was posted.
#[derive(Debug, Clone, Copy)]
pub struct Posted<S> {
    pub site: S,
    pub is_on: bool,
    /// When it was posted, in nanoseconds of CLOCK_REALTIME.
    pub moment: i64,
    /// The begin of the call that completed it.
    pub until: Option<i64>,
    /// In the post and in its share of the call that completed it; `None`: it is not known to have been completed.
    pub exposed: Option<f64>,
}

/// Requests of a site in one slot.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ArmCell {
    /// That were completed.
    pub requests: u64,
    /// Sum over these.
    pub exposed_ns: f64,
    /// That were not the last of their rank.
    pub steps: u64,
    /// From the post of each to the rank's next, a sum over these.
    pub step_ns: f64,
}

impl ArmCell {
    fn add(&mut self, other: &ArmCell) {
        self.requests += other.requests;
        self.exposed_ns += other.exposed_ns;
        self.steps += other.steps;
        self.step_ns += other.step_ns;
    }
}

/// The slots of a pair: off, on.
pub type CellPair = [ArmCell; 2];

/// The requests of a rank, or of a run, in which sites are numbered as they come.
#[derive(Debug)]
pub struct Arms<S> {
    slot: Nanos,
    sites: Vec<S>,
    index: FxHashMap<S, u32>,
    /// For each site, by the number of the pair.
    cells: Vec<FxHashMap<i64, CellPair>>,
    distances: Distances,
    posts: Vec<ArmPost>,
    windows: Vec<OverlapWindow>,
    shares: Shares,
}

#[derive(Debug, Clone, Copy)]
struct ArmPost {
    moment: i64,
    site: u32,
    is_on: bool,
}

impl<S: Copy + Eq + Hash> Arms<S> {
    /// `slot` is the length of a slot.
    pub fn new(slot: Nanos) -> Self {
        Arms {
            slot,
            sites: Vec::new(),
            index: FxHashMap::default(),
            cells: Vec::new(),
            distances: Distances::default(),
            posts: Vec::new(),
            windows: Vec::new(),
            shares: Shares::default(),
        }
    }

    pub fn slot(&self) -> Nanos {
        self.slot
    }

    /// Where its requests were posted.
    pub fn sites(&self) -> impl Iterator<Item = &S> {
        self.sites.iter()
    }

    /// Adds a request of the one rank that these are of.
    pub fn add(&mut self, request: Posted<S>) {
        let site = self.site(request.site);
        let Posted { is_on, moment, .. } = request;
        self.posts.push(ArmPost { moment, site, is_on });
        if let Some(end) = request.until.filter(|_| is_on) {
            self.windows.push(OverlapWindow { begin: moment, end, site });
        }
        if let Some(exposed_ns) = request.exposed {
            let cell = ArmCell { requests: 1, exposed_ns, ..ArmCell::default() };
            self.cell(site, moment, is_on).add(&cell);
        }
    }

    fn site(&mut self, site: S) -> u32 {
        let (sites, cells) = (&mut self.sites, &mut self.cells);
        *self.index.entry(site).or_insert_with(|| {
            sites.push(site);
            cells.push(FxHashMap::default());
            (sites.len() - 1) as u32
        })
    }

    /// The arm is what the request says, also where the clock of the recorder and that of the row see a slot's end differently.
    fn cell(&mut self, site: u32, moment: i64, is_on: bool) -> &mut ArmCell {
        let pair = moment.div_euclid(2 * self.slot.0);
        &mut self.cells[site as usize].entry(pair).or_default()[usize::from(is_on)]
    }

    /// All requests were added; now it is known which post followed on which.
    pub fn finish(mut self) -> Self {
        let mut posts = std::mem::take(&mut self.posts);
        posts.sort_unstable_by_key(|post| post.moment);
        for two in posts.windows(2) {
            let (post, next) = (two[0], two[1]);
            let step_ns = (next.moment - post.moment) as f64;
            let cell = ArmCell { steps: 1, step_ns, ..ArmCell::default() };
            self.cell(post.site, post.moment, post.is_on).add(&cell);
        }
        let mut last = vec![None; self.sites.len()];
        for post in &posts {
            if let Some(before) = last[post.site as usize].replace(post.moment) {
                self.distances.add(post.moment - before);
            }
        }
        self.shares = Shares::measure(&std::mem::take(&mut self.windows));
        self
    }

    /// Adds those of another rank, whose slots are the same; `name` says what its sites are called here.
    pub fn merge<T>(&mut self, other: &Arms<T>, name: impl Fn(&T) -> S) {
        let place: Vec<u32> = other.sites.iter().map(|site| self.site(name(site))).collect();
        for (&site, cells) in place.iter().zip(&other.cells) {
            for (&pair, cells) in cells {
                let sum = self.cells[site as usize].entry(pair).or_default();
                sum.iter_mut().zip(cells).for_each(|(sum, cell)| sum.add(cell));
            }
        }
        self.shares.merge(&other.shares, |site| place[site as usize]);
        self.distances.merge(&other.distances);
    }

    /// The pairs in which a site has requests, by their numbers; in order, as sums of floating-point numbers must not depend
    /// on that of a hash table.
    pub fn of_site(&self, site: S) -> BTreeMap<i64, CellPair> {
        let cells = self.index.get(&site).map(|&site| &self.cells[site as usize]);
        cells.into_iter().flatten().map(|(&pair, &cells)| (pair, cells)).collect()
    }

    /// Costs that are laid to the sites posted last, shared out to all whose requests were pending.
    pub fn share_out(&self, laid: &BTreeMap<S, f64>) -> BTreeMap<S, f64>
    where
        S: Ord,
    {
        let numbered = laid.iter().filter_map(|(site, cost)| Some((*self.index.get(site)?, *cost)));
        let shared = self.shares.share_out(&numbered.collect());
        shared.into_iter().map(|(site, cost)| (self.sites[site as usize], cost)).collect()
    }

    /// How long an iteration usually is: from one post of a site to its next on the same rank.
    pub fn iteration(&self) -> Option<Nanos> {
        self.distances.usual()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i64 = 1_000;

    fn posted(site: u8, is_on: bool, moment: i64) -> Posted<u8> {
        Posted { site, is_on, moment, until: None, exposed: Some(10.0) }
    }

    /// Slots of 100 us, so pairs of 200. Steps: of a in pair 5 on 30, of b off 70 in pair 5, of a off 200 in pair 6; the last
    /// post has none.
    #[test]
    fn steps_go_to_the_post_before() {
        let mut arms = Arms::new(Nanos(100 * US));
        let moments = [1_300, 1_030, 1_000, 1_100].map(|us| us * US);
        arms.add(posted(b'a', true, moments[0]));
        arms.add(posted(b'b', false, moments[1]));
        arms.add(posted(b'a', true, moments[2]));
        arms.add(posted(b'a', false, moments[3]));
        let arms = arms.finish();
        let cell = |requests, steps, us| ArmCell {
            requests,
            exposed_ns: 10.0 * requests as f64,
            steps,
            step_ns: (us * US) as f64,
        };
        let none = ArmCell::default();
        let of_a =
            BTreeMap::from([(5, [cell(1, 1, 200), cell(1, 1, 30)]), (6, [none, cell(1, 0, 0)])]);
        assert_eq!(arms.of_site(b'a'), of_a);
        assert_eq!(arms.of_site(b'b'), BTreeMap::from([(5, [cell(1, 1, 70), none])]));
        assert_eq!(arms.of_site(b'c'), BTreeMap::new());
    }

    /// Three posts at once every 10 ms, and once the program stands still for a second.
    #[test]
    fn an_iteration_is_neither_a_burst_nor_a_stall() {
        let mut arms = Arms::new(Nanos(100 * US));
        for at in 0..60 {
            let stall = if at < 30 { 0 } else { 1_000_000 };
            for post in 0..3 {
                arms.add(posted(b'a', true, (at * 10_000 + stall + post) * US));
            }
        }
        let iteration = arms.finish().iteration().unwrap().0;
        assert!((9_000 * US..11_000 * US).contains(&iteration), "{iteration}");
    }

    #[test]
    fn ranks_are_added_up() {
        let mut one = Arms::new(Nanos(100 * US));
        one.add(posted(b'a', true, 5 * US));
        let one = one.finish();
        let mut run: Arms<char> = Arms::new(Nanos(100 * US));
        run.merge(&one, |site| char::from(*site));
        run.merge(&one, |site| char::from(*site));
        let on = ArmCell { requests: 2, exposed_ns: 20.0, ..ArmCell::default() };
        assert_eq!(run.of_site('a'), BTreeMap::from([(0, [ArmCell::default(), on])]));
    }
}
