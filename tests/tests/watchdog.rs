//! `LAPSCOPE_WATCHDOG` in programs that hang for a while: one line for the job, and nothing else changes.

use lapscope_tests::build;
use lapscope_tests::differential::outcome_differences;
use lapscope_tests::launch::{place, Form, Job};

/// Rank 1 comes two seconds late, in which nothing ends on either rank. Bare it is not late, which nobody can see in its output.
#[test]
fn one_rank_of_a_job_that_hangs_says_so_once() {
    for mpi in mpis!() {
        let app = build::app(mpi, "comes_late");
        let bare_place = place();
        let bare = Job::new(mpi, 2, &app, Form::Bare, bare_place.path()).args(["0"]).run();
        for (threads, inject) in [("single", "off"), ("threads", "thread")] {
            let place = place();
            let job = Job::new(mpi, 2, &app, Form::Preload, place.path())
                .args(["2000", threads])
                .env("LAPSCOPE_WATCHDOG", "1")
                .env("LAPSCOPE_INJECT", inject)
                .env("LAPSCOPE_QUIET", "on");
            let with = job.run();
            let differences = outcome_differences(&bare, &with);
            assert!(differences.is_empty(), "{}: {differences:#?} {:#?}", mpi.name, with.said);
            // MPI's own end may take a second where others use the processors
            let said = |line: &&String| {
                line.contains(" hangs: no MPI call of it has ended for ")
                    && !line.contains("inside MPI_Finalize")
            };
            let said: Vec<&String> = with.said.iter().filter(said).collect();
            let [line] = said[..] else { panic!("{} {threads}: {:#?}", mpi.name, with.said) };
            assert!(line.starts_with("rank 0 (") || line.starts_with("rank 1 ("), "{line}");
            let place = if line.starts_with("rank 1") { "; outside MPI." } else { "; inside MPI_" };
            assert!(line.contains(place), "{line}");
            let command = format!(" says: lapscope hang {}", job.run_directory().display());
            assert!(line.ends_with(&command), "{line}");
            assert!(!job.run_directory().join(".watchdog").exists());
        }
    }
}
