//! What `lapscope overlap` says of programs whose overlap is known by construction, held against what they measured
//! themselves, over shared memory and over a slow link. Only classes and bounds are asserted; figures are printed.

mod pairs;

use std::time::Duration;

use serde_json::Value;

use lapscope_tests::answer::{ask_without_processors, check_sums, number, rows, site, text};
use lapscope_tests::bed::Bed;
use lapscope_tests::build;
use lapscope_tests::launch::place;
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::trials;
use lapscope_tests::truth::Truth;

/// The MPIs whose transfers were looked at: which messages stand still, and who moves them.
const KNOWN: &[&str] = &["openmpi", "mpich"];

/// A clock that a test shifts: microseconds and parts per million.
type Shift = Option<&'static str>;

fn on_beds() -> Vec<(&'static Mpi, Bed)> {
    let known = KNOWN.iter().filter_map(|name| mpi::named(name));
    let pairs = known.flat_map(|mpi| Bed::ALL.map(|bed| (mpi, bed)));
    pairs.filter(|(mpi, bed)| bed.is_there(mpi)).collect()
}

/// Runs a program and asks lapscope; what it says of itself, and the answer, whose sums all agree with their parts.
fn measure(
    (mpi, bed): (&Mpi, Bed),
    app: &str,
    ranks: u32,
    args: &[&str],
    shift: Shift,
) -> (Truth, Value) {
    let place = place();
    let mut job = bed.job(mpi, ranks, build::app(mpi, app), place.path()).args(args);
    if let Some(shift) = shift {
        job = job.env("LAPSCOPE_TEST_CLOCK", shift);
    }
    job = job.limit(LONG);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{app} {args:?} under {}: {}", mpi.name, outcome.stderr);
    let overlap = ask_without_processors("overlap", &job.run_directory());
    check_sums(&overlap["totals"]);
    for table in ["kinds", "sites", "sizes", "localities", "ranks", "over_time"] {
        rows(&overlap, table).iter().for_each(check_sums);
    }
    println!("\n{app} {args:?}, {}, {}, clock {shift:?}", mpi.name, bed.word());
    let corrected = !rows(&overlap["clocks"], "corrections").is_empty();
    assert_eq!(corrected, shift.is_some(), "{:#}", overlap["clocks"]);
    (Truth::parse(&outcome.stdout), overlap)
}

/// A busy machine takes its time.
const LONG: Duration = Duration::from_secs(600);

/// Sixteen requests in one MPI_Waitall wait once.
#[test]
fn waitall() {
    for bed in share!(on_beds()) {
        trials::up_to_three("overlap_waitall", || waitall_on(bed));
    }
}

fn waitall_on(bed: (&Mpi, Bed)) {
    let (truth, overlap) = measure(bed, "overlap_waitall", 2, &[], None);
    let waited = truth.sum("waited_0") + truth.sum("waited_1");
    let sites = ["MPI_Isend", "MPI_Irecv"].map(|call| site(&overlap, call, "post"));
    let requests: f64 = sites.iter().map(|said| number(said, "requests")).sum();
    let exposed: f64 = sites.iter().map(|said| number(said, "exposed_ns")).sum();
    let rounds = truth.values("waited_0").len() as f64 + 3.0; // with those to warm up
    assert_eq!(requests, rounds * 2.0 * 16.0);
    println!("waited {:.2} ms, exposed {:.2} ms", waited / 1e6, exposed / 1e6);
    assert!(exposed >= 0.85 * waited, "all that was waited is exposed");
    assert!(exposed <= waited * (rounds / (rounds - 3.0)) * 1.5, "once, not for each request");
    for said in sites {
        assert!(number(said, "possible") > 0.5, "{said:#}");
    }
}

/// What is waited for at once is the reference of what is not: of every request it is known how long it takes.
#[test]
fn waited_for_at_once() {
    for mpi in mpis!() {
        trials::up_to_three("overlap_at_once", || at_once_under(mpi));
    }
}

