//! What lapscope saw of buffers whose reach is known (`examples/reach`), held against what the programs measured themselves:
//! times, orders, and the lines that write last and touch first. What others on the machine take makes an iteration longer, in
//! the program's figures as in lapscope's: medians are compared, and what a hit costs is allowed for.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;

use lapscope_tests::answer::{ask, number, rows as rows_of, text};
use lapscope_tests::bed::Bed;
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::reach::{hit_ns, hits_ns, marked, watches, Known, Table, Watch, TAG};
use lapscope_tests::truth::median;
use lapscope_tests::{build, invariants, rows, trials, watchpoints};

/// A busy machine takes its time.
const LONG: Duration = Duration::from_secs(300);

/// Words that are watched at once, and so hits that may lie between a touch and its post or wait.
const HITS: f64 = 3.0;

/// A program, and how it is built and run.
#[derive(Clone, Copy)]
struct Case {
    source: &'static str,
    flags: &'static [&'static str],
    args: &'static [&'static str],
    /// Marks of the lines that write last and touch first.
    written: &'static str,
    touched: &'static str,
}

const PLAIN: Case = Case {
    source: "reach.c",
    flags: &["-O2"],
    args: &[],
    written: "last write",
    touched: "first touch",
};

const CPP: Case = Case { source: "reach.cpp", ..PLAIN };
const FORTRAN: Case = Case { source: "reach.f90", ..PLAIN };
const FAST: &[&str] = &["-O3", "-march=native"];

/// A run with every buffer watched, whatever it costs.
struct Run {
    known: Known,
    ranks: Vec<Connection>,
    /// What `lapscope reach` says.
    said: Value,
}

fn job<'a>(mpi: &'a Mpi, case: &Case, place: &'a Path) -> Option<Job<'a>> {
    let program = build::example(mpi, &format!("reach/{}", case.source), case.flags)?;
    let job = Job::new(mpi, 2, program, Form::Preload, place).args(case.args).limit(LONG);
    Some(job.env("LAPSCOPE_REACH", "on"))
}

fn run(mpi: &Mpi, case: &Case) -> Option<Run> {
    let place = place();
    let job = job(mpi, case, place.path())?
        .env("LAPSCOPE_REACH_SHARE", "100")
        .env("LAPSCOPE_REACH_BUDGET", "100");
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{} under {}: {}", case.source, mpi.name, outcome.stderr);
    let ranks: Vec<Connection> =
        rows::databases(&job.run_directory()).iter().map(|path| rows::open(path)).collect();
    let mut known = Known::parse(&outcome.stdout);
    assert_eq!(ranks.len(), known.ranks());
    println!("\n{} {:?} {:?} under {}", case.source, case.flags, case.args, mpi.name);
    for (rank, database) in ranks.iter().enumerate() {
        for side in ["send", "receive"] {
            known.take_off(rank, side, hits_ns(database, TAG, side));
        }
    }
    let said = ask("reach", &job.run_directory());
    Some(Run { known, ranks, said })
}

/// What no run's data may be.
fn wrong(database: &Connection) -> Option<String> {
    let problem = rows::value(database, "SELECT ifnull(problem, '') FROM watcher");
    invariants::check(database).err().or(Some(problem)).filter(|text| !text.is_empty())
}

/// How far a watch is from what is known, and how far it may be: what hits cost, and a sixth of the time itself, as an
/// iteration is not the median one.
fn distance(watch: &Watch, expected: f64, hit: f64) -> (f64, f64) {
    (watch.away - expected, HITS * hit + 20e3 + expected / 6.0)
}

