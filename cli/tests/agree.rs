//! Numbers of one name are one number, in whichever document they stand.

use std::collections::BTreeMap;
use std::path::Path;

use crate::fixture::{answer, json};
use crate::html::check_numbers;
use crate::overlap::{random_run, run};
use serde_json::Value;

/// A call's time is shared out among its requests in whole nanoseconds.
const ROUNDING: f64 = 1e-6;

/// All numbers that are in no list, by the names that lead to them.
fn numbers(document: &Value) -> BTreeMap<String, f64> {
    fn collect(value: &Value, name: &str, found: &mut BTreeMap<String, f64>) {
        if let Some(fields) = value.as_object() {
            for (field, value) in fields {
                collect(value, &format!("{name}.{field}"), found);
            }
        } else if let Some(number) = value.as_f64() {
            found.insert(name.to_owned(), number);
        }
    }
    let mut found = BTreeMap::new();
    collect(document, "", &mut found);
    found
}

/// The numbers of call sites by what they are of; those of overlap may stand apart.
fn sites(document: &Value) -> BTreeMap<String, BTreeMap<String, f64>> {
    let of = |row: &Value| {
        let mut all = numbers(&row["overlap"]);
        all.extend(numbers(row));
        (format!("{} {}", row["call"], row["site"]), all)
    };
    document["sites"].as_array().unwrap().iter().map(of).collect()
}

/// How many of the names that both have, all of which mean the same.
fn check_same(what: &str, a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>) -> usize {
    let both = a.iter().filter_map(|(name, number)| Some((name, number, b.get(name)?)));
    let are_same = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs();
    both.inspect(|(name, a, b)| assert!(are_same(**a, **b), "{what}: {name} {a} {b}")).count()
}

/// Rows for other programs have the numbers of the call sites of the same command, in their order.
fn check_rows(directory: &Path, command: &str) {
    let asked = |format| [command, ".", "--top", "0", "--format", format];
    let document: Value = serde_json::from_str(&answer(directory, &asked("json"))).unwrap();
    let text = answer(directory, &asked("csv"));
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let heads = table.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    let sites = document["sites"].as_array().unwrap();
    assert_eq!(rows.len(), sites.len(), "{command}");
    for (row, site) in rows.iter().zip(sites) {
        let cells = heads.iter().zip(row).filter_map(|(name, cell)| {
            let number = cell.parse().ok()?;
            Some((format!(".{name}"), number))
        });
        let same = check_same(command, &cells.collect(), &numbers(site));
        assert!(same >= 8, "{command}: {same} of {row:?}");
    }
}

fn check(directory: &Path) {
    let report = json(directory, &["report", ".", "--top", "0"]);
    let overlap = json(directory, &["overlap", ".", "--top", "0"]);
    let whatif = json(directory, &["whatif", ".", "--progress", "async"]);

    let [mut of_report, of_overlap] = [&report, &overlap].map(|it| numbers(&it["totals"]));
    // what belongs to no request is part of it in the one, and stands apart in the other
    let exposed = of_report.remove(".exposed_ns").unwrap();
    let of_requests = exposed - of_report[".unattributed_exposed_ns"];
    assert_eq!(of_requests, of_overlap[".exposed_ns"]);
    assert!(check_same("totals", &of_report, &of_overlap) >= 2);
    let of_report = numbers(&report["overlap"]);
    assert!(check_same("overlap", &of_report, &numbers(&overlap)) >= of_report.len() * 3 / 4);

    let [reported, overlapped] = [&report, &overlap].map(sites);
    for (site, numbers) in overlapped {
        assert!(check_same(&site, &numbers, &reported[&site]) >= 5, "{site}");
    }
    let thresholds = json(directory, &["thresholds", "."]);
    assert_eq!(report["thresholds"]["localities"], thresholds["localities"]);

    for command in ["report", "sites", "overlap"] {
        check_rows(directory, command);
    }
    assert!(check_numbers(directory, &report) >= 50);

    let computed = |ns: f64| ns <= report["totals"]["run_ns"].as_f64().unwrap();
    assert!(computed(report["summary"]["overlappable_high_ns"].as_f64().unwrap_or(0.0)));

    let bounds = &report["bounds"];
    if bounds.is_null() {
        return;
    }
    assert_eq!(bounds["recorded_ns"], whatif["recorded"]["run_ns"]);
    assert_eq!(bounds["identity_ns"], whatif["identity"]["run_ns"]);
    assert_eq!(bounds["identity_error"], whatif["identity"]["identity_error"]);
    assert_eq!(bounds["held_out_error"], whatif["model"]["held_out_error"]);
    let progress = &whatif["scenarios"][0];
    let least = progress["run_low_ns"].as_f64().or(progress["run_ns"].as_f64());
    if let Some(bound) = bounds["perfect_progress_ns"].as_f64() {
        assert_eq!(Some(bound), least);
        let most = progress["run_high_ns"].as_f64().filter(|most| Some(*most) > least);
        assert_eq!(bounds["perfect_progress_high_ns"].as_f64(), most);
    }
}

#[test]
fn documents_say_the_same() {
    check(run().path());
    for seed in 1..=8 {
        let directory = tempfile::tempdir().unwrap();
        random_run(directory.path(), seed);
        check(directory.path());
    }
}
