//! Sums over pairs of sites.

use serde::Serialize;

use super::super::available::{Available, DataTimes};
use super::super::bounds::ConfidenceBounds;
use super::{normalized, Judged};
use lapscope_data::model::Nanos;
use lapscope_trace::stats::weighted_median;

/// How finely messages are cut ([SA06]), from what needs least change of a program.
#[derive(Debug, Clone, Copy)]
pub enum Granularity {
    SentWhenProduced,
    ReceivedWhileConsumed,
    SentWhileProduced,
}

impl Granularity {
    pub fn select(self, available: &Available) -> &DataTimes {
        match self {
            Granularity::SentWhenProduced => &available.sent_when_produced,
            Granularity::ReceivedWhileConsumed => &available.received_while_consumed,
            Granularity::SentWhileProduced => &available.sent_while_produced,
        }
    }
}

/// Something for each granularity. Keys as of [`Available`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Granularities<T> {
    pub sent_when_produced: T,
    pub received_while_consumed: T,
    pub sent_while_produced: T,
}

impl<T> Granularities<T> {
    pub fn by(mut of: impl FnMut(Granularity) -> T) -> Granularities<T> {
        Granularities {
            sent_when_produced: of(Granularity::SentWhenProduced),
            received_while_consumed: of(Granularity::ReceivedWhileConsumed),
            sent_while_produced: of(Granularity::SentWhileProduced),
        }
    }

    pub fn as_ref(&self) -> Granularities<&T> {
        Granularities {
            sent_when_produced: &self.sent_when_produced,
            received_while_consumed: &self.received_while_consumed,
            sent_while_produced: &self.sent_while_produced,
        }
    }

    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> Granularities<U> {
        Granularities {
            sent_when_produced: change(self.sent_when_produced),
            received_while_consumed: change(self.received_while_consumed),
            sent_while_produced: change(self.sent_while_produced),
        }
    }
}

impl Granularities<ConfidenceBounds> {
    /// The worst datum of each.
    pub fn worst(available: &Available) -> Granularities<ConfidenceBounds> {
        Granularities::by(|granularity| granularity.select(available).worst)
    }
}

/// Sums over messages of any number of pairs.
#[derive(Debug, Clone, Serialize)]
pub struct Sum {
    pub messages: u64,
    pub bytes: u64,
    /// Those of them with a reference time; all that follows is of these.
    pub timed_messages: u64,
    /// Their reference times.
    pub transfer_ns: Nanos,
    /// Share of that which the time available of the worst data could hide: bounds, and an estimate where all times are known.
    pub hidden: Granularities<Option<ConfidenceBounds>>,
    /// Normalised overlap that messages with half of the transfer time have at least. Where only bounds are known, the lower
    /// one counts.
    pub normalized_overlap: Granularities<Option<f64>>,
}

/// Messages of similar size.
#[derive(Debug, Clone, Serialize)]
pub struct SizeRow {
    pub from_bytes: u64,
    /// The first size that is too large.
    pub below_bytes: u64,
    #[serde(flatten)]
    pub sum: Sum,
}

impl Sum {
    pub(super) fn add_up<'j>(judged: impl Iterator<Item = &'j Judged>) -> Sum {
        let (mut messages, mut bytes, mut timed_messages) = (0, 0u64, 0);
        let mut timed = Vec::new();
        for of in judged {
            messages += of.cell.messages;
            bytes = of.cell.bytes.saturating_add(bytes);
            if let Some(transfer) = of.transfer {
                timed_messages += of.cell.messages;
                timed.push((of, transfer));
            }
        }
        let times = timed.iter().map(|(of, one)| one.ns as f64 * of.cell.messages as f64);
        let all: f64 = times.sum();
        Sum {
            messages,
            bytes,
            timed_messages,
            transfer_ns: Nanos(all as i64),
            hidden: Granularities::by(|granularity| {
                let hides = timed.iter().map(|(of, transfer)| {
                    let ns = transfer.ns as f64;
                    let hidden = hides(granularity.select(&of.available).worst, ns);
                    hidden.map(|hidden| hidden * of.cell.messages as f64)
                });
                hides.reduce(ConfidenceBounds::plus).map(|hidden| hidden.map(|hidden| hidden / all))
            }),
            normalized_overlap: Granularities::by(|granularity| {
                let mut weighted: Vec<(f64, f64)> = timed
                    .iter()
                    .map(|(of, transfer)| {
                        let overlap = normalized(granularity.select(&of.available).worst, transfer);
                        (overlap.likely(), transfer.ns as f64 * of.cell.messages as f64)
                    })
                    .collect();
                weighted_median(&mut weighted)
            }),
        }
    }
}

/// What so much time hides of a transfer.
fn hides(available: ConfidenceBounds, transfer: f64) -> ConfidenceBounds {
    available.min(ConfidenceBounds::exactly(transfer))
}
