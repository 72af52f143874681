//! `lapscope hang --launch`: what only other nodes can see. A node is a name space of mounts in which its storage is where its ranks
//! say that it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::bare;
use lapscope_fixture::child;
use lapscope_fixture::spools::{made, Shape};

/// Nodes with two ranks each, which receive in a circle.
struct Bed {
    place: tempfile::TempDir,
    nodes: u32,
}

impl Bed {
    fn new(nodes: u32) -> Bed {
        let place = tempfile::tempdir().unwrap();
        let bed = Bed { place, nodes };
        fs::create_dir(bed.run()).unwrap();
        for node in 0..nodes {
            let host = format!("c{node}");
            let storage = bed.hidden(node).join(format!("lapscope-made-{host}"));
            fs::create_dir_all(&storage).unwrap();
            fs::create_dir(bed.storage(node)).unwrap();
            for rank in [2 * node, 2 * node + 1] {
                let spool = made(Shape::Cycle, rank, 2 * nodes, 500).with_host(&host);
                spool.write(&storage.join(format!("rank-{rank}.spool"))).unwrap();
            }
            let there = bed.storage(node).join(format!("lapscope-made-{host}"));
            let pointer = bed.run().join(format!("node-{host}.spool-at"));
            fs::write(pointer, format!("{host}\t{}\n", there.display())).unwrap();
        }
        bed
    }

    fn run(&self) -> PathBuf {
        self.place.path().join("a run")
    }

    fn hidden(&self, node: u32) -> PathBuf {
        self.place.path().join(format!("hidden-{node}"))
    }

    fn storage(&self, node: u32) -> PathBuf {
        self.place.path().join(format!("storage-{node}"))
    }

    /// What starts a command on a node.
    fn launcher(&self, node: u32) -> String {
        let (from, to) = (self.hidden(node), self.storage(node));
        format!(
            "unshare -m sh -c 'mount --bind {} {} && exec \"$@\"' --",
            from.display(),
            to.display()
        )
    }

    fn hang(&self, launchers: &[String]) -> Output {
        let mut command = bare(&["hang", "--format", "json", "--interval", "0.1"]);
        for launcher in launchers {
            command.args(["--launch", launcher]);
        }
        command.arg(self.run()).output().unwrap()
    }
}

fn is_permitted() -> bool {
    let made = child::command("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    let is_permitted = made.is_ok_and(|status| status.success());
    if !is_permitted {
        let what = "nodes with storage of their own (name spaces of mounts are not permitted here)";
        lapscope_data::say!("NOT TESTED: {what}");
    }
    is_permitted
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn nothing_is_left(run: &Path) {
    let left: Vec<_> =
        fs::read_dir(run).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with("node-")), "{left:?}");
}

#[test]
fn each_node_looks_at_its_own() {
    if !is_permitted() {
        return;
    }
    let bed = Bed::new(3);
    let all: Vec<String> = (0..bed.nodes).map(|node| bed.launcher(node)).collect();
    let answer = json(&bed.hang(&all));
    assert_eq!(answer["ranks"].as_array().map(Vec::len), Some(6), "{answer:#}");
    assert_eq!(
        (&answer["unseen"], &answer["verdict"]["kind"]),
        (&Value::Array(vec![]), &"deadlock".into())
    );
    nothing_is_left(&bed.run());

    let answer = json(&bed.hang(&all[..2]));
    assert_eq!(answer["ranks"].as_array().map(Vec::len), Some(4));
    let unseen = answer["unseen"].to_string();
    assert!(
        unseen.contains("node-c2") && unseen.contains("--launch") && !unseen.contains("node-c1"),
        "{unseen}"
    );
}

#[test]
fn launchers_that_fail_are_named_and_the_rest_counts() {
    if !is_permitted() {
        return;
    }
    let bed = Bed::new(1);
    let begin = Instant::now();
    let bad = ["no-such-launcher -n 2", "sh -c 'echo no nodes are free >&2; exit 3'", "'"];
    let all: Vec<String> =
        bad.iter().map(|launcher| (*launcher).to_owned()).chain([bed.launcher(0)]).collect();
    let output = bed.hang(&all);
    let said = said(&output);
    assert_eq!(json(&output)["ranks"].as_array().map(Vec::len), Some(2), "{said}");
    for word in [
        "no-such-launcher cannot be started",
        "exit status: 3",
        "no nodes are free",
        "a quote that does not end",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(begin.elapsed() < Duration::from_secs(50));
    nothing_is_left(&bed.run());
}

#[test]
fn what_another_lapscope_has_written_is_named() {
    let bed = Bed::new(1);
    let script = bed.place.path().join("other");
    // LAPSCOPE hang --gather PLACE ...
    let text = "#!/bin/sh\nprintf 'lapscope hang 9.9.9\\nmore' > \"$4/c7-1.part\"\n";
    fs::write(&script, text).unwrap();
    let output = bed.hang(&[format!("sh {}", script.display())]);
    let said = said(&output);
    assert!(
        !output.status.success() && said.contains("c7-1 has another lapscope (9.9.9"),
        "{said}"
    );
    nothing_is_left(&bed.run());
}
