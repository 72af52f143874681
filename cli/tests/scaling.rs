//! Runs of growing rank counts: POP's factors of made-up runs, worked out by hand.

use std::path::Path;

use crate::fixture::{answer, failure, json, lapscope, text};
use lapscope_fixture::tables::{Call, Counter, CounterSum, Operation, Rank};
use lapscope_fixture::{edit_rank, Fixture};
use serde_json::{json, Value};

const MS: i64 = 1_000_000;

/// Ranks that compute so long each, and are in one MPI_Barrier for the rest of the time. `counted`: instructions and cycles of each.
fn write(place: &Path, time: i64, useful: &[i64], counted: Option<(i64, i64)>) {
    std::fs::create_dir(place).unwrap();
    for (number, &begin_ns) in (0..).zip(useful) {
        let world_size = useful.len() as i64;
        let rank = Rank { end_ns: time, world_size, ..Rank::plain(number) };
        rank.write(place, |file| {
            let operation_id = file.insert(Operation::collective("MPI_Barrier", 5));
            let duration_ns = Some(time - begin_ns);
            file.insert(Call { operation_id, begin_ns, duration_ns, ..Call::default() });
            if let Some((instructions, cycles)) = counted {
                count(file, 0, "PAPI_TOT_INS", instructions);
                count(file, 1, "PAPI_TOT_CYC", cycles);
            }
        });
    }
}

/// Of a ms.
fn tenths(useful: &[i64]) -> Vec<i64> {
    useful.iter().map(|tenths| tenths * MS / 10).collect()
}

fn count(file: &Fixture, number: i64, name: &str, outside: i64) {
    file.insert(Counter { number, name, ..Counter::default() });
    file.insert(CounterSum { number, outside });
}

/// Two ranks compute 8 ms each of 10 ms, with 8 M instructions in 16 M cycles; eight ranks 2 to 3 ms of 4 ms, 20 ms together, with 2.5 M
/// instructions in 6.25 M cycles each.
fn two_and_eight() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let two = Some((8_000_000, 16_000_000));
    write(&place.path().join("two"), 10 * MS, &tenths(&[80, 80]), two);
    let eight = Some((2_500_000, 6_250_000));
    write(&place.path().join("eight"), 4 * MS, &tenths(&[30, 20, 25, 25, 25, 25, 25, 25]), eight);
    place
}

fn near(found: &Value, expected: f64, what: &str) {
    let value = found.as_f64().unwrap_or(f64::NAN);
    assert!((value - expected).abs() < 1e-9, "{what}: {found}, not {expected}");
}

#[test]
fn factors_are_those_of_pop() {
    let place = two_and_eight();
    let found = json(place.path(), &["report", "eight", "two"]);
    assert_eq!((&found["reference"], &found["mode"]), (&json!("two"), &json!("strong")));
    let [two, eight] = [&found["runs"][0], &found["runs"][1]];
    assert_eq!((&two["run"], &two["ranks"]), (&json!("two"), &json!(2)));
    assert_eq!((&eight["run"], &eight["ranks"]), (&json!("eight"), &json!(8)));
    near(&two["speedup"], 1.0, "of itself");
    near(&eight["speedup"], 2.5, "10 ms to 4 ms");
    near(&eight["speedup_efficiency"], 0.625, "with four times the ranks");
    near(&eight["efficiency"]["parallel_efficiency"], 0.625, "2.5 of 4 ms");
    near(&eight["efficiency"]["load_balance"], 2.5 / 3.0, "of 3 ms");
    near(&eight["computation_scaling"], 0.8, "16 ms to 20 ms");
    near(&eight["global_efficiency"], 0.5, "0.625 times 0.8");
    near(&eight["instruction_scaling"], 0.8, "16 M to 20 M");
    near(&eight["ipc_scaling"], 0.8, "0.5 to 0.4");
    near(&eight["frequency_scaling"], 1.25, "2 GHz to 2.5 GHz");
    assert_eq!(eight["instructions"], json!(20_000_000));
    let text = answer(place.path(), &["report", "two", "eight"]);
    let line = |label: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(label));
        let found = found.unwrap_or_else(|| panic!("{label}: {text}"));
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("Run time"), "Run time 10.0 ms 4.00 ms");
    assert_eq!(line("Global efficiency"), "Global efficiency 80.0 % 50.0 %");
    assert_eq!(line("Frequency  "), "Frequency 2.00 GHz 2.50 GHz");
}

/// Two runs of the example that comes with OTF-CPT (`lapscope_measure::scaling` has all five and its source): ranks, mean and most
/// computation and run time in microseconds, and what that tool says of parallel efficiency, load balance and communication efficiency.
#[test]
fn a_published_table_is_found_again() {
    let published = [
        (64, [32_554_688, 33_338_641, 40_009_749], [0.813_669, 0.976_485, 0.833_263]),
        (128, [13_426_047, 14_003_071, 19_656_685], [0.683_027, 0.958_793, 0.712_382]),
    ];
    let place = tempfile::tempdir().unwrap();
    for (ranks, times, _) in published {
        let [mean, most, time] = times.map(|us: i64| us * 1_000);
        let others = (mean * ranks - most) / (ranks - 1);
        let useful: Vec<i64> =
            (0..ranks).map(|rank| if rank == 5 { most } else { others }).collect();
        write(&place.path().join(ranks.to_string()), time, &useful, None);
    }
    let found = json(place.path(), &["report", "64", "128"]);
    for (run, (ranks, times, expected)) in found["runs"].as_array().unwrap().iter().zip(published) {
        let keys = ["parallel_efficiency", "load_balance", "communication_efficiency"];
        for (key, expected) in keys.into_iter().zip(expected) {
            let value = run["efficiency"][key].as_f64().unwrap();
            assert!((value - expected).abs() < 1.5e-6, "{ranks}, {key}: {value}");
        }
        let speedup = 40_009_749.0 / times[2] as f64;
        near(&run["speedup"], speedup, "of run times");
    }
}

