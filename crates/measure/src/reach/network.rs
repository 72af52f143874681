//! What a network would cost a program whose messages have so much time available ([SA06]).
//!
//! What of EEL + G bytes exceeds the time available of the worst datum is exposed, and (T_comp + exposed) / T_comp is
//! reported; T_comp is the time outside MPI, of all ranks together. Messages of a rank follow each other here, though
//! they may travel at the same time, so real networks may do better. Where only bounds of a time are known, the lower
//! one counts. Small collectives stand beside the table, since what hides them is not known.

use serde::Serialize;

/// A network: how long a message takes on it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Network {
    /// EEL, the end-to-end latency of a message of no bytes.
    pub latency_ns: f64,
    /// 1 / G.
    pub bytes_per_s: f64,
}

impl Network {
    /// EEL + G bytes, nanoseconds.
    pub fn transfer(&self, bytes: f64) -> f64 {
        self.transfers(1.0, bytes)
    }

    /// Nanoseconds that so many messages take, one after the other, that have `bytes` together.
    pub fn transfers(&self, messages: f64, bytes: f64) -> f64 {
        messages * self.latency_ns + bytes / self.bytes_per_s * 1e9
    }

    /// A collective of few bytes among so many ranks: a tree there and one back, 2 log2(N) EEL, nanoseconds.
    pub fn small_collective(&self, ranks: u32) -> f64 {
        2.0 * f64::from(ranks.max(1)).log2() * self.latency_ns
    }
}

/// Normalised overlap: available time over transfer time. From 1 on all of the transfer can be hidden.
pub fn normalized_overlap(available: f64, transfer: f64) -> f64 {
    available / transfer
}

/// Messages that are alike.
#[derive(Debug, Clone, Copy)]
pub struct AlikeMessages {
    pub count: f64,
    /// Size of one of them.
    pub bytes: f64,
    /// Time available of its worst datum, nanoseconds.
    pub available: f64,
}

/// What a program needs of a network. Messages of a rank go one after the other.
#[derive(Debug, Clone, Default)]
pub struct Demand {
    /// T_comp, nanoseconds.
    pub computation: f64,
    pub messages: Vec<AlikeMessages>,
}

impl Demand {
    /// The part of T_comm that is not hidden, nanoseconds.
    pub fn exposed(&self, network: &Network) -> f64 {
        let of = |messages: &AlikeMessages| {
            (network.transfer(messages.bytes) - messages.available).max(0.0) * messages.count
        };
        self.messages.iter().map(of).sum()
    }

    /// Execution time normalised to computation: (T_comp + exposed part of T_comm) / T_comp; `None` without computation.
    pub fn execution(&self, network: &Network) -> Option<f64> {
        let is_known = self.computation > 0.0 && !self.messages.is_empty();
        is_known.then(|| (self.computation + self.exposed(network)) / self.computation)
    }

    /// The least bandwidth among those looked at, bytes per second, at which execution takes no longer than computation by
    /// more than the share `loss`.
    pub fn least_bandwidth(&self, latency_ns: f64, loss: f64) -> Option<Tolerated> {
        let [least, most] = [BANDWIDTHS[0], BANDWIDTHS[BANDWIDTHS.len() - 1]];
        let is_enough = |bytes_per_s| {
            let execution = self.execution(&Network { latency_ns, bytes_per_s });
            execution.map(|execution| execution <= 1.0 + loss)
        };
        if is_enough(least)? {
            return Some(Tolerated::Any);
        }
        if !is_enough(most)? {
            return Some(Tolerated::None);
        }
        // exposed time never grows with bandwidth
        let (mut less, mut enough) = (least, most);
        while enough / less > 1.001 {
            let middle = (less * enough).sqrt();
            match is_enough(middle)? {
                true => enough = middle,
                false => less = middle,
            }
        }
        Some(Tolerated::From(enough))
    }
}

/// Networks of [SA06]: 1 to 8 us, 1 MB/s to 5 GB/s.
pub const LATENCIES_NS: [f64; 4] = [1_000.0, 2_000.0, 4_000.0, 8_000.0];
pub const BANDWIDTHS: [f64; 8] = [1e6, 5e6, 10e6, 50e6, 100e6, 500e6, 1e9, 5e9];

/// Which bandwidths a program tolerates at one latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerated {
    /// The least that was looked at is enough.
    Any,
    /// Bytes per second.
    From(f64),
    /// Not even the most.
    None,
}

/// Networks of one latency.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyRow {
    pub latency_ns: f64,
    /// By [`BANDWIDTHS`]: execution time normalised to computation.
    pub execution: Vec<f64>,
    pub least_bandwidth: Tolerated,
}

/// What networks would cost: one row a latency. Empty where computation or messages are not known.
pub fn table(demand: &Demand, loss: f64) -> Vec<LatencyRow> {
    let row = |latency_ns: f64| {
        let execution: Option<Vec<f64>> = BANDWIDTHS
            .iter()
            .map(|&bytes_per_s| demand.execution(&Network { latency_ns, bytes_per_s }))
            .collect();
        let least_bandwidth = demand.least_bandwidth(latency_ns, loss)?;
        Some(LatencyRow { latency_ns, execution: execution?, least_bandwidth })
    };
    LATENCIES_NS.into_iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests;
