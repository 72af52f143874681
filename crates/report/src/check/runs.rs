//! Runs as they are checked, and kept as a baseline: their reports without what is long.

use std::borrow::Cow;

use serde_json::{json, Map, Value};

use crate::report::Report;
use lapscope_advise::problem::in_short;
use lapscope_trace::problem::ProblemKind;

/// Call sites and pieces of advice that a baseline keeps of a run.
const KEPT: usize = 12;
const BASELINE: &str = "lapscope baseline";
const BASELINE_VERSION: u64 = 1;

/// A run, and its report as JSON.
#[derive(Debug, Clone)]
pub struct CheckedRun {
    pub name: String,
    pub report: Value,
    /// What to know of it first, as sentences; of one in a baseline none.
    pub problems: Vec<String>,
}

impl CheckedRun {
    /// # Errors
    /// The report cannot be a document: a program error.
    pub fn new(report: &Report) -> serde_json::Result<CheckedRun> {
        Ok(CheckedRun {
            name: report.run.clone(),
            report: serde_json::to_value(report)?,
            problems: in_short(&report.problems).into_iter().map(Cow::into_owned).collect(),
        })
    }

    fn has(&self, kind: ProblemKind) -> bool {
        let kind = serde_json::to_value(kind).unwrap_or_default();
        let problems = self.report["problems"].as_array();
        problems.into_iter().flatten().any(|problem| problem["kind"] == kind)
    }

    /// Whether its GPUs may have computed while time was exposed, and nobody knows.
    pub(super) fn is_upper_bound(&self) -> bool {
        self.report["summary"]["exposed_is_upper_bound"] == true
    }

    /// The least and the most that a number is; the same where it is known.
    pub(super) fn value(&self, pointer: &str) -> Option<(f64, f64)> {
        let value = self.report.pointer(pointer)?;
        let known = value.as_f64().map(|value| (value, value));
        known.or_else(|| Some((value["low"].as_f64()?, value["high"].as_f64()?)))
    }
}

/// `why`, and the runs that have one of these problems.
fn because(why: &str, kinds: &[ProblemKind], runs: &[CheckedRun]) -> Option<String> {
    let has = |run: &&CheckedRun| kinds.iter().any(|&kind| run.has(kind));
    let names: Vec<&str> = runs.iter().filter(has).map(|run| run.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("{why} {}", names.join(", ")))
}

/// Why times of these runs tell nothing.
pub(super) fn starved(runs: &[CheckedRun]) -> Option<String> {
    because("ranks lacked processors in", &[ProblemKind::Starved], runs)
}

/// Why no number of these runs tells anything: a program that dies early is no quick one.
pub(super) fn in_part(runs: &[CheckedRun]) -> Option<String> {
    because("ranks died in", &[ProblemKind::Died], runs)
        .or_else(|| because("ranks are missing in", &[ProblemKind::MissingRanks], runs))
}

/// Why nothing will be judged against a baseline of these runs.
pub fn unfit_for_baseline(runs: &[CheckedRun]) -> Option<String> {
    in_part(runs).or_else(|| starved(runs))
}

/// Reports without rows; of sites and advice the first.
fn kept(report: &Value) -> Value {
    let first = |list: &Value, keys: &[&str]| -> Vec<Value> {
        let items = list.as_array().into_iter().flatten().take(KEPT);
        let some = |item: &Value| {
            keys.iter().map(|&key| (key.to_owned(), item[key].clone())).collect::<Map<_, _>>()
        };
        items.map(|item| Value::Object(some(item))).collect()
    };
    let mut kept = Map::new();
    for key in ["json_version", "run", "summary", "totals", "spread", "efficiency", "bounds"] {
        kept.insert(key.to_owned(), report[key].clone());
    }
    let head = ["ranks", "longest_run_ns", "started_unix_ns", "mpi_library", "executable"];
    let head = head.map(|key| (key.to_owned(), report["head"][key].clone()));
    kept.insert("head".to_owned(), Value::Object(head.into_iter().collect()));
    kept.insert("problems".to_owned(), json!(first(&report["problems"], &["kind"])));
    kept.insert("overlap".to_owned(), json!({ "totals": report["overlap"]["totals"] }));
    let mut steps = report["steps"].clone();
    if let Some(steps) = steps.as_object_mut() {
        steps.remove("rows");
        steps.remove("what");
    }
    kept.insert("steps".to_owned(), steps);
    for sites in ["sites", "completing_sites"] {
        let numbers = ["call", "site", "inside_ns"];
        kept.insert(sites.to_owned(), json!(first(&report[sites], &numbers)));
    }
    let advice = ["cure", "cause", "headline", "waiting", "change", "predicted"];
    kept.insert("advice".to_owned(), json!(first(&report["advice"], &advice)));
    Value::Object(kept)
}

/// The text of a file that [`read_baseline`] reads.
pub fn write_baseline(runs: &[CheckedRun]) -> String {
    let reports: Vec<Value> = runs.iter().map(|run| kept(&run.report)).collect();
    let document = json!({ "kind": BASELINE, "version": BASELINE_VERSION, "runs": reports });
    format!("{document}\n")
}

/// The runs of a baseline. `None`: the text is none.
///
/// # Errors
/// It is one of another version, or has none; as a sentence.
pub fn read_baseline(text: &str) -> Option<Result<Vec<CheckedRun>, String>> {
    let document: Value = serde_json::from_str(text).ok()?;
    if document["kind"] != BASELINE {
        return None;
    }
    if document["version"] != BASELINE_VERSION {
        let why = "it is a baseline of another version; write it anew by --write-baseline";
        return Some(Err(why.to_owned()));
    }
    let runs = document["runs"].as_array().filter(|runs| !runs.is_empty());
    let Some(runs) = runs else {
        return Some(Err(
            "it is a baseline without runs; write it anew by --write-baseline".to_owned()
        ));
    };
    let run = |report: &Value| CheckedRun {
        name: report["run"].as_str().unwrap_or_default().to_owned(),
        report: report.clone(),
        problems: Vec::new(),
    };
    Some(Ok(runs.iter().map(run).collect()))
}
