//! The programs of `tests/apps` under every MPI, with and without lapscope.

use std::collections::BTreeSet;

use lapscope_tests::differential::{able, check_app};
use lapscope_tests::launch::{place, Form};
use lapscope_tests::{paths, rows};

macro_rules! apps {
    (of_each_kind: $($core:ident)*; of_all: $($other:ident)*;) => {
        const OF_EACH_KIND: &[&str] = &[$(stringify!($core)),*];
        const OF_ALL: &[&str] = &[$(stringify!($other)),*];
        $(
            #[test]
            fn $core() {
                of_each_kind(stringify!($core));
            }
        )*
        $(
            #[test]
            fn $other() {
                of_all(stringify!($other));
            }
        )*
    };
}

/// One of each kind, and what MPIs do in ways of their own.
fn of_each_kind(app: &str) {
    let number = OF_EACH_KIND.iter().position(|&name| name == app).expect("its place");
    check_app(&share!(number, able(app)), app, &[Form::Preload], &[]);
}

fn of_all(app: &str) {
    let number = OF_ALL.iter().position(|&name| name == app).expect("its place");
    check_app(&share!(number, able(app)), app, &[Form::Preload], &[]);
}

apps! {
    of_each_kind:
    any_source cancel collectives collectives_persistent comm_idup communicators environment error_jump errors_return
    exit_code files_nonblocking fork_exec handle_reuse icollectives intercomm isendrecv large_count matched_probe
    partitioned persistent rma_requests sessions spawn status_ignore test_loop testsome threads type_reuse waitall waitany;

    of_all:
    blocking buffer_detach buffer_flush cancelled_thread collectives_in_place collectives_v comm_groups comm_idup_info comm_recreate
    comm_self datatypes files files_split get_status get_status_many grequest in_flight ineighbors intercomm_groups
    large_collectives large_families large_neighbors marks modes_wait neighbors neighbors_persistent pcontrol
    partitioned_threads pcontrol_arguments pcontrol_stack_end persistent_kinds ports probe proc_null request_free rma_blocking
    sendrecv sessions_again testall testany threads_requests waitsome windows zero_bytes;
}

/// `lapscope run` around the launcher and inside it does what plain LD_PRELOAD does.
mod run {
    use super::*;

    #[test]
    fn around_the_launcher() {
        for (turn, app) in ["waitall", "collectives", "exit_code"].into_iter().enumerate() {
            check_app(&mpis!(turn), app, &[Form::Outer], &[]);
        }
    }

    #[test]
    fn as_every_rank() {
        for (turn, app) in ["waitall", "collectives", "exit_code"].into_iter().enumerate() {
            check_app(&mpis!(turn), app, &[Form::Inner], &[]);
        }
    }
}

/// The same rows whatever the options are.
#[test]
fn options_change_no_row() {
    let spools = place();
    let spools = spools.path().to_str().expect("a path");
    let options = [
        ("LAPSCOPE_CLOCK", "monotonic"),
        ("LAPSCOPE_CPU_TIME", "on"),
        ("LAPSCOPE_TEST_CLOCK", "0:-3000000:40,1:7000000:-90"),
        ("LAPSCOPE_CALLPATH", "off"),
        ("LAPSCOPE_CALLPATH_DEPTH", "1"),
        ("LAPSCOPE_SAMPLE", "10000"),
        ("LAPSCOPE_SPOOL_DIR", spools),
    ];
    for (number, option) in options.into_iter().enumerate() {
        for app in ["handle_reuse", "communicators"] {
            check_app(&mpis!(number), app, &[Form::Preload], &[option]);
        }
    }
}

/// A program with expectations that nobody runs would look tested.
#[test]
fn every_expectation_is_tested() {
    let with_expectation: BTreeSet<String> = rows::files(&paths::apps())
        .iter()
        .filter(|path| {
            path.extension().is_some_and(|end| end == "c") && path.with_extension("expect").exists()
        })
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    let tested = [OF_EACH_KIND, OF_ALL].concat();
    assert_eq!(with_expectation, tested.iter().map(|&app| app.to_owned()).collect());
}
