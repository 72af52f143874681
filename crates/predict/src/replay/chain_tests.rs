//! Replays of small programs whose answers are worked out by hand.

mod critical;
mod deadlock;
mod injected;
mod looks;
mod nonblocking;
mod one_sided;
mod roots;
mod thinned;

use super::critical::Stretch;
use super::{replay, Conditions, Durations, LocalityNetwork, Network, Outcome, Program};
use lapscope_data::places::SiteId;
use lapscope_measure::reference::Reference;
use lapscope_trace::made_up::MadeUp;
use lapscope_trace::Trace;

/// A message takes 100 ns and one more each byte; larger ones than `eager_limit` are read when their receive is there.
pub fn network(eager_limit: u64) -> Network {
    let one = LocalityNetwork {
        latency: 100.0,
        gap_per_byte: 1.0,
        eager_limit,
        recorded_eager_limit: u64::MAX,
        ..LocalityNetwork::ASSUMED
    };
    let localities = [one.clone(), one.clone(), one];
    Network { localities, ..Network::from_reference(&Reference::default()) }
}

/// A run and its replay.
pub struct Replayed {
    pub trace: Trace,
    pub program: Program,
    pub outcome: Outcome,
}

impl Replayed {
    pub fn new(run: MadeUp, eager_limit: u64) -> Replayed {
        Replayed::replay(run.finish(), eager_limit)
    }

    pub fn replay(trace: Trace, eager_limit: u64) -> Replayed {
        let program = Program::new(&trace);
        let conditions = Conditions::as_recorded(trace.ranks.len());
        let durations = Durations::measure(&trace);
        let network = network(eager_limit);
        let outcome = replay(&trace, &program, &network, &conditions, &durations);
        Replayed { trace, program, outcome }
    }

    /// A stretch as text: "computation 1 - 2", "overhead 1", "communication 2", by lines; "." is MPI_Init or MPI_Finalize.
    pub fn said(&self, stretch: Stretch) -> String {
        let line = |site: SiteId| {
            let frame = self.trace.places.site(site).frame;
            frame.map_or(String::from("?"), |frame| frame.address.to_string())
        };
        let or_end = |site: Option<SiteId>| site.map_or(String::from("."), line);
        match stretch {
            Stretch::Computation { before, after } => {
                format!("computation {} - {}", or_end(before), or_end(after))
            }
            Stretch::Overhead(site) => format!("overhead {}", line(site)),
            Stretch::Communication(site) => format!("communication {}", line(site)),
        }
    }
}

pub const EAGER: u64 = u64::MAX;

/// Rank 0 computes and sends to 1, which was waiting, computes and sends to 2, which was waiting.
pub fn relay() -> MadeUp {
    let mut run = MadeUp::new(3);
    run.compute(0, 1_000);
    run.send(0, 1, 1, 0, 20);
    run.compute(1, 100);
    run.receive(1, 2, 0, 0);
    run.compute(1, 50);
    run.send(1, 3, 2, 0, 20);
    run.compute(2, 10);
    run.receive(2, 4, 1, 0);
    run.compute(2, 5);
    run
}

/// Rounds of a ring in which each rank sends to the next and computes for a time of its own; `seed` makes them differ.
pub fn ring(ranks: usize, rounds: u64, mut seed: u64) -> MadeUp {
    let mut run = MadeUp::new(ranks);
    let mut random = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    for round in 0..rounds {
        for rank in 0..ranks {
            let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            run.compute(rank, random(5_000) as i64);
            let sent = run.isend(rank, 1, next, round * 500, 30);
            let received = run.ireceive(rank, 2, last, round * 500, 10);
            run.compute(rank, random(3_000) as i64);
            run.wait(rank, 3, &[sent, received]);
        }
        if random(3) == 0 {
            run.collective("MPI_Barrier", 4, 0, 50);
        }
        run.other(0, 5, random(100) as i64);
    }
    run
}
