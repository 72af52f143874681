//! Programs on which an expert would disagree with a simple reading of the times; what lapscope has to say of each.

use lapscope_tests::answer::{ask, check_sums, number, rows, site, text};
use lapscope_tests::build;
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::trials;
use serde_json::Value;

fn record(job: &Job) {
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

/// Four ranks on one processor: their times are mostly that, and so it is said before anything else.
#[test]
fn ranks_that_share_a_processor() {
    for mpi in share!(mpi::debian()) {
        trials::up_to_three(&format!("a shared processor under {}", mpi.name), || lacks_one(mpi));
    }
}

fn lacks_one(mpi: &Mpi) {
    let place = place();
    let job = Job::new(mpi, 4, build::app(mpi, "crowded"), Form::Preload, place.path())
        .inside(vec!["taskset".into(), "-c".into(), "0".into()]);
    record(&job);
    let report = ask("report", &job.run_directory());
    assert_eq!(text(&report["problems"][0], "kind"), "starved", "{:#}", report["problems"]);
    assert_eq!(text(&report["advice"][0], "cure"), "give_processors", "{:#}", report["advice"]);
    let overlap = ask("overlap", &job.run_directory());
    check_sums(&overlap["totals"]);
    let waited =
        number(&overlap["totals"], "exposed_ns") + number(&overlap["blocking"], "blocked_ns");
    let missing = number(&overlap["totals"], "exposed_no_processor_ns")
        + number(&overlap["blocking"], "no_processor_ns");
    println!(
        "{}: {:.0} % of all waiting is a missing processor",
        mpi.name,
        100.0 * missing / waited
    );
    assert!(missing > 0.5 * waited, "{:#}", overlap["totals"]);
    let thresholds = ask("thresholds", &job.run_directory());
    let contradicted = rows(&thresholds, "sentences").iter().any(|sentence| {
        sentence.as_str().is_some_and(|sentence| sentence.contains("does not agree"))
    });
    assert!(!contradicted, "{:#}", thresholds["sentences"]);
}

fn polled(mpi: &Mpi, how: &str) -> Value {
    let place = place();
    let job = Job::new(mpi, 2, build::app(mpi, "polled"), Form::Preload, place.path()).args([how]);
    record(&job);
    ask("overlap", &job.run_directory())
}

/// A test ends the window, but not the computation that could have hidden the message.
#[test]
fn a_test_that_completes_is_not_where_data_are_needed() {
    for mpi in share!(mpi::debian()) {
        trials::up_to_three(&format!("polled under {}", mpi.name), || loses_what_it_cost(mpi));
    }
}

fn loses_what_it_cost(mpi: &Mpi) {
    let overlap = polled(mpi, "tests");
    let said = site(&overlap, "MPI_Irecv", "receive_testing");
    let shares = ["possible_low", "possible", "lost_low", "lost_high"].map(|key| number(said, key));
    println!(
        "{}: possible {:.2} to {:.2}, lost {:.2} to {:.2}",
        mpi.name, shares[0], shares[1], shares[2], shares[3]
    );
    assert!(shares[1] > 0.95, "{said:#}");
    let cost = number(said, "exposed_ns") + number(said, "post_ns");
    let [lost, least] = ["lost_high_ns", "achieved_low_ns"].map(|key| number(said, key));
    let most = cost.min(number(said, "possible_ns") - least);
    assert!(lost >= 0.99 * most, "all that it cost may have been hidden: {said:#}");
}

/// What passed while the sender waited for something else is no loss on the message's account.
#[test]
fn a_message_that_costs_nothing_loses_nothing() {
    for mpi in share!(mpi::debian()) {
        trials::up_to_three(&format!("elsewhere under {}", mpi.name), || loses_nothing(mpi));
    }
}

fn loses_nothing(mpi: &Mpi) {
    let overlap = polled(mpi, "elsewhere");
    let said = site(&overlap, "MPI_Isend", "send_and_be_answered");
    let cost = number(said, "exposed_ns") + number(said, "post_ns");
    let [lost, transfer] = ["lost_high_ns", "reference_ns"].map(|key| number(said, key));
    println!("{}: lost {lost} ns of {transfer}, cost {cost}", mpi.name);
    assert!(lost <= cost, "{said:#}");
    assert!(number(said, "possible") > 0.95, "{said:#}");
}