/// As much work for each rank: four times the work took 4 ms instead of 10 ms.
#[test]
fn weak_scaling_is_asked_for() {
    let place = two_and_eight();
    let found = json(place.path(), &["report", "two", "eight", "--scaling", "weak"]);
    near(&found["runs"][1]["speedup"], 10.0, "four times 2.5");
    near(&found["runs"][1]["instruction_scaling"], 3.2, "of a rank");
    near(&found["runs"][1]["ipc_scaling"], 0.8, "as before");
}

fn notes(place: &Path, runs: &[&str]) -> String {
    let found = json(place, &[&["report"], runs].concat());
    found["notes"].to_string()
}

#[test]
fn what_is_not_known_is_null_and_said() {
    let place = two_and_eight();
    let place = place.path();
    assert!(!notes(place, &["two", "eight"]).contains("instructions"));
    edit_rank(&place.join("eight"), 3, |file| file.change("DELETE FROM counter_sum"));
    let found = json(place, &["report", "two", "eight"]);
    let eight = &found["runs"][1];
    for key in ["instructions", "cycles", "ipc", "instruction_scaling", "frequency_scaling"] {
        assert_eq!(eight[key], Value::Null, "{key} of seven ranks of eight");
    }
    near(&eight["computation_scaling"], 0.8, "needs no counters");
    let said = notes(place, &["two", "eight"]);
    assert!(said.contains("instructions and cycles are not known of eight"), "{said}");
    write(&place.join("other"), 5 * MS, &tenths(&[40, 40, 40, 40]), None);
    let said = notes(place, &["two", "other"]);
    assert!(!said.contains("weak"), "8 ms and 4 ms: {said}");
    write(&place.join("weak"), 11 * MS, &tenths(&[80, 81, 79, 80]), None);
    edit_rank(&place.join("weak"), 0, |file| {
        file.change("UPDATE rank SET executable = '/nowhere/other'");
    });
    let said = notes(place, &["two", "weak"]);
    assert!(said.contains("--scaling weak"), "{said}");
    assert!(said.contains("different programs: app, other"), "{said}");
    let said = notes(place, &["two", "two"]);
    assert!(said.contains("nothing is scaled"), "{said}");
    // a file from before the table was
    for rank in 0..2 {
        edit_rank(&place.join("two"), rank, |file| file.change("DROP TABLE counter_sum"));
    }
    let found = json(place, &["report", "two", "eight"]);
    assert_eq!(found["runs"][0]["instructions"], Value::Null);
}

#[test]
fn one_run_or_options_of_one_run_are_refused() {
    let place = two_and_eight();
    let why = failure(place.path(), &["report", "two", "nowhere"]);
    assert!(why.contains("nowhere"), "{why}");
    let alone = lapscope(place.path(), &["report", "two", "--scaling", "weak"]);
    assert_eq!(alone.status.code(), Some(2), "{}", text(&alone.stderr));
    for option in ["--how", "--top=3", "--step=1", "--ranks=0", "--efficiency"] {
        let output = lapscope(place.path(), &["report", "two", "eight", option]);
        assert_eq!(output.status.code(), Some(2), "{option}: {}", text(&output.stderr));
    }
}

/// A row for each run, as wide as the head.
#[test]
fn rows_have_all_numbers() {
    let place = two_and_eight();
    let csv = answer(place.path(), &["report", "two", "eight", "--format", "csv"]);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = |name: &str| rows[0].iter().position(|head| *head == name).unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    assert_eq!((rows[2][at("run")], rows[2][at("ranks")]), ("eight", "8"));
    assert_eq!(rows[2][at("speedup")], "2.5");
    assert_eq!(rows[2][at("parallel_efficiency")], "0.625");
    assert_eq!(rows[2][at("cycles")], "50000000");
    for end in ["transfer_efficiency_low", "serialisation_efficiency_high"] {
        at(end);
    }
}

#[test]
fn the_page_has_the_table_and_pictures() {
    let place = two_and_eight();
    write(
        &place.path().join("four"),
        6 * MS,
        &tenths(&[50, 40, 45, 45]),
        Some((4_500_000, 10_000_000)),
    );
    answer(place.path(), &["html", "two", "eight", "four", "-o", "all.html"]);
    let page = std::fs::read_to_string(place.path().join("all.html")).unwrap();
    let document = json(place.path(), &["report", "two", "eight", "four"]);
    let shown = crate::html::count_numbers(&page, &document);
    assert!(shown >= 3 * 12, "{shown}");
    for id in ["speedup", "factors", "computation"] {
        assert!(page.contains(&format!("id=\"{id}")), "{id}");
    }
}

/// The efficiencies of a run alone, as rows: those of the report.
#[test]
fn efficiencies_are_rows_too() {
    let place = two_and_eight();
    let csv = answer(place.path(), &["report", "eight", "--efficiency", "--format", "csv"]);
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows[0].starts_with("kind,name,useful_ns,most_useful_ns,runtime_ns,parallel"), "{csv}");
    assert!(rows[1].starts_with("run,,20000000,3000000,4000000,0.625,"), "{csv}");
    let text = answer(place.path(), &["report", "eight", "--efficiency"]);
    assert!(text.contains("62.5 %"), "{text}");
}