fn at_once_under(mpi: &Mpi) {
    let arguments = ["32768", "500", "60"];
    let bed = (mpi, Bed::SharedMemory);
    let (_, overlap) = measure(bed, "overlap_at_once", 2, &arguments, None);
    let reference = &overlap["reference"];
    assert_eq!(text(&reference["source"], "kind"), "run", "{reference:#}");
    for kind in ["send", "recv", "collective"] {
        let mut of_kind = rows(&overlap, "kinds").iter().filter(|row| text(row, "kind") == kind);
        let row = of_kind.next().unwrap_or_else(|| panic!("no {kind} in {:#}", overlap["kinds"]));
        assert_eq!(number(row, "requests"), 2.0 * 2.0 * 60.0);
        assert_eq!(number(row, "measured"), number(row, "requests"), "{reference:#}, {row:#}");
    }
}

/// The sizes tell what the call site does not.
#[test]
fn mixed_sizes() {
    for bed in share!(on_beds()) {
        trials::up_to_three("overlap_mixed", || mixed_sizes_on(bed));
    }
}

fn mixed_sizes_on(bed: (&Mpi, Bed)) {
    let (truth, overlap) = measure(bed, "overlap_mixed", 2, &["8388608"], None);
    let of = |bytes: f64| -> Vec<&Value> {
        let sizes = rows(&overlap, "sizes").iter();
        let covers =
            |row: &&Value| number(row, "from_bytes") <= bytes && bytes < number(row, "below_bytes");
        sizes.filter(|row| text(row, "kind") == "recv").filter(covers).collect()
    };
    let (small, large) = (of(256.0), of(8388608.0));
    assert_eq!((small.len(), large.len()), (1, 1), "{:#}", overlap["sizes"]);
    let waited = truth.sum("large_waited");
    println!(
        "receives, exposed: small {:.2} ms, large {:.2} ms; waited {:.2} and {:.2}",
        number(small[0], "exposed_ns") / 1e6,
        number(large[0], "exposed_ns") / 1e6,
        truth.sum("small_waited") / 1e6,
        waited / 1e6
    );
    assert!(number(large[0], "exposed_ns") >= 0.85 * waited, "{:#}", large[0]);
    // a third of them were rehearsed without a window
    assert!(number(large[0], "possible") > 0.5, "{:#}", large[0]);
    let known = number(large[0], "lost_no_progress_ns") + number(large[0], "lost_late_partner_ns");
    assert!(known > 0.5 * number(large[0], "lost_high_ns"), "{:#}", large[0]);
    let [small, large] = [small, large].map(|rows| number(rows[0], "lost_no_progress_ns"));
    assert!(small < 0.2 * large, "{small} {large}");
}

/// Sums over three collectives: what rank 0 waited, what it waited for rank 1, and the answers.
fn collectives(bed: (&Mpi, Bed), way: &str, check: impl Fn(&str, &Truth, &Value)) {
    let what = format!("collectives {way} under {}, {}", bed.0.name, bed.1.word());
    trials::up_to_three(&what, || collectives_once(bed, way, &check));
}

fn collectives_once(bed: (&Mpi, Bed), way: &str, check: impl Fn(&str, &Truth, &Value)) {
    let (truth, overlap) = measure(bed, "overlap_collectives", 2, &[way, "4194304"], None);
    for (name, call) in
        [("bcast", "MPI_Ibcast"), ("allreduce", "MPI_Iallreduce"), ("alltoall", "MPI_Ialltoall")]
    {
        let said = site(&overlap, call, &call["MPI_".len()..].to_lowercase());
        let waited =
            truth.sum(&format!("{name}_waited_0")) + truth.sum(&format!("{name}_waited_1"));
        println!(
            "{call} {way}: waited {:.2} ms, exposed {:.2}, late {:.2}, own window {:.2}; {}",
            waited / 1e6,
            number(said, "exposed_ns") / 1e6,
            number(said, "exposed_late_partner_ns") / 1e6,
            number(said, "exposed_no_local_progress_ns") / 1e6,
            text(said, "cause")
        );
        assert_eq!(
            number(said, "requests"),
            2.0 * truth.values(&format!("{name}_late_0")).len() as f64
        );
        assert!((0.85..=1.0).contains(&(number(said, "exposed_ns") / waited)), "{said:#}");
        check(name, &truth, said);
    }
}