/// Of the words of one side: most are where the program says, and so are the middle, the near and the far ones.
fn check_times(watched: &[&Watch], expected: &[f64], hit: f64) {
    assert!(watched.len() >= 40, "{} watches", watched.len());
    let distances: Vec<_> = watched
        .iter()
        .map(|watch| (watch, distance(watch, expected[watch.offset / 8], hit)))
        .collect();
    let near = distances.iter().filter(|(_, (off, allowed))| off.abs() <= *allowed).count();
    let share = near as f64 / watched.len() as f64;
    println!(
        "  {} {} words: {:.0} % where they should be; off by {:.1} us, a hit {:.1} us",
        watched.len(),
        watched[0].side,
        share * 100.0,
        median(distances.iter().map(|(_, (off, _))| *off)) / 1e3,
        hit / 1e3
    );
    for (watch, (off, allowed)) in
        distances.iter().filter(|(_, (off, allowed))| off.abs() > *allowed).take(2)
    {
        println!("    word {}: off by {off:.0} of {allowed:.0} ns: {watch:?}", watch.offset / 8);
    }
    assert!(share >= 0.6, "too few are where they should be");
    let bytes = expected.len() * 8;
    for part in [0..bytes / 4, bytes / 4..3 * bytes / 4, 3 * bytes / 4..bytes] {
        let of_part: Vec<_> = distances
            .iter()
            .filter(|(watch, _)| part.contains(&watch.offset))
            .map(|it| it.1)
            .collect();
        assert!(!of_part.is_empty(), "no words at bytes {part:?}");
        let off = median(of_part.iter().map(|it| it.0));
        let allowed = median(of_part.iter().map(|it| it.1));
        assert!(off.abs() <= allowed, "bytes {part:?}: off by {off} of {allowed} ns");
    }
}

/// Nearly all touches are by this line, in the innermost function or one that it is inlined in.
fn check_lines<'a>(lines: impl Iterator<Item = &'a Vec<String>>, mark: &str) {
    let all: Vec<_> = lines.collect();
    let right = all.iter().filter(|lines| lines.iter().any(|line| line == mark)).count();
    let wrong: Vec<_> =
        all.iter().filter(|lines| !lines.contains(&mark.to_owned())).take(3).collect();
    assert!(!all.is_empty(), "no lines for {mark}");
    assert!(
        right as f64 >= 0.95 * all.len() as f64,
        "{right} of {} at {mark}; {wrong:?}",
        all.len()
    );
}

/// The words of one side that the program touched, in the buffers themselves or, one step further, in copies.
fn touched<'a>(all: &'a [Watch], side: &str, further: bool) -> Vec<&'a Watch> {
    all.iter()
        .filter(|watch| watch.side == side && watch.result == "touched")
        .filter(|watch| watch.toucher == "program" && watch.copied_by.is_some() == further)
        .collect()
}

fn check_sides(run: &Run, case: &Case, sides: &[(usize, &str)]) {
    for &(rank, side) in sides {
        let database = &run.ranks[rank];
        let all = watches(database, TAG);
        let watched = touched(&all, side, false);
        let mark = if side == "send" { case.written } else { case.touched };
        check_lines(watched.iter().map(|watch| &watch.lines), &marked(case.source, mark));
        check_times(&watched, &run.known.reach(rank, side), hit_ns(database));
    }
    let lines = [case.written, case.touched].map(|mark| marked(case.source, mark));
    check_said(run, sides, (&lines[0], &lines[1]));
}

/// The site of a side that most was watched of.
fn site<'a>(run: &'a Run, side: &str) -> &'a Value {
    let of_side =
        rows_of(&run.said["reach"], "sites").iter().filter(|row| text(row, "side") == side);
    let most = of_side.max_by(|a, b| number(a, "words").total_cmp(&number(b, "words")));
    most.unwrap_or_else(|| panic!("no {side} in {:#}", run.said))
}

/// What is known of both ranks lies in an interval, or no further from it than what hits cost.
fn assert_holds(interval: &Value, known: &[f64], hits: f64, what: &str) {
    let (low, high) = (number(interval, "low"), number(interval, "high"));
    let least = known.iter().copied().fold(f64::MAX, f64::min);
    let most = known.iter().copied().fold(0.0, f64::max);
    println!("  {what}: {low:.0} to {high:.0} ns, known {least:.0} to {most:.0}");
    let slack = 0.05 * most + hits;
    assert!(low - slack <= most && least <= high + slack, "{what}: {interval}, known {known:?}");
}

