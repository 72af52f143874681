//! A run of two ranks whose pairs were worked out by hand.

use lapscope_fixture::messages::{Rows, What};
use lapscope_fixture::tables::Rank;

use super::super::network::Tolerated;
use super::super::order::AccessOrder;
use super::*;
use crate::reference::{ReferenceSource, Sample};
use lapscope_data::model::Nanos;
use lapscope_data::symbols::Symbols;

const STEPS: i64 = 20;
/// From one step to the next, and of it in MPI.
const STEP: i64 = 100_000;
const IN_MPI: i64 = 14_000;
const BYTES: i64 = 4096;
const TRANSFER: i64 = 10_000;

/// Both ranks exchange 4 KB in each step: Irecv, Isend, Waitall. Rank 0 also sends 64 KB once.
fn run(directory: &std::path::Path) -> Trace {
    let write = |rank: i64| {
        let mut rows = Rows::default();
        let other = 1 - rank;
        let receive: What = ("MPI_Irecv", "recv", BYTES, other, 1);
        let send: What = ("MPI_Isend", "send", BYTES, other, 1);
        for step in 0..STEPS {
            let begin = 10_000 + step * STEP;
            let posted = [(receive, begin, 1_000, 1_000), (send, begin + 1_000, 1_000, 0)];
            rows.complete("MPI_Waitall", begin + 2_000, IN_MPI - 2_000, &posted);
        }
        let end = 10_000 + STEPS * STEP;
        let large = |call, kind| (call, kind, 16 * BYTES, other, 2);
        match rank {
            0 => rows.blocking(large("MPI_Send", "send"), end, IN_MPI),
            _ => rows.blocking(large("MPI_Recv", "recv"), end, IN_MPI),
        }
        rows.blocking(("MPI_Allreduce", "collective", 8, -1, -1), end + 20_000, IN_MPI);
        let rank = Rank { init_end_ns: 0, end_ns: end + STEP, ..Rank::plain(rank) };
        rank.write(directory, |file| rows.write(file))
    };
    let files = [0, 1].map(write);
    let (trace, failed) = Trace::read(&files, &|_| ()).unwrap();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(trace.matching.messages, 2 * STEPS as u64 + 1);
    trace
}

/// Every transfer of 4 KB and nearby takes as long.
fn reference() -> Reference {
    let bytes = BYTES as u64;
    let sample = Sample {
        locality: Locality::Node,
        bytes,
        ns: TRANSFER,
        is_upwards: true,
        is_disturbed: false,
    };
    Reference::fit(vec![sample; 50], [], ReferenceSource::Run)
}

fn site(trace: &Trace, call: &str) -> SiteId {
    let mut operations = trace.ranks.iter().flat_map(|rank| &rank.operations);
    let is_it = |site: &SiteId| trace.places.call(*site).name == call;
    operations.find(|operation| is_it(&operation.site)).unwrap().site
}

/// On it a message of 4096 bytes takes 8.096 us.
const NETWORK: Network = Network { latency_ns: 4_000.0, bytes_per_s: 1e9 };

const WORDS: u64 = BYTES as u64 / WORD_BYTES;

fn profiles(trace: &Trace) -> Profiles {
    let size = (BYTES as u64, BYTES as u64);
    // T_P 10, T_C 4 ns over 511 steps
    let send = Profile::exactly(AccessOrder::Same, 5_000.0, 10.0, WORDS);
    let receive = Profile::exactly(AccessOrder::Same, 1_000.0, 4.0, WORDS);
    Profiles::new([
        (site(trace, "MPI_Isend"), Side::Send, size, send),
        (site(trace, "MPI_Irecv"), Side::Receive, size, receive),
    ])
}

fn pairs(trace: &Trace, profiles: &Profiles) -> Option<Pairs> {
    let mut names = Symbols::new(trace.places.modules.clone());
    Pairs::build(trace, &reference(), profiles, &[NETWORK], &mut names)
}

#[test]
fn a_pair_of_sites() {
    let directory = tempfile::tempdir().unwrap();
    let trace = run(directory.path());
    let pairs = pairs(&trace, &profiles(&trace)).unwrap();
    assert_eq!((pairs.run_messages, pairs.run_bytes), (41, (40 * BYTES + 16 * BYTES) as u64));
    let [row] = &pairs.rows[..] else { panic!("{:?}", pairs.rows) };
    assert_eq!((row.send.call.as_str(), row.receive.call.as_str()), ("MPI_Isend", "MPI_Irecv"));
    assert_eq!((row.messages, row.bytes), (40, 40 * BYTES as u64));
    assert_eq!((row.from_bytes, row.below_bytes), (4096, 8192));
    assert_eq!(row.pattern, Pattern::Concurrent);
    assert_eq!(row.votes.concurrent, 40);
    let worst = Granularities::worst(&row.available_ns);
    assert_eq!(worst.sent_when_produced, ConfidenceBounds::exactly(6_000.0));
    assert_eq!(worst.sent_while_produced, ConfidenceBounds::exactly(6_000.0 + 511.0 * 4.0));
    assert_eq!(row.transfer_ns.unwrap().estimate, TRANSFER);
    let overlap = row.normalized_overlap.unwrap();
    assert_eq!(overlap.sent_when_produced.estimate, Some(0.6));
    assert_eq!(overlap.sent_while_produced.estimate, Some(0.8044));
    assert_eq!(row.later_hidden, None);

    let Sum { timed_messages, transfer_ns, hidden, normalized_overlap, .. } = &pairs.totals;
    assert_eq!((*timed_messages, *transfer_ns), (40, Nanos(40 * TRANSFER)));
    let hidden = hidden.sent_when_produced.unwrap();
    assert!((hidden.low - 0.6).abs() < 1e-9 && hidden.estimate == hidden.high, "{hidden:?}");
    assert_eq!(normalized_overlap.sent_when_produced, Some(0.6));
    assert_eq!(pairs.sizes.len(), 1);
}

