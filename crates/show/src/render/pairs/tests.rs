//! What is printed of pairs made by hand.

use super::*;
use lapscope_measure::reach::available::{Available, DataTimes};
use lapscope_measure::reach::network::{table, AlikeMessages, Demand, Network, BANDWIDTHS};
use lapscope_measure::reach::pairs::{Granularities, SizeRow, TransferTime, LOSS};
use lapscope_measure::reach::pattern::Votes;

fn end(call: &str, is_measured: bool) -> PairEnd {
    PairEnd { call: call.to_owned(), site: None, is_measured }
}

fn all(bounds: ConfidenceBounds) -> Available {
    let of = DataTimes { worst: bounds, half: bounds };
    Available { sent_while_produced: of, sent_when_produced: of, received_while_consumed: of }
}

fn row(pattern: Pattern, available: ConfidenceBounds, overlap: ConfidenceBounds) -> PairRow {
    PairRow {
        send: end("MPI_Isend", true),
        receive: end("MPI_Irecv", available.high.is_some()),
        locality: Locality::Node,
        from_bytes: 4096,
        below_bytes: 8192,
        messages: 40,
        bytes: 40 * 4096,
        pattern,
        votes: Votes::default(),
        available_ns: all(available),
        transfer_ns: Some(TransferTime { low: 9_000, estimate: 10_000, high: 12_000 }),
        normalized_overlap: Some(Granularities::by(|_| overlap)),
        later_hidden: Some(LaterHidden { low: 0.125, high: 0.5 }),
    }
}

fn pairs() -> Pairs {
    let known = ConfidenceBounds { low: 6_000.0, estimate: None, high: Some(8_000.0) };
    let at_least = ConfidenceBounds { low: 5_000.0, estimate: None, high: None };
    let overlap = |low, high| ConfidenceBounds { low, estimate: None, high };
    let share =
        Granularities::by(|_| Some(ConfidenceBounds { low: 0.5, estimate: None, high: Some(0.8) }));
    let totals = Sum {
        messages: 120,
        bytes: 120 * 4096,
        timed_messages: 80,
        transfer_ns: Nanos(800_000),
        hidden: share,
        normalized_overlap: Granularities::by(|_| Some(0.5)),
    };
    let messages = AlikeMessages { count: 80.0, bytes: 4096.0, available: 6_000.0 };
    let demand = Demand { computation: 1e9, messages: vec![messages] };
    Pairs {
        rows: vec![
            row(Pattern::Concurrent, known, overlap(0.5, Some(0.875))),
            row(Pattern::Pipelined, overlap(0.0, Some(7_000.0)), overlap(0.0, Some(0.7))),
            row(Pattern::Unknown, at_least, overlap(0.5, None)),
        ],
        pair_count: 3,
        run_messages: 1000,
        run_bytes: 1000 * 4096,
        sizes: vec![SizeRow { from_bytes: 4096, below_bytes: 8192, sum: totals.clone() }],
        totals,
        networks: Some(Networks {
            computation_ns: Nanos(1_000_000_000),
            bandwidths: BANDWIDTHS,
            loss: LOSS,
            tables: Granularities::by(|_| table(&demand, LOSS)),
            small_collectives: SmallCollectives {
                max_bytes: 1024,
                calls: 12,
                shares: [0.001, 0.002, 0.004, 0.008],
            },
            asked: vec![Predicted {
                network: Network { latency_ns: 4_000.0, bytes_per_s: 950e6 },
                without_overlap: 1.25,
                with_overlap: Granularities {
                    sent_when_produced: 1.125,
                    received_while_consumed: 1.0625,
                    sent_while_produced: 1.05,
                },
                small_collectives: 0.004,
                unwatched_messages: 0.03,
            }],
        }),
    }
}

fn text(pairs: &Pairs, width: usize) -> String {
    let mut out = Vec::new();
    write(&mut out, pairs, Style { color: false, width }).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn pairs_and_networks_fit_a_hundred_columns() {
    let text = text(&pairs(), 100);
    assert_eq!(text, include_str!("expected.txt"));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn what_is_not_known_is_said() {
    let mut unknown = pairs();
    unknown.networks = None;
    unknown.totals.timed_messages = 0;
    for row in &mut unknown.rows {
        (row.transfer_ns, row.normalized_overlap) = (None, None);
    }
    let text = text(&unknown, 100);
    assert!(text.contains("lapscope calibrate"), "{text}");
    assert!(!text.contains("NETWORKS") && !text.contains("SIZES"), "{text}");
    assert_eq!(of_bounds(ConfidenceBounds::UNKNOWN, &times), "not known");
}

#[test]
fn rates_have_a_unit() {
    assert_eq!(
        [1e6, 9.51e6, 950e6, 1e9, 1.25e9, 5e9].map(rate).join(", "),
        "1 MB/s, 9.5 MB/s, 950 MB/s, 1 GB/s, 1.2 GB/s, 5 GB/s"
    );
}
