//! The programs of `tests/apps` under every MPI, with and without lapscope.

use std::collections::BTreeSet;

use lapscope_tests::differential::{check_app, check_app_with};
use lapscope_tests::launch::{place, Form};
use lapscope_tests::{paths, rows};

macro_rules! apps {
    ($($app:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($app)),*];
        $(
            #[test]
            fn $app() {
                check_app(stringify!($app), &[Form::Preload]);
            }
        )*
    };
}

apps! {
    any_source blocking buffer_detach buffer_flush cancel collectives collectives_in_place collectives_persistent
    collectives_v comm_groups comm_idup comm_idup_info comm_recreate comm_self communicators datatypes environment
    error_jump errors_return exit_code files files_nonblocking files_split fork_exec get_status get_status_many
    grequest handle_reuse icollectives in_flight ineighbors intercomm intercomm_groups isendrecv large_collectives
    large_count large_families large_neighbors matched_probe modes_wait neighbors neighbors_persistent partitioned
    pcontrol pcontrol_arguments persistent persistent_kinds ports probe proc_null request_free rma_blocking
    rma_requests sendrecv sessions sessions_again spawn status_ignore test_loop testall testany testsome threads
    threads_requests waitall waitany waitsome windows zero_bytes
}

/// `lapscope run` around the launcher and inside it does what plain LD_PRELOAD does.
mod run {
    use super::*;

    #[test]
    fn around_the_launcher() {
        for app in ["waitall", "collectives", "exit_code"] {
            check_app(app, &[Form::Outer]);
        }
    }

    #[test]
    fn as_every_rank() {
        for app in ["waitall", "collectives", "exit_code"] {
            check_app(app, &[Form::Inner]);
        }
    }
}

/// The same rows whatever the options are.
#[test]
fn options_change_no_row() {
    let spools = place();
    let spools = spools.path().to_str().expect("a path");
    for option in [
        ("LAPSCOPE_CLOCK", "monotonic"),
        ("LAPSCOPE_CPU_TIME", "on"),
        ("LAPSCOPE_TEST_CLOCK", "0:-3000000:40,1:7000000:-90"),
        ("LAPSCOPE_CALLPATH", "off"),
        ("LAPSCOPE_CALLPATH_DEPTH", "1"),
        ("LAPSCOPE_SPOOL_DIR", spools),
    ] {
        check_app_with("handle_reuse", &[Form::Preload], &[option]);
        check_app_with("communicators", &[Form::Preload], &[option]);
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
    assert_eq!(with_expectation, TESTED.iter().map(|&app| app.to_owned()).collect());
}