#[test]
fn networks_of_a_run() {
    let directory = tempfile::tempdir().unwrap();
    let trace = run(directory.path());
    let networks = pairs(&trace, &profiles(&trace)).unwrap().networks.unwrap();
    // the last step has two more calls
    let outside = 10_000 + STEPS * (STEP - IN_MPI) + STEP - 2 * IN_MPI;
    assert_eq!(networks.computation_ns, Nanos(2 * outside));
    let of_latency = &networks.tables.sent_when_produced[2];
    assert_eq!(of_latency.latency_ns, 4_000.0);
    let exposed = 40.0 * (4_000.0 + 4_096_000.0 - 6_000.0);
    let expected = 1.0 + exposed / (2.0 * outside as f64);
    assert!((of_latency.execution[0] - expected).abs() < 1e-9, "{of_latency:?}");
    // 4 us and 2.048 us at 2 GB/s hide in 6.0 us but for 48 ns
    assert_eq!(of_latency.execution[7], 1.0);
    let Tolerated::From(least) = of_latency.least_bandwidth else { panic!("{of_latency:?}") };
    let loss = 40.0 * (4_000.0 + 4096.0 / least * 1e9 - 6_000.0) / (2.0 * outside as f64);
    assert!((0.0095..=0.01).contains(&loss), "{loss}");
    // both ranks there and back: 2 log2(2) latencies each
    let SmallCollectives { calls, shares, .. } = networks.small_collectives;
    let expected = 2.0 * 2.0 * 4_000.0 / (2.0 * outside as f64);
    assert!(calls == 2 && (shares[2] - expected).abs() < 1e-12, "{shares:?}");

    // by hand: 40 messages of 8.096 us, of which independent work hides 6 us, and the first datum, sent once it is
    // written, all but 52 ns;    // 64 KiB that nobody watched, 69.536 us; two collectives of 8 us
    let [predicted] = &networks.asked[..] else { panic!("{:?}", networks.asked) };
    let over = |ns: f64| ns / (2.0 * outside as f64);
    let unhidden = over(16_000.0) + over(69_536.0);
    let Predicted { with_overlap, .. } = predicted;
    for (found, expected) in [
        (predicted.small_collectives, over(16_000.0)),
        (predicted.unwatched_messages, over(69_536.0)),
        (predicted.without_overlap, 1.0 + over(40.0 * 8_096.0) + unhidden),
        (with_overlap.sent_when_produced, 1.0 + over(40.0 * 2_096.0) + unhidden),
        (with_overlap.received_while_consumed, 1.0 + over(40.0 * 2_096.0) + unhidden),
        (with_overlap.sent_while_produced, 1.0 + over(40.0 * 52.0) + unhidden),
    ] {
        assert!((found - expected).abs() < 1e-9, "{predicted:?} {expected}");
    }
}

#[test]
fn one_side_alone_gives_a_lower_bound_and_no_side_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let trace = run(directory.path());
    let mut profiles = profiles(&trace);
    profiles.0.remove(&(site(&trace, "MPI_Irecv"), Side::Receive));
    let row = pairs(&trace, &profiles).unwrap().rows.remove(0);
    assert!(row.send.is_measured && !row.receive.is_measured);
    let worst = ConfidenceBounds { low: 5_000.0, estimate: None, high: None };
    assert_eq!(Granularities::worst(&row.available_ns).sent_when_produced, worst);
    let overlap = row.normalized_overlap.unwrap().sent_while_produced;
    assert_eq!(overlap, ConfidenceBounds { low: 0.5, estimate: None, high: None });
    assert!(pairs(&trace, &Profiles::default()).is_none());
    let half = Profile::exactly(AccessOrder::Same, 5_000.0, 10.0, WORDS / 2);
    let of_size = |bytes: i64| {
        let size = (bytes as u64, bytes as u64);
        Profiles::new([(site(&trace, "MPI_Isend"), Side::Send, size, half)])
    };
    assert!(pairs(&trace, &of_size(BYTES / 2)).is_some());
    assert!(pairs(&trace, &of_size(BYTES / 5)).is_none(), "other buffers");
}

#[test]
fn few_messages_of_a_pair_have_bounds_only() {
    let directory = tempfile::tempdir().unwrap();
    let trace = run(directory.path());
    let size = (16 * BYTES as u64, 16 * BYTES as u64);
    let send = Profile::exactly(AccessOrder::AtOnce, 5_000.0, 0.0, 16 * WORDS);
    let receive = Profile { all: ConfidenceBounds::exactly(2_000.0), ..send };
    let profiles = Profiles::new([
        (site(&trace, "MPI_Send"), Side::Send, size, send),
        (site(&trace, "MPI_Recv"), Side::Receive, size, receive),
    ]);
    let pairs = pairs(&trace, &profiles).unwrap();
    let row = &pairs.rows[0];
    assert_eq!(row.pattern, Pattern::Unknown);
    let worst = ConfidenceBounds { low: 0.0, estimate: None, high: Some(7_000.0) };
    assert_eq!(Granularities::worst(&row.available_ns).sent_when_produced, worst);
}
