//! `LAPSCOPE_FILES=node`: a database for each node, made by the last of its ranks to end, or of what killed ranks left. Nodes are
//! ranks with host names of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use lapscope_tests::answer::{ask, number, rows as list, text};
use lapscope_tests::launch::{lapscope, place, recover, try_lapscope, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{build, child, invariants, rows};

/// Gives a rank the host name of its node. The first argument says how many ranks a node has.
const APART: &str = r#"#!/bin/sh
node=node$(($OMPI_COMM_WORLD_RANK$PMI_RANK / $1))
shift
exec unshare -u sh -c 'hostname "$1" && shift && exec "$@"' sh "$node" "$@"
"#;

fn is_permitted() -> bool {
    let made = child::command("unshare")
        .args(["-u", "hostname", "elsewhere"])
        .stderr(Stdio::null())
        .status();
    let is_permitted = made.is_ok_and(|status| status.success());
    if !is_permitted {
        lapscope_tests::say!("NOT TESTED: files of nodes (UTS name spaces are not permitted here)");
    }
    is_permitted
}

/// A run of `stencil.c` on nodes.
struct Bed<'a> {
    mpi: &'a Mpi,
    ranks: u32,
    per_node: u32,
    place: &'a Path,
    /// What `stencil.c` is told.
    arguments: &'a [&'a str],
}

impl Bed<'_> {
    fn storage(&self) -> PathBuf {
        self.place.join("storage")
    }

    /// `files`: `None` without lapscope.
    fn job(&self, form: Form, files: Option<&str>) -> Job<'_> {
        let script = self.place.join("apart");
        fs::write(&script, APART).expect("a script");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
            .expect("an executable script");
        fs::create_dir_all(self.storage()).expect("a directory for spools");
        let program = build::app(self.mpi, "stencil");
        let job = Job::new(self.mpi, self.ranks, script, form, self.place)
            .args([self.per_node.to_string().as_ref(), program.as_os_str()])
            .args(self.arguments);
        match files {
            Some(files) => {
                job.env("LAPSCOPE_FILES", files).env("LAPSCOPE_SPOOL_DIR", self.storage())
            }
            None => job,
        }
    }

    /// As in [`Bed::job`]. A run directory that an earlier one has made goes.
    fn run(&self, form: Form, files: Option<&str>) -> Outcome {
        let job = self.job(form, files);
        let _ = fs::remove_dir_all(job.run_directory());
        job.run()
    }

    fn directory(&self) -> PathBuf {
        self.place.join("run")
    }

    fn nodes(&self) -> u32 {
        self.ranks.div_ceil(self.per_node)
    }

    /// That each node has its database, that nothing else is left, and that everything in them is right.
    fn assert_files(&self) {
        let mut names = names_of(&self.directory());
        names.retain(|name| name != "job");
        let node = |number: u32| format!("node-node{number}.db");
        let mut expected: Vec<String> = (0..self.nodes()).map(node).collect();
        expected.sort();
        assert_eq!(names, expected, "{}", self.mpi.name);
        assert_eq!(names_of(&self.storage()), Vec::<String>::new(), "{}", self.mpi.name);
        for path in rows::databases(&self.directory()) {
            let database = rows::open(&path);
            assert_eq!(invariants::check(&database), Ok(()), "{}", path.display());
        }
    }

    /// Rows of all ranks, by what they are: how many, of how many bytes.
    fn counts(&self) -> String {
        let requests = "SELECT rank, call, ended, count(*), sum(bytes), count(DISTINCT peer) FROM requests GROUP BY 1, 2, 3";
        let calls =
            "SELECT rank, call, count(*), sum(completed), sum(bytes) FROM calls GROUP BY 1, 2";
        let ranks = "SELECT rank, world_rank, host, ended, world_size FROM rank ORDER BY 1";
        let ask = |sql: &str| {
            let run = self.directory();
            lapscope([
                "sql".as_ref(),
                "--format".as_ref(),
                "csv".as_ref(),
                run.as_os_str(),
                sql.as_ref(),
            ])
        };
        [ask(requests), ask(calls), ask(ranks)].join("\n")
    }

    fn report(&self) -> Value {
        ask("report", &self.directory())
    }
}

