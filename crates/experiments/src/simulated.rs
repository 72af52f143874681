//! `lapscope bench --simulated`: the overlap benchmark of [RA07] in the two timing scenarios of [RA08], replayed for the three
//! rendezvous protocols that these papers compare, on a stated link. Needs no MPI.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use lapscope_data::model::Nanos;
use lapscope_measure::loggps::LogGps;
use lapscope_predict::replay::benchmark::{measure, BenchmarkSide, Case, Link, PROTOCOLS};
use lapscope_predict::replay::scenario::Protocol;
use lapscope_report::calibration::Calibration;
use lapscope_trace::Locality;

/// Bytes of a message, those of `examples/speculative`; all go by rendezvous, as sends are synchronous.
pub const SIZES: [u64; 3] = [65_536, 262_144, 1_048_576];

/// All of it, as JSON has it.
#[derive(Debug, Serialize)]
pub struct Simulated {
    pub link: StatedLink,
    /// Protocols of a transfer stand beside each other.
    pub rows: Vec<TransferRow>,
}

/// What was replayed on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatedLink {
    pub source: LinkSource,
    /// One way of a small message, overheads of both ends included.
    pub latency_ns: f64,
    /// G.
    pub gap_ns_per_byte: f64,
    /// o_s and o_r: of a post, and of a wait that finds everything done.
    pub send_overhead_ns: f64,
    pub receive_overhead_ns: f64,
}

/// Where the link's parameters are from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LinkSource {
    /// The test bed of [RA08], as published.
    Published,
    /// Some parameter was given, the others are as published.
    Given,
    /// LogGPS of a calibration file, for messages of its largest sizes.
    Calibration { file: PathBuf, locality: Locality },
}

/// One side of a transfer of one size.
#[derive(Debug, Serialize)]
pub struct TransferRow {
    /// `send`, `receive`: the side that computes.
    pub side: &'static str,
    /// `sender`, `receiver`: who posts first.
    pub first: &'static str,
    pub bytes: u64,
    /// In the order of [`PROTOCOLS`].
    pub protocols: Vec<ProtocolOverlap>,
}

#[derive(Debug, Serialize)]
pub struct ProtocolOverlap {
    pub protocol: Protocol,
    /// l0: from the later post to the end of the wait, with nothing computed.
    pub l0_ns: Nanos,
    /// The most computation that did not make it longer than 1.1 l0.
    pub compute_ns: Nanos,
    /// What of l0 is hidden by it.
    pub overlap: f64,
}

impl StatedLink {
    /// 4 µs and 950 MB/s [RA08]. The overheads are not published; these are about what a post takes that hands a descriptor
    /// to a network card.
    pub fn published() -> StatedLink {
        StatedLink {
            source: LinkSource::Published,
            latency_ns: 4_000.0,
            gap_ns_per_byte: 1e9 / 950e6,
            send_overhead_ns: 500.0,
            receive_overhead_ns: 500.0,
        }
    }

    /// The link between different nodes where that was measured, else within one.
    ///
    /// # Errors
    /// The file cannot be read, or has no LogGPS parameters.
    pub fn of_calibration(file: &Path) -> anyhow::Result<StatedLink> {
        let all = Calibration::read(file)?.loggps;
        let of = |locality| all.iter().find(|found| found.locality == locality);
        let found = of(Locality::Network).or(of(Locality::Node)).with_context(|| {
            format!(
                "{}: no LogGPS parameters between two ranks; calibrate again: lapscope calibrate -- <launch line>",
                file.display()
            )
        })?;
        Ok(StatedLink::of_loggps(found, file))
    }

    fn of_loggps(found: &LogGps, file: &Path) -> StatedLink {
        // beyond S overheads are those of the post alone, which is what a rendezvous takes
        let large = found.segment(u64::MAX);
        StatedLink {
            source: LinkSource::Calibration { file: file.to_owned(), locality: found.locality },
            latency_ns: found.transfer(1).max(0.0),
            gap_ns_per_byte: large.gap_ns_per_byte.estimate,
            send_overhead_ns: large.send.base_ns.estimate,
            receive_overhead_ns: large.receive.base_ns.estimate,
        }
    }

    /// With another latency, nanoseconds, or bandwidth, bytes a second.
    pub fn with(mut self, latency_ns: Option<f64>, bytes_per_second: Option<f64>) -> StatedLink {
        if latency_ns.or(bytes_per_second).is_some() {
            self.source = LinkSource::Given;
        }
        self.latency_ns = latency_ns.unwrap_or(self.latency_ns);
        self.gap_ns_per_byte = bytes_per_second.map_or(self.gap_ns_per_byte, |rate| 1e9 / rate);
        self
    }

    fn link(&self) -> Link {
        Link {
            latency_ns: self.latency_ns,
            gap_ns_per_byte: self.gap_ns_per_byte,
            overhead_ns: [self.send_overhead_ns, self.receive_overhead_ns],
        }
    }
}

impl Simulated {
    /// Both sides in both scenarios, for every size and protocol.
    pub fn on(link: StatedLink) -> Simulated {
        let of_all = link.link();
        let mut rows = Vec::new();
        for computes in [BenchmarkSide::Receiver, BenchmarkSide::Sender] {
            for first in [BenchmarkSide::Receiver, BenchmarkSide::Sender] {
                rows.extend(SIZES.map(|bytes| row(&of_all, computes, first, bytes)));
            }
        }
        Simulated { link, rows }
    }
}

fn row(link: &Link, computes: BenchmarkSide, first: BenchmarkSide, bytes: u64) -> TransferRow {
    let answer = |protocol| {
        let found = measure(link, &Case { protocol, first, computes, bytes });
        let (l0_ns, compute_ns, overlap) = (found.l0_ns, found.compute_ns, found.ratio);
        ProtocolOverlap { protocol, l0_ns, compute_ns, overlap }
    };
    TransferRow {
        side: if computes == BenchmarkSide::Sender { "send" } else { "receive" },
        first: if first == BenchmarkSide::Sender { "sender" } else { "receiver" },
        bytes,
        protocols: PROTOCOLS.map(answer).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_scenario_and_size_has_each_protocol() {
        let all = Simulated::on(StatedLink::published());
        let mut names: Vec<_> = all.rows.iter().map(|r| (r.side, r.first, r.bytes)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 12);
        for row in &all.rows {
            let protocols: Vec<_> = row.protocols.iter().map(|answer| answer.protocol).collect();
            assert_eq!(protocols, PROTOCOLS);
        }
    }

    #[test]
    fn what_is_given_is_said_to_be() {
        let published = StatedLink::published();
        assert_eq!(published.clone().with(None, None), published);
        let given = published.with(None, Some(400e6));
        assert_eq!((given.source, given.gap_ns_per_byte), (LinkSource::Given, 2.5));
    }
}
