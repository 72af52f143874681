//! What networks would cost a run: tables over latency and bandwidth, and one line for each network that is asked for.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::network::{
    table, AlikeMessages, Demand, LatencyRow, Network, BANDWIDTHS, LATENCIES_NS,
};
use super::cells::Collected;
use super::sums::{Granularities, Granularity};
use super::Judged;
use lapscope_data::model::Nanos;
use lapscope_trace::{Direction, Trace};

/// A network is tolerated that makes the program slower by no more than this share of its computation.
pub const LOSS: f64 = 0.01;

/// What networks would cost, with each message cut this finely.
#[derive(Debug, Serialize)]
pub struct Networks {
    /// Outside MPI, all ranks: T_comp.
    pub computation_ns: Nanos,
    /// Columns of the tables, bytes per second.
    pub bandwidths: [f64; 8],
    /// Slower than computation alone by no more than this is tolerated.
    pub loss: f64,
    pub tables: Granularities<Vec<LatencyRow>>,
    pub small_collectives: SmallCollectives,
    /// Those that were asked for.
    pub asked: Vec<Predicted>,
}

/// Execution time on one network, normalised to computation, as in Table 5 of [SA06]. All of them have what small collectives
/// and messages whose buffers were not watched take, of which nothing is hidden.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predicted {
    #[serde(flatten)]
    pub network: Network,
    /// Every transfer is waited for.
    pub without_overlap: f64,
    /// Sent when produced: with independent work alone.
    pub with_overlap: Granularities<f64>,
    /// What small collectives take on each of these.
    pub small_collectives: f64,
    /// What messages whose buffers were not watched take on each of these.
    pub unwatched_messages: f64,
}

/// Collectives of few bytes, which are not in the tables: what of them could be hidden is not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SmallCollectives {
    /// Most bytes of a small one; it has several ranks.
    pub max_bytes: u64,
    /// Summed over ranks.
    pub calls: u64,
    /// What they would take, as a share of computation, by latency as in the tables: 2 log2(N) EEL each.
    pub shares: [f64; 4],
}

impl Networks {
    /// Where only bounds of a time are known, it counts as the lower one. `None` where no computation is known.
    pub(super) fn evaluate(
        trace: &Trace,
        collected: &Collected<'_>,
        judged: &[Judged],
        asked: &[Network],
    ) -> Option<Networks> {
        let outside = trace.ranks.iter().map(|rank| rank.presence.outside(rank.init_end, rank.end));
        let computation = outside.fold(0, i64::saturating_add);
        let demands = Granularities::by(|granularity| Demand {
            computation: computation as f64,
            messages: judged.iter().map(|of| of.messages(granularity)).collect(),
        });
        let unhidden = Unhidden::sum(trace, collected, judged);
        let tables = demands.as_ref().map(|demand| table(demand, LOSS));
        let is_known = !tables.sent_when_produced.is_empty();
        is_known.then(|| Networks {
            computation_ns: Nanos(computation),
            bandwidths: BANDWIDTHS,
            loss: LOSS,
            tables,
            small_collectives: unhidden.small_collectives(computation as f64),
            asked: asked.iter().map(|network| unhidden.predict(*network, &demands)).collect(),
        })
    }
}

impl Judged {
    fn messages(&self, granularity: Granularity) -> AlikeMessages {
        AlikeMessages {
            count: self.cell.messages as f64,
            bytes: self.cell.bytes as f64 / self.cell.messages as f64,
            available: granularity.select(&self.available).worst.likely(),
        }
    }
}

/// What no watch says anything of, so that nothing of it is hidden.
struct Unhidden {
    /// Calls of collectives of few bytes, by the size of their communicator.
    small_collectives: BTreeMap<u32, u64>,
    /// Messages whose buffers were not watched.
    messages: u64,
    bytes: u64,
}

impl Unhidden {
    /// What a small collective has at most.
    const SMALL_BYTES: u64 = 1024;

    fn sum(trace: &Trace, collected: &Collected<'_>, judged: &[Judged]) -> Unhidden {
        let mut small_collectives: BTreeMap<u32, u64> = BTreeMap::new();
        for half in (0..trace.ranks.len()).flat_map(|rank| trace.halves(rank)) {
            let operation = half.operation;
            if operation.direction == Direction::Collective
                && operation.comm_size > 1
                && operation.bytes.0 <= Self::SMALL_BYTES
            {
                *small_collectives.entry(operation.comm_size).or_default() += 1;
            }
        }
        let of_watched = |count: fn(&Judged) -> u64| judged.iter().map(count).sum::<u64>();
        Unhidden {
            small_collectives,
            messages: collected.messages - of_watched(|of| of.cell.messages),
            bytes: collected.bytes.saturating_sub(of_watched(|of| of.cell.bytes)),
        }
    }

    /// Nanoseconds.
    fn collectives_on(&self, network: &Network) -> f64 {
        let sizes = self.small_collectives.iter();
        sizes.map(|(&ranks, &calls)| network.small_collective(ranks) * calls as f64).sum()
    }

    fn small_collectives(&self, computation: f64) -> SmallCollectives {
        let share = |latency_ns| {
            self.collectives_on(&Network { latency_ns, bytes_per_s: BANDWIDTHS[0] }) / computation
        };
        SmallCollectives {
            max_bytes: Self::SMALL_BYTES,
            calls: self.small_collectives.values().sum(),
            shares: LATENCIES_NS.map(share),
        }
    }

    /// `demands` have the same computation, which is more than nothing.
    fn predict(&self, network: Network, demands: &Granularities<Demand>) -> Predicted {
        let Demand { computation, messages } = &demands.sent_when_produced;
        let collectives = self.collectives_on(&network) / computation;
        let unwatched = network.transfers(self.messages as f64, self.bytes as f64) / computation;
        let watched = messages.iter().map(|of| network.transfers(of.count, of.count * of.bytes));
        let unhidden = collectives + unwatched;
        Predicted {
            network,
            without_overlap: 1.0 + watched.sum::<f64>() / computation + unhidden,
            with_overlap: demands
                .as_ref()
                .map(|demand| 1.0 + demand.exposed(&network) / computation + unhidden),
            small_collectives: collectives,
            unwatched_messages: unwatched,
        }
    }
}
