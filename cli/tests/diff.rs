//! Two runs made by hand, one of them changed in known ways.

use crate::fixture::{answer, command, failure, json, pick};
use assert_cmd::assert::OutputAssertExt;
use lapscope_fixture::edit_rank;
use lapscope_fixture::small::{self, run as small_run};
use lapscope_fixture::tables::{Cvar, Rank, Setting, Variable};
use serde_json::{json, Value};
use tempfile::TempDir;

fn change(run: &TempDir, rank: i64, sql: &str) {
    edit_rank(run.path(), rank, |file| file.change(sql));
}

fn diff(a: &TempDir, b: &TempDir) -> Value {
    json(a.path(), &["diff", ".", b.path().to_str().unwrap()])
}

#[test]
fn a_run_and_itself() {
    let run = small_run();
    let same = json(run.path(), &["diff", ".", "."]);
    assert_eq!(same["configuration"], json!([]));
    for site in same["sites"].as_array().unwrap() {
        assert_eq!(
            (&site["presence"], &site["time"]["difference_ns"]),
            (&json!("both"), &json!(0))
        );
    }
    assert_eq!(same["site_count"], 5);
    assert!(answer(run.path(), &["diff", ".", "."]).contains("nothing that was recorded"));
}

#[test]
fn times_differ_where_they_were_changed() {
    let (a, b) = (small_run(), small_run());
    // The blocking send takes 3000 ns less, the barrier of rank 1 500 ns more, the Waitall 4 ns less.
    change(&b, 0, "UPDATE call SET duration_ns = 2000 WHERE id = 3; UPDATE call SET duration_ns = 9997 WHERE id = 2;");
    change(&b, 1, "UPDATE call SET duration_ns = 8500 WHERE id = 1");
    let found = diff(&a, &b);
    let sites = found["sites"].as_array().unwrap();
    let calls: Vec<_> = sites.iter().map(|site| site["call"].as_str().unwrap()).collect();
    assert_eq!(calls[..3], ["MPI_Send", "MPI_Barrier", "MPI_Isend"]);
    assert_eq!(pick(&sites[0]["time"], &["a_ns", "b_ns", "difference_ns"]), [5_000, 2_000, -3_000]);
    assert_eq!(sites[1]["time"]["difference_ns"], 500);
    // 3334 + 3334 + 3333 became 3333 + 3332 + 3332
    assert_eq!(pick(&sites[2]["exposed"], &["a_ns", "b_ns"]), [7_668, 7_665]);
    let total = |key: &str| found["totals"][key]["difference_ns"].as_i64().unwrap();
    let keys = ["blocking_ns", "collective_ns", "exposed_ns", "mpi_ns", "run_ns"];
    assert_eq!(keys.map(total), [-3_000, 500, -4, -2_504, 0]);
}

#[test]
fn sites_of_one_run_only() {
    let (a, b) = (small_run(), small_run());
    change(&b, 0, "DELETE FROM call WHERE id = 3; UPDATE call SET id = 3 WHERE id = 4");
    let found = diff(&a, &b);
    let site = &found["sites"][0];
    assert_eq!((&site["call"], &site["presence"]), (&json!("MPI_Send"), &json!("a")));
    assert_eq!((&site["site_b"], &site["calls_b"]), (&Value::Null, &json!(0)));
    assert_eq!(pick(&found, &["site_count", "only_in_a", "only_in_b"]), [5, 1, 0]);
    let back = diff(&b, &a);
    assert_eq!((&back["sites"][0]["presence"], &back["only_in_b"]), (&json!("b"), &json!(1)));
}

/// A function without line numbers is found again by its place; here another build has moved it.
#[test]
fn a_site_that_has_moved_is_the_same() {
    let (a, b) = (small_run(), small_run());
    for rank in [0, 1] {
        change(&b, rank, "UPDATE frame SET address = 0x540 WHERE call_path_id = 5");
    }
    let found = diff(&a, &b);
    let barrier = |site: &&Value| site["call"] == "MPI_Barrier";
    let site = found["sites"].as_array().unwrap().iter().find(barrier).unwrap();
    assert_eq!(site["presence"], "both");
    assert_eq!(
        (&site["site_a"]["address"], &site["site_b"]["address"]),
        (&json!(0x500), &json!(0x540))
    );
}

