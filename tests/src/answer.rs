//! What `lapscope overlap` and `lapscope thresholds` answer, as JSON.

use std::path::Path;

use serde_json::Value;

use crate::launch::lapscope;
use crate::rows::databases;

/// `lapscope COMMAND --format json RUN`.
///
/// # Panics
/// When it fails or prints no JSON.
pub fn ask(command: &str, run: &Path) -> Value {
    let printed =
        lapscope([command.as_ref(), "--format".as_ref(), "json".as_ref(), run.as_os_str()]);
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// As [`ask`], of a run whose record of missing processors is deleted first: what a program measures itself does not tell a partner
/// that is late from one that has no processor.
///
/// # Panics
/// As [`ask`], and when a database cannot be changed.
pub fn ask_without_processors(command: &str, run: &Path) -> Value {
    for path in databases(run) {
        let database = rusqlite::Connection::open(&path).expect("a database");
        database.execute("DELETE FROM starvation", []).expect("rows to delete");
    }
    ask(command, run)
}

/// A number in it.
///
/// # Panics
/// When it is not there.
pub fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {value:#}"))
}

pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}

/// Rows of a list in it.
///
/// # Panics
/// When it is not there.
pub fn rows<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key} in {value:#}"))
}

/// The row of a call from a function of the program.
///
/// # Panics
/// When there is not exactly one.
pub fn site<'a>(overlap: &'a Value, call: &str, function: &str) -> &'a Value {
    let found: Vec<&Value> = rows(overlap, "sites")
        .iter()
        .filter(|row| text(row, "call") == call && text(&row["site"], "function") == function)
        .collect();
    assert_eq!(found.len(), 1, "{call} in {function}: {:#}", overlap["sites"]);
    found[0]
}

/// Sums agree with their parts and nothing is more than there is: holds for every row of every table of overlap.
///
/// # Panics
/// When it does not.
pub fn check_sums(row: &Value) {
    let get = |key: &str| number(row, key);
    let about = |a: f64, b: f64, scale: f64| (a - b).abs() <= 1e-6 * scale.abs() + 64.0;
    let exposed = get("exposed_ns");
    let parts =
        ["late_partner", "no_remote_progress", "no_local_progress", "transfer", "no_processor"];
    let sum: f64 = parts.iter().map(|part| get(&format!("exposed_{part}_ns"))).sum();
    assert!(about(sum, exposed, exposed), "parts of exposed: {sum}, {row:#}");
    assert_eq!(get("requests"), get("measured") + get("unmeasured"), "{row:#}");
    let transfer = get("reference_ns");
    let (low, high) = (get("achieved_low_ns"), get("achieved_high_ns"));
    let (possible, lost) = (get("possible_ns"), get("lost_high_ns"));
    assert!(0.0 <= low && low <= high + 64.0, "{row:#}");
    assert!(high <= possible + 64.0 && possible <= transfer + 64.0, "{row:#}");
    let (least, lost_low) = (get("possible_low_ns"), get("lost_low_ns"));
    assert!(least <= possible && high <= least + 64.0, "{row:#}");
    assert!(lost <= possible - low + 64.0 && lost_low <= lost, "{row:#}");
    let causes = ["late_partner", "no_progress", "other"];
    let sum: f64 = causes.iter().map(|cause| get(&format!("lost_{cause}_ns"))).sum();
    assert!(about(sum, lost, lost), "parts of lost: {sum}, {row:#}");
}

/// The rule of a policy that leaves out what `call` posts at an address and its callers: an entry of a site's `addresses`.
///
/// # Panics
/// When it is none.
pub fn policy_rule(call: &str, post: &Value) -> String {
    let callers = post["callers"].as_array().map_or(&[][..], Vec::as_slice);
    let place = |address: &Value| {
        let module = Path::new(text(address, "module")).file_name().expect("a file");
        let (module, offset) = (module.to_string_lossy(), number(address, "address") as u64);
        format!(" {module}+{offset:#x} {}", text(address, "build_id"))
    };
    let places: String = [post].into_iter().chain(callers).map(place).collect();
    format!("off {call}{places}\n")
}
