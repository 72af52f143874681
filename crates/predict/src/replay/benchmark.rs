//! The overlap benchmark of Rashti and Afsahi (2007), in the two timing scenarios of their speculative rendezvous (2008), replayed:
//! how much of a transfer a computation hides by what decides a protocol alone, on a network of a few parameters.
//!
//! Two ranks, one message, synchronous as in the papers. One side computes between its post and its wait, the other one waits
//! inside MPI; progress is made inside MPI only. Which side posts first is arranged by a delay of the other, and times begin when
//! both have posted, so that the delay hides nothing.

use super::scenario::{Progress, Protocol};
use super::{replay, Conditions, Durations, LocalityNetwork, Network, Program};
use lapscope_data::model::{Mode, Nanos};
use lapscope_measure::reference::Reference;
use lapscope_trace::script::{Act, Message, Script};

/// The protocols that the papers compare.
pub const PROTOCOLS: [Protocol; 3] =
    [Protocol::RendezvousWrite, Protocol::RendezvousRead, Protocol::Speculative];

/// A transfer may become longer by so much before the computation counts as too long.
const TOLERANCE: f64 = 1.1;
/// Computations grow by such parts of l0. None of more than [`TOLERANCE`] of it fits, so that there are so many steps at most.
const PARTS: i64 = 10;
const STEPS: i64 = 12;
/// By how much the second side posts later, nanoseconds; more where control messages take long. As in `examples/speculative`.
const LATE_NS: i64 = 500_000;

/// One of the two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchmarkSide {
    Sender,
    Receiver,
}

impl BenchmarkSide {
    pub const ALL: [BenchmarkSide; 2] = [BenchmarkSide::Receiver, BenchmarkSide::Sender];
}

/// What the ranks are connected by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// One way of a small message with the overheads of both ends, nanoseconds.
    pub latency_ns: f64,
    /// G of LogGPS.
    pub gap_ns_per_byte: f64,
    /// o_s and o_r of LogGPS: what a post, and a wait that finds everything done, takes the sender and the receiver, nanoseconds.
    pub overhead_ns: [f64; 2],
}

/// One transfer and how it is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    pub protocol: Protocol,
    /// Who posts first.
    pub first: BenchmarkSide,
    /// Who computes, and whose time counts.
    pub computes: BenchmarkSide,
    pub bytes: u64,
}

/// What came out. Times of the side in question, since both have posted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlap {
    /// l0: until the end of its wait without any computation, nanoseconds.
    pub l0_ns: Nanos,
    /// c: the most computation that made it no longer than 1.1 l0, nanoseconds.
    pub compute_ns: Nanos,
    /// (c - (l - l0)) / l0 at that computation, l being the time with it.
    pub ratio: f64,
}

/// One transfer with a computation.
struct Timing {
    /// c: of the computation what lay behind the posts of both.
    computed: i64,
    /// l.
    until_end: i64,
}

/// The overlap of one case.
pub fn measure(link: &Link, case: &Case) -> Overlap {
    let l0 = time(link, case, 0).until_end;
    let mut best = Overlap { l0_ns: Nanos(l0), compute_ns: Nanos(0), ratio: 0.0 };
    for step in 1..=STEPS {
        let Timing { computed, until_end } = time(link, case, l0 * step / PARTS);
        if until_end as f64 > TOLERANCE * l0 as f64 {
            break;
        }
        let hidden = computed - (until_end - l0);
        best.compute_ns = Nanos(computed);
        best.ratio = (hidden as f64 / l0.max(1) as f64).clamp(0.0, 1.0);
    }
    best
}

fn time(link: &Link, case: &Case, compute: i64) -> Timing {
    let late = LATE_NS.max((10.0 * link.latency_ns) as i64);
    let overheads = link.overhead_ns.map(|ns| (ns.round() as i64).max(1));
    let mut script = Script::new(2);
    (script.nodes, script.calls) = (vec![0, 1], overheads.to_vec());
    for side in BenchmarkSide::ALL {
        let rank = side as usize;
        let is_late = side != case.first;
        if is_late {
            script.act(rank, Act::Compute(late));
        }
        let message = Message { mode: Mode::Synchronous, ..Message::new(1 - rank, 0, case.bytes) };
        script.act(
            rank,
            if side == BenchmarkSide::Sender { Act::Isend(message) } else { Act::Irecv(message) },
        );
        if side == case.computes && compute > 0 {
            // the first one computes until the other one posts, too
            let before = if is_late { 0 } else { late - overheads[rank] };
            script.act(rank, Act::Compute(before.max(0) + compute));
        }
        script.act(rank, Act::Wait(vec![0]));
    }
    let trace = script.trace();
    let conditions = Conditions::as_recorded(trace.ranks.len());
    let network = network(link, case.protocol);
    let outcome =
        replay(&trace, &Program::new(&trace), &network, &conditions, &Durations::default());
    let posted = outcome.ranks.iter().map(|rank| rank.posted[0]).max().unwrap_or(0);
    let side = case.computes as usize;
    let own = &outcome.ranks[side];
    let from = posted.max(own.posted[0] + overheads[side]);
    let wait = own.calls[0];
    Timing { computed: (wait.begin - from).max(0), until_end: wait.end() - posted }
}

