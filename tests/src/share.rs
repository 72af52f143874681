//! What `make check` runs of tests that repeat the same under every MPI, with every limit, on every bed: a share. `make
//! check-all` runs the whole of them.
//!
//! The rule. A test goes through a list: of MPIs where nothing else is said. Its row of [`SHARES`] says how many entries of the
//! list `make check` takes, and they lie evenly in it: of six MPIs a test that takes two takes each third one, from its turn on.
//! The turn is the number of the program or case where a test has several; else it is the sum of the letters of its name.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::mpi::{self, Mpi};
pub use lapscope_fixture::is_all;

/// A suite or a test, how many entries of its list `make check` takes, and of which list. The row with the longest name that a test's
/// begins with is the test's. In `make check-all` each takes all.
const SHARES: &[(&str, usize, &str)] = &[
    ("", 1, "MPI"),
    // one of each kind, and what MPIs do in ways of their own
    ("apps::of_each_kind", 2, "MPIs"),
    ("apps::options_change_no_row", 1, "MPI for an option"),
    ("bench::injection_turns_no_overlap_into_overlap", 0, ""),
    ("bench::sends_wait_from_the_limit_on_and_a_test_frees_them", 0, ""),
    ("bench::ghost_cells_gain_by_what_is_advised", 0, ""),
    ("deaths::ends_on_a_small_stack", 2, "MPIs"),
    ("files::many_ranks_on_four_nodes", 0, ""),
    ("gain::one_slot_tells_nothing", 0, ""),
    ("hang::hanging", 6, "programs under each MPI of Debian"),
    ("hang::slow", 3, "programs under each MPI of Debian"),
    ("hang::in_time_at_64_ranks", 0, ""),
    ("inject::known::rows", 12, "programs under an MPI in each mode"),
    ("inject::known::tests_of_mpi4py", 1, "mode under an MPI"),
    ("inject::known::tests_of_mpi4py_with_watches", 0, ""),
    ("inject::known::tests_of_mpi4py_with_copied_sends", 0, ""),
    ("inject::torture::a_share_of_all", 24, "of programs under an MPI in a mode"),
    ("inject::torture::without_injection", 4, "programs"),
    ("inject::torture::ways_that_change_while_programs_run", 1, "program under an MPI"),
    ("overlap", 1, "MPI over one link"),
    ("record::off_leaves_nothing", 16, "programs under an MPI"),
    ("sends::datatypes_with_gaps_arrive_as_they_are", 2, "MPIs"),
    ("sends::what_is_sent_while_mpi_ends_goes_as_it_is", 2, "MPIs"),
    ("slurm::tasks_of_an_array_are_runs_of_their_own", 0, ""),
    ("slurm::own_launchers_in_an_allocation", 0, ""),
    ("slurm::every_mpi_by_srun", 0, ""),
    ("slurm::components_of_a_step_are_one_run", 0, ""),
    ("tune::where_there_is_nothing_to_gain_it_says_so", 0, ""),
    ("thresholds::check_limits", 1, "of five limits"),
    ("thresholds::blind::openmpi_ucx", 0, ""),
];

/// The row of a place.
fn row(place: &str) -> (&'static str, usize, &'static str) {
    let fits = SHARES.iter().filter(|(test, ..)| place.starts_with(test));
    *fits.max_by_key(|(test, ..)| test.len()).expect("the row of all tests")
}

/// Says once for a row what `make check` leaves to `make check-all`, or what that has more.
fn say((test, count, what): (&str, usize, &str)) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let line = match (test, count) {
        (_, 0) => test.to_owned(),
        ("", _) => format!("of other tests all but {count} {what} each"),
        _ => format!("{test}: all but {count} {what}"),
    };
    if SAID.lock().is_ok_and(|mut said| said.insert(line.clone())) {
        let way = if is_all() { "MORE THAN make check" } else { "LEFT TO make check-all" };
        crate::say!("{way}: {line}");
    }
}

