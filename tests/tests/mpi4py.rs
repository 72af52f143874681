//! Python programs, which load their MPI late and with local scope.

use lapscope_tests::differential::check_script;
use lapscope_tests::launch::Form;

#[test]
fn messages_and_collectives() {
    check_script("python_exchange", &[Form::Preload]);
}

#[test]
fn mpi_loaded_inside_a_function() {
    check_script("python_late", &[Form::Preload]);
}

#[test]
fn under_lapscope_run() {
    check_script("python_exchange", &[Form::Outer, Form::Inner]);
}
