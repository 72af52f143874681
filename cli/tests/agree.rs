//! Numbers of one name are one number, in whichever document they stand.

use std::path::Path;

use crate::fixture::answer;
use crate::html::check_numbers;
use crate::overlap::{random_run, run};
use lapscope_fixture::agree;

fn check(directory: &Path) {
    let report = agree::check(&|asked| answer(directory, asked), false);
    assert!(check_numbers(directory, &report) >= 50);
}

#[test]
fn documents_say_the_same() {
    check(run().path());
    for seed in 1..=4 {
        let directory = tempfile::tempdir().unwrap();
        random_run(directory.path(), seed);
        check(directory.path());
    }
}
