//! Time available to hide a transfer behind, from when data are produced and consumed ([SA06]: Sancho, Barker, Kerbyson,
//! Davis 2006).
//!
//! Of a concurrent program (all compute, then all exchange) datum i has
//!     t(i) = T_AP + T_AC + T_P (N_P - P(i) - 1) + T_C C(i)
//! from its last write to the post, and from completion to its first touch. What all data of a message wait for is the one
//! that has least, the worst datum. A [`Profile`] holds T_AP, T_P and P of a sender, or T_AC, T_C
//! and C of a receiver, as published or as estimated from a run. Datum i of the send buffer is datum i of the receive buffer.

use serde::Serialize;

use super::bounds::ConfidenceBounds;
use super::order::AccessOrder;
use super::site::SiteReach;

impl ConfidenceBounds {
    /// A time of which nothing is known.
    pub const UNKNOWN: ConfidenceBounds = ConfidenceBounds { low: 0.0, estimate: None, high: None };

    pub const fn exactly(ns: f64) -> ConfidenceBounds {
        ConfidenceBounds { low: ns, estimate: Some(ns), high: Some(ns) }
    }

    /// One after the other.
    #[must_use]
    pub fn plus(self, other: ConfidenceBounds) -> ConfidenceBounds {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        ConfidenceBounds {
            low: self.low + other.low,
            estimate: sum(self.estimate, other.estimate),
            high: sum(self.high, other.high),
        }
    }

    /// The least of several; `None` of nothing.
    pub fn least(times: impl IntoIterator<Item = ConfidenceBounds>) -> Option<ConfidenceBounds> {
        times.into_iter().reduce(ConfidenceBounds::min)
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

/// When the data of one side's buffers are ready or needed. Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// P or C.
    pub order: AccessOrder,
    /// T_AP or T_AC: what all data have, from the end of production to the post, or from completion to the begin of
    /// consumption.
    pub all: ConfidenceBounds,
    /// What half of them have at least.
    pub half: ConfidenceBounds,
    /// T_P or T_C: from a word to the next in the order of production or consumption; `None`: not known.
    pub word: Option<ConfidenceBounds>,
}

impl Profile {
    /// The profile of a side that was not measured.
    pub const UNKNOWN: Profile = Profile {
        order: AccessOrder::Unknown,
        all: ConfidenceBounds::UNKNOWN,
        half: ConfidenceBounds::UNKNOWN,
        word: None,
    };

    /// The profile of a side whose times are known.
    pub fn exactly(order: AccessOrder, all: f64, word: f64, words: u64) -> Profile {
        let half = all + word * last(words) / 2.0;
        Profile {
            order,
            all: ConfidenceBounds::exactly(all),
            half: ConfidenceBounds::exactly(half),
            word: Some(ConfidenceBounds::exactly(word)),
        }
    }

    /// `None` where too little was seen.
    pub fn from_site(site: &SiteReach) -> Option<Profile> {
        let all = site.all?;
        let half =
            site.half.unwrap_or(ConfidenceBounds { low: all.low, ..ConfidenceBounds::UNKNOWN });
        Some(Profile { order: site.order.order, all, half, word: site.word })
    }

    /// From the first datum to the last: T_P (N_P - 1), or T_C (N_C - 1).
    fn spread(&self, words: u64) -> Option<ConfidenceBounds> {
        match self.order {
            AccessOrder::AtOnce => Some(ConfidenceBounds::exactly(0.0)),
            AccessOrder::Unknown => None,
            _ => Some(self.word?.map(|word| word * last(words))),
        }
    }

    /// The time of the datum of which `share` of all are consumed before it, or produced behind it.
    fn at(&self, share: f64, words: u64) -> Option<ConfidenceBounds> {
        if share == 0.0 {
            return Some(self.all); // however far the last one is
        }
        Some(self.all.plus(self.spread(words)?.map(|spread| spread * share)))
    }
}

/// Steps from the first word to the last.
fn last(words: u64) -> f64 {
    words.saturating_sub(1) as f64
}

/// A sender and a receiver of so many words.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    pub send: Profile,
    pub receive: Profile,
    /// N_P = N_C.
    pub words: u64,
}

impl Transfer {
    /// T_AP + T_AC, the independent work.
    pub fn independent(&self) -> ConfidenceBounds {
        self.send.all.plus(self.receive.all)
    }