/// `lapscope reach` has the times in its intervals, the orders, and the line.
fn check_said(run: &Run, sides: &[(usize, &str)], lines: (&str, &str)) {
    let hit = number(&run.said["watching"], "hit_ns");
    for side in ["send", "receive"] {
        let site = site(run, side);
        let of_ranks = |value: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let ranks = sides.iter().filter(|(_, name)| *name == side);
            ranks.map(|(rank, _)| value(*rank)).collect()
        };
        let words = run.known.reach(0, side).len();
        let least = |rank| run.known.reach(rank, side).into_iter().fold(f64::MAX, f64::min);
        let half = |rank| median(run.known.reach(rank, side));
        assert_holds(&site["all"], &of_ranks(&least), HITS * hit, &format!("{side}, all"));
        assert_holds(&site["half"], &of_ranks(&half), HITS * hit, &format!("{side}, half"));
        let word = |rank| run.known.word(rank, side);
        let hits = 1.5 * hit / words as f64;
        assert_holds(&site["word"], &of_ranks(&word), hits, &format!("{side}, a word"));
        assert_eq!(text(site, "order"), run.known.order(side), "{side}: {site:#}");
        let line = if side == "send" { lines.0 } else { lines.1 };
        let frames = rows_of(&rows_of(site, "touchers")[0], "frames").iter();
        let at = |frame: &Value| format!("{}:{}", text(frame, "file"), frame["line"]);
        let found: Vec<String> = frames.map(at).collect();
        assert!(found.iter().any(|at| at.ends_with(&format!("/{line}"))), "{line}: {found:?}");
    }
    // a rank that receives before it sends makes its blocking send depend on that
    let pair = &rows_of(&run.said["reach"]["pairs"], "rows")[0];
    if text(&pair["send"], "call") != "MPI_Send" || run.known.kernel() == "pipelined" {
        assert_eq!(text(pair, "pattern"), run.known.kernel(), "{pair:#}");
    }
}

const BOTH: &[(usize, &str)] = &[(0, "send"), (0, "receive"), (1, "send"), (1, "receive")];

/// Asks under the MPIs of Debian and another one in turn.
fn check(turn: usize, case: &Case, judge: impl Fn(&Run)) {
    if !watchpoints::are_there() {
        return;
    }
    for mpi in mpis!(turn) {
        let what = format!("{} {:?} under {}", case.source, case.args, mpi.name);
        let broken = RefCell::new(Vec::new());
        trials::up_to_three(&what, || {
            let quiet = (0..RUNS).find_map(|_| {
                let run = run(mpi, case)?;
                broken.borrow_mut().extend(run.ranks.iter().filter_map(wrong));
                (!is_crowded(&run.known)).then_some(run)
            });
            match quiet {
                Some(run) => judge(&run),
                None => lapscope_tests::say!("NOT TESTED: {what}: others have the processors"),
            }
        });
        assert_eq!(broken.into_inner(), [""; 0], "{what}"); // whoever has the processors
    }
}

/// How often a run is made until others leave it the processors.
const RUNS: usize = 3;

/// Whether what the program measured itself differs so much from iteration to iteration that others had its processors.
fn is_crowded(known: &Known) -> bool {
    let spread = |rank, part: &str| {
        let end = |end| known.value(rank, &format!("{part}_ns_{end}"));
        end("hi") > 1.3 * end("lo") + 20e3
    };
    (0..known.ranks()).any(|rank| {
        let is_slow = known.value(rank, "t_p_ns_hi") > 1.3 * known.value(rank, "t_p_ns_lo");
        is_slow || spread(rank, "t_ap") || spread(rank, "t_ac")
    })
}

#[test]
fn words_in_order() {
    check(0, &PLAIN, |run| check_sides(run, &PLAIN, BOTH));
}

#[test]
fn other_orders() {
    for (turn, args) in [&["-o", "reverse", "-t", "random"], &["-o", "random", "-t", "reverse"]]
        .into_iter()
        .enumerate()
    {
        let case = Case { args, ..PLAIN };
        check(1 + turn, &case, |run| check_sides(run, &case, BOTH));
    }
}

#[test]
fn cpp_templates() {
    let case = Case { args: &["-o", "reverse"], ..CPP };
    check(0, &case, |run| check_sides(run, &case, BOTH));
}

