//! Which messages and collectives of a run say how long a transfer takes: each kind has a size of its own, and its answer was
//! worked out on paper.

use std::path::{Path, PathBuf};

use lapscope_fixture::messages::Rows;
use lapscope_fixture::tables::Rank;
use lapscope_measure::reference::{Reference, ReferenceSource};
use lapscope_trace::{Locality, Trace};

const ISEND: &str = "MPI_Isend";
const IRECV: &str = "MPI_Irecv";
const WAITALL: &str = "MPI_Waitall";
const SEND: &str = "MPI_Send";
const BARRIER: &str = "MPI_Barrier";
const RECV: &str = "MPI_Recv";
const IALLTOALL: &str = "MPI_Ialltoall";

const AWAITED: i64 = 1_000;
const RECEIVER_LATE: i64 = 10_000;
const SENDER_COMPUTED: i64 = 20_000;
const TOGETHER: i64 = 30_000;
const RECEIVER_LOOKED_LATER: i64 = 40_000;
const WITHOUT_WINDOW: i64 = 50_000;

/// One round of every kind, from `t` on.
fn round(sender: &mut Rows, receiver: &mut Rows, t: i64) {
    let send = |call, bytes| (call, "send", bytes, 1, 7);
    let receive = |call, bytes| (call, "recv", bytes, 0, 7);
    // the receiver is there 20 us early: 5 us
    sender.blocking(send(SEND, AWAITED), t + 20_000, 4_000);
    receiver.blocking(receive(RECV, AWAITED), t, 25_000);
    // it comes 30 us after the send
    sender.blocking(send(SEND, RECEIVER_LATE), t + 100_000, 40_000);
    receiver.blocking(receive(RECV, RECEIVER_LATE), t + 130_000, 10_000);
    // the sender computes for 50 us before it waits
    let request = (send(ISEND, SENDER_COMPUTED), t + 200_000, 1_000, 0);
    sender.complete(WAITALL, t + 251_000, 9_000, &[request]);
    receiver.blocking(receive(RECV, SENDER_COMPUTED), t + 190_000, 70_000);
    // two messages at once: which took how long?
    let one = |begin| (send(ISEND, TOGETHER), begin, 500, 0);
    sender.complete(WAITALL, t + 301_000, 9_000, &[one(t + 300_000), one(t + 300_500)]);
    let other = |begin| (receive(IRECV, TOGETHER), begin, 500, 0);
    receiver.complete(WAITALL, t + 291_000, 20_000, &[other(t + 290_000), other(t + 290_500)]);
    // posted in time, and waited for 40 us after the send
    sender.blocking(send(SEND, RECEIVER_LOOKED_LATER), t + 400_000, 50_000);
    let request = (receive(IRECV, RECEIVER_LOOKED_LATER), t + 390_000, 500, 0);
    receiver.complete(WAITALL, t + 440_000, 10_000, &[request]);
    // a request that is waited for at once is as good as a blocking call: 30 us
    let request = (send(ISEND, WITHOUT_WINDOW), t + 500_000, 1_000, 0);
    sender.complete(WAITALL, t + 501_100, 20_000, &[request]);
    receiver.blocking(receive(RECV, WITHOUT_WINDOW), t + 490_000, 40_000);
}

/// `rounds` of `more`, a millisecond each.
fn run(rounds: i64, more: impl Fn(&mut Rows, &mut Rows, i64)) -> (tempfile::TempDir, Reference) {
    let directory = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (Rows::default(), Rows::default());
    for number in 0..rounds {
        more(&mut first, &mut second, number * 1_000_000);
    }
    let files = [write(directory.path(), 0, &first), write(directory.path(), 1, &second)];
    let (trace, failed) = Trace::read(&files, &|_| ()).unwrap();
    assert!(failed.is_empty(), "{failed:?}");
    (directory, Reference::of_run(&trace))
}

fn write(directory: &Path, rank: i64, rows: &Rows) -> PathBuf {
    let rank = Rank { end_ns: 10_000_000, ..Rank::plain(rank) };
    rank.write(directory, |file| rows.write(file))
}

