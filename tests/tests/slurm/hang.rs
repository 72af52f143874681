//! `lapscope hang` of steps and jobs of Slurm, looked at from their nodes.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::time::Instant;

use serde_json::Value;

use lapscope_tests::answer::{number, rows as list, text};
use lapscope_tests::launch::Form;
use lapscope_tests::slurm::{Bed, Cluster, MANY_NODES, NODES};
use lapscope_tests::watched::Watched;
use lapscope_tests::{mpi, paths, share};

/// `lapscope hang` sees processes of both nodes when srun starts it there, and is told which srun.
#[test]
fn a_step_that_hangs_is_looked_at_from_its_nodes() {
    let Some(cluster) = Cluster::shared() else { return };
    if !cluster.has_nodes("lapscope hang --launch") {
        return;
    }
    let Some(bed) = mpi::named("openmpi").and_then(|mpi| Bed::new(&cluster, mpi)) else { return };
    let line = bed.srun(&["-N2", "-n2", "-J", "hangs"], "hang/messages", &["both_receive"]);
    let mut watched = Watched::start(&bed.job(Form::Preload, &line));
    watched.until_here(2).unwrap_or_else(|said| panic!("{said}"));
    let launch = format!("srun --overlap --jobid {}", cluster.id_of("hangs"));
    let run = bed.run_directory();
    let run = run.to_str().expect("a name");
    let from_here = hang(&cluster, &[run]);
    let whys: Vec<&str> = list(&from_here, "unseen").iter().map(|it| text(it, "why")).collect();
    assert_eq!(whys.len(), 2, "{from_here:#}");
    assert!(whys.iter().all(|why| why.contains(&format!("--launch '{launch}'"))), "{whys:?}");
    let from_nodes = hang(&cluster, &["--launch", &launch, run]);
    assert_eq!(text(&from_nodes["verdict"], "kind"), "deadlock", "{from_nodes:#}");
    assert_eq!(list(&from_nodes, "unseen").len(), 0, "{from_nodes:#}");
    let hosts: BTreeSet<&str> =
        list(&from_nodes, "ranks").iter().map(|rank| text(rank, "host")).collect();
    assert_eq!(hosts, NODES.into(), "{from_nodes:#}");

    // the same by the number of the job, from outside: what its records say stands beside it
    let by_job = hang(&cluster, &["--job", &cluster.id_of("hangs")]);
    assert_eq!((&by_job["hosts"], list(&by_job, "unseen").len()), (&NODES[..].into(), 0));
    let recorded = list(&by_job, "recorded");
    assert_eq!((recorded.len(), text(&recorded[0], "run")), (1, run), "{by_job:#}");
    assert_eq!(text(&recorded[0]["verdict"], "kind"), "deadlock", "{by_job:#}");
    assert!(list(&by_job, "ranks").iter().all(|rank| rank["call"] == "MPI_Recv"), "{by_job:#}");
    let left = fs::read_dir(run).expect("a run").flatten().map(|entry| entry.file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().starts_with("hang-")));
    watched.end();
}

/// What `lapscope hang` says in JSON to somebody who can ask this Slurm.
fn hang(cluster: &Cluster, words: &[&str]) -> Value {
    let mut command = cluster.command("timeout");
    command.args(["-k", "5", "60"]).arg(paths::lapscope());
    command.args(["hang", "--format", "json", "--interval", "0.3"]).args(words);
    let output = command.stdin(Stdio::null()).output().expect("lapscope runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    lapscope_fixture::documented::check(&printed);
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// A process on each node finds the ranks there, each once; what a node that does not answer has is named as missing. With
/// LAPSCOPE_TEST_ALL=1 there are 64 ranks.
#[test]
fn a_job_that_nobody_records_is_looked_at_from_all_nodes() {
    let Some(cluster) = Cluster::of_my_own(&MANY_NODES) else { return };
    if !cluster.has_nodes("lapscope hang --job") {
        return;
    }
    let Some(bed) = mpi::named("openmpi").and_then(|mpi| Bed::new(&cluster, mpi)) else { return };
    let ranks: u64 = if share::is_all() { 64 } else { 8 };
    let count = ranks.to_string();
    let each = format!("--ntasks-per-node={}", ranks as usize / MANY_NODES.len());
    let step = ["-N4", "-n", &count, &each, "-J", "asleep"];
    let line = bed.srun(&step, "hang/asleep", &["nobody_is_awake"]);
    let job = bed.job(Form::Bare, &line).env("LAPSCOPE_DIR", bed.run_directory());
    let mut watched = Watched::start(&job);
    watched.until_here(ranks as u32).unwrap_or_else(|said| panic!("{said}"));
    let id = cluster.id_of("asleep");
    let begin = Instant::now();
    let answer = hang(&cluster, &["--job", &id]);
    println!("{ranks} ranks on four nodes in {:?}: {}", begin.elapsed(), answer["sentence"]);
    assert_eq!((&answer["hosts"], list(&answer, "unseen").len()), (&MANY_NODES[..].into(), 0));
    let numbers: Vec<u64> =
        list(&answer, "ranks").iter().map(|rank| number(rank, "rank") as u64).collect();
    assert_eq!(numbers, (0..ranks).collect::<Vec<u64>>(), "{answer:#}");
    for rank in list(&answer, "ranks") {
        let node = number(rank, "rank") as u64 * MANY_NODES.len() as u64 / ranks;
        assert_eq!(text(rank, "host"), MANY_NODES[node as usize], "{rank:#}");
        let is_last = number(rank, "rank") as u64 + 1 == ranks;
        assert_eq!(rank["sleeps_in"] == "read", is_last, "{rank:#}");
    }
    assert!(text(&answer, "sentence").contains("asleep in read"), "{}", answer["sentence"]);
    assert_eq!(list(&answer, "elsewhere").len(), 0, "{answer:#}");

    cluster.freeze(MANY_NODES.len() - 1);
    let begin = Instant::now();
    let answer = hang(&cluster, &["--job", &id, "--patience", "5"]);
    println!("without one of them in {:?}: {:#}", begin.elapsed(), answer["unseen"]);
    let missing = list(&answer, "unseen");
    assert_eq!((missing.len(), text(&missing[0], "host")), (1, MANY_NODES[3]), "{answer:#}");
    assert!(text(&missing[0], "why").ends_with(&format!("lapscope hang --job {id}")));
    assert_eq!(list(&answer, "ranks").len() as u64, ranks * 3 / 4, "{answer:#}");
    assert_eq!(list(&answer, "elsewhere").len() as u64, ranks / 4, "{answer:#}");
    watched.end();
}
