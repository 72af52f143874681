//! Calls that communicate nothing themselves and wait for ranks that come late. Moments are microseconds.

use crate::fixture::json;
use lapscope_fixture::calls::Calls;
use lapscope_fixture::messages::Rows;
use lapscope_fixture::tables::{Call, Operation, Rank, Tally, Thread};
use lapscope_fixture::{call_id, Fixture};
use serde_json::{json, Value};
use tempfile::TempDir;

/// Two ranks on one clock, of 1 ms, with what else their files have.
fn run(ranks: &[Calls; 2], more: impl Fn(i64, &Fixture)) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for calls in ranks {
        let rank = Rank { end_ns: 1_000_000, ..Rank::plain(calls.rank) };
        rank.write(directory.path(), |file| {
            calls.write(file);
            more(calls.rank, file);
        });
    }
    directory
}

fn report(run: &TempDir) -> Value {
    json(run.path(), &["report", "."])
}

/// The advice on ranks that come late: its time, where the wait is, and who is waited for.
fn late(report: &Value) -> (i64, i64, Value) {
    let all = report["advice"].as_array().unwrap();
    let late = all.iter().find(|advice| advice["cure"] == "partner_late");
    let late = late.unwrap_or_else(|| panic!("nobody is late: {all:#?}"));
    let at = late["waiting"]["site"]["address"].as_i64().unwrap();
    (late["time_ns"].as_i64().unwrap(), at, late["change_ranks"].clone())
}

const SMALL: (i64, i64, i64) = (64, 0, 7);

/// Rank 0 looks for a message from 10 on; rank 1 sends it at 500.
fn probed(name: &str, begin: i64) -> [Calls; 2] {
    let mut ranks = Calls::pair();
    ranks[0].block(Operation::receive(name, 3, (64, 1, 7)), begin, 510);
    ranks[0].block(Operation::receive("MPI_Recv", 4, (64, 1, 7)), 511, 512);
    ranks[1].block(Operation::send("MPI_Send", 5, SMALL), 500, 505);
    ranks
}

#[test]
fn a_probe_waits_for_a_late_sender() {
    for name in ["MPI_Probe", "MPI_Mprobe"] {
        let report = report(&run(&probed(name, 10), |_, _| ()));
        assert_eq!(late(&report), (490_000, 0x300, json!([1])), "{name}");
    }
}

/// The loop's probes that found nothing took 300 of the 489 until the message was sent.
#[test]
fn a_loop_of_probes_waits_for_a_late_sender() {
    let looks = |count: u64| {
        run(&probed("MPI_Iprobe", 509), move |rank, file| {
            if rank == 0 {
                file.insert(Tally {
                    call_id: call_id("MPI_Iprobe"),
                    call_path_id: Some(3),
                    reason: "unsuccessful_test",
                    count: count as i64,
                    inside_ns: 300_000,
                    ..Tally::default()
                });
            }
        })
    };
    assert_eq!(late(&report(&looks(1_000))), (300_000, 0x300, json!([1])));
    let few = report(&looks(3));
    let is_late = |advice: &Value| advice["cure"] == "partner_late";
    assert!(!few["advice"].as_array().unwrap().iter().any(is_late), "looks from a computation");
}

#[test]
fn what_makes_communicators_waits_as_a_barrier_does() {
    for name in ["MPI_Comm_dup", "MPI_Comm_split", "MPI_Comm_create"] {
        let mut ranks = Calls::pair();
        for (rank, begin) in [(0, 100), (1, 700)] {
            let made = Operation { kind: "other", ..Operation::collective(name, 5) };
            ranks[rank].block(made, begin, 710);
        }
        let report = report(&run(&ranks, |_, _| ()));
        assert_eq!(late(&report), (600_000, 0x500, json!([1])), "{name}");
        assert_eq!(report["totals"]["collective_ns"], json!(620_000), "{name}");
    }
}

