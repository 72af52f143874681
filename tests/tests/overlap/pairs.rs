//! One message at a time, in every situation of `overlap_pair.c`.

use serde_json::Value;

use lapscope_tests::answer::{number, site, text};
use lapscope_tests::bed::Bed;
use lapscope_tests::build;
use lapscope_tests::launch::place;
use lapscope_tests::mpi::Mpi;
use lapscope_tests::rows as recorded;
use lapscope_tests::truth::{Side, Truth};
use lapscope_tests::{share, trials};

use super::{measure, on_beds, Shift, LONG};

/// Tag of the messages of `overlap_pair.c` that its situation is about.
const MESSAGE: i64 = 2;

/// Difference of fractions: program and lapscope take the reference time each from clocks of their own.
const ROOM: f64 = 0.15;

/// What is said of one side of a pair beside what it measured itself.
struct Answer<'a> {
    truth: Side,
    said: &'a Value,
    /// For messages.
    what: String,
}

impl Answer<'_> {
    fn get(&self, key: &str) -> f64 {
        number(self.said, key)
    }

    fn cause(&self) -> &str {
        text(self.said, "cause")
    }

    fn claim(&self, holds: bool, what: &str) {
        assert!(holds, "{}: {what}\n{:#}", self.what, self.said);
    }

    fn print(&self) {
        println!(
            "{}: X {:.2} ms, said {:.2}; achieved {:.2}, at most {:.2}, said {:.2} to {:.2}; possible {:.2}, said {:.2}; \
             waited {:.2} ms, said {:.2}; {}",
            self.what,
            self.truth.transfer / 1e6,
            self.get("reference_ns") / self.get("measured").max(1.0) / 1e6,
            self.truth.achieved(),
            self.truth.achieved_at_most(),
            self.get("achieved_low"),
            self.get("achieved_high"),
            self.truth.possible(),
            self.get("possible_low"),
            self.truth.sum(|r| r.waited) / self.get("requests") / 1e6,
            self.get("exposed_ns") / self.get("requests") / 1e6,
            self.cause(),
        );
    }

    /// Holds whatever the situation is.
    fn check(&self) {
        let requests = self.truth.requests.len() as f64;
        self.claim(self.get("requests") == requests, "every request is counted once");
        self.claim(self.get("measured") == requests, "every request has a reference time");
        let transfer = self.get("reference_ns") / requests;
        self.claim(
            (0.5..2.0).contains(&(transfer / self.truth.transfer)),
            "the reference time is what the program measured",
        );
        let (low, high) = (self.get("achieved_low") - ROOM, self.get("achieved_high") + ROOM);
        self.claim(
            (low..=high).contains(&self.truth.achieved()),
            "the bounds of achieved contain the truth",
        );
        self.claim(
            (self.truth.possible() - self.get("possible_low")).abs() <= ROOM,
            "possible is what was computed",
        );
    }

    /// Nothing of a completing call is left out or counts twice, and every part has its cause: where MPI_Wait completed
    /// every request and the other side was in MPI or out of it, but did not look in now and then.
    fn check_exposed(&self) {
        let waited = self.truth.sum(|r| r.waited);
        let said = self.get("exposed_ns");
        self.claim(
            // a clock that runs 100 parts per million fast measures durations so
            said <= 1.001 * waited && said >= 0.85 * waited - 20e3 * self.get("requests"),
            "exposed is the time in MPI_Wait",
        );
        // how much of it was the partner outside of MPI is known as bounds, and so is what that leaves to others
        let mut least = self.truth.causes_for_certain();
        let most = self.truth.causes();
        println!("    waited, measured: {}", list(&least, |_, known| known / waited));
        println!("                  or: {}", list(&most, |_, known| known / waited));
        println!("    waited, said:     {}", list(&most, |cause, _| self.part(cause) / said));
        let room = ROOM * waited;
        let is_between = |said: f64, one: f64, other: f64| {
            (one.min(other) - room..=one.max(other) + room).contains(&said)
        };
        let holds = |index: usize| {
            let (cause, least, most) = (least[index].0, least[index].1, most[index].1);
            is_between(self.part(cause), least, most)
        };
        self.claim(holds(0), "partner late as measured");
        self.claim(holds(1), "partner outside as measured");
        self.claim(holds(3), "transfer as measured");
        let hidden = self.part("no_remote_progress") + self.part("no_local_progress");
        let hideable = |causes: &[(&str, f64); 4]| causes[1].1 + causes[2].1;
        self.claim(
            is_between(hidden, hideable(&least), hideable(&most)),
            "what could be hidden as measured",
        );
        least.sort_by(|a, b| b.1.total_cmp(&a.1));
        let is_clear = least[0].1 - least[1].1 > 0.5 * waited;
        self.claim(!is_clear || self.cause() == least[0].0, "the largest part is the cause");
    }

    fn part(&self, cause: &str) -> f64 {
        self.get(&format!("exposed_{cause}_ns"))
    }
}

