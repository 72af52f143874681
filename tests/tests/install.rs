//! `make uninstall` takes away what was installed, and nothing of anybody else's.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use lapscope_tests::{child, paths};

/// All files and directories below, relative.
fn tree(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            found.insert(path.strip_prefix(root).unwrap().to_owned());
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    found
}

fn checked(mut command: Command, prefix: &str, destdir: &Path) -> Output {
    command.env("PREFIX", prefix).env("DESTDIR", destdir).current_dir(paths::root());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output
}

/// Installing writes a list into the build folder, too.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// As `make install` does with what is built: there it is built anew.
fn install(prefix: &str, destdir: &Path) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let script = paths::root().join("interposer/install.sh");
    let mut command = child::command(script);
    command.arg("install").env("COMMAND", paths::lapscope());
    checked(command, prefix, destdir);
}

fn uninstall(prefix: &str, destdir: &Path) -> Output {
    let mut command = child::command("make");
    command.args(["uninstall", &format!("PREFIX={prefix}")]);
    command.arg(format!("DESTDIR={}", destdir.display()));
    checked(command, prefix, destdir)
}

#[test]
fn a_prefix_of_its_own_is_gone_afterwards() {
    let place = tempfile::tempdir().unwrap();
    let prefix = place.path().join("with a blank/lapscope");
    fs::create_dir(prefix.parent().unwrap()).unwrap();
    let prefix = prefix.to_str().unwrap();
    let before = tree(place.path());
    install(prefix, Path::new(""));
    let installed = tree(Path::new(prefix));
    for name in [
        "bin/lapscope",
        "lib/lapscope/liblapscope.so",
        "lib/lapscope/lapscope-calibrate",
        "share/man/man1/lapscope-run.1",
        "share/bash-completion/completions/lapscope",
        "share/zsh/site-functions/_lapscope",
        "share/fish/vendor_completions.d/lapscope.fish",
    ] {
        assert!(installed.contains(Path::new(name)), "{installed:?}");
    }
    install(prefix, Path::new(""));
    assert_eq!(tree(Path::new(prefix)), installed, "a second time changes nothing");
    let output = uninstall(prefix, Path::new(""));
    assert!(String::from_utf8_lossy(&output.stdout).contains("removed"));
    assert_eq!(tree(place.path()), before);
}

#[test]
fn what_others_put_there_stays() {
    let stage = tempfile::tempdir().unwrap();
    let at = |name: &str| stage.path().join("usr/local").join(name);
    fs::create_dir_all(at("bin")).unwrap();
    fs::create_dir_all(at("lib/lapscope")).unwrap();
    fs::create_dir_all(at("share/man/man1")).unwrap();
    for name in ["bin/other", "lib/lapscope/notes.txt", "lib/libother.so", "share/man/man1/other.1"]
    {
        fs::write(at(name), "somebody else's").unwrap();
    }
    let before = tree(stage.path());
    install("/usr/local", stage.path());
    // A list that somebody has changed removes nothing elsewhere.
    let list = at("lib/lapscope/installed");
    let entries = fs::read_to_string(&list).unwrap();
    fs::write(
        &list,
        entries
            + "../etc/passwd\nlib/lapscope/../libother.so\nlib/libother.so\nbin/other\n\
            share/man/man1/other.1\n",
    )
    .unwrap();
    uninstall("/usr/local", stage.path());
    assert_eq!(tree(stage.path()), before);
}

/// What packaging/check.sh says of an installed tree, nothing where it is fit for other machines.
fn what_keeps_it_here(tree: &Path) -> String {
    let mut command = child::command(paths::root().join("packaging/check.sh"));
    let output = command.arg(tree).current_dir(paths::root()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    said
}

/// Recorders that are built here need this machine's SQLite.
#[test]
fn what_needs_libraries_of_this_machine_is_no_tree_for_others() {
    let place = tempfile::tempdir().unwrap();
    let prefix = place.path().to_str().unwrap();
    install(prefix, Path::new(""));
    let said = what_keeps_it_here(place.path());
    assert!(said.contains("liblapscope-openmpi.so needs libsqlite3"), "{said}");
}

/// Where somebody has called `make dist` before: zig is not installed for this.
#[test]
fn a_tree_for_other_machines_stands_anywhere() {
    let Some(built) = paths::portable() else {
        lapscope_tests::say!("NOT TESTED: the portable build; `make dist` builds it");
        return;
    };
    assert_eq!(what_keeps_it_here(&built), "");
    let place = tempfile::tempdir().unwrap();
    let moved = place.path().join("moved");
    let mut copy = child::command("cp");
    assert!(copy.arg("-a").args([&built, &moved]).status().unwrap().success());
    let mut command = child::command(moved.join("bin/lapscope"));
    let output = command.args(["run", "--dry-run", "--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let library = moved.join("lib/lapscope/liblapscope.so");
    assert!(said.contains(library.to_str().unwrap()), "{said}");
}

#[test]
fn where_nothing_was_installed_that_is_said() {
    let place = tempfile::tempdir().unwrap();
    let mut command = child::command("make");
    command.args(["uninstall", &format!("PREFIX={}", place.path().display())]);
    let output = command.current_dir(paths::root()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("name its PREFIX"), "{said}");
}