/// The name of a function as its module has it, of the type of a closure in it.
pub fn place_of<T>(_: &T) -> &'static str {
    let name = std::any::type_name::<T>();
    let name = name.split_once("::").map_or(name, |(_, inner)| inner);
    name.trim_end_matches("::{{closure}}")
}

/// What a test in this place takes of a list, by the rule of this module.
pub fn of<T>(place: &str, turn: Option<usize>, list: Vec<T>) -> Vec<T> {
    let row = row(place);
    let count = row.1;
    if count >= list.len() {
        return list;
    }
    say(row);
    if is_all() {
        return list;
    }
    if count == 0 {
        return Vec::new();
    }
    let step = list.len().div_ceil(count);
    list.into_iter().skip(turn.unwrap_or_else(|| letters(place)) % step).step_by(step).collect()
}

/// The sum of the letters of a name, by which the turn of a test goes that has no number.
pub fn letters(name: &str) -> usize {
    name.bytes().map(usize::from).sum()
}

/// The MPIs that a test in this place runs under.
///
/// # Panics
/// When there is no MPI.
pub fn of_mpis(place: &str, turn: Option<usize>) -> Vec<&'static Mpi> {
    of(place, turn, mpi::all().to_vec())
}

/// What the function in which this stands takes of a list: `share!(list)`, or `share!(turn, list)`.
#[macro_export]
macro_rules! share {
    ($list:expr) => {
        $crate::share::of($crate::share::place_of(&|| ()), None, $list)
    };
    ($turn:expr, $list:expr) => {
        $crate::share::of($crate::share::place_of(&|| ()), Some($turn), $list)
    };
}

/// The MPIs for the function in which this stands: `mpis!()`, or `mpis!(turn)`.
#[macro_export]
macro_rules! mpis {
    () => {
        $crate::share::of_mpis($crate::share::place_of(&|| ()), None)
    };
    ($turn:expr) => {
        $crate::share::of_mpis($crate::share::place_of(&|| ()), Some($turn))
    };
}

/// Whether the function in which this stands is left to `make check-all`.
#[macro_export]
macro_rules! is_left_out {
    () => {
        $crate::share!(vec![()]).is_empty()
    };
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::paths;

    #[test]
    fn a_place_is_named_as_its_test() {
        let inside = [1].map(|_| place_of(&|| ()));
        assert_eq!(inside, ["share::tests::a_place_is_named_as_its_test"]);
    }

    #[test]
    fn turns_go_through_the_whole_list() {
        let mut taken = Vec::new();
        for turn in 0..3 {
            let part = of("apps::of_each_kind", Some(turn), vec![1, 2, 3, 4, 5, 6]);
            assert!(is_all() || part.len() == 2, "{part:?}");
            taken.extend(part);
        }
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken, [1, 2, 3, 4, 5, 6]);
        assert_eq!(of("apps::of_each_kind", Some(5), vec![7]), [7]);
        assert_eq!(
            of("slurm::tasks_of_an_array_are_runs_of_their_own", None, vec![()]).len(),
            usize::from(is_all())
        );
    }

    /// A row that no test has would say of something that it is tested.
    #[test]
    fn every_row_has_a_test() {
        for (test, ..) in SHARES.iter().filter(|(test, ..)| !test.is_empty()) {
            let words: Vec<&str> = test.split("::").collect();
            let tests = paths::root().join("tests/tests");
            let nested = tests.join(words[0]).join(format!("{}.rs", words.get(1).unwrap_or(&"")));
            let file =
                if nested.is_file() { nested } else { tests.join(format!("{}.rs", words[0])) };
            let text = fs::read_to_string(&file).unwrap_or_else(|_| panic!("{test}: no {file:?}"));
            let last = words[words.len() - 1];
            assert!(
                words.len() == 1 || text.contains(&format!("fn {last}")),
                "{test}: not in {file:?}"
            );
        }
    }
}
