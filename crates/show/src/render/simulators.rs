//! LogGPS parameters as other simulators take them. Each knows less than was measured: what is lost stands beside it.

use std::fmt::Write;

use lapscope_measure::loggps::{LogGps, Overhead, Segment};
use lapscope_predict::goal::SimulatorUnit;
use lapscope_trace::Locality;

/// What a simulator takes, and sentences about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    pub text: String,
    pub notes: Vec<String>,
}

/// A large message, by which one slope stands for all segments where a simulator knows only one.
const LARGE: u64 = 1 << 20;
/// Dimemas' bandwidths are in these, bytes.
const MEGABYTE: f64 = 1e6;
/// Least time of what must not be 0 there, nanoseconds, and nanoseconds a byte.
const LEAST_NS: f64 = 1.0;
const LEAST_NS_PER_BYTE: f64 = 1e-4;

/// What a byte of a large message takes, nanoseconds.
fn slope(loggps: &LogGps) -> f64 {
    let rise = loggps.transfer(LARGE) - loggps.transfer(1);
    (rise / (LARGE - 1) as f64).max(LEAST_NS_PER_BYTE)
}

/// Flags of LogGOPSim (github.com/spcl/LogGOPSim; simulator.ggo of 2009 to 2025 has them as integers): a message takes
/// o + L + o and (s - 1) times the larger of G and O; one of more than S bytes waits for its receive, without any message
/// back.
pub fn loggopsim(loggps: &LogGps, unit: SimulatorUnit) -> Exported {
    let first = &loggps.segments[0];
    let whole = |ns: f64| (ns * unit.per_ns() as f64).round().max(0.0);
    let overhead = (loggps.send_overhead(1) + loggps.receive_overhead(1)) / 2.0;
    let per_byte = (first.send.ns_per_byte.estimate + first.receive.ns_per_byte.estimate) / 2.0;
    let gap_per_byte = slope(loggps);
    let latency = (loggps.transfer(1) - 2.0 * overhead).max(0.0);
    let limit = loggps.eager_limit_bytes.unwrap_or(u64::MAX).min(i32::MAX as u64);
    let mut notes = Vec::new();
    if (whole(gap_per_byte) / unit.per_ns() as f64 / gap_per_byte - 1.0).abs() > 0.05 {
        notes.push(format!(
            "G is {gap_per_byte:.3} ns a byte, and LogGOPSim takes whole numbers: take picoseconds, here and for the schedule"
        ));
    }
    let text = format!(
        "-L {} -o {} -g {} -G {} -O {} -S {limit}\n",
        whole(latency),
        whole(overhead),
        whole(first.gap(1)),
        whole(gap_per_byte),
        whole(per_byte.min(gap_per_byte)),
    );
    Exported { text, notes }
}

/// Flags of SimGrid's SMPI (3.36 to 4.1), one a line: overheads by size as `from:seconds:seconds per byte`, factors of the
/// platform's latency and bandwidth as `from:factor`. The link that they are factors of stands in a note.
pub fn simgrid(loggps: &LogGps) -> Exported {
    let last = loggps.segments.last().unwrap_or(&loggps.segments[0]);
    let latency = loggps.latency_ns.estimate.max(LEAST_NS);
    let wire = |segment: &Segment| segment.wire_ns_per_byte.estimate.max(LEAST_NS_PER_BYTE);
    let by_size = |of: &dyn Fn(&Segment) -> String| {
        let each = loggps.segments.iter().map(|s| format!("{}:{}", s.min_bytes, of(s)));
        each.collect::<Vec<_>>().join(";")
    };
    let overhead = |of: fn(&Segment) -> Overhead| {
        by_size(&|segment| {
            let Overhead { base_ns, ns_per_byte } = of(segment);
            format!("{:.4e}:{:.4e}", base_ns.estimate * 1e-9, ns_per_byte.estimate * 1e-9)
        })
    };
    let factor = |segment: &Segment| {
        (loggps.latency_ns.estimate + segment.beyond_ns.estimate).max(0.0) / latency
    };
    let send = overhead(|segment| segment.send);
    let mut text = String::new();
    for (name, value) in [
        ("smpi/os", send.clone()),
        ("smpi/ois", send),
        ("smpi/or", overhead(|segment| segment.receive)),
        ("network/latency-factor", by_size(&|segment| format!("{:.6}", factor(segment)))),
        (
            "network/bandwidth-factor",
            by_size(&|segment| format!("{:.6}", wire(last) / wire(segment))),
        ),
    ] {
        let _ = writeln!(text, "--cfg={name}:{value}"); // to a string
    }
    // SimGrid's limits are the first sizes that wait; it takes them as int
    let limit = loggps.eager_limit_bytes.map_or(i32::MAX as u64, |limit| limit + 1);
    for name in ["smpi/async-small-thresh", "smpi/send-is-detached-thresh"] {
        let _ = writeln!(text, "--cfg={name}:{limit}");
    }
    let note = format!(
        "the link of the platform that these are for: latency=\"{:.4e}s\" bandwidth=\"{:.4e}Bps\"",
        latency * 1e-9,
        1e9 / wire(last)
    );
    Exported { text, notes: vec![note] }
}

