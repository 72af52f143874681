//! Runs whose files were made by somebody who means harm: what SECURITY.md promises of them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::fixture::{answer, command, lapscope, READING};
use assert_cmd::assert::OutputAssertExt;
use lapscope_fixture::small::{self, run as small_run};
use lapscope_fixture::spools::{made, Shape};
use lapscope_fixture::tables::{Cvar, Rank, Variable};
use lapscope_fixture::{child, edit, edit_rank, fifo};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

/// A shared library that leaves a file `was-run` behind when anything loads it; and its build id.
fn booby_trap(directory: &Path, name: &str) -> (PathBuf, String) {
    let (source, library) = (directory.join("trap.c"), directory.join(name));
    let marker = directory.join("was-run");
    let code = format!(
        "#include <fcntl.h>\n__attribute__((constructor)) static void go(void) {{ open({marker:?}, O_CREAT | O_WRONLY, 0600); }}\n\
         int PMPI_Init(void) {{ return 0; }}\n"
    );
    std::fs::write(&source, code).unwrap();
    let mut compiler = child::command("cc");
    compiler.args(["-shared", "-fPIC", "-Wl,--build-id", "-o"]).arg(&library).arg(&source);
    assert!(compiler.status().unwrap().success());
    let id = lapscope_data::symbols::build_id(&library).expect("it was linked with one");
    (library, id)
}

/// The run names a library as its MPI, which is there, has the build id that the run says, and belongs to the reader, as
/// what was unpacked from an archive does; its environment names the working directory as one of plug-ins.
#[test]
fn reading_a_run_loads_nothing_that_it_names() {
    let run = small_run();
    let (library, id) = booby_trap(run.path(), "libmpi.so.40");
    for rank in [0, 1] {
        edit_rank(run.path(), rank, |file| {
            let path = library.to_str().unwrap();
            file.change(&format!(
                "UPDATE module SET path = '{path}', build_id = '{id}' WHERE id = 2"
            ));
            for (name, value) in [
                ("OMPI_MCA_mca_base_component_path", "."),
                ("LD_PRELOAD", path),
                ("OMPI_MCA_mca_base_param_files", "."),
            ] {
                file.insert(Variable { name, value });
            }
        });
    }
    for arguments in READING {
        command(run.path(), arguments).assert().success();
        assert!(!run.path().join("was-run").exists(), "{arguments:?} has run code of the run's");
    }
}