fn names_of(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn problems(report: &Value) -> Vec<&str> {
    list(report, "problems").iter().map(|problem| text(problem, "message")).collect()
}

/// With and without lapscope, and in both modes: the same bits, the same rows.
fn both_modes_agree(bed: &Bed<'_>) {
    let bare = bed.run(Form::Bare, None);
    assert_eq!(bare.code, 0, "{}: {}", bed.mpi.name, bare.stderr);
    let mut seen = Vec::new();
    for files in ["rank", "node"] {
        let outcome = bed.run(Form::Preload, Some(files));
        assert_eq!((outcome.code, &outcome.stdout), (0, &bare.stdout), "{files}: {outcome:?}");
        seen.push((bed.counts(), bed.report()));
    }
    bed.assert_files();
    let (by_rank, by_node) = (&seen[0], &seen[1]);
    assert_eq!(by_rank.0, by_node.0, "{}", bed.mpi.name);
    assert_eq!(by_rank.1["kinds"], by_node.1["kinds"], "{}", bed.mpi.name);
}

#[test]
fn a_file_for_each_node_holds_what_files_of_ranks_do() {
    if !is_permitted() {
        return;
    }
    for mpi in share!(mpi::debian()) {
        let place = place();
        let (place, arguments) = (place.path(), &["100"][..]);
        both_modes_agree(&Bed { mpi, ranks: 4, per_node: 2, place, arguments });
    }
}

/// What a launcher says of a rank that was killed has its pid in it.
fn without_pids(text: &str) -> String {
    text.lines().filter(|line| !line.contains(" PID ")).collect::<Vec<_>>().join("\n")
}

/// `lapscope run` finds the spools of all nodes here, as they have one storage.
fn a_killed_rank(bed: &Bed<'_>, killed: u32, steps: u32) {
    let bare = bed.run(Form::Bare, None);
    let outcome = bed.run(Form::Outer, Some("node"));
    let printed = |outcome: &Outcome| without_pids(&outcome.stdout);
    assert_eq!((outcome.code, printed(&outcome)), (bare.code, printed(&bare)), "{outcome:?}");
    bed.assert_files();
    let report = bed.report();
    let host = killed / bed.per_node;
    let of_rank = |line: &str| line.starts_with(&format!("rank {killed} on node{host} was killed"));
    // of many only the first that died are told of one by one
    assert!(bed.ranks > 4 || problems(&report).iter().any(|line| of_rank(line)), "{report:#}");
    let posted = format!("{killed},MPI_Isend,waited,{},", steps / 2 * 2);
    assert!(bed.counts().contains(&posted), "{posted}: {}", bed.counts());
    assert!(bed.counts().contains(&format!("{killed},{killed},node{host},killed,")));
    assert_eq!(number(&report["head"], "ranks"), f64::from(bed.ranks));
}

#[test]
fn what_killed_ranks_left_is_recovered_by_the_launcher() {
    if !is_permitted() {
        return;
    }
    for mpi in share!(mpi::debian()) {
        let place = place();
        let (place, arguments) = (place.path(), &["100", "1"][..]);
        a_killed_rank(&Bed { mpi, ranks: 4, per_node: 2, place, arguments }, 1, 100);
    }
}

/// A node's storage is seen from the node alone: what is there is missed, and named, until it is recovered there.
#[test]
fn a_node_whose_spools_cannot_be_seen_is_named_as_missing() {
    let Some(mpi) = mpi::all().first().filter(|_| is_permitted()) else { return };
    let place = place();
    let bed = Bed { mpi, ranks: 4, per_node: 2, place: place.path(), arguments: &["20"] };
    let job = bed.job(Form::Preload, Some("node")).env("LAPSCOPE_CONVERT", "off");
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let spools = names_of(&bed.storage()).into_iter().find(|name| name.ends_with("-node1"));
    let there = bed.storage().join(spools.expect("spools of the second node"));
    let hidden = place.path().join("hidden");
    fs::rename(&there, &hidden).expect("out of sight");

    let report = bed.report();
    let said = problems(&report);
    let elsewhere =
        format!("node-node1: the spools of its ranks are on node1 in {}", there.display());
    assert!(said.iter().any(|line| line.starts_with(&elsewhere)), "{said:#?}");
    assert!(said.iter().any(|line| line.starts_with("no data of 2 of 4 ranks (2-3)")), "{said:#?}");
    assert!(try_lapscope(["recover".as_ref(), bed.directory().as_os_str()]).is_err());

    fs::rename(&hidden, &there).expect("in sight again");
    recover(&bed.directory());
    bed.assert_files();
    assert_eq!(number(&bed.report()["head"], "ranks"), 4.0);
}

/// 64 ranks on four nodes, which takes minutes where there are few processors.
#[test]
fn many_ranks_on_four_nodes() {
    if is_left_out!() || !is_permitted() {
        return;
    }
    for mpi in share!(mpi::debian()) {
        let place = place();
        let many = |arguments| Bed { mpi, ranks: 64, per_node: 16, place: place.path(), arguments };
        both_modes_agree(&many(&["50"]));
        a_killed_rank(&many(&["50", "37"]), 37, 50);
    }
}
