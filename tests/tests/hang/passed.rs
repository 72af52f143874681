//! What stacks say of the arguments of calls, beside what was recorded of them.

use std::path::Path;

use serde_json::Value;

use lapscope_tests::watched::{pending, Watched};

/// An argument, as stacks and as records name it.
const NAMES: [(&str, &str); 4] = [
    ("to", "posted_peer"),
    ("from", "posted_peer"),
    ("tag", "tag"),
    ("communicator", "communicator"),
];

/// How stacks name what records keep as a number.
fn constant(peer: &Value) -> &'static str {
    match peer.as_i64() {
        Some(-1) => "MPI_ANY_SOURCE",
        Some(-2) => "MPI_PROC_NULL",
        _ => "",
    }
}

/// What differs of a rank's call.
fn differences(rank: &Value, recorded: &Value) -> Vec<String> {
    let differs = |(said, known): &(&str, &str)| {
        let (said, known) = (&rank["arguments"][said], &recorded[known]);
        !said.is_null() && !known.is_null() && said != known && *said != constant(known)
    };
    let wrong = NAMES.iter().filter(|names| differs(names));
    wrong.map(|(said, _)| format!("{said} of {rank:#} is not that of {recorded:#}")).collect()
}

/// Of a job that hangs, and is recorded. Returns how many ranks have arguments.
pub fn check(watched: &Watched, run: &Path) -> Result<usize, String> {
    let (answer, recorded) = (watched.stacks("0.1", &[])?, pending(run)?);
    let open = recorded["running"]["items"].as_array().into_iter().flatten();
    let open: Vec<&Value> = open.filter(|it| it["what"] == "call").collect();
    let ranks = answer["ranks"].as_array().into_iter().flatten();
    let (mut with_arguments, mut wrong) = (0, Vec::new());
    for rank in ranks.filter(|rank| !rank["arguments"].is_null()) {
        with_arguments += 1;
        let is_same = |it: &&&Value| it["rank"] == rank["rank"] && it["call"] == rank["call"];
        wrong.extend(open.iter().find(is_same).into_iter().flat_map(|it| differences(rank, it)));
    }
    match wrong.is_empty() {
        true => Ok(with_arguments),
        false => Err(wrong.join("\n")),
    }
}
