//! Programs whose unequal work is known: which lines, whose, by how much, how often, and what even work there saves.

use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{answer, build, trials};
use serde_json::{json, Value};

/// What is said of uneven work first, the whole report, and what the program prints.
fn uneven(mpi: &Mpi, who: &str) -> (Value, Value, String) {
    let place = place();
    let program = build::app(mpi, "uneven_work");
    let job = Job::new(mpi, 4, program, Form::Preload, place.path()).args([who]);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let report = answer::ask("report", &job.run_directory());
    let said = answer::rows(&report, "advice").iter().find(|it| !it["uneven"].is_null());
    let said = said.map_or(Value::Null, |it| it["uneven"].clone());
    println!("{} {who}: {}", mpi.name, answer::text(&said, "sentence"));
    (said, report, outcome.stdout)
}

/// How long ranks say that they worked before the barrier of a function: of the rounds in which one of them worked much longer, how
/// many there were, how many times as long that was; and what even work saves in all.
struct Truth {
    uneven_visits: f64,
    factor: f64,
    saves_ns: f64,
}

impl Truth {
    fn printed(stdout: &str, function: &str) -> Truth {
        /// As many times as long as the others, at least.
        const MUCH: f64 = 1.5;
        let lines = stdout.lines().filter_map(|line| line.strip_prefix(function));
        let number = |word: &str| word.parse::<f64>().expect("nanoseconds");
        let ranks: Vec<Vec<f64>> =
            lines.map(|line| line.split_whitespace().map(number).collect()).collect();
        assert_eq!(ranks.len(), 4, "{stdout}");
        let others = ranks.len() as f64 - 1.0;
        let mut truth = Truth { uneven_visits: 0.0, factor: 0.0, saves_ns: 0.0 };
        let [mut slow, mut rest] = [0.0, 0.0];
        // behind the barrier with which the program begins is another place
        let first = usize::from(function == "first_half");
        for round in first..ranks[0].len() {
            let all: f64 = ranks.iter().map(|of_rank| of_rank[round]).sum();
            let most = ranks.iter().map(|of_rank| of_rank[round]).fold(0.0, f64::max);
            truth.saves_ns += most - all / ranks.len() as f64;
            if most * others >= MUCH * (all - most) {
                truth.uneven_visits += 1.0;
                slow += most;
                rest += (all - most) / others;
            }
        }
        truth.factor = slow / rest;
        truth
    }
}

struct Known {
    who: &'static str,
    /// From the last call of one function to the first of the other.
    between: [&'static str; 2],
    pattern: &'static str,
    /// None: whoever it is.
    rank: Option<i64>,
}

const KNOWN: [Known; 4] = [
    Known { who: "same", between: ["second_half", "first_half"], pattern: "always", rank: Some(2) },
    Known {
        who: "second",
        between: ["first_half", "second_half"],
        pattern: "always",
        rank: Some(1),
    },
    Known { who: "turns", between: ["second_half", "first_half"], pattern: "by_turns", rank: None },
    Known {
        who: "seldom",
        between: ["second_half", "first_half"],
        pattern: "now_and_then",
        rank: Some(3),
    },
];

#[test]
fn whose_work_is_uneven_and_where_is_said() {
    for (turn, known) in KNOWN.iter().enumerate() {
        for mpi in share!(turn, mpi::debian()) {
            trials::up_to_three(&format!("{} under {}", known.who, mpi.name), || {
                is_said(mpi, known);
            });
        }
    }
}

fn is_said(mpi: &Mpi, known: &Known) {
    let (said, report, stdout) = uneven(mpi, known.who);
    let function = |end: &str| answer::text(&said[end]["site"], "function").to_owned();
    assert_eq!(["from", "to"].map(function), known.between.map(str::to_owned), "{report:#}");
    assert_eq!(answer::text(&said, "pattern"), known.pattern, "{said:#}");
    if let Some(rank) = known.rank {
        assert_eq!(said["ranks"], json!([rank]), "{said:#}");
    }
    let truth = Truth::printed(&stdout, known.between[1]);
    let factor = answer::number(&said, "factor") / truth.factor;
    assert!((0.9..1.1).contains(&factor), "{factor}: {said:#}");
    // a rank that left a barrier late once more
    let visits = answer::number(&said, "uneven_visits") - truth.uneven_visits;
    assert!((-1.0..=3.0).contains(&visits), "{visits}: {said:#}");
    // what else the run takes is the machine's; where that is far off nothing is predicted
    let Some(run_ns) = said["run_ns"].as_f64() else { return };
    let saved = answer::number(&report["bounds"], "recorded_ns") - run_ns;
    let saved = saved / truth.saves_ns;
    assert!((0.8..1.2).contains(&saved), "{saved}: {said:#}");
    // all ranks compute as long in all where they take turns
    let advice = answer::rows(&report, "advice").iter().find(|it| !it["uneven"].is_null());
    let replay = &advice.expect("it was found")["replay"];
    let gains = [answer::number(replay, "gain"), answer::number(&said, "gain")];
    assert!(gains[0] >= gains[1], "{gains:?}: {replay:#}");
    if known.who == "turns" {
        assert_eq!(replay["of_region"], true, "{replay:#}");
    }
}

#[test]
fn who_waits_in_turn_accuses_nobody() {
    for mpi in share!(0, mpi::debian()) {
        let (said, ..) = uneven(mpi, "late");
        assert_eq!(said, Value::Null, "{}", mpi.name);
    }
}
