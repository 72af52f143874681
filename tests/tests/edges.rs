//! What of a process is the program's own stays so: descriptors.

use lapscope_tests::build;
use lapscope_tests::differential::outcome_differences;
use lapscope_tests::launch::{place, Form, Job};

/// Every free number is the program's, at each new call path.
#[test]
fn descriptors_stay_whose_they_are() {
    for mpi in mpis!() {
        let (bare_place, place) = (place(), place());
        let app = build::app(mpi, "own_descriptors");
        let bare = Job::new(mpi, 1, &app, Form::Bare, bare_place.path()).run();
        assert!(bare.code == 0 && bare.stdout.ends_with("\n0 bytes\n"), "{}: {bare:?}", mpi.name);
        let with = Job::new(mpi, 1, &app, Form::Preload, place.path()).run();
        let differences = outcome_differences(&bare, &with);
        assert!(differences.is_empty(), "{}: {differences:#?}", mpi.name);
    }
}
