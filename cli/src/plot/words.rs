//! Names and facts as figures have them.

use crate::bench::results::{Inject, Link, MpiFacts, Results};
use crate::render::units;

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
        fact("created").to_owned(),
        prefixed("", fact("processor"), ""),
        prefixed("", fact("processors"), " processors"),
        fact("kernel").to_owned(),
        prefixed(version_of(fact("lapscope")), fact("lapscope"), ""),
        prefixed("after ", after, ""),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

/// A bare version needs its name in front.
fn version_of(fact: &str) -> &'static str {
    match fact.starts_with(|c: char| c.is_ascii_digit()) {
        true => "lapscope ",
        false => "",
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
    fn names_of_files() {
        assert_eq!(file_name("/opt/mpi 5/slow_link"), "opt-mpi-5-slow-link");
    }
}
