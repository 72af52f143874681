//! Names and facts as figures have them.

use crate::results::{Inject, Link, MpiFacts, Results};
use lapscope_data::text::units;

/// "Open MPI v4.1.4": what the library says of itself, as far as the first comma.
pub fn mpi(facts: &MpiFacts) -> &str {
    let version = facts.version.split([',', '\n']).next().unwrap_or_default().trim();
    if version.is_empty() {
        &facts.name
    } else {
        version
    }
}

/// "slow link (200 MB/s)".
pub fn link(link: Link) -> String {
    match link {
        Link::SharedMemory => link.words().to_owned(),
        Link::SlowLink => format!("{} ({} MB/s)", link.words(), Link::BYTES_PER_US),
    }
}

/// The title of a panel.
pub fn place(results: &Results, number: usize, of: Link) -> String {
    let name = results.mpis.get(number).map_or("an MPI", mpi);
    format!("{name}, {}", link(of))
}

pub fn inject(inject: Inject) -> &'static str {
    match inject {
        Inject::Off => "without injection",
        Inject::Timer => "tests injected by a timer",
        Inject::Thread => "tests injected by a thread",
    }
}

/// "64 KiB".
pub fn size(bytes: f64) -> String {
    let bytes = bytes.max(0.0) as u64;
    if bytes == 0 || bytes.is_power_of_two() {
        units::round_bytes(bytes)
    } else {
        units::bytes(bytes)
    }
}

/// When and where this was measured, and after whom.
pub fn facts(results: &Results, after: &str) -> String {
    let fact = |name: &str| results.facts.get(name).map(|fact| fact.trim()).unwrap_or_default();
    let prefixed = |before: &str, fact: &str, behind: &str| match fact {
        "" => String::new(),
        fact => format!("{before}{fact}{behind}"),
    };
    let parts = [
        day(fact("created")).to_owned(),
        prefixed("", fact("processor"), ""),
        prefixed("", fact("processors"), " processors"),
        versioned("Linux", fact("kernel").split('-').next().unwrap_or_default()),
        versioned("lapscope", fact("lapscope")),
        prefixed("after ", after, ""),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

/// "2026-11-21T20:15:00Z": the hour says nothing to who reads this later.
fn day(created: &str) -> &str {
    created.split(['T', ' ']).next().unwrap_or_default()
}

/// A bare version needs its name in front.
fn versioned(name: &str, version: &str) -> String {
    match version.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("{name} {version}"),
        false => version.to_owned(),
    }
}

/// What a name may be in the name of a file.
pub fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    name.chars().map(plain).collect::<String>().trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts_of(version: &str) -> MpiFacts {
        MpiFacts {
            name: "openmpi".to_owned(),
            version: version.to_owned(),
            compiler: String::new(),
            launcher: String::new(),
        }
    }

    #[test]
    fn versions_are_cut() {
        assert_eq!(mpi(&facts_of("Open MPI v4.1.4, package: x")), "Open MPI v4.1.4");
        assert_eq!(mpi(&facts_of("")), "openmpi");
    }

    #[test]
    fn facts_that_there_are() {
        let given = [("created", "2026-11-21T20:15:00Z"), ("kernel", "6.1.0-18-amd64")];
        let facts = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let results = Results { facts, ..Results::default() };
        assert_eq!(super::facts(&results, "x 2007"), "2026-11-21 · Linux 6.1.0 · after x 2007");
        assert_eq!(super::facts(&Results::default(), ""), "");
    }

    #[test]
    fn names_of_files() {
        assert_eq!(file_name("/opt/mpi 5/slow_link"), "opt-mpi-5-slow-link");
    }
}