/// Each cause with a number.
fn list(causes: &[(&str, f64)], of: impl Fn(&str, f64) -> f64) -> String {
    let each = causes.iter().map(|&(cause, known)| format!("{cause} {:.2}", of(cause, known)));
    each.collect::<Vec<_>>().join(", ")
}

/// What all answers are made of: the recorded times are those that the program measured itself.
#[test]
fn recorded_times() {
    for (mpi, bed) in share!(on_beds()) {
        for situation in ["stalled", "tested"] {
            let what = format!("recorded times {situation} under {}, {}", mpi.name, bed.word());
            trials::up_to_three(&what, || recorded_times_of(mpi, bed, situation));
        }
    }
}

fn recorded_times_of(mpi: &Mpi, bed: Bed, situation: &str) {
    let [bytes, iterations] = large(bed);
    let place = place();
    let job = bed.job(mpi, 2, build::app(mpi, "overlap_pair"), place.path());
    let job = job.args([situation, bytes, iterations]).limit(LONG);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let truth = Truth::parse(&outcome.stdout);
    for (name, rank, call) in [("send", 0, "MPI_Isend"), ("recv", 1, "MPI_Irecv")] {
        let side = Side::of_pair(&truth, name);
        let path = job.run_directory().join(format!("rank-{rank}.db"));
        let database = recorded::open(&path);
        let sum = |of: &str| -> f64 {
            let query =
                format!("SELECT sum({of}) FROM requests WHERE call = '{call}' AND tag = {MESSAGE}");
            recorded::value(&database, &query).parse().expect("a sum")
        };
        let life = (sum("completion_end_ns - post_begin_ns"), side.sum(|r| r.life));
        let computed = (sum("compute_ns"), side.sum(|r| r.computed));
        println!(
                    "{} {} {situation} {name}: life {:.3} ms, measured {:.3}; computed {:.3}, measured {:.3}",
                    mpi.name,
                    bed.word(),
                    life.0 / 1e6,
                    life.1 / 1e6,
                    computed.0 / 1e6,
                    computed.1 / 1e6
                );
        // the program reads its clock outside the calls, twice a request
        let close = |(said, known): (f64, f64)| {
            (said - known).abs() < 0.02 * known + 100e3 * side.requests.len() as f64
        };
        assert!(close(life) && close(computed), "{situation} {name}: {life:?} {computed:?}");
    }
}

/// One situation of `overlap_pair.c`: the answers for its sends and its receives.
fn pair(bed: (&Mpi, Bed), args: &[&str], shift: Shift, check: impl Fn(&Answer, &Answer)) {
    let what = format!("overlap_pair {args:?} under {}, {}", bed.0.name, bed.1.word());
    trials::up_to_three(&what, || pair_once(bed, args, shift, &check));
}

fn pair_once(bed: (&Mpi, Bed), args: &[&str], shift: Shift, check: impl Fn(&Answer, &Answer)) {
    let (truth, overlap) = measure(bed, "overlap_pair", 2, args, shift);
    let answer = |name, call: &str| Answer {
        truth: Side::of_pair(&truth, name),
        said: site(&overlap, call, "post"),
        what: format!("{} {} {name}", bed.0.name, args[0]),
    };
    let (send, recv) = (answer("send", "MPI_Isend"), answer("recv", "MPI_Irecv"));
    for side in [&send, &recv] {
        side.print();
        side.check();
    }
    check(&send, &recv);
}

