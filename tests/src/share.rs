//! The MPIs that a test runs under, by the table and the rule of `lapscope_fixture::share`.

use crate::mpi::{self, Mpi};
pub use lapscope_fixture::share::{is_all, letters, place_of, take};

/// The MPIs that a test in this place runs under.
///
/// # Panics
/// When there is no MPI.
pub fn of_mpis(place: &str, turn: Option<usize>) -> Vec<&'static Mpi> {
    take(place, turn, mpi::all().to_vec())
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