#[test]
fn only_transfers_with_nothing_in_between_count() {
    let (_directory, reference) = run(4, round);
    let found: Vec<(f64, f64, u64)> = reference
        .points(Locality::Node)
        .iter()
        .map(|point| (point.bytes, point.ns, point.samples))
        .collect();
    let expected = [(AWAITED as f64, 5_000.0, 4), (WITHOUT_WINDOW as f64, 30_000.0, 4)];
    assert_eq!(found, expected);
    assert_eq!(reference.source, ReferenceSource::Run);
}

#[test]
fn too_few_are_none() {
    let (_directory, reference) = run(2, round);
    assert!(reference.is_empty());
    assert_eq!(reference.source, ReferenceSource::None);
}

/// Rank 1 comes 2 us after rank 0, and both leave 10 us later: 10 us. In every other barrier it comes 90 us late, when rank 0
/// has done its part already.
#[test]
fn collectives_count_from_the_last_entry() {
    let (_directory, reference) = run(6, |first, second, t| {
        let barrier = (BARRIER, "collective", 0, -1, -1);
        first.blocking(barrier, t, 12_000);
        second.blocking(barrier, t + 2_000, 10_000);
        first.blocking(barrier, t + 100_000, 94_000);
        second.blocking(barrier, t + 190_000, 4_000);
    });
    let estimate = reference.collective("MPI_Barrier", 2, 0).unwrap();
    let points: Vec<_> = reference.collective_points().collect();
    let [("MPI_Barrier", 2, [point])] = points[..] else { panic!("{points:?}") };
    assert_eq!((estimate.ns, point.samples), (10_000, 6));
}

/// What `osu_ialltoall` does: MPI_Ialltoall and MPI_Wait at once, 40 us from the entry of the rank that comes last; then the
/// same with computation in between, on both ranks, or on one. Those tell nothing.
#[test]
fn nonblocking_collectives_that_are_waited_for_at_once_count() {
    let what = (IALLTOALL, "collective", 4_096, -1, -1);
    let (_directory, reference) = run(6, |first, second, t| {
        first.complete(WAITALL, t + 2_000, 43_000, &[(what, t, 1_900, 0)]);
        second.complete(WAITALL, t + 7_000, 38_000, &[(what, t + 5_000, 1_900, 0)]);
        for (begin, of_second) in [(200_000, 202_000), (400_000, 302_000)] {
            first.complete(WAITALL, t + begin + 102_000, 3_000, &[(what, t + begin, 1_900, 0)]);
            let end = t + begin + 105_000;
            let waited = t + begin + 302_000 - of_second;
            second.complete(
                WAITALL,
                waited + 2_000,
                end - waited - 2_000,
                &[(what, waited, 1_900, 0)],
            );
        }
    });
    assert_eq!(reference.collective("MPI_Alltoall", 2, 4_096), None);
    let points: Vec<_> = reference.collective_points().collect();
    let [("MPI_Ialltoall", 2, [point])] = points[..] else { panic!("{points:?}") };
    assert_eq!((point.ns, point.samples), (40_000.0, 6));
    let estimate = reference.nonblocking_collective("MPI_Alltoall", 2, 4_096).unwrap();
    assert_eq!(estimate.ns, 40_000);
}

/// Both ranks post a receive and a send of as many bytes and wait for both: 20 us from the post of the rank that comes last.
/// Where one call completes a third request, too, nobody knows which of them took how long.
#[test]
fn an_exchange_that_is_waited_for_at_once_counts() {
    let of = |more: usize| {
        let (_directory, reference) = run(4, |first, second, t| {
            for (rows, begin, peer) in [(first, t, 1), (second, t + 10_000, 0)] {
                let all = [
                    ((IRECV, "recv", AWAITED, peer, 7), begin, 500, 0),
                    ((ISEND, "send", AWAITED, peer, 7), begin + 500, 500, 0),
                    ((ISEND, "send", 8, peer, 8), begin + 1_000, 100, 0),
                ];
                rows.complete(WAITALL, begin + 1_200, t + 30_500 - begin - 1_200, &all[..2 + more]);
            }
        });
        let points = reference.points(Locality::Node);
        points.iter().map(|point| (point.bytes, point.ns, point.samples)).collect::<Vec<_>>()
    };
    assert_eq!(of(0), [(AWAITED as f64, 20_000.0, 4)]);
    assert_eq!(of(1), []);
}
