//! The Fortran programs of `tests/apps` under every MPI that has Fortran, by each binding, with and without lapscope.

use std::collections::BTreeSet;

use lapscope_tests::build::Binding;
use lapscope_tests::differential::check_fortran;
use lapscope_tests::{paths, rows};

macro_rules! programs {
    ($($app:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($app)),*];
        $(
            #[test]
            fn $app() {
                check_fortran(stringify!($app), &Binding::ALL, &[]);
            }
        )*
    };
}

programs! {
    fortran_complete
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