#[test]
fn changes_of_configuration() {
    let (a, b) = (small_run(), small_run());
    for (run, eager, job) in [(&a, "65536", "1"), (&b, "3000", "2")] {
        edit_rank(run.path(), 0, |file| {
            file.insert(Setting { name: "LAPSCOPE_CPU_TIME", value: eager, source: "default" });
            file.insert(Setting { name: "LAPSCOPE_DIR", value: job, source: "x" });
            file.insert(Variable { name: "OMPI_MCA_btl_tcp_eager_limit", value: eager });
            file.insert(Variable { name: "OMPI_COMMAND", value: job });
            file.insert(Cvar { name: "btl_tcp_eager_limit", value: eager });
        });
    }
    edit_rank(a.path(), 0, |file| {
        file.insert(Variable { name: "UCX_TLS", value: "all" });
    });
    change(&b, 0, "UPDATE rank SET mpi_library = 'MPICH Version: 4.0.2', command = './app -n 8'");
    let found = diff(&a, &b);
    let changes: Vec<(&str, &str, Option<&str>)> = found["configuration"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| {
            (
                change["kind"].as_str().unwrap(),
                change["name"].as_str().unwrap(),
                change["b"].as_str(),
            )
        })
        .collect();
    let expected = [
        ("run", "MPI library", Some("MPICH Version: 4.0.2")),
        ("run", "command", Some("./app -n 8")),
        ("environment", "OMPI_MCA_btl_tcp_eager_limit", Some("3000")),
        ("environment", "UCX_TLS", None),
        ("cvar", "btl_tcp_eager_limit", Some("3000")),
        ("option", "LAPSCOPE_CPU_TIME", Some("3000")),
    ];
    assert_eq!(changes, expected);
    let text = answer(a.path(), &["diff", ".", b.path().to_str().unwrap()]);
    assert!(text.contains("UCX_TLS (environment)\n    A all\n    B not set\n"), "{text}");
}

#[test]
fn what_was_waited_for_is_compared() {
    let (a, b) = (small_run(), small_run());
    change(&b, 0, "UPDATE call SET duration_ns = 8001 WHERE id = 2");
    let found = diff(&a, &b);
    // The window of every request held more computation than was waited: it could have been hidden there.
    assert_eq!(
        pick(
            &found["overlap"]["exposed_by_cause"]["no_local_progress"],
            &["a_ns", "b_ns", "difference_ns"]
        ),
        [10_001, 8_001, -2_000]
    );
    assert_eq!(found["overlap"]["achieved_low"], json!({"a": null, "b": null}));
    let sum: i64 = found["sites"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|site| site["kind"] == "request")
        .map(|site| {
            site["exposed_by_cause"]["no_local_progress"]["difference_ns"].as_i64().unwrap()
        })
        .sum();
    assert_eq!(sum, -2_000);
    let text = answer(a.path(), &["diff", ".", b.path().to_str().unwrap()]);
    assert!(text.contains("app+0x100; no local progress -667 ns"), "{text}");
}

/// Half as many ranks: what is compared is the mean per rank.
#[test]
fn other_numbers_of_ranks() {
    let a = small_run();
    let b = tempfile::tempdir().unwrap();
    Rank { world_size: 1, summarized: 0, ..Rank::new(0) }.write(b.path(), small::rank_0);
    let found = diff(&a, &b);
    let send = |site: &&Value| site["call"] == "MPI_Send";
    let site = found["sites"].as_array().unwrap().iter().find(send).unwrap();
    assert_eq!(pick(&site["time"], &["a_ns", "b_ns"]), [5_000, 5_000]);
    assert_eq!(pick(&site["per_rank"], &["a_ns", "b_ns", "difference_ns"]), [2_500, 5_000, 2_500]);
    assert!(
        answer(a.path(), &["diff", ".", b.path().to_str().unwrap()]).contains("mean over ranks")
    );
}

#[test]
fn as_a_table() {
    let (a, b) = (small_run(), small_run());
    change(&b, 1, "UPDATE call SET duration_ns = 8500 WHERE id = 1");
    let csv = answer(
        a.path(),
        &["diff", ".", b.path().to_str().unwrap(), "--format", "csv", "--top", "1"],
    );
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
    assert!(lines[1].starts_with("MPI_Barrier,collective,both,"), "{}", lines[1]);
    assert!(lines[1].contains(",10000,10500,500,10000,10500,500,0,0,0,"), "{}", lines[1]);
}

#[test]
fn what_cannot_be_compared() {
    let a = small_run();
    let error = failure(a.path(), &["diff", ".", "nowhere"]);
    assert_eq!(error, "lapscope: nowhere: no such file or directory\n");
    command(a.path(), &["diff", "."]).assert().code(2);
    Rank::new(2).write(a.path(), small::rank_1);
    let text = answer(a.path(), &["diff", ".", "."]);
    assert!(text.contains("mean over ranks"), "{text}");
}