/// Bytes of a message that is large on this bed, and how often: 40 ms over the slow link, about 8 through memory.
fn large(bed: Bed) -> [&'static str; 2] {
    match bed {
        Bed::SharedMemory => ["33554432", "20"],
        Bed::SlowLink => ["8388608", "16"],
    }
}

fn large_pairs(situation: &str, shift: Shift, check: impl Fn(&Mpi, Bed, &Answer, &Answer)) {
    let turn = share::letters(situation) + usize::from(shift.is_some());
    for (mpi, bed) in share!(turn, on_beds()) {
        let [bytes, mut iterations] = large(bed);
        if shift.is_some() {
            iterations = "8";
        }
        pair((mpi, bed), &[situation, bytes, iterations], shift, |send, recv| {
            check(mpi, bed, send, recv);
        });
    }
}

#[test]
fn exposed() {
    large_pairs("exposed", None, |_, _, send, recv| {
        for side in [send, recv] {
            side.check_exposed();
            side.claim(side.get("possible") < 0.05, "nothing to hide behind");
            side.claim(side.cause() == "transfer", "the transfer itself");
        }
    });
}

/// An eager message is there before anybody asks. What is left is the price of two calls, and a partner who is late on a
/// busy machine: transfers cost next to nothing of the windows.
#[test]
fn hidden() {
    for (mpi, bed) in share!(on_beds()) {
        let what = format!("overlap_pair hidden under {}, {}", mpi.name, bed.word());
        trials::up_to_three(&what, || hidden_on(mpi, bed));
    }
}

fn hidden_on(mpi: &Mpi, bed: Bed) {
    let bytes = if bed == Bed::SlowLink { "16000" } else { "4000" };
    let (truth, overlap) = measure((mpi, bed), "overlap_pair", 2, &["hidden", bytes], None);
    for (name, call) in [("send", "MPI_Isend"), ("recv", "MPI_Irecv")] {
        let said = site(&overlap, call, "post");
        let side = Side::of_pair(&truth, name);
        let computed = side.sum(|r| r.computed);
        let exposed = number(said, "exposed_ns");
        let partner =
            number(said, "exposed_late_partner_ns") + number(said, "exposed_no_remote_progress_ns");
        println!(
                "{} hidden {name}: X {:.1} us; computed {:.0} us, exposed {:.1} us a request, of which for the \
                 partner {:.1}; {}",
                mpi.name,
                side.transfer / 1e3,
                computed / 1e3 / number(said, "requests"),
                exposed / 1e3 / number(said, "requests"),
                partner / 1e3 / number(said, "requests"),
                text(said, "cause")
            );
        assert!(exposed <= side.sum(|r| r.waited), "{said:#}");
        assert!(exposed - partner < 0.5 * computed, "{said:#}");
    }
}

fn check_late(late: &Answer, waiting: &Answer) {
    waiting.check_exposed();
    let known = waiting.truth.sum(|r| r.late_partner);
    let said = waiting.get("exposed_late_partner_ns");
    waiting.claim((0.95..1.05).contains(&(said / known)), "late by what was computed");
    waiting.claim(waiting.cause() == "late_partner", "the partner was late");
    waiting.claim(waiting.get("possible") < 0.05, "nothing to hide behind");
    late.check_exposed();
    let said = late.get("exposed_late_partner_ns");
    late.claim(said < 0.1 * late.get("exposed_ns"), "its own partner was there");
    late.claim(late.cause() == "transfer", "the transfer itself");
}

#[test]
fn receiver_late() {
    large_pairs("receiver_late", None, |_, _, send, recv| check_late(recv, send));
}

#[test]
fn sender_late() {
    large_pairs("sender_late", None, |_, _, send, recv| check_late(send, recv));
}

fn check_stalled(side: &Answer) {
    side.check_exposed();
    side.claim(side.get("possible") > 0.9, "enough computation");
    side.claim(
        side.get("lost_no_progress_ns") > 0.5 * side.get("lost_high_ns"),
        "lost because nobody moved it",
    );
    side.claim(
        side.get("exposed_transfer_ns") < 0.5 * side.get("exposed_ns"),
        "it could be hidden",
    );
}

