//! The Fortran programs of `tests/apps` under every MPI that has Fortran, by each binding, with and without lapscope.

use std::collections::BTreeSet;

use lapscope_tests::build::Binding;
use lapscope_tests::differential::{able, check_fortran};
use lapscope_tests::{build, paths, rows};

macro_rules! programs {
    ($($bindings:ident: $($app:ident)*;)*) => {
        const TESTED: &[&str] = &[$($(stringify!($app)),*),*];
        $($(
            #[test]
            fn $app() {
                check(stringify!($app), $bindings, &[]);
            }
        )*)*
    };
}

/// Under those of the MPIs that have the bindings and what the program calls.
fn check(app: &str, bindings: &[Binding], flags: &[&str]) {
    let mut mpis = able(app);
    mpis.retain(|mpi| bindings.iter().all(|&binding| build::has_fortran(mpi, binding)));
    let turn = TESTED.iter().position(|&name| name == app).expect("its place");
    check_fortran(&share!(turn, mpis), app, bindings, flags);
}

const ALL: &[Binding] = &Binding::ALL;
const F08: &[Binding] = &[Binding::F08];
const HEADER: &[Binding] = &[Binding::Header];

programs! {
    ALL: fortran_collectives fortran_complete fortran_files fortran_messages fortran_ports fortran_windows;
    F08: fortran_large fortran_subarrays;
    HEADER: fortran_marks fortran_names fortran_upper;
}

/// Compilers append no underscore to names, one, or two: an MPI has its functions under all these names.
mod names {
    use super::*;

    #[test]
    fn without_underscore() {
        check("fortran_names", HEADER, &["-fno-underscoring"]);
    }

    #[test]
    fn with_two_underscores() {
        check("fortran_names", HEADER, &["-fsecond-underscore"]);
    }
}

/// A program with expectations that nobody runs would look tested.
#[test]
fn every_expectation_is_tested() {
    let with_expectation: BTreeSet<String> = rows::files(&paths::apps())
        .iter()
        .filter(|path| {
            path.extension().is_some_and(|end| end == "f90")
                && path.with_extension("expect").exists()
        })
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(with_expectation, TESTED.iter().map(|&app| app.to_owned()).collect());
}
