//! Programs whose unequal work is known: which lines, whose, by how much, how often, and what even work there saves.

use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{answer, build, trials};
use serde_json::{json, Value};

/// What is said of uneven work first, and the whole report.
fn uneven(mpi: &Mpi, who: &str) -> (Value, Value) {
    let place = place();
    let program = build::app(mpi, "uneven_work");
    let job = Job::new(mpi, 4, program, Form::Preload, place.path()).args([who]);
    let outcome = job.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let report = answer::ask("report", &job.run_directory());
    let said = answer::rows(&report, "advice").iter().find(|it| !it["uneven"].is_null());
    let said = said.map_or(Value::Null, |it| it["uneven"].clone());
    println!("{} {who}: {}", mpi.name, answer::text(&said, "sentence"));
    (said, report)
}

/// What a rank does where it has no more to do than others, in all rounds together.
const WORK_NS: f64 = 20.0 * 40e6;

struct Known {
    who: &'static str,
    /// From the last call of one function to the first of the other.
    between: [&'static str; 2],
    pattern: &'static str,
    /// None: whoever it is.
    rank: Option<i64>,
    factor: f64,
    uneven_visits: f64,
    /// Work of a round as it is, and with even work, as multiples of what a rank does otherwise.
    rounds: [f64; 2],
}

const KNOWN: [Known; 4] = [
    Known {
        who: "same",
        between: ["second_half", "first_half"],
        pattern: "always",
        rank: Some(2),
        factor: 2.0,
        uneven_visits: 19.0,
        rounds: [3.0, 2.25],
    },
    Known {
        who: "second",
        between: ["first_half", "second_half"],
        pattern: "always",
        rank: Some(1),
        factor: 3.0,
        uneven_visits: 20.0,
        rounds: [4.0, 2.5],
    },
    Known {
        who: "turns",
        between: ["second_half", "first_half"],
        pattern: "by_turns",
        rank: None,
        factor: 3.0,
        uneven_visits: 19.0,
        rounds: [4.0, 2.5],
    },
    Known {
        who: "seldom",
        between: ["second_half", "first_half"],
        pattern: "now_and_then",
        rank: Some(3),
        factor: 8.0,
        uneven_visits: 2.0,
        rounds: [2.7, 2.175],
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
    let (said, report) = uneven(mpi, known.who);
    let function = |end: &str| answer::text(&said[end]["site"], "function").to_owned();
    assert_eq!(["from", "to"].map(function), known.between.map(str::to_owned), "{report:#}");
    assert_eq!(answer::text(&said, "pattern"), known.pattern, "{said:#}");
    if let Some(rank) = known.rank {
        assert_eq!(said["ranks"], json!([rank]), "{said:#}");
    }
    let factor = answer::number(&said, "factor") / known.factor;
    assert!((0.9..1.1).contains(&factor), "{said:#}");
    // a rank that woke up late once more
    let visits = answer::number(&said, "uneven_visits") - known.uneven_visits;
    assert!((-1.0..=3.0).contains(&visits), "{said:#}");
    // what else the run takes is the machine's; where that is far off nothing is predicted
    let Some(run_ns) = said["run_ns"].as_f64() else { return };
    let saved = answer::number(&report["bounds"], "recorded_ns") - run_ns;
    let saved = saved / (known.rounds[0] - known.rounds[1]) / WORK_NS;
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
        let (said, _) = uneven(mpi, "late");
        assert_eq!(said, Value::Null, "{}", mpi.name);
    }
}
