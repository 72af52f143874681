//! The published figures of [SA06], and tables worked out by hand.

use super::*;

/// The testbed of [SA06].
const TESTBED: Network = Network { latency_ns: 4_000.0, bytes_per_s: 950e6 };

/// Program, available time of the worst datum, words, normalised overlap, computation of an iteration; times in microseconds.
const PUBLISHED: [(&str, f64, f64, f64, f64); 5] = [
    ("HYCOM", 229.3, 11_232.0, 2.32, 2_588.0),
    ("POP", 19.39, 352.0, 2.78, 31.46),
    ("SAGE", 1_943.0, 36_424.0, 6.25, 5_577.0),
    ("SAGE-AMR", 3_061.0, 127_104.0, 2.84, 9_170.0),
    ("Sweep3D", 9.46, 10.0, 2.31, 10.08),
];

fn demand((_, available, words, _, computation): (&str, f64, f64, f64, f64)) -> Demand {
    let messages = AlikeMessages { count: 1.0, bytes: words * 8.0, available: available * 1e3 };
    Demand { computation: computation * 1e3, messages: vec![messages] }
}

#[test]
fn published_overlap_of_the_testbed() {
    for published in PUBLISHED {
        let (program, _, _, overlap, _) = published;
        let AlikeMessages { bytes, available, .. } = demand(published).messages[0];
        let computed = normalized_overlap(available, TESTBED.transfer(bytes));
        // HYCOM's 2.326 and SAGE-AMR's 2.849 were published as 2.32 and 2.84: cut off, not rounded
        assert!((0.0..0.01).contains(&(computed - overlap)), "{program}: {computed}");
    }
}

#[test]
fn published_programs_lose_nothing_on_the_testbed() {
    for published in PUBLISHED {
        assert_eq!(demand(published).execution(&TESTBED), Some(1.0), "{}", published.0);
    }
}

#[test]
fn the_least_bandwidth_is_that_of_an_overlap_of_one() {
    for published in PUBLISHED {
        let demand = demand(published);
        let AlikeMessages { bytes, available, .. } = demand.messages[0];
        for latency_ns in LATENCIES_NS {
            let exact = bytes / (available - latency_ns) * 1e9;
            match demand.least_bandwidth(latency_ns, 0.0) {
                Some(Tolerated::From(least)) => {
                    assert!((0.999..1.002).contains(&(least / exact)), "{published:?} {least}");
                    let network = Network { latency_ns, bytes_per_s: least };
                    assert!(normalized_overlap(available, network.transfer(bytes)) >= 0.999);
                }
                other => panic!("{published:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_is_not_hidden_is_added_to_computation() {
    let messages = |count, bytes, available| AlikeMessages { count, bytes, available };
    let demand = Demand {
        computation: 1e6,
        // at 100 MB/s 4 + 10 us, of which 9 are hidden; all hidden
        messages: vec![messages(2.0, 1000.0, 9_000.0), messages(5.0, 100.0, 6_000.0)],
    };
    let network = Network { latency_ns: 4_000.0, bytes_per_s: 100e6 };
    assert_eq!(demand.execution(&network), Some(1.01));
    assert_eq!(Demand { computation: 0.0, ..demand.clone() }.execution(&network), None);
    assert_eq!(Demand { computation: 1e6, messages: vec![] }.execution(&network), None);

    let rows = table(&demand, 0.0);
    assert_eq!(rows.len(), LATENCIES_NS.len());
    assert_eq!(rows[2].execution[4], 1.01);
    // 8 us are more than one of them has
    assert_eq!(rows[3].least_bandwidth, Tolerated::None);
    // 1 MB/s: 2 (4 + 1000 - 9) + 5 (4 + 100 - 6) us
    assert_eq!(rows[2].execution[0], (1000.0 + 1990.0 + 490.0) / 1000.0);
    assert_eq!(demand.least_bandwidth(4_000.0, 10.0), Some(Tolerated::Any));
    assert!(table(&Demand::default(), 0.0).is_empty());
}

#[test]
fn small_collectives_are_trees() {
    assert_eq!(TESTBED.small_collective(1), 0.0);
    assert_eq!(TESTBED.small_collective(2), 8_000.0);
    assert_eq!(TESTBED.small_collective(1024), 80_000.0);
}