/// A program whose debug information says that `call`, which every call of the run is in, lies in a file of that name.
pub fn program_of(directory: &Path, source: &Path, flags: &[&str]) {
    let (code, program) = (directory.join("made.c"), directory.join("program"));
    std::fs::write(&code, format!("# 1 {source:?}\nint call(void) {{ return 7; }}\n")).unwrap();
    let mut compiler = child::command("cc");
    compiler.args([
        "-g",
        "-shared",
        "-fPIC",
        "-Wl,--build-id",
        "-dumpdir",
        "",
        "-dumpbase",
        "part",
    ]);
    compiler.args(flags).arg("-o").arg(&program).arg(&code).current_dir(directory);
    assert!(compiler.status().unwrap().success());
    let listed = child::command("nm").arg(&program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let place = listed.lines().find_map(|line| line.strip_suffix(" T call")).unwrap();
    let address = i64::from_str_radix(place, 16).unwrap() + 2;
    let id = lapscope_data::symbols::build_id(&program).unwrap();
    for rank in [0, 1] {
        edit_rank(directory, rank, |file| {
            let path = program.to_str().unwrap();
            file.change(&format!("UPDATE module SET path = '{path}', build_id = '{id}'"));
            file.change(&format!("UPDATE frame SET module_id = 1, address = {address}"));
            file.change("UPDATE rank SET epoch_unix_ns = 4000000000000000000"); // nothing is newer
        });
    }
}

/// The run names its own program, and that a link as source, which leads to a key of who reads the run. The last page shows that
/// nothing else keeps lines out.
#[test]
fn a_page_has_no_lines_that_its_reader_did_not_ask_for() {
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(home.path().join("key"), "open-sesame\n").unwrap();
    std::fs::write(home.path().join("own.c"), "open-sesame\n").unwrap();
    let page = |source: &Path, asked: &[&str]| {
        let run = small_run();
        let link = run.path().join("lnk.c");
        symlink(source, &link).unwrap();
        program_of(run.path(), &link, &[]);
        let arguments = [&["html", ".", "-o", "page.html"], asked].concat();
        command(run.path(), &arguments).assert().success();
        let page = std::fs::read_to_string(run.path().join("page.html")).unwrap();
        assert!(page.contains("lnk.c"), "the name of the file is the run's, and known");
        page.contains("open-sesame")
    };
    let (key, own) = (home.path().join("key"), home.path().join("own.c"));
    let [home, project] = [&home, &project].map(|it| it.path().to_str().unwrap());
    assert!(!page(&own, &[]));
    assert!(!page(&own, &["--sources", project, "--sources", "."]));
    assert!(!page(&key, &["--sources", home]));
    assert!(page(&own, &["--sources", home]));
}

/// A program of the run has its debug information in a file of its own, which is a pipe that nobody writes; or a package of such
/// files is one.
#[test]
fn parts_of_debug_information_are_not_waited_for() {
    for (flags, part) in [(&["-gsplit-dwarf", "-gdwarf-4"][..], "part.dwo"), (&[], "program.dwp")] {
        let run = small_run();
        let part = run.path().join(part);
        program_of(run.path(), Path::new("/nowhere/call.c"), flags);
        assert_eq!(part.exists(), !flags.is_empty(), "{part:?}");
        let named =
            |run: &Path| answer(run, &["sites", ".", "--format", "json"]).contains("call.c");
        assert!(named(run.path()));
        let _ = std::fs::remove_file(&part);
        fifo(&part);
        named(run.path());
    }
}

/// What is known of the MPI's limits is what the recorder has written.
#[test]
fn control_variables_come_from_the_run_alone() {
    let run = tempfile::tempdir().unwrap();
    let path = Rank::new(0).write(run.path(), small::rank_0);
    let found = || command(run.path(), &["thresholds", ".", "--format", "json"]).assert().success();
    found().stderr(contains("MPI's control variables are not in this run"));
    edit(&path, |file| {
        file.insert(Cvar { name: "btl_vader_eager_limit", value: "4321" });
    });
    let declared = contains("\"btl_vader_eager_limit\"").and(contains("4321"));
    found().stdout(declared).stderr(contains("control variables").not());
}

/// Files that were changed, or made by other means, may have secrets in them; what is shown of such a run has not.
#[test]
fn secrets_in_files_of_others_are_not_shown() {
    let (old, new) = (small_run(), small_run());
    for (run, secret) in [(&old, "open-sesame"), (&new, "sesame-open")] {
        edit_rank(run.path(), 0, |file| {
            for name in ["FI_AUTH_KEY", "UCX_PASSWORD"] {
                file.insert(Variable { name, value: secret });
            }
            let command = format!("./app --password {secret} --mode=fast token={secret}");
            file.change(&format!("UPDATE rank SET command = '{command}'"));
        });
    }
    let commands: [&[&str]; 4] =
        [&["report", "."], &["overlap", "."], &["thresholds", "."], &["diff", "."]];
    for arguments in commands {
        for format in ["text", "json"] {
            let other = new.path().to_str().unwrap();
            let second: &[&str] = if arguments[0] == "diff" { &[other] } else { &[] };
            let mut command = command(old.path(), &[arguments, second].concat());
            let shown = command.args(["--format", format]).assert().success();
            shown.stdout(contains("sesame").not()).stderr(contains("sesame").not());
        }
    }
    let report = answer(old.path(), &["report", "."]);
    assert!(report.contains("--password (withheld) --mode=fast token=(withheld)"), "{report}");
}

/// A spool of another run, killed or copied, to which a hostile run directory points.
#[test]
fn a_spool_that_a_run_points_to_is_not_taken() {
    let (hostile, victim) = (small_run(), tempfile::tempdir().unwrap());
    let spool = victim.path().join("rank-2.spool");
    std::fs::write(&spool, "what another job has recorded").unwrap();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let pointer = format!("{}\t{}\n", host.trim(), spool.display());
    std::fs::write(hostile.path().join("rank-2.spool-at"), pointer).unwrap();
    for arguments in [&["report", "."][..], &["recover", "."], &["recover", "--ended", "."]] {
        let output = lapscope(hostile.path(), arguments);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).replace('\n', " ");
        let words: Vec<&str> = said.split_whitespace().collect();
        let is_named = words.join(" ").contains("no name that a recorder gives");
        assert!(is_named || arguments[0] == "report", "{arguments:?}: {said}");
        assert!(spool.exists() && !hostile.path().join("rank-2.db").exists(), "{arguments:?}");
    }
}

/// A database is made under a name of its own, and takes the place of what has the name.
#[test]
fn links_in_a_run_are_not_written_through() {
    let (run, elsewhere) = (small_run(), tempfile::tempdir().unwrap());
    let target = elsewhere.path().join("precious");
    std::fs::write(&target, "precious").unwrap();
    std::fs::write(run.path().join("rank-2.spool"), "no spool").unwrap();
    for name in ["rank-2.db", "rank-2.db.part", "rank-2.db-journal", "merged.db"] {
        symlink(&target, run.path().join(name)).unwrap();
    }
    for arguments in
        [&["recover", "."][..], &["report", "."], &["export", "sqlite", ".", "-o", "merged.db"]]
    {
        lapscope(run.path(), arguments);
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious", "{arguments:?}");
    }
}

