//! Support for the tests under real MPI launchers: which MPIs there are, how a program is built and launched with and
//! without lapscope, and how what lapscope wrote is compared with what a program is known to do.

/// Says a line on standard error at once: what a test prints in other ways is kept back where it passes.
///
/// # Panics
/// When there is no standard error.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => {
        std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($words)*)))
            .expect("standard error")
    };
}

pub mod answer;
pub mod bed;
pub mod build;
pub mod differential;
pub mod expect;
pub mod invariants;
pub mod launch;
mod launcher;
pub mod messages;
pub mod mpi;
pub mod namespace;
pub mod others;
pub mod paths;
pub mod pattern;
pub mod reach;
pub mod rows;
pub mod share;
pub mod slurm;
mod stuck;
pub mod suite;
pub mod torture;
pub mod trials;
pub mod truth;
pub mod turn;
pub mod watched;
pub mod watchpoints;

pub use lapscope_fixture::{child, pty};
