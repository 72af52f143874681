//! A network as it is typed.

use crate::replay::scenario::{Bandwidth, Latency};
use lapscope_measure::reach::network::Network;

/// "4us,950MB/s": a latency and a bandwidth, as `lapscope whatif` takes them.
///
/// # Errors
/// Says what is expected.
pub fn network(text: &str) -> Result<Network, String> {
    let (latency, bandwidth) = text.split_once(',').unwrap_or((text, ""));
    match (latency.trim().parse(), bandwidth.trim().parse()) {
        (Ok(Latency::Nanoseconds(latency_ns)), Ok(Bandwidth::BytesPerSecond(bytes_per_s))) => {
            Ok(Network { latency_ns, bytes_per_s })
        }
        _ => Err("expected a latency and a bandwidth, as 4us,950MB/s or 1us,100Gbit/s".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The testbed of [SA06].
    const TESTBED: Network = Network { latency_ns: 4_000.0, bytes_per_s: 950e6 };

    #[test]
    fn networks_are_typed() {
        assert_eq!(network("4us,950MB/s"), Ok(TESTBED));
        assert_eq!(network("4us, 7.6Gbit/s"), Ok(TESTBED));
        for wrong in ["", "4us", "950MB/s,4us", "x2,1GB/s", "4us,inf", "4us,0MB/s", "4us,1GB/s,2"] {
            let error = network(wrong).unwrap_err();
            assert!(error.contains("4us,950MB/s"), "{wrong}: {error}");
        }
    }
}
