//! Time available to hide a transfer behind, from when data are produced and consumed ([SA06]: Sancho, Barker, Kerbyson,
//! Davis 2006).
//!
//! Of a concurrent program (all compute, then all exchange) datum i has
//!     t(i) = T_AP + T_AC + T_P (N_P - P(i) - 1) + T_C C(i)
//! from its last write to the post, and from completion to its first touch. What all data of a message wait for is the one
//! that has least, the worst datum. [`Kernel`] computes it from T, N and orders, as published; [`Profile`]s hold what was
//! measured: the first two terms in T_AP and T_P are the time before the post at a position of the send buffer, those in T_AC
//! and T_C the time after completion at the same position of the receive buffer.

use serde::Serialize;

use super::seen::Bounds;

/// Bytes of a word, by which data are counted.
pub const WORD_BYTES: u64 = 8;
/// Positions at which a message is looked at for what half of it has.
const POSITIONS: usize = 32;

impl Bounds {
    /// A time of which nothing is known.
    pub const UNKNOWN: Bounds = Bounds { low: 0.0, estimate: None, high: None };

    pub const fn exactly(ns: f64) -> Bounds {
        Bounds { low: ns, estimate: Some(ns), high: Some(ns) }
    }

    /// One after the other.
    #[must_use]
    pub fn plus(self, other: Bounds) -> Bounds {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        Bounds {
            low: self.low + other.low,
            estimate: sum(self.estimate, other.estimate),
            high: sum(self.high, other.high),
        }
    }

    /// The least of several; `None` of nothing.
    pub fn least(times: impl IntoIterator<Item = Bounds>) -> Option<Bounds> {
        times.into_iter().reduce(Bounds::min)
    }

    /// What half of these have at least, bound by bound.
    fn lower_half(times: &[Bounds]) -> Bounds {
        let half = |of: fn(&Bounds) -> f64| {
            let mut values: Vec<f64> = times.iter().map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            values[(values.len() - 1) / 2]
        };
        let is_estimated = times.iter().all(|time| time.estimate.is_some());
        let estimate = is_estimated.then(|| half(|time| time.estimate.unwrap_or(0.0)));
        let high = half(|time| time.high.unwrap_or(f64::INFINITY));
        Bounds::new(half(|time| time.low), estimate, high)
    }
}

/// In which order the words of an array are produced or consumed: P(i), C(i).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the first word to the last.
    Same,
    /// From the last to the first.
    Reverse,
    /// Any, and that of production says nothing of that of consumption.
    Random,
}

/// An array that is produced, sent, received and consumed, as [SA06] describes one. Times are nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// N_P = N_C.
    pub words: u64,
    pub produced: Order,
    pub consumed: Order,
    /// T_P, T_C: between two neighbouring words.
    pub produce: f64,
    pub consume: f64,
    /// T_AP: from the end of production to the send. T_AC: from the receive to the begin of consumption.
    pub after_production: f64,
    pub before_consumption: f64,
}

impl Kernel {
    /// T_AP + T_AC.
    pub fn independent(&self) -> f64 {
        self.after_production + self.before_consumption
    }

    /// t(i) where both orders are known: P(i) and C(i) are i or N - 1 - i. `None` in random order.
    pub fn at(&self, i: u64) -> Option<f64> {
        let last = self.words.saturating_sub(1);
        let place = |order| match order {
            Order::Same => Some(i),
            Order::Reverse => Some(last - i),
            Order::Random => None,
        };
        Some(self.of(place(self.produced)?, place(self.consumed)?))
    }

    /// t of the datum that is produced as the `produced`-th and consumed as the `consumed`-th, from 0 on.
    pub fn of(&self, produced: u64, consumed: u64) -> f64 {
        let left = self.words.saturating_sub(produced + 1);
        self.independent() + self.produce * left as f64 + self.consume * consumed as f64
    }