    /// t(i) at the share `x` of the buffer, 0 its first word and 1 its last; `None` where an order is not known.
    pub fn at(&self, x: f64) -> Option<ConfidenceBounds> {
        let place = |order| match order {
            AccessOrder::Same => Some(x),
            AccessOrder::Reverse => Some(1.0 - x),
            AccessOrder::AtOnce => Some(0.0),
            AccessOrder::Random | AccessOrder::Unknown => None,
        };
        let behind = 1.0 - place(self.send.order)?;
        let before = self.send.at(behind, self.words)?;
        Some(before.plus(self.receive.at(place(self.receive.order)?, self.words)?))
    }

    /// Each datum sent once it is produced and waited for where it is consumed: all of t.
    fn all_of_it(&self) -> DataTimes {
        match (self.at(0.0), self.at(0.5), self.at(1.0)) {
            // linear in i
            (Some(first), Some(half), Some(last)) => DataTimes { worst: first.min(last), half },
            _ => self.in_random_order().unwrap_or_else(|| self.in_unknown_order()),
        }
    }

    /// Where one order says nothing of the other, the worst datum lies between one that is written last and read first, and
    /// that of one order for both. Its estimate is the median over all orders: of N points spread evenly over a rectangle of
    /// sides T_P N and T_C N, the one nearest to the corner has sqrt(2 ln 2 N T_P T_C).
    fn in_random_order(&self) -> Option<DataTimes> {
        let (produce, consume) = (self.send.spread(self.words)?, self.receive.spread(self.words)?);
        let independent = self.independent();
        let nearest =
            |(a, b): (f64, f64)| (2.0 * 2f64.ln() * a * b / self.words as f64).sqrt().min(a.min(b));
        let least = produce.min(consume);
        let above = ConfidenceBounds {
            low: 0.0,
            estimate: produce.estimate.zip(consume.estimate).map(nearest),
            high: least.high,
        };
        let half = produce.plus(consume).map(|spread| spread / 2.0);
        Some(DataTimes { worst: independent.plus(above), half: independent.plus(half) })
    }

    /// All data have what all have on both sides; half of them what half have on one side and all on the other.
    fn in_unknown_order(&self) -> DataTimes {
        let at_least = |low| ConfidenceBounds { low, ..ConfidenceBounds::UNKNOWN };
        let (send, receive) = (&self.send, &self.receive);
        let half = (send.half.low + receive.all.low).max(send.all.low + receive.half.low);
        DataTimes { worst: at_least(self.independent().low), half: at_least(half) }
    }
}

/// Time available of a message: that of the worst datum, and what half of it has at least.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DataTimes {
    pub worst: ConfidenceBounds,
    pub half: ConfidenceBounds,
}

impl DataTimes {
    /// One time for all data.
    const fn all(time: ConfidenceBounds) -> DataTimes {
        DataTimes { worst: time, half: time }
    }
}

/// Time available by how finely a message is cut.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Available {
    /// Each datum is sent once it is produced and waited for where it is consumed: all of t.
    pub sent_while_produced: DataTimes,
    /// All is sent when the last datum is produced, and is there before the first one is consumed: T_AP + T_AC.
    pub sent_when_produced: DataTimes,
    /// The same, and each datum is waited for where it is consumed: T_AP + T_AC + T_C C(i).
    pub received_while_consumed: DataTimes,
}

impl Available {
    /// The time available in a concurrent program.
    pub fn concurrent(of: &Transfer) -> Available {
        let independent = of.independent();
        Available {
            sent_while_produced: of.all_of_it(),
            sent_when_produced: DataTimes::all(independent),
            received_while_consumed: DataTimes {
                worst: independent,
                half: of.send.all.plus(of.receive.half),
            },
        }
    }

    /// Of a pipelined program: the first datum has none that depends on the array; work that does not, T_AP + T_AC, is all
    /// that there may be.
    pub fn pipelined(of: &Transfer) -> Available {
        let first =
            DataTimes::all(ConfidenceBounds { low: 0.0, estimate: Some(0.0), ..of.independent() });
        Available {
            sent_while_produced: first,
            sent_when_produced: first,
            received_while_consumed: first,
        }
    }

    /// Where it is not known which of the two a program is.
    pub fn either(of: &Transfer) -> Available {
        let at_most = Available::concurrent(of);
        let open = |of: DataTimes| {
            let open =
                |time: ConfidenceBounds| ConfidenceBounds { low: 0.0, estimate: None, ..time };
            DataTimes { worst: open(of.worst), half: open(of.half) }
        };
        Available {
            sent_while_produced: open(at_most.sent_while_produced),
            sent_when_produced: open(at_most.sent_when_produced),
            received_while_consumed: open(at_most.received_while_consumed),
        }
    }
}

#[cfg(test)]
mod tests;