#[test]
fn fortran() {
    let args = &["2048", "200", "500", "300", "400", "250", "same", "reverse"];
    let case = Case { args, ..FORTRAN };
    check(1, &case, |run| check_sides(run, &case, BOTH));
}

#[test]
fn vectors() {
    for flags in [&["-O2"], FAST] {
        let case = Case { flags, args: &["-v"], touched: "first touch of a vector", ..PLAIN };
        check(2, &case, |run| check_sides(run, &case, BOTH));
    }
}

#[test]
fn optimised_for_this_machine() {
    for case in [PLAIN, CPP] {
        let case = Case { flags: FAST, args: &["-t", "reverse"], ..case };
        check(3, &case, |run| check_sides(run, &case, BOTH));
    }
}

#[test]
fn blocking_calls() {
    let case = Case { args: &["-b"], ..PLAIN };
    check(0, &case, |run| check_sides(run, &case, BOTH));
}

/// Words that are written three times: the last time counts.
#[test]
fn written_again() {
    let case = Case { args: &["-w", "3", "-n", "1024"], ..PLAIN };
    check(1, &case, |run| check_sides(run, &case, BOTH));
}

/// Words that are written more often than is watched have a bound: no more than what was measured.
#[test]
fn written_often() {
    let case = Case { args: &["-w", "12", "-n", "256", "-i", "300"], ..PLAIN };
    check(2, &case, |run| {
        for (rank, database) in run.ranks.iter().enumerate() {
            let all = watches(database, TAG);
            let expected = run.known.reach(rank, "send");
            let often: Vec<_> = all.iter().filter(|watch| watch.result == "often").collect();
            let below = often.iter().filter(|watch| {
                let (off, allowed) = distance(watch, expected[watch.offset / 8], hit_ns(database));
                off < -allowed
            });
            let below = below.count();
            println!("  {} often, {below} of them below what is known", often.len());
            assert!(!often.is_empty(), "no word was written often");
            assert!(below as f64 <= 0.2 * often.len() as f64, "at most is less than what is known");
        }
    });
}

/// Nothing of a pipeline can be moved: rank 0 sends, rank 1 receives.
#[test]
fn pipelined() {
    let case = Case {
        args: &["-k", "pipelined", "-P", "600"],
        written: "pipelined word",
        touched: "pipelined word",
        ..PLAIN
    };
    check(3, &case, |run| check_sides(run, &case, &[(0, "send"), (1, "receive")]));
}

/// Buffers are filled just before the post and emptied directly behind the wait; one step further is what was known of them.
#[test]
fn packed_and_unpacked() {
    let case = Case { args: &["-a"], written: "pack", touched: "unpack", ..PLAIN };
    check(0, &case, |run| {
        for &(rank, side) in BOTH {
            let database = &run.ranks[rank];
            let all = watches(database, TAG);
            let copied = touched(&all, side, false);
            let mark = if side == "send" { "pack" } else { "unpack" };
            let mark = marked(case.source, mark);
            check_lines(copied.iter().map(|watch| &watch.lines), &mark);
            let away = median(copied.iter().map(|watch| watch.away));
            let least = run.known.reach(rank, side).into_iter().fold(f64::MAX, f64::min);
            assert!(away < 0.3 * least, "{side}: {away} ns, of {least} behind the copy");

            let further = touched(&all, side, true);
            check_times(&further, &run.known.reach(rank, side), hit_ns(database));
            let of_array = if side == "send" { "last write" } else { "first touch" };
            check_lines(further.iter().map(|watch| &watch.lines), &marked(case.source, of_array));
            check_lines(further.iter().filter_map(|watch| watch.copied_by.as_ref()), &mark);
        }
    });
}

