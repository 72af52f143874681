//! What reports say of programs that go on only because MPI keeps their messages, and that they say nothing of others.

use std::path::PathBuf;

use lapscope_tests::build::{self, Binding};
use lapscope_tests::launch::{place, try_lapscope, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{answer, say};
use serde_json::Value;

/// Of `tests/apps/buffering.c`: all ranks are in the circle, or two of them.
const UNSAFE: &[(&str, bool)] = &[
    ("send_first", true),
    ("wait_for_send_first", true),
    ("barrier_between", false),
    ("root_sends_first", false),
    ("root_receives_late", false),
    ("fence_between", false),
    ("any_after_send", true),
    ("probed", true),
];
const SAFE: &[&str] = &[
    "sendrecv",
    "receive_posted_first",
    "all_together",
    "one_receives_first",
    "buffered",
    "any_source",
];
/// Safe or not, by what the program does where a test or a probe says no.
const OPEN: &[(&str, &str)] = &[
    ("tests_until_sent", "where its test says no"),
    ("probes_for_the_second", "found by a probe what is not sent then"),
];

/// What its report says of it: where it relies on buffering, and where that is not known.
fn relies(mpi: &Mpi, ranks: u32, program: PathBuf, arguments: &[&str]) -> (Value, Value) {
    let place = place();
    let job = Job::new(mpi, ranks, program, Form::Preload, place.path()).args(arguments);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    // shares of ranks of several threads may exceed 1, which `ask` would not have
    let run = job.run_directory();
    let printed =
        try_lapscope(["report".as_ref(), "--format".as_ref(), "json".as_ref(), run.as_os_str()]);
    let report: Value =
        serde_json::from_str(&printed.unwrap_or_else(|it| panic!("{it}"))).expect("JSON");
    assert!(report["bounds"]["identity_ns"].is_i64(), "it is not replayed: {arguments:?}");
    (report["relies_on_buffering"].clone(), report["buffering_not_known"].clone())
}

#[test]
fn sends_before_receives_are_named_and_nothing_that_is_safe() {
    for (turn, ranks) in [2, 3].into_iter().enumerate() {
        for mpi in share!(turn, mpi::debian()) {
            let program = build::app(mpi, "buffering");
            for (name, is_of_all) in UNSAFE {
                let (found, open) = relies(mpi, ranks, program.clone(), &[name]);
                assert_eq!(open, Value::Null, "{name}");
                let says = answer::text(&found, "says");
                say!("{} {ranks} {name}: {says}", mpi.name);
                assert_eq!(found["bytes"], 512, "{name}: {found:#}");
                let least = if *is_of_all { ranks as usize } else { 2 };
                assert_eq!(answer::rows(&found, "cycle").len(), least, "{name}: {found:#}");
                assert!(says.contains(name) && says.contains("MPI_Irecv"), "{name}: {says}");
            }
            for safe in [SAFE, &["two_threads"]] {
                let found = relies(mpi, ranks, program.clone(), safe);
                assert_eq!(found, (Value::Null, Value::Null), "{} {ranks} {safe:?}", mpi.name);
            }
            // a circle in the record or not, as messages came
            let (found, _) = relies(mpi, ranks, program.clone(), &["tests_between"]);
            assert_eq!(found, Value::Null, "{} {ranks} tests_between", mpi.name);
            for (name, why) in OPEN {
                let (found, open) = relies(mpi, ranks, program.clone(), &[name]);
                assert_eq!(found, Value::Null, "{} {ranks} {name}", mpi.name);
                assert!(open.as_str().is_some_and(|open| open.contains(why)), "{name}: {open}");
            }
        }
    }
}

#[test]
fn a_ring_in_fortran_is_named() {
    for mpi in mpi::debian() {
        if !build::has_fortran(mpi, Binding::Header) {
            continue;
        }
        let program = build::fortran(mpi, "fortran_unsafe", Binding::Header, &[]);
        let (found, _) = relies(mpi, 3, program, &[]);
        let says = answer::text(&found, "says");
        say!("{}: {says}", mpi.name);
        assert_eq!(answer::rows(&found, "cycle").len(), 3, "{found:#}");
        assert!(says.contains("exchange fortran_unsafe.f90"), "{says}");
    }
}
