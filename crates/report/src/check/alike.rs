//! Whether runs can be held against each other: each counts once, and all are of one program on as many ranks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::runs::CheckedRun;
use lapscope_data::symbols::base_name;

/// By what a run is known again, whatever it is called: no two begin in the same nanosecond and take as long.
fn identity(run: &CheckedRun) -> [Option<i64>; 5] {
    const NUMBERS: [&str; 5] = [
        "/head/started_unix_ns",
        "/head/ranks",
        "/head/longest_run_ns",
        "/totals/run_ns",
        "/totals/mpi_ns",
    ];
    NUMBERS.map(|pointer| run.report.pointer(pointer).and_then(Value::as_i64))
}

/// Whether both sides are the same runs, in any order: nothing can have changed.
pub(super) fn are_same(runs: &[CheckedRun], against: &[CheckedRun]) -> bool {
    let all = |side: &[CheckedRun]| side.iter().map(identity).collect::<BTreeSet<_>>();
    let (new, old) = (all(runs), all(against));
    new == old && new.iter().flatten().all(Option::is_some)
}

/// A run that counts twice would make the spread of its side look smaller than it is.
pub(super) fn refuse_twice(side: &[CheckedRun]) -> Result<(), String> {
    for (at, run) in side.iter().enumerate() {
        let is_known = identity(run).iter().all(Option::is_some);
        let earlier = side[..at].iter().find(|other| is_known && identity(other) == identity(run));
        if let Some(earlier) = earlier {
            let names = match earlier.name == run.name {
                true => format!("{} is", run.name),
                false => format!("{} and {} are", earlier.name, run.name),
            };
            return Err(format!("{names} one run that is named twice: runs count once each"));
        }
    }
    Ok(())
}

/// Numbers of ranks, the least first.
fn ranks(runs: &[CheckedRun]) -> BTreeSet<u64> {
    runs.iter().filter_map(|run| run.report["head"]["ranks"].as_u64()).collect()
}

/// Why times of these cannot be compared.
pub(super) fn other_ranks(runs: &[CheckedRun], against: &[CheckedRun]) -> Option<String> {
    let (new, old) = (ranks(runs), ranks(against));
    let listed =
        |ranks: &BTreeSet<u64>| ranks.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    match new.is_empty() || old.is_empty() {
        false if new != old => Some(format!(
            "the runs have {} ranks, and the earlier ones {}",
            listed(&new),
            listed(&old)
        )),
        // their spread would be that of the numbers of ranks, and hide every change
        false if new.len() > 1 => {
            Some(format!("the runs of each side have {} ranks", listed(&new)))
        }
        _ => None,
    }
}

/// A note where runs have several of these: programs, or MPIs.
pub(crate) fn are_different(what: &str, names: &BTreeSet<String>) -> Option<String> {
    let listed = || names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    (names.len() > 1).then(|| format!("the runs are of different {what}: {}", listed()))
}

/// What to know of each run, once for all that have it, and what differs, and may be meant.
pub(super) fn notes(runs: &[CheckedRun], against: &[CheckedRun]) -> Vec<String> {
    let all = || runs.iter().chain(against);
    let values = |key: &str| -> BTreeSet<String> {
        let of_run = |run: &CheckedRun| run.report["head"][key].as_str().map(str::to_owned);
        all().filter_map(of_run).collect()
    };
    let programs: BTreeSet<String> =
        values("executable").iter().map(|path| base_name(path).to_owned()).collect();
    let found = [
        other_ranks(runs, against).map(|why| format!("{why}: nothing of them is compared")),
        are_different("programs", &programs),
        are_different("MPIs", &values("mpi_library")),
    ];
    let mut problems: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in all() {
        for problem in &run.problems {
            problems.entry(problem).or_default().insert(&run.name);
        }
    }
    let of_runs = problems.into_iter().map(|(problem, names)| {
        format!("{}: {problem}", names.into_iter().collect::<Vec<_>>().join(", "))
    });
    of_runs.chain(found.into_iter().flatten()).collect()
}
