//! `examples/speculative`: its protocols deliver each byte to the receive that it is for, whatever crosses on the way, and differ
//! in what they overlap as their authors found. Times are never asserted, only what is larger than what by far.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use lapscope_tests::launch::{place, Form, Job, Outcome};
use lapscope_tests::trials::up_to_three;
use lapscope_tests::{child, paths, say};

/// The exit code of the program where it may not do what it is about.
const REFUSED: i32 = 77;

/// Compiled once, as its README says, with warnings.
fn compiled() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let directory = paths::root().join("build/tests");
        fs::create_dir_all(&directory).expect("a directory for tests");
        compile(directory.join("speculative"))
    })
}

fn compile(program: PathBuf) -> PathBuf {
    let directory = paths::root().join("examples/speculative");
    let mut sources: Vec<PathBuf> = fs::read_dir(directory)
        .expect("the example")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    let output = child::command("cc")
        .args(["-std=gnu11", "-O2", "-g", "-pthread", "-Wall", "-Wextra", "-Wshadow", "-Werror"])
        .arg("-o")
        .arg(&program)
        .args(sources)
        .output()
        .expect("a compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// `None`: one process may not reach the memory of another on this machine.
fn run(program: &Path, place: &Path, arguments: &str) -> Option<Outcome> {
    let job = Job::alone(program, Form::Bare, place).args(arguments.split(' '));
    let outcome = job.run();
    if outcome.code == REFUSED {
        say!("NOT TESTED: examples/speculative: {}", outcome.stderr);
        return None;
    }
    assert_eq!(outcome.code, 0, "{arguments}: {outcome:?}");
    Some(outcome)
}

/// Sums over the rows of each table, by protocol and column.
fn sums(output: &str) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut tables: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        let Some(protocol) = line.strip_prefix("table stress protocol=") else { continue };
        let columns: Vec<&str> = lines.next().expect("columns").split_whitespace().collect();
        let table = tables.entry(protocol.to_owned()).or_default();
        for row in lines.by_ref().take_while(|row| !row.is_empty()) {
            let values: Vec<u64> =
                row.split_whitespace().map(|value| value.parse().expect("a count")).collect();
            assert_eq!(values.len(), columns.len(), "{row}");
            for (column, value) in columns.iter().zip(values) {
                *table.entry((*column).to_owned()).or_default() += value;
            }
        }
    }
    tables
}

#[test]
fn every_race_happens_and_none_does_harm() {
    const SEEDS: u64 = 16;
    const MESSAGES: u64 = 2 * 400;
    let place = place();
    let program = compiled();
    up_to_three("races", || {
        let arguments = format!("-x 1 -n {SEEDS}");
        let Some(outcome) = run(program, place.path(), &arguments) else { return };
        let tables = sums(&outcome.stdout);
        assert_eq!(tables.keys().collect::<Vec<_>>(), ["read", "speculative", "write"]);
        for (protocol, table) in &tables {
            assert_eq!(table["messages"], SEEDS * MESSAGES, "{protocol}: {table:?}");
        }
        let races = &tables["speculative"];
        for (race, count) in races {
            assert!(*count > 0, "{race}: {races:?}");
        }
        // each announcement came to an end that its sender knew of
        let ends = ["found", "crossed", "eager_found", "eager_late"].map(|end| races[end]);
        assert_eq!(races["announced"], ends.iter().sum::<u64>(), "{races:?}");
        assert!(tables["read"]["announced"] + tables["write"]["announced"] == 0);
    });
}

/// Percent by protocol, first and side, of one column of the values that the program keeps.
fn measured(file: &Path, column: &str) -> BTreeMap<[String; 3], f64> {
    let text = fs::read_to_string(file).expect("tab-separated values");
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names = lines.next().expect("names of columns");
    let place = names.iter().position(|name| *name == column).expect("that column");
    let row = |row: Vec<&str>| {
        let key = [row[0], row[1], row[2]].map(str::to_owned);
        (key, row[place].parse().expect("a number"))
    };
    lines.map(row).collect()
}

/// [RA08], its figures by order alone.
#[test]
fn an_early_receiver_overlaps_with_announcements_only() {
    const FAR: f64 = 40.0;
    let place = place();
    let program = compiled();
    up_to_three("overlap of rendezvous protocols", || {
        let file = place.path().join("overlap.tsv");
        let arguments = format!("-a receiver -b 256K -r 5 -t {}", file.display());
        if run(program, place.path(), &arguments).is_none() {
            return;
        }
        let overlap = measured(&file, "overlap_percent");
        let left = measured(&file, "left_percent");
        let of = |values: &BTreeMap<[String; 3], f64>, protocol: &str, side: &str| {
            values[&[protocol, "receiver", side].map(str::to_owned)]
        };
        for other in ["write", "read"] {
            let more = of(&overlap, "speculative", "receive") - of(&overlap, other, "receive");
            assert!(more > FAR, "{other}: {overlap:?}");
            let less = of(&left, other, "receive") - of(&left, "speculative", "receive");
            assert!(less > FAR, "{other}: {left:?}");
        }
        // a sender that needs a CTS has all to do when it waits; not one whose data are read, or that found an announcement
        for other in ["read", "speculative"] {
            let less = of(&left, "write", "send") - of(&left, other, "send");
            assert!(less > FAR, "{other}: {left:?}");
        }
    });
}

/// Runs it with a system call refused, as a container does.
fn refused(program: &Path, call: libc::c_long, error: i32) -> Output {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0), // the number of the call
        libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32)
        },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | error as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let mut command = child::command(program);
    let install = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: both take plain numbers and a program that lives until they return
        let installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
        };
        if installed {
            Ok(())
        } else {
            Err(std::io::Error::last_os_error())
        }
    };
    // SAFETY: only system calls are made between fork and exec
    unsafe { command.pre_exec(install) };
    command.args(["-x", "1"]).output().expect("it runs")
}

#[test]
fn who_may_not_reach_the_other_process_is_told_so() {
    let program = compiled();
    let calls = [
        (libc::SYS_process_vm_readv, libc::EPERM, "seccomp"),
        (libc::SYS_process_vm_writev, libc::EPERM, "ptrace_scope"),
        (libc::SYS_process_vm_readv, libc::ENOSYS, "CONFIG_CROSS_MEMORY_ATTACH"),
    ];
    for (call, error, word) in calls {
        let output = refused(program, call, error);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(REFUSED), "{said}");
        assert!(said.contains("process_vm_readv") && said.contains(word), "{said}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn what_it_cannot_do_is_refused() {
    let place = place();
    let program = compiled();
    for (arguments, word) in [
        ("-b 4K", "eager limit"),
        ("-p eager", "speculative or all"),
        ("-e 64K", "up to 16K"),
        ("-q", "-h lists them"),
        ("more", "only options"),
    ] {
        let outcome =
            Job::alone(program, Form::Bare, place.path()).args(arguments.split(' ')).run();
        assert_eq!(outcome.code, 2, "{arguments}: {outcome:?}");
        assert!(outcome.stderr.contains(word), "{arguments}: {outcome:?}");
    }
}
