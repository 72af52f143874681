//! Support for the tests under real MPI launchers.
