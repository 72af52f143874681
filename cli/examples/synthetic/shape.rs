//! What is asked for: who talks to whom, and when what happens. All ranks of a made run have one clock and one pace.

/// Between the begin of a step on a rank and its wait, for each request of the step.
const COMPUTE_NS: i64 = 1_500;
/// Of a step, for each of its requests; with [`STEP_NS`] it ends behind the longest wait of the latest rank.
const STEP_PER_REQUEST_NS: i64 = 2_000;
const STEP_NS: i64 = 2_000;
/// By which a step with a collective is longer.
const COLLECTIVE_NS: i64 = 3_000;
/// A rank is late by less than that.
const JITTER_NS: i64 = 600;

/// What the program marks.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Marks {
    /// The begin of each step, by level 2.
    Steps,
    /// A region around each step, and another around its wait.
    Regions,
}

pub struct Shape {
    pub ranks: i64,
    pub requests: i64,
    /// Requests of a step.
    pub together: i64,
    /// Distinct ones among the requests; even.
    pub operations: i64,
    /// Whom a rank sends to, and so whom it receives from.
    pub directions: Vec<Direction>,
    pub ranks_per_node: i64,
    pub steps_a_collective: Option<i64>,
    pub slow_ranks: Vec<i64>,
    pub slow_percent: i64,
    pub marks: Option<Marks>,
}

/// A neighbour in a periodic grid whose fastest dimension counts ranks.
#[derive(Clone, Copy)]
pub struct Direction {
    /// Ranks between neighbours of this dimension.
    stride: i64,
    /// Ranks of this dimension.
    extent: i64,
    forward: bool,
}

impl Direction {
    /// The rank that `rank` sends to.
    pub fn to(self, rank: i64) -> i64 {
        self.neighbor(rank, self.forward)
    }

    /// The rank that sends to `rank`.
    pub fn from(self, rank: i64) -> i64 {
        self.neighbor(rank, !self.forward)
    }

    fn neighbor(self, rank: i64, forward: bool) -> i64 {
        let place = rank / self.stride % self.extent;
        let step = if forward { 1 } else { self.extent - 1 };
        rank + ((place + step) % self.extent - place) * self.stride
    }
}

/// Of a ring, or of a grid of so many dimensions, which are as equal as they can be.
pub fn directions(ranks: i64, dimensions: Option<u8>) -> Vec<Direction> {
    let Some(dimensions) = dimensions else {
        return vec![Direction { stride: 1, extent: ranks, forward: true }];
    };
    let (mut left, mut stride) = (ranks, 1);
    let mut directions = Vec::new();
    for dimension in (1..=u32::from(dimensions)).rev() {
        let ideal = (left as f64).powf(1.0 / f64::from(dimension)).round() as i64;
        let extent = (1..=ideal).rev().find(|extent| left % extent == 0).unwrap_or(1);
        let extent = if dimension == 1 { left } else { extent };
        // nobody is his own neighbour
        if extent > 1 {
            let way = |forward| Direction { stride, extent, forward };
            directions.extend([way(true), way(false)]);
        }
        stride *= extent;
        left /= extent;
    }
    if directions.is_empty() {
        directions.push(Direction { stride: 1, extent: ranks, forward: true });
    }
    directions
}

/// The moments of a step on a rank.
pub struct Step {
    pub begin_ns: i64,
    pub wait_begin_ns: i64,
    pub wait_end_ns: i64,
    /// When all ranks leave the collective that ends it.
    pub collective_end_ns: Option<i64>,
}

impl Shape {
    pub fn nodes(&self) -> i64 {
        (self.ranks + self.ranks_per_node - 1) / self.ranks_per_node
    }

    /// The node of a rank, by name.
    pub fn host(&self, rank: i64) -> String {
        match self.nodes() {
            1 => "host".to_owned(),
            _ => format!("host{:04}", rank / self.ranks_per_node),
        }
    }

    pub fn steps(&self) -> i64 {
        (self.requests + self.together - 1) / self.together
    }

    fn collectives_before(&self, step: i64) -> i64 {
        self.steps_a_collective.map_or(0, |every| step / every)
    }

    /// What a slow rank computes longer in a step.
    fn extra_ns(&self) -> i64 {
        if self.slow_ranks.is_empty() {
            return 0;
        }
        // a step without its posts and its wait
        let computed_ns = 1_875 * self.together + 700;
        computed_ns * self.slow_percent / 100
    }

    /// When a step begins, before any rank is late.
    pub fn begin_ns(&self, step: i64) -> i64 {
        let length_ns = STEP_PER_REQUEST_NS * self.together + STEP_NS + self.extra_ns();
        step * length_ns + self.collectives_before(step) * COLLECTIVE_NS
    }

    pub fn step(&self, rank: i64, step: i64) -> Step {
        // ranks are a little early or late, and waits long enough to be asked what they waited for
        let late_ns = (rank * 7 + (step + 1) * 13) % JITTER_NS;
        let slow_ns = if self.slow_ranks.contains(&rank) { self.extra_ns() } else { 0 };
        let begin_ns = self.begin_ns(step) + late_ns;
        let wait_begin_ns = begin_ns + COMPUTE_NS * self.together;
        // who does not compute longer waits for those who do
        let wait_ns = 800 + (step * self.together) % 1_000 + self.extra_ns();
        let has_collective = self.collectives_before(step + 1) > self.collectives_before(step);
        Step {
            begin_ns: begin_ns + slow_ns,
            wait_begin_ns: wait_begin_ns + slow_ns,
            wait_end_ns: wait_begin_ns + wait_ns,
            collective_end_ns: has_collective.then(|| self.begin_ns(step + 1) - 500),
        }
    }
}