#[test]
fn stalled() {
    large_pairs("stalled", None, |_, _, send, recv| {
        check_stalled(send);
        check_stalled(recv);
        recv.claim(
            recv.get("achieved_high") <= recv.truth.achieved_at_most() + ROOM,
            "no more was hidden",
        );
        for side in [send, recv] {
            // on a busy machine one side computes for much longer than the other
            side.claim(
                ["no_local_progress", "no_remote_progress"].contains(&side.cause()),
                "both computed while it stood still",
            );
        }
    });
}

#[test]
fn half_a_window() {
    large_pairs("half", None, |_, _, send, recv| {
        for side in [send, recv] {
            side.check_exposed();
            side.claim(side.get("possible") > 0.3, "half of it, more on a busy machine");
            side.claim(
                side.get("achieved_high") <= side.truth.achieved_at_most() + ROOM,
                "no more was hidden",
            );
        }
        recv.claim(
            recv.get("lost_no_progress_ns") > 0.5 * recv.get("lost_high_ns"),
            "lost because nobody moved it",
        );
    });
}

fn check_receiver_computes(send: &Answer, recv: &Answer) {
    send.check_exposed();
    recv.check_exposed();
    send.claim(send.cause() == "no_remote_progress", "the receiver computed");
    let outside = recv.truth.median(|r| r.computed) * recv.get("requests");
    send.claim(
        (0.6..1.4).contains(&(send.get("exposed_no_remote_progress_ns") / outside)),
        "for as long as the receiver computed",
    );
    recv.claim(recv.get("possible") > 0.9, "enough computation");
    // on a busy machine it takes longer than alone: that is "transfer", and may be the larger part
    let own = recv.get("exposed_no_local_progress_ns");
    let is_right = ["no_local_progress", "transfer"].contains(&recv.cause());
    recv.claim(
        is_right && own >= 0.8 * recv.get("lost_high_ns"),
        "its own window could have hidden it",
    );
}

#[test]
fn receiver_computes() {
    large_pairs("receiver_computes", None, |_, _, send, recv| check_receiver_computes(send, recv));
}

/// A receiver that tests frees the sender, where a test moves more than a piece: MPICH over shared memory moves one of
/// 64 KiB or so.
#[test]
fn receiver_tests() {
    large_pairs("receiver_tests", None, |mpi, bed, send, _| {
        let freed = send.truth.median(|r| r.life) < 2.5 * send.truth.transfer;
        let expected = !(mpi.name == "mpich" && bed == Bed::SharedMemory);
        println!("freed: {freed}");
        if freed && expected {
            send.claim(
                send.get("exposed_no_remote_progress_ns") < 0.5 * send.get("exposed_ns"),
                "the receiver took care of it",
            );
        }
    });
}

/// Both sides test: over the slow link the transfer goes on by itself in between.
#[test]
fn tested() {
    large_pairs("tested", None, |_, bed, send, recv| {
        for side in [send, recv] {
            if bed == Bed::SlowLink && side.truth.achieved() > 0.4 {
                side.claim(side.get("achieved_high") > 0.25, "a good part of it was hidden");
            }
        }
    });
}

/// Verdicts are the same when the clock of a rank is off.
mod with_a_shifted_clock {
    use super::*;

    /// In `make check` one of them, in turn.
    fn shifts(turn: usize) -> Vec<&'static str> {
        share!(turn, vec!["1:5000:100", "1:-30000:100"])
    }

    #[test]
    fn receiver_late() {
        for shift in shifts(0) {
            large_pairs("receiver_late", Some(shift), |_, _, send, recv| check_late(recv, send));
        }
    }

    #[test]
    fn sender_late() {
        for shift in shifts(1) {
            large_pairs("sender_late", Some(shift), |_, _, send, recv| check_late(send, recv));
        }
    }

    #[test]
    fn stalled() {
        for shift in shifts(2) {
            large_pairs("stalled", Some(shift), |_, _, send, recv| {
                check_stalled(send);
                check_stalled(recv);
            });
        }
    }

    #[test]
    fn receiver_computes() {
        for shift in shifts(3) {
            large_pairs("receiver_computes", Some(shift), |_, _, send, recv| {
                check_receiver_computes(send, recv);
            });
        }
    }
}