/// A configuration of Dimemas 5 (its SDDF-like .cfg): latency and bandwidth within a node and between nodes. A message takes
/// latency + s / bandwidth; the overheads are in the latency.
pub fn dimemas(all: &[LogGps], nodes: u64, processors: u64) -> Exported {
    let of = |locality| all.iter().find(|loggps| loggps.locality == locality);
    let (node, network) = (of(Locality::Node), of(Locality::Network));
    let mut notes = Vec::new();
    let mut lacks = |locality: Option<&LogGps>, what, other| {
        if locality.is_none() {
            notes.push(format!("nothing was measured {what}: these values are those {other}"));
        }
    };
    lacks(node, "within a node", "between nodes");
    lacks(network, "between nodes", "within a node");
    let cost = |own: Option<&LogGps>| {
        own.or(all.first()).map_or((0.0, 0.0), |loggps| {
            (loggps.transfer(1) * 1e-9, 1e9 / slope(loggps) / MEGABYTE)
        })
    };
    let ((near_s, near_rate), (far_s, far_rate)) = (cost(node), cost(network));
    if let Some(limit) = network.or(node).and_then(|loggps| loggps.eager_limit_bytes) {
        notes
            .push(format!("larger messages wait for their receive with: Dimemas -S {}", limit + 1));
    }
    let text = format!(
        "#DIMEMAS_CONFIGURATION\n\n\
         \"wide area network information\" {{\"\", 1, 0, 4, 0.0, 0.0, 1}};;\n\n\
         \"environment information\" {{\"\", 0, \"\", {nodes}, {far_rate:.3}, 0, 1}};;\n\n\
         \"multi node information\" {{0, {nodes}, \"\", {processors}, 1.0, {near_s:.9}, {near_rate:.3}, 0, 1, 1, {far_s:.9}, 1, 1, \
         0.0}};;\n\n\
         \"predefined mapping information\" {{\"FILL_NODES\"}};;\n\n\
         \"configuration files\" {{\"\", \"\", \"\", \"\"}};;\n\n\
         \"file system parameters\" {{0.0, 0.0, 8.0, 0, 1.0}};;\n"
    );
    Exported { text, notes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_measure::loggps::Residual;
    use lapscope_trace::stats::Interval;

    fn exactly(estimate: f64) -> Interval {
        Interval { low: estimate, estimate, high: estimate }
    }

    fn segment(sizes: (u64, u64), o: f64, beyond: f64, wire: f64) -> Segment {
        let overhead = Overhead { base_ns: exactly(o), ns_per_byte: exactly(0.0) };
        Segment {
            min_bytes: sizes.0,
            max_bytes: sizes.1,
            send: overhead,
            receive: overhead,
            gap_ns: exactly(700.0),
            gap_ns_per_byte: exactly(wire),
            beyond_ns: exactly(beyond),
            wire_ns_per_byte: exactly(wire),
        }
    }

    /// L 1 us, o 250 ns, 1 GB/s up to 8000 bytes, 4 GB/s and 2 us more above.
    fn network() -> LogGps {
        LogGps {
            locality: Locality::Network,
            latency_ns: exactly(1000.0),
            eager_limit_bytes: Some(8000),
            segments: vec![
                segment((0, 8000), 250.0, 0.0, 1.0),
                segment((8001, 1 << 21), 250.0, 2000.0, 0.25),
            ],
            residual: Residual { median: 0.0, worst: 0.0, worst_bytes: 0 },
            exchanges: 1,
        }
    }

    #[test]
    fn flags_of_loggopsim() {
        let exported = loggopsim(&network(), SimulatorUnit::Picoseconds);
        // (2 us + 1048575 * 0.25 ns) / 1048575 bytes
        assert_eq!(exported.text, "-L 1000000 -o 250000 -g 700000 -G 252 -O 0 -S 8000\n");
        assert_eq!(exported.notes, Vec::<String>::new());
        let coarse = loggopsim(&network(), SimulatorUnit::Nanoseconds);
        assert_eq!(coarse.text, "-L 1000 -o 250 -g 700 -G 0 -O 0 -S 8000\n");
        assert!(coarse.notes[0].contains("take picoseconds"), "{:?}", coarse.notes);
        let unlimited = LogGps { eager_limit_bytes: None, ..network() };
        assert!(loggopsim(&unlimited, SimulatorUnit::default()).text.ends_with("-S 2147483647\n"));
    }

    #[test]
    fn flags_of_simgrid() {
        let exported = simgrid(&network());
        let lines: Vec<&str> = exported.text.lines().collect();
        assert_eq!(lines[0], "--cfg=smpi/os:0:2.5000e-7:0.0000e0;8001:2.5000e-7:0.0000e0");
        assert_eq!(lines[3], "--cfg=network/latency-factor:0:1.000000;8001:3.000000");
        assert_eq!(lines[4], "--cfg=network/bandwidth-factor:0:0.250000;8001:1.000000");
        assert_eq!(lines[5], "--cfg=smpi/async-small-thresh:8001");
        assert_eq!(lines[6], "--cfg=smpi/send-is-detached-thresh:8001");
        assert!(
            exported.notes[0].contains("latency=\"1.0000e-6s\" bandwidth=\"4.0000e9Bps\""),
            "{exported:?}"
        );
    }

    #[test]
    fn a_configuration_of_dimemas() {
        let exported = dimemas(&[network()], 2, 4);
        let environment = "\"environment information\" {\"\", 0, \"\", 2, 3969.7";
        assert!(exported.text.contains(environment), "{}", exported.text);
        let node = "{0, 2, \"\", 4, 1.0, 0.000001500, 3969.7";
        assert!(exported.text.contains(node), "{}", exported.text);
        assert!(exported.notes[0].contains("nothing was measured within a node"));
        assert!(exported.notes[1].contains("Dimemas -S 8001"));
    }
}