#[test]
fn an_empty_buffer_waits_for_who_receives() {
    let mut ranks = Calls::pair();
    ranks[0].block(Operation::send("MPI_Bsend", 1, (64, 1, 7)), 10, 12);
    ranks[0].block(Operation::other_call("MPI_Buffer_detach", 3), 20, 510);
    ranks[1].block(Operation::receive("MPI_Recv", 4, SMALL), 500, 505);
    assert_eq!(late(&report(&run(&ranks, |_, _| ()))), (480_000, 0x300, json!([1])));
}

/// Two sends that one call completes end as their receiver enters MPI, far below any limit.
#[test]
fn sends_of_one_wait_that_end_when_the_receiver_comes_wait_for_it() {
    let mut ranks = Calls::pair();
    let sends = [10, 12].map(|begin| ranks[0].send(1, 4_000, begin));
    ranks[0].wait(3, 20, 510, &sends);
    for begin in [505, 507] {
        ranks[1].block(Operation::receive("MPI_Recv", 4, (4_000, 0, 7)), begin, begin + 1);
    }
    let overlap = json(run(&ranks, |_, _| ()).path(), &["overlap", "."]);
    let late = overlap["totals"]["exposed_late_partner_ns"].as_i64().unwrap();
    assert!((484_000..=488_000).contains(&late), "{:#}", overlap["totals"]);
}

/// Rank 0 has a thread that receives from 5 to 900, while the other computes between short calls.
#[test]
fn a_thread_that_listens_is_no_rank_that_waits() {
    let mut ranks = Calls::pair();
    for (number, begin) in [100, 300, 500, 700].into_iter().enumerate() {
        for rank in &mut ranks {
            let end = begin + 10 + number as i64;
            rank.block(Operation::collective("MPI_Barrier", 5), begin, end);
        }
    }
    ranks[1].block(Operation::send("MPI_Send", 4, SMALL), 890, 895);
    let run = run(&ranks, |rank, file| {
        if rank == 0 {
            let thread_id = file.insert(Thread { number: 1, ..Thread::default() });
            let operation_id = file.insert(Operation::receive("MPI_Recv", 3, (64, 1, 7)));
            file.insert(Call {
                operation_id,
                begin_ns: 5_000,
                duration_ns: Some(895_000),
                thread_id,
                ..Call::default()
            });
        }
    });
    let report = report(&run);
    let listens = |advice: &&Value| advice["waiting"]["site"]["address"] == json!(0x300);
    let advice = report["advice"].as_array().unwrap();
    assert!(!advice.iter().any(|it| listens(&it)), "{advice:#?}");
}

/// A send of a few bytes whose post stands for 510 us each time, until its receiver enters MPI: no limit has to say so.
#[test]
fn a_post_that_stands_until_its_receiver_comes_waits_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let (mut sender, mut receiver) = (Rows::default(), Rows::default());
    let what = |call, kind, peer| (call, kind, 64, peer, 7);
    for round in 0..20 {
        let begin = round * 1_000_000;
        let posted = (what("MPI_Isend", "send", 1), begin, 510_000, 0);
        sender.complete("MPI_Waitall", begin + 600_000, 500, &[posted]);
        receiver.blocking(what("MPI_Recv", "recv", 0), begin + 508_000, 20_000);
    }
    for (rank, rows) in (0..).zip([sender, receiver]) {
        let rank = Rank { end_ns: 20_000_000, world_size: 2, ..Rank::plain(rank) };
        rank.write(directory.path(), |file| rows.write(file));
    }
    let report = report(&directory);
    let all = report["advice"].as_array().unwrap();
    assert!(all.iter().all(|advice| advice["cure"] != "expensive_posts"), "{all:#?}");
    let (ns, _, ranks) = late(&report);
    assert_eq!((ns, ranks), (20 * 508_000, json!([1])));
    // a replay keeps what posts took, so it says nothing of them
    let advice = all.iter().find(|advice| advice["cure"] == "partner_late").unwrap();
    assert_eq!((&advice["replay"], &advice["or_copy"]), (&Value::Null, &Value::Null));
}
