//! How long collectives take, and how much of that is a processor's, by LogGP ([HO07]): trees of point-to-point messages.
//!
//! With L latency, o overhead of a send or receive, G gap per byte, gamma time of the reduction per byte, m bytes, P ranks:
//!
//! - barrier: (2o + L) ceil(log2 P), of it on the processor 2o ceil(log2 P);
//! - broadcast: (2o + L + mG) ceil(log2 P), on the processor 2o ceil(log2 P);
//! - allreduce, a reduction and a broadcast of its result: 2 (2o + L + mG) ceil(log2 P) + m gamma ceil(log2 P), on the
//!   processor (4o + m gamma) ceil(log2 P).
//!
//! What the processor does not do the network does, and a non-blocking collective would leave it to the program. Times run
//! from a common beginning until all ranks are through; a library that knows better algorithms (large messages in pieces,
//! shared memory) is faster than its prediction.

/// What a tree's steps cost. Overheads may differ between sender and receiver (LogGPS): each of the formulas has them in
/// pairs, so that 2o is their sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// L: of a message of no bytes in the network, nanoseconds.
    pub latency_ns: f64,
    /// 2o: of a send and its receive on their processors, nanoseconds.
    pub overheads_ns: f64,
    /// G, nanoseconds a byte.
    pub gap_ns_per_byte: f64,
    /// gamma: of the reduction's operation on the processor, nanoseconds a byte.
    pub reduction_ns_per_byte: f64,
}

/// A collective that the formulas are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Barrier,
    Broadcast { bytes: u64 },
    Allreduce { bytes: u64 },
}

/// Nanoseconds of one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// From the first rank's entry, when all enter at once, until all are through.
    pub total_ns: f64,
    /// The part of it on the processor of a rank.
    pub processor_ns: f64,
}

impl Prediction {
    /// What the network does, and the processor need not wait for, nanoseconds.
    pub fn network_ns(&self) -> f64 {
        self.total_ns - self.processor_ns
    }
}

/// Depth of a binary tree over so many ranks: ceil(log2 P), 0 for one rank and for none.
pub fn rounds(ranks: u64) -> u32 {
    ranks.max(1).next_power_of_two().trailing_zeros()
}

/// What the formulas of [HO07] say of one call over so many ranks.
pub fn predict(shape: Shape, ranks: u64, costs: &Costs) -> Prediction {
    let Costs { latency_ns, overheads_ns, gap_ns_per_byte, reduction_ns_per_byte } = *costs;
    let message = |bytes: u64| overheads_ns + latency_ns + bytes as f64 * gap_ns_per_byte;
    let (total, processor) = match shape {
        Shape::Barrier => (message(0), overheads_ns),
        Shape::Broadcast { bytes } => (message(bytes), overheads_ns),
        Shape::Allreduce { bytes } => {
            let reduction = bytes as f64 * reduction_ns_per_byte;
            (2.0 * message(bytes) + reduction, 2.0 * overheads_ns + reduction)
        }
    };
    let rounds = f64::from(rounds(ranks));
    Prediction { total_ns: total * rounds, processor_ns: processor * rounds }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L 1 µs, o 250 ns on either side, 1 GB/s, additions at 4 GB/s.
    const COSTS: Costs = Costs {
        latency_ns: 1000.0,
        overheads_ns: 500.0,
        gap_ns_per_byte: 1.0,
        reduction_ns_per_byte: 0.25,
    };

    #[test]
    fn rounds_of_a_tree() {
        let of = |ranks: [u64; 9]| ranks.map(rounds);
        assert_eq!(of([0, 1, 2, 3, 4, 5, 8, 9, 1024]), [0, 0, 1, 2, 2, 3, 3, 4, 10]);
    }

    #[test]
    fn formulas_by_hand() {
        let of = |shape, ranks| {
            let Prediction { total_ns, processor_ns } = predict(shape, ranks, &COSTS);
            (total_ns, processor_ns)
        };
        assert_eq!(of(Shape::Barrier, 8), (3.0 * 1500.0, 3.0 * 500.0));
        assert_eq!(of(Shape::Broadcast { bytes: 4000 }, 5), (3.0 * 5500.0, 3.0 * 500.0));
        let allreduce = (2.0 * (2.0 * 5500.0 + 1000.0), 2.0 * (1000.0 + 1000.0));
        assert_eq!(of(Shape::Allreduce { bytes: 4000 }, 4), allreduce);
    }

    #[test]
    fn one_rank_communicates_with_nobody() {
        for shape in [Shape::Barrier, Shape::Broadcast { bytes: 8 }, Shape::Allreduce { bytes: 8 }]
        {
            assert_eq!(predict(shape, 1, &COSTS), Prediction { total_ns: 0.0, processor_ns: 0.0 });
        }
    }

    /// As measured in [HO07]: the larger the message, the smaller the part of the processor.
    #[test]
    fn what_is_left_to_the_network_grows_with_the_size() {
        let share = |bytes| {
            let prediction = predict(Shape::Allreduce { bytes }, 16, &COSTS);
            prediction.network_ns() / prediction.total_ns
        };
        assert!(share(8) < share(1024) && share(1024) < share(1 << 20));
    }
}
