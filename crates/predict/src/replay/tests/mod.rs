//! Properties of replays, over random programs that are safe: they end however little MPI buffers.

mod properties;
mod random;

use super::network::{LocalityNetwork, Network};
use super::scenario::{Contention, Progress, Protocol};
use super::{replay, Conditions, Durations, Outcome, Program};
use lapscope_measure::reference::Reference;
use lapscope_trace::Trace;

/// All ways above the eager limit.
pub const RENDEZVOUS: [Protocol; 4] = [
    Protocol::RendezvousWrite,
    Protocol::RendezvousRead,
    Protocol::Pipeline,
    Protocol::Speculative,
];

/// The same between all ranks: 1 us, 1 GB/s, half of the messages of [`random`] above the eager limit.
pub fn network(protocol: Protocol, progress: Progress) -> Network {
    let of_all = LocalityNetwork {
        latency: 1_000.0,
        gap_per_byte: 1.0,
        eager_limit: 4_096,
        recorded_eager_limit: u64::MAX,
        progress_limit: 1_024,
        protocol,
        buffered_ns: 2_000,
        ..LocalityNetwork::ASSUMED
    };
    let localities = [of_all.clone(), of_all.clone(), of_all];
    // a copy that costs nothing: one may take longer than the message, and then a higher eager limit is no gain
    Network {
        localities,
        progress,
        copy_per_byte: 0.0,
        ..Network::from_reference(&Reference::default())
    }
}

pub fn each(network: &Network, change: impl Fn(&mut LocalityNetwork)) -> Network {
    let mut changed = network.clone();
    changed.localities.iter_mut().for_each(change);
    changed
}

pub fn with(network: &Network, contention: Contention) -> Network {
    Network { contention, ..network.clone() }
}

pub fn run(trace: &Trace, network: &Network) -> Outcome {
    let conditions = Conditions::as_recorded(trace.ranks.len());
    let durations = Durations::default();
    replay(trace, &Program::new(trace), network, &conditions, &durations)
}