fn network(link: &Link, protocol: Protocol) -> Network {
    let of_all = LocalityNetwork {
        latency: link.latency_ns,
        gap_per_byte: link.gap_ns_per_byte,
        protocol,
        ..LocalityNetwork::ASSUMED
    };
    let localities = [of_all.clone(), of_all.clone(), of_all];
    Network {
        localities,
        progress: Progress::Inside,
        ..Network::from_reference(&Reference::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 us and 950 MB/s.
    const LINK: Link =
        Link { latency_ns: 4_000.0, gap_ns_per_byte: 1e9 / 950e6, overhead_ns: [300.0, 500.0] };

    fn measure_protocol(
        protocol: Protocol,
        first: BenchmarkSide,
        computes: BenchmarkSide,
    ) -> Overlap {
        measure(&LINK, &Case { protocol, first, computes, bytes: 262_144 })
    }

    #[test]
    fn an_early_receive_overlaps_only_when_it_announces_itself() {
        let of = |protocol| {
            measure_protocol(protocol, BenchmarkSide::Receiver, BenchmarkSide::Receiver).ratio
        };
        assert!(of(Protocol::RendezvousWrite) < 0.1);
        assert!(of(Protocol::RendezvousRead) < 0.1);
        assert!(of(Protocol::Speculative) > 0.95, "{}", of(Protocol::Speculative));
    }

    #[test]
    fn a_late_receive_finds_the_sender_inside() {
        for protocol in PROTOCOLS {
            let ratio =
                measure_protocol(protocol, BenchmarkSide::Sender, BenchmarkSide::Receiver).ratio;
            assert!(ratio > 0.9, "{protocol}: {ratio}");
        }
    }

    #[test]
    fn a_send_overlaps_unless_it_waits_for_the_receivers_answer() {
        for first in BenchmarkSide::ALL {
            let of = |protocol| measure_protocol(protocol, first, BenchmarkSide::Sender).ratio;
            assert!(of(Protocol::RendezvousWrite) < 0.1, "{first:?}");
            assert!(of(Protocol::RendezvousRead) > 0.9, "{first:?}");
            assert!(of(Protocol::Speculative) > 0.9, "{first:?}");
        }
    }

    /// Control messages and data by arithmetic: who posts last waits for what is still to come.
    #[test]
    fn l0_is_the_sum_of_what_is_on_the_way() {
        let wire = (262_144.0 * LINK.gap_ns_per_byte).round() as i64;
        let l0 = |protocol| {
            measure_protocol(protocol, BenchmarkSide::Receiver, BenchmarkSide::Receiver).l0_ns.0
        };
        assert_eq!(l0(Protocol::RendezvousWrite), 3 * 4_000 + wire, "RTS, CTS, data");
        assert_eq!(l0(Protocol::RendezvousRead), 3 * 4_000 + wire, "RTS, request, data");
        assert_eq!(l0(Protocol::Speculative), 4_000 + wire, "data");
        let sent =
            measure_protocol(Protocol::Speculative, BenchmarkSide::Receiver, BenchmarkSide::Sender)
                .l0_ns
                .0;
        assert_eq!(sent, wire, "the sender is through when they have left");
    }

    /// A computation as long as the transfer: what a post takes of it cannot be computed meanwhile.
    #[test]
    fn what_the_post_takes_is_not_overlapped() {
        let case = Case {
            protocol: Protocol::Speculative,
            first: BenchmarkSide::Receiver,
            computes: BenchmarkSide::Sender,
            bytes: 65_536,
        };
        let ratio = |ns| measure(&Link { overhead_ns: [ns, ns], ..LINK }, &case).ratio;
        assert!(ratio(5_000.0) < ratio(100.0), "{} and {}", ratio(5_000.0), ratio(100.0));
    }
}