/// All that a command writes, its pages too, with single blanks.
fn told(run: &Path, arguments: &[&str]) -> String {
    let output = lapscope(run, arguments);
    let pages = arguments.iter().filter(|word| word.ends_with(".html"));
    let pages = pages.flat_map(|page| std::fs::read(run.join(page)).unwrap_or_default());
    let said = [output.stdout, output.stderr, pages.collect()].concat();
    String::from_utf8_lossy(&said).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whoever made the run wants to know what its reader has, and gets the page.
#[test]
fn links_out_of_a_run_are_not_followed() {
    let home = small_run();
    edit_rank(home.path(), 0, |file| file.change("UPDATE rank SET command = './open-sesame'"));
    let further: [&[&str]; 3] =
        [&["hang", ".", "--html", "hang.html"], &["live", ".", "--once"], &["recover", "."]];
    // of a job that has ended hang shows no command
    for arguments in [READING[0], READING[1], further[1]] {
        let said = told(home.path(), arguments);
        assert!(said.contains("sesame"), "{arguments:?} shows nothing of it: {said}");
    }
    made(Shape::Cycle, 0, 1, 1000).write(&home.path().join("rank-3.spool")).unwrap();
    // the last one is all that there is of its run
    let links = [("rank-0.db", "rank-1.db"), ("rank-3.spool", "rank-1.db"), ("rank-0.db", "none")];
    for (name, also) in links {
        let target = home.path().join(name);
        for arguments in READING.iter().chain(&further) {
            let run = small_run();
            std::fs::remove_file(run.path().join("rank-0.db")).unwrap();
            std::fs::rename(run.path().join("rank-1.db"), run.path().join(also)).unwrap();
            symlink(&target, run.path().join(name)).unwrap();
            let said = told(run.path(), arguments);
            let what = format!("{name}: a link to {}, which is no file of", target.display());
            let is_named = said.contains(&what) && !said.contains("sesame");
            assert!(is_named, "{arguments:?} with {also}: {said}");
            assert!(target.exists() && !run.path().join("rank-3.db").exists(), "{arguments:?}");
        }
    }
}

/// Links to files of the run itself, and those that the reader names.
#[test]
fn other_links_are_followed() {
    let (run, place) = (small_run(), tempfile::tempdir().unwrap());
    std::fs::create_dir(run.path().join("kept")).unwrap();
    std::fs::rename(run.path().join("rank-0.db"), run.path().join("kept/first.db")).unwrap();
    symlink("kept/first.db", run.path().join("rank-0.db")).unwrap();
    symlink(run.path(), place.path().join("run")).unwrap();
    symlink(run.path().join("rank-0.db"), place.path().join("one.db")).unwrap();
    for named in ["run", "one.db"] {
        let said = told(place.path(), &["report", named]);
        assert!(said.contains("MPI_") && !said.contains("a link to"), "{named}: {said}");
    }
    // SQLite looks for the journal beside the file itself, and would wait for it
    fifo(&run.path().join("kept/first.db-journal"));
    let said = told(place.path(), &["report", "run"]);
    assert!(said.contains("first.db-journal: not a regular file"), "{said}");
}

/// Neither from a directory of spools that the run brings along and names, nor by journals, by pages of `LAPSCOPE_INJECT=auto` and by
/// what says whose run it is.
#[test]
fn spools_of_nodes_journals_pages_and_claims_are_not_read_through_links() {
    let (home, pages) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = home.path().join("private");
    made(Shape::Cycle, 0, 1, 1000).write(&target).unwrap();
    for arguments in [&["report", "."][..], &["hang", "."], &["recover", "--ended", "."]] {
        let run = small_run();
        let spools = run.path().join("lapscope-x");
        std::fs::create_dir(&spools).unwrap();
        symlink(&target, spools.join("rank-3.spool")).unwrap();
        let pointer = format!("c7\t{}\n", spools.display());
        std::fs::write(run.path().join("node-c7.spool-at"), pointer).unwrap();
        let said = told(run.path(), arguments);
        assert!(said.contains("rank-3.spool: a link to"), "{arguments:?}: {said}");
        assert!(!run.path().join("node-c7.db").exists(), "{arguments:?}");
    }
    let run = small_run();
    symlink(&target, run.path().join("rank-0.db-journal")).unwrap();
    assert!(told(run.path(), &["report", "."]).contains("rank-0.db-journal: not a regular file"));
    symlink(&target, pages.path().join("auto-h.jsonl")).unwrap();
    assert!(told(pages.path(), &["report", "."]).contains("auto-h.jsonl: a link to"));
    std::fs::write(&target, "whose").unwrap();
    symlink(&target, pages.path().join("job")).unwrap();
    assert_eq!(lapscope_data::recovery::Claim::read(pages.path()), None);
}

/// The name of a column is no text. The file is left out by name.
#[test]
fn a_definition_that_is_no_text_is_no_definition() {
    let run = small_run();
    edit_rank(run.path(), 0, |file| {
        let damaged =
            "CAST(replace(CAST(sql AS BLOB), CAST('post_ns' AS BLOB), X'706F7374E46E73') AS TEXT)";
        file.change("PRAGMA writable_schema = on");
        file.change(&format!("UPDATE sqlite_schema SET sql = {damaged} WHERE name = 'request'"));
    });
    for more in [&[][..], &["--parts", "2"]] {
        command(run.path(), &[&["report", "."], more].concat())
            .assert()
            .success()
            .stdout(contains("rank-0.db").and(contains("the definition of request is damaged")));
    }
}
