//! What `make check` runs of tests that repeat the same under every MPI: a share that has every MPI and every program in it.
//! `make check-all` runs the whole of them.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Mutex;

use crate::mpi::{self, Mpi};

/// Set to leave nothing out: `make check-all`.
const ALL: &str = "LAPSCOPE_TEST_ALL";

/// The MPIs whose share is the whole: one for each of the two large families, as most machines have them.
const MAIN: &[&str] = &["openmpi", "mpich"];

/// Whether nothing is left out.
pub fn is_all() -> bool {
    std::env::var_os(ALL).is_some_and(|value| !value.is_empty())
}

/// Says once what is left to `make check-all`.
fn say(what: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().is_ok_and(|mut said| said.insert(what.to_owned())) {
        writeln!(io::stderr(), "LEFT TO make check-all: {what}").expect("standard error");
    }
}

/// The MPIs of Debian, and one of the others in turn: that of number `turn`. `what` is said to be left out under the rest.
///
/// # Panics
/// When there is no MPI.
pub fn of_mpis(turn: usize, what: &str) -> Vec<&'static Mpi> {
    let all = mpi::all();
    if is_all() {
        return all.to_vec();
    }
    let (mut chosen, others): (Vec<&Mpi>, Vec<&Mpi>) =
        all.iter().partition(|mpi| MAIN.contains(&mpi.name));
    if others.len() > 1 {
        say(&format!("{what} under all but the MPIs of Debian and one other each, in turn"));
    }
    chosen.extend(others.get(turn % others.len().max(1)));
    chosen
}

/// The MPIs of Debian alone. `what` is said to be left out under the rest.
///
/// # Panics
/// When there is no MPI.
pub fn of_debian(what: &str) -> Vec<&'static Mpi> {
    if !is_all() {
        say(&format!("{what} under some of the MPIs"));
    }
    mpi::all().iter().copied().filter(|mpi| is_all() || MAIN.contains(&mpi.name)).collect()
}

/// The first of Debian's MPIs alone. `what` is said to be left out under the rest.
///
/// # Panics
/// When there is no MPI.
pub fn of_one(what: &str) -> Vec<&'static Mpi> {
    let mut chosen = of_debian(what);
    if !is_all() {
        chosen.truncate(1);
    }
    chosen
}

/// Whether to run a part that is left to `make check-all`; says so where not.
pub fn includes(what: &str) -> bool {
    if !is_all() {
        say(what);
    }
    is_all()
}
