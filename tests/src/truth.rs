//! What a program with a known overlap printed about itself: `tests/apps/overlap_*.c`.

use std::collections::BTreeMap;

/// Lines of a name and nanoseconds.
#[derive(Debug, Default)]
pub struct Truth {
    lines: BTreeMap<String, Vec<i64>>,
}

impl Truth {
    /// Lines of others, such as a library's warnings, are left out.
    pub fn parse(printed: &str) -> Self {
        let named = |line: &str| {
            let mut words = line.split_whitespace();
            let name = words.next()?.to_owned();
            Some((name, words.map(|word| word.parse().ok()).collect::<Option<_>>()?))
        };
        Self { lines: printed.lines().filter_map(named).collect() }
    }

    /// # Panics
    /// When the program did not print it.
    pub fn values(&self, name: &str) -> &[i64] {
        self.lines.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.lines.keys()))
    }

    pub fn sum(&self, name: &str) -> f64 {
        self.values(name).iter().sum::<i64>() as f64
    }

    /// The value below which one in twenty is: what lapscope takes for undisturbed.
    pub fn low_end(&self, name: &str) -> f64 {
        let mut values = self.values(name).to_vec();
        values.sort_unstable();
        let place = 0.05 * values.len().saturating_sub(1) as f64;
        let (below, above) = (values[place as usize] as f64, values[place.ceil() as usize] as f64);
        below + (above - below) * place.fract()
    }

    pub fn median(&self, name: &str) -> f64 {
        median(self.values(name).iter().map(|&ns| ns as f64))
    }
}

/// The middle one.
///
/// # Panics
/// When there is none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One side of `overlap_pair.c`: its requests as the program itself saw them, in nanoseconds.
#[derive(Debug)]
pub struct Side {
    /// What a message takes without a window, undisturbed.
    pub transfer: f64,
    /// What it takes usually, disturbances included: longer on a busy machine.
    pub usual_transfer: f64,
    pub requests: Vec<Request>,
}

#[derive(Debug)]
pub struct Request {
    /// Computed between the post and the moment when it was known to be complete.
    pub computed: f64,
    /// The rest of that time: in MPI.
    pub inside: f64,
    /// In MPI_Wait.
    pub waited: f64,
    /// Of that, before the other side had posted.
    pub late_partner: f64,
    /// Of that, while the other side had posted and was computing, where this side did wait for it to come back.
    pub no_remote_progress: f64,
    /// Life of the request, from its post on.
    pub life: f64,
}

impl Side {
    /// `name` is `send` or `recv`.
    pub fn of_pair(truth: &Truth, name: &str) -> Self {
        let column = |side: &str, what: &str| -> Vec<f64> {
            truth.values(&format!("{side}_{what}")).iter().map(|&ns| ns as f64).collect()
        };
        let other = if name == "send" { "recv" } else { "send" };
        let (post, wait, done) = (column(name, "post"), column(name, "wait"), column(name, "done"));
        let computed = column(name, "computed");
        let (partner_post, partner_wait) = (column(other, "post"), column(other, "wait"));
        let requests = (0..post.len())
            .map(|i| {
                let life = done[i] - post[i];
                let waited = done[i] - wait[i].min(done[i]);
                let until = |moment: f64| (moment.min(done[i]) - wait[i]).clamp(0.0, waited);
                let late_partner = until(partner_post[i]);
                let needed = partner_wait[i] < done[i];
                let back = if needed { until(partner_wait[i]) } else { 0.0 };
                Request {
                    computed: computed[i],
                    inside: life - computed[i],
                    waited,
                    late_partner,
                    no_remote_progress: (back - late_partner).max(0.0),
                    life,
                }
            })
            .collect();
        let usual_transfer = truth.median("transfer");
        Self { transfer: truth.low_end("transfer"), usual_transfer, requests }
    }

    /// Sum over requests as a fraction of their transfer times.
    fn fraction(&self, of: impl Fn(&Request) -> f64) -> f64 {
        let each = self.requests.iter().map(|r| (of(r) / self.transfer).clamp(0.0, 1.0));
        each.sum::<f64>() / self.requests.len() as f64
    }

    /// What so much computation could have hidden: min(X, c) / X.
    pub fn possible(&self) -> f64 {
        self.fraction(|r| r.computed)
    }

    /// (X - m) / X, no more than possible, m being the time inside MPI.
    pub fn achieved(&self) -> f64 {
        self.fraction(|r| (self.transfer - r.inside).min(r.computed))
    }

    /// The same with the transfer time that leaves the most: any between undisturbed and usual may be that of a request.
    pub fn achieved_at_most(&self) -> f64 {
        let each = self.requests.iter().map(|r| {
            let part = |transfer: f64| (transfer - r.inside).min(r.computed) / transfer;
            part(self.transfer).max(part(self.usual_transfer)).clamp(0.0, 1.0)
        });
        each.sum::<f64>() / self.requests.len() as f64
    }

    /// The time in MPI_Wait by cause, each with the name that lapscope has for it: what could have been hidden in the
    /// request's own window is what no partner is to blame for, up to the transfer time and to what was computed.
    pub fn causes(&self) -> [(&'static str, f64); 4] {
        self.causes_with(|r| r.no_remote_progress)
    }

    /// The same with no more of `no_remote_progress` than it is for certain: a transfer that the partner takes part in only
    /// at its begin, or that copies out of its memory without it, may have filled the rest.
    pub fn causes_for_certain(&self) -> [(&'static str, f64); 4] {
        let beyond = |r: &Request| (r.waited - r.late_partner - self.transfer).max(0.0);
        self.causes_with(|r| r.no_remote_progress.min(beyond(r)))
    }

    fn causes_with(&self, outside: impl Fn(&Request) -> f64) -> [(&'static str, f64); 4] {
        let left = |r: &Request| r.waited - r.late_partner - outside(r);
        let own = |r: &Request| left(r).min(self.transfer).min(r.computed);
        [
            ("late_partner", self.sum(|r| r.late_partner)),
            ("no_remote_progress", self.sum(&outside)),
            ("no_local_progress", self.sum(own)),
            ("transfer", self.sum(|r| left(r) - own(r))),
        ]
    }

    pub fn sum(&self, of: impl Fn(&Request) -> f64) -> f64 {
        self.requests.iter().map(of).sum()
    }

    pub fn median(&self, of: impl Fn(&Request) -> f64) -> f64 {
        median(self.requests.iter().map(of))
    }
}