    /// The least t(i). In random order it lies between that of a datum that is written last and read first, and that of one
    /// order for both; the estimate is its median over all orders: of N points spread evenly over a rectangle of sides T_P N and
    /// T_C N, the one nearest to the corner has sqrt(2 ln 2 N T_P T_C).
    pub fn worst(&self) -> Bounds {
        let last = self.words.saturating_sub(1);
        match self.at(0) {
            // linear in i, so it is least at an end
            Some(first) => Bounds::exactly(first.min(self.at(last).unwrap_or(first))),
            None => {
                let high = self.of(0, 0).min(self.of(last, last));
                let median =
                    (2.0 * 2f64.ln() * self.words as f64 * self.produce * self.consume).sqrt();
                Bounds {
                    low: self.independent(),
                    estimate: Some((self.independent() + median).min(high)),
                    high: Some(high),
                }
            }
        }
    }
}

/// Of a pipelined program the first datum of a message has no time available: its consumer has nothing else to do. Each
/// later one travels while the earlier ones are consumed. This is the share of that which this hides: T_C / max(T_P, g), at
/// most 1, with g the least time between two messages. Times in any one unit.
pub fn hidden_behind_consumption(produce: f64, consume: f64, gap: f64) -> f64 {
    let between = produce.max(gap);
    match between > 0.0 {
        true => (consume / between).min(1.0),
        // data that are all there at once wait for nothing
        false => 1.0,
    }
}

/// A measured time at a position of a buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    /// From 0, the buffer's first byte, to 1.
    pub x: f64,
    pub time: Bounds,
}

/// What was measured of one side of a site. Sends: time from the last write to the post. Receives: from completion to the
/// first touch.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// By rising x.
    positions: Vec<Position>,
    /// Requests of which words were watched.
    pub requests: u64,
}

impl Profile {
    /// `None` without a position.
    pub fn new(mut positions: Vec<Position>, requests: u64) -> Option<Profile> {
        positions.sort_by(|a, b| a.x.total_cmp(&b.x));
        (!positions.is_empty()).then_some(Profile { positions, requests })
    }

    /// The time at `x`: between two positions on the line between them, bound by bound; outside of them that of the nearest.
    pub fn at(&self, x: f64) -> Bounds {
        let above = self.positions.partition_point(|position| position.x < x);
        let nearest = |place: usize| self.positions.get(place).copied();
        let (Some(a), Some(b)) = (above.checked_sub(1).and_then(nearest), nearest(above)) else {
            let end = nearest(above).or(self.positions.last().copied());
            return end.map_or(Bounds::UNKNOWN, |position| position.time);
        };
        let share = (x - a.x) / (b.x - a.x);
        let (a, b) = (a.time, b.time);
        let line = |a: f64, b: f64| a + (b - a) * share;
        Bounds {
            low: line(a.low, b.low),
            estimate: a.estimate.zip(b.estimate).map(|(a, b)| line(a, b)),
            high: a.high.zip(b.high).map(|(a, b)| line(a, b)),
        }
    }

    /// T_AP or T_AC: what every word of the buffer has.
    pub fn least(&self) -> Bounds {
        let times = self.positions.iter().map(|position| position.time);
        Bounds::least(times).unwrap_or(Bounds::UNKNOWN)
    }

    /// T_P or T_C: from the first word to the last, per word of a buffer of so many.
    pub fn per_word(&self, words: u64) -> Bounds {
        let steps = words.saturating_sub(1).max(1) as f64;
        let times = || self.positions.iter().map(|position| position.time);
        let greatest = |of: fn(Bounds) -> Option<f64>| {
            let all: Option<Vec<f64>> = times().map(of).collect();
            all?.into_iter().max_by(f64::total_cmp)
        };
        let least = self.least();
        let spread = |most: f64, least: f64| (most - least).max(0.0) / steps;
        let most_low = times().map(|time| time.low).fold(0.0, f64::max);
        Bounds {
            low: least.high.map_or(0.0, |least| spread(most_low, least)),
            estimate: greatest(|time| time.estimate).zip(least.estimate).map(|(a, b)| spread(a, b)),
            high: greatest(|time| time.high).map(|most| spread(most, least.low)),
        }
    }
}