/// Possible is what was computed of what the collective takes, whatever that is. Where one rank has no processor when its blocking
/// calls end they take so many times as long as on the other: no share of a window is sure to be enough.
fn check_possible(name: &str, truth: &Truth, said: &Value) {
    let of = |what: &str| -> Vec<f64> {
        let ranks = [0, 1].map(|rank| truth.values(&format!("{name}_{what}_{rank}")));
        ranks.concat().into_iter().map(|ns| ns as f64).collect()
    };
    // from the entry of the last rank to the end of the last: no less than that rank's own call, no more than the longer one
    let blocking = of("blocking");
    let least = blocking.iter().copied().fold(f64::INFINITY, f64::min);
    let most = blocking.iter().copied().fold(0.0, f64::max);
    let transfer = number(said, "reference_ns") / number(said, "measured");
    let is_known = 0.85 * least - 20e3 <= transfer && transfer <= most;
    assert!(is_known, "{transfer} of {least} to {most}: {said:#}");
    let computed = of("computed");
    let hidden: f64 = computed.iter().map(|computed| computed.min(transfer)).sum();
    let known = hidden / (transfer * computed.len() as f64);
    println!("    possible {:.3}, said {:.3}", known, number(said, "possible"));
    assert!((number(said, "possible") - known).abs() <= 0.1, "{known}: {said:#}");
}

mod collective {
    use super::*;

    #[test]
    fn at_once() {
        for bed in share!(on_beds()) {
            collectives(bed, "at_once", |_, _, said| {
                assert!(number(said, "possible") < 0.05, "{said:#}");
                // on a busy machine a rank is late by what others take from it
                let is_right = ["transfer", "late_partner"].contains(&text(said, "cause"));
                assert!(is_right, "{said:#}");
            });
        }
    }

    #[test]
    fn with_a_window() {
        for bed in share!(on_beds()) {
            collectives(bed, "window", |name, truth, said| {
                check_possible(name, truth, said);
                // it takes longer than its blocking namesake on a busy machine: the rest is "transfer"
                let least = number(said, "exposed_ns").min(number(said, "lost_high_ns"));
                let partner = number(said, "exposed_late_partner_ns")
                    + number(said, "exposed_no_remote_progress_ns");
                let own = number(said, "exposed_no_local_progress_ns");
                assert!(partner + own > 0.3 * least, "{said:#}");
            });
        }
    }

    /// Rank 0 waits for rank 1; how long is what rank 1 computed.
    #[test]
    fn while_a_rank_is_late() {
        for bed in share!(on_beds()) {
            collectives(bed, "late", |name, truth, said| {
                let known =
                    truth.sum(&format!("{name}_late_0")) + truth.sum(&format!("{name}_late_1"));
                let ratio = number(said, "exposed_late_partner_ns") / known;
                // a root may have given away what it sends before: where it ended soon it is not said to have waited
                assert!((0.7..=1.05).contains(&ratio), "{ratio} of {known}: {said:#}");
                assert_eq!(text(said, "cause"), "late_partner", "{said:#}");
            });
        }
    }
}

/// Wildcards, inter-communicators, threads, communicators of the same members: every message finds its other half.
#[test]
fn matching() {
    for mpi in mpis!() {
        let (truth, overlap) = measure((mpi, Bed::SharedMemory), "overlap_match", 3, &[], None);
        let matching = &overlap["matching"];
        assert_eq!(number(matching, "messages"), truth.sum("messages"), "{matching:#}");
        for key in ["unmatched_sends", "unmatched_receives", "doubtful", "not_followed"] {
            assert_eq!(number(matching, key), 0.0, "{key}: {matching:#}");
        }
    }
}

/// MPIs whose MPI_Finalize ends a program that leaves messages behind.
const STRICT: &[&str] = &["mpich5", "mpiabi"];

/// Messages that nobody received are counted and named, and the others are matched all the same.
#[test]
fn unmatched() {
    for mpi in mpis!() {
        if STRICT.contains(&mpi.name) {
            lapscope_tests::say!(
                "NOT TESTED under {}: it does not let messages go unmatched",
                mpi.name
            );
            continue;
        }
        let (truth, overlap) = measure((mpi, Bed::SharedMemory), "overlap_unmatched", 2, &[], None);
        let matching = &overlap["matching"];
        assert_eq!(number(matching, "messages"), truth.sum("received"), "{matching:#}");
        assert_eq!(number(matching, "unmatched_sends"), truth.sum("lost"), "{matching:#}");
        assert_eq!(number(matching, "unmatched_receives"), 0.0, "{matching:#}");
        let examples = rows(matching, "examples");
        assert!(!examples.is_empty());
        for example in examples {
            assert_eq!(number(example, "tag"), 13.0, "{example:#}");
        }
    }
}