/// The wait of `stencil before` could be later by what the inner rows take; moved there, it gains what is said. Where the kernel
/// transfers (Open MPI over TCP), that is nearly all of the wait.
#[test]
fn moved_wait_gains() {
    let openmpi = mpi::named("openmpi").filter(|mpi| Bed::SlowLink.is_there(mpi));
    let Some(mpi) = openmpi.filter(|_| watchpoints::are_there()) else { return };
    let program = build::example(mpi, "reach/stencil.c", &["-O2"]).expect("a program in C");
    trials::up_to_three("stencil before and after", || {
        let place = place();
        let bare = Job::new(mpi, 2, &program, Form::Bare, place.path()).args(["-f", "all"]);
        let bare = Bed::SlowLink.around(mpi, bare).limit(LONG).run();
        assert_eq!(bare.code, 0, "{}", bare.stderr);
        let tables = Table::all(&bare.stdout, "stencil");
        let [before, after] = &tables[..] else { panic!("{}", bare.stdout) };
        assert!(before.is("form", "before") && after.is("form", "after"), "{tables:?}");
        assert_eq!(before.value(0, "sum"), after.value(0, "sum"), "they compute something else");
        // of the quicker iterations: others on this machine lengthen the rest
        if before.value(0, "inner_us_lo") > 1.3 * 5000.0 {
            lapscope_tests::say!(
                "NOT TESTED: stencil before and after: others have the processors"
            );
            return;
        }
        let [wait, moved] = [before, after].map(|table| table.value(0, "wait_us"));
        let gain = before.value(0, "iteration_us_lo") - after.value(0, "iteration_us_lo");
        println!("waits {wait} us, moved {moved} us, an iteration {gain} us shorter");
        assert!(moved < 0.5 * wait && gain > 0.4 * wait, "{tables:?}");

        let reach =
            Bed::SlowLink.job(mpi, 2, &program, place.path()).args(["-i", "60"]).limit(LONG);
        let reach = reach.env("LAPSCOPE_REACH", "on").env("LAPSCOPE_REACH_SHARE", "100");
        let reach = reach.env("LAPSCOPE_REACH_BUDGET", "100");
        let outcome = reach.run();
        let table = Table::all(&outcome.stdout, "stencil").remove(0);
        let [least, most] = ["inner_us_lo", "inner_us_hi"].map(|end| table.value(0, end) * 1e3);
        let database = rows::open(&reach.run_directory().join("rank-0.db"));
        let first_message = 320;
        let of_halo = [0, 100].map(|direction| watches(&database, first_message + direction));
        let of_halo = of_halo.concat();
        let received = touched(&of_halo, "receive", false);
        let away = median(received.iter().map(|watch| watch.away));
        println!("first touch {away:.0} ns behind the wait, inner rows {least:.0} to {most:.0} ns");
        assert!(away > 0.8 * least && away < 1.5 * most, "{away} ns, inner rows {table:?}");
        let mark = marked("stencil.c", "border");
        check_lines(received.iter().map(|watch| &watch.lines), &mark);
    });
}

/// With the options as they are, watching costs no more than it may, and drawn buffers are a share of all.
#[test]
fn costs_what_it_may() {
    if !watchpoints::are_there() {
        return;
    }
    let case = Case { args: &["-i", "600"], ..PLAIN };
    for mpi in mpis!() {
        trials::up_to_three(&format!("the budget of watching under {}", mpi.name), || {
            costs_under(mpi, &case)
        });
    }
}

fn costs_under(mpi: &Mpi, case: &Case) {
    let place = place();
    let job = job(mpi, case, place.path()).expect("a program in C");
    assert_eq!(job.run().code, 0);
    for path in rows::databases(&job.run_directory()) {
        let database = rows::open(&path);
        let number = |query: &str| -> f64 {
            rows::value(&database, query).parse().unwrap_or_else(|_| panic!("{query}"))
        };
        let spent = number("SELECT spent_ns FROM watcher");
        let of = number("SELECT end_ns - init_end_ns FROM rank");
        println!("{}: {:.2} % of the run time", mpi.name, 100.0 * spent / of);
        assert!(spent <= 1.5 * 0.03 * of, "{spent} of {of} ns under {}", mpi.name);
        let watched = number("SELECT count(DISTINCT operation_id || ' ' || begin_ns) FROM watch");
        assert!(watched > 20.0, "{watched} buffers");
        let left =
            number("SELECT ifnull(sum(buffers), 0) FROM watch_left_out WHERE reason = 'share'");
        assert!(left > 600.0, "{left} buffers were not drawn");
    }
}