/// Time available of a message: that of the worst datum, and what half of it has at least.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OfData {
    pub worst: Bounds,
    pub half: Bounds,
}

impl OfData {
    fn of(times: &[Bounds]) -> OfData {
        let worst = Bounds::least(times.iter().copied()).unwrap_or(Bounds::UNKNOWN);
        OfData { worst, half: Bounds::lower_half(times) }
    }

    /// One time for all data.
    const fn all(time: Bounds) -> OfData {
        OfData { worst: time, half: time }
    }
}

/// Time available by how finely a message is cut.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Available {
    /// Each datum is sent once it is produced and waited for where it is consumed: all of t.
    pub sent_while_produced: OfData,
    /// All is sent when the last datum is produced, and is there before the first one is consumed: T_AP + T_AC.
    pub sent_when_produced: OfData,
    /// The same, and each datum is waited for where it is consumed: T_AP + T_AC + T_C C(i).
    pub received_while_consumed: OfData,
}

impl Available {
    /// Of a concurrent program: datum i of the send buffer is datum i of the receive buffer. A side that was not measured
    /// may have any time.
    pub fn concurrent(send: Option<&Profile>, receive: Option<&Profile>) -> Available {
        let (before, after) = (Side(send), Side(receive));
        let positions: Vec<f64> = before.positions().chain(after.positions()).collect();
        let even = (0..=POSITIONS).map(|place| place as f64 / POSITIONS as f64);
        let of = |time: &dyn Fn(f64) -> Bounds| {
            let all: Vec<Bounds> = even.clone().map(time).collect();
            let measured = positions.iter().map(|&x| time(x));
            let worst = Bounds::least(all.iter().copied().chain(measured));
            OfData { worst: worst.unwrap_or(Bounds::UNKNOWN), ..OfData::of(&all) }
        };
        Available {
            sent_while_produced: of(&|x| before.at(x).plus(after.at(x))),
            sent_when_produced: OfData::all(before.least().plus(after.least())),
            received_while_consumed: of(&|x| before.least().plus(after.at(x))),
        }
    }

    /// Of a pipelined program: the first datum has none that depends on the array; work that does not, T_AP + T_AC, is all
    /// that there may be.
    pub fn pipelined(send: Option<&Profile>, receive: Option<&Profile>) -> Available {
        let independent = Side(send).least().plus(Side(receive).least());
        let first = OfData::all(Bounds { low: 0.0, estimate: Some(0.0), ..independent });
        Available {
            sent_while_produced: first,
            sent_when_produced: first,
            received_while_consumed: first,
        }
    }

    /// Where it is not known which of the two a program is.
    pub fn either(send: Option<&Profile>, receive: Option<&Profile>) -> Available {
        let at_most = Available::concurrent(send, receive);
        let open = |of: OfData| {
            let open = |time: Bounds| Bounds { low: 0.0, estimate: None, ..time };
            OfData { worst: open(of.worst), half: open(of.half) }
        };
        Available {
            sent_while_produced: open(at_most.sent_while_produced),
            sent_when_produced: open(at_most.sent_when_produced),
            received_while_consumed: open(at_most.received_while_consumed),
        }
    }

    /// From the coarsest to the finest.
    pub fn by_granularity(&self) -> [&OfData; 3] {
        [&self.sent_when_produced, &self.received_while_consumed, &self.sent_while_produced]
    }
}

/// One side of a pair of sites.
struct Side<'a>(Option<&'a Profile>);

impl Side<'_> {
    fn at(&self, x: f64) -> Bounds {
        self.0.map_or(Bounds::UNKNOWN, |profile| profile.at(x))
    }

    fn least(&self) -> Bounds {
        self.0.map_or(Bounds::UNKNOWN, Profile::least)
    }

    fn positions(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.into_iter().flat_map(|profile| &profile.positions).map(|position| position.x)
    }
}

#[cfg(test)]
mod tests;
