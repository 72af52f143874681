//! Directories whose names are bytes, long, or split by the loader.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::fixture::{bare, printed, text};
use lapscope_fixture::child;
use lapscope_fixture::small::run as small_run;

/// `lapscope` with these words succeeds; its standard output.
fn answer(words: &[&OsStr]) -> String {
    printed(&mut bare(words))
}

/// Every command that reads a run reads it there.
fn read(parent: &Path, run: &Path) {
    let word = OsStr::new;
    let whole = answer(&[word("report"), word("--format"), word("json"), run.as_os_str()]);
    let report: serde_json::Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(report["ranks"].as_array().map(Vec::len), Some(2), "{whole}");
    for command in ["overlap", "thresholds", "sites", "requests", "pending"] {
        answer(&[word(command), run.as_os_str()]);
    }
    let count = word("SELECT count(*) FROM calls");
    assert!(answer(&[word("sql"), run.as_os_str(), count]).contains('5'));
    let merged: PathBuf = parent.join(OsStr::from_bytes(b"all-\xff.db"));
    answer(&[word("merge"), run.as_os_str(), word("--output"), merged.as_os_str()]);
    assert!(answer(&[word("sql"), merged.as_os_str(), count]).contains('5'));
}

#[test]
fn names_that_are_no_utf_8() {
    let run = small_run();
    let parent = tempfile::tempdir().unwrap();
    let there = parent.path().join(OsStr::from_bytes(b"run-\xff%41?#"));
    std::fs::rename(run.path(), &there).unwrap();
    read(parent.path(), &there);
    answer(&[OsStr::new("merge"), there.as_os_str()]);
    assert!(parent.path().join(OsStr::from_bytes(b"run-\xff%41?#.db")).exists());
}

#[test]
fn paths_longer_than_those_of_sqlite() {
    let run = small_run();
    let parent = tempfile::tempdir().unwrap();
    let mut there = parent.path().to_path_buf();
    there.extend((0..9).map(|_| "y".repeat(100)));
    std::fs::create_dir_all(&there).unwrap();
    there.push("run");
    std::fs::rename(run.path(), &there).unwrap();
    read(there.parent().unwrap(), &there);
}

#[test]
fn a_prefix_that_the_loader_would_split_is_refused_before_anything_is_built() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for prefix in ["/tmp/with blank", "/tmp/with:colon"] {
        let mut make = child::command("make");
        make.current_dir(root).args(["install", "CARGO=false"]).arg(format!("PREFIX={prefix}"));
        let output = make.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && !Path::new(prefix).exists());
        assert!(said.contains(prefix) && said.contains("LD_PRELOAD"), "{said}");
        assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_library_in_a_place_that_the_loader_would_split_is_reached_by_a_link() {
    let parent = tempfile::tempdir().unwrap();
    let blank = parent.path().join("with blank");
    std::fs::create_dir(&blank).unwrap();
    std::fs::write(blank.join("liblapscope.so"), "").unwrap();
    let run = |library: &Path| {
        let mut command = bare(&["run", "--dry-run", "--", "true"]);
        let output = command.env("LAPSCOPE_LIBRARY", library).output().unwrap();
        (output.status.success(), text(&[output.stdout, output.stderr].concat()))
    };
    let (started, said) = run(&blank);
    assert!(!started && said.contains("blanks or colons") && said.contains("ln -s"), "{said}");
    let link = parent.path().join("link");
    std::os::unix::fs::symlink(&blank, &link).unwrap();
    let (started, said) = run(&link);
    assert!(started && said.contains(&format!("LD_PRELOAD={}", link.display())), "{said}");
}
