//! The file that `LAPSCOPE_INJECT_POLICY` names: call sites at which to inject or not. One line a rule; the last one for a place
//! counts, and the last default where there is none:
//!
//! ```text
//! default on
//! off MPI_Irecv halo+0x1a2b 4f3c2a  # post_exchange at halo.c:76
//! on MPI_Isend halo+0x1c00 4f3c2a halo+0x2f10 4f3c2a  # step at halo.c:120, by way of a wrapper
//! ```

use std::fmt;

use lapscope_data::symbols::{base_name, FrameName};
use lapscope_data::text::style::Style;
use lapscope_measure::injection::{PostAddress, PostPath};

/// What a policy file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Comment lines at the top.
    pub heading: Vec<String>,
    pub rules: Vec<PolicyRule>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    pub on: bool,
    /// `None`: every place that no other rule names.
    pub place: Option<PolicySite>,
    pub comment: String,
}

/// Where requests are posted, in a way that is the same in every run of the same files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicySite {
    /// MPI function.
    pub call: String,
    /// The call's return address, then those of its callers, as far as they tell it from others.
    pub addresses: Vec<Address>,
}

/// A return address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Name of the executable or library without its directory.
    pub module: String,
    /// In the module's own numbering.
    pub offset: u64,
    /// Hexadecimal; empty when the module has none.
    pub build_id: String,
}

/// As many addresses as a rule has room for; MOST_ADDRESSES of inject_policy.c.
const MOST_ADDRESSES: usize = 8;

impl PolicySite {
    /// `None` where a rule cannot say it.
    pub fn for_post(call: &str, path: &PostPath) -> Option<PolicySite> {
        let addresses: Option<Vec<Address>> =
            [&path.call].into_iter().chain(&path.callers).map(Address::for_rule).collect();
        let addresses = addresses.filter(|addresses| addresses.len() <= MOST_ADDRESSES)?;
        Some(PolicySite { call: call.to_owned(), addresses })
    }
}

impl Address {
    /// "MODULE+0xOFFSET BUILD-ID", as a rule has it; `None`: no rule could.
    pub fn parse(text: &str) -> Option<Address> {
        let (place, build_id) = text.rsplit_once(' ')?;
        let (module, offset) = place.rsplit_once("+0x")?;
        let is_sayable =
            !module.is_empty() && !module.contains(|c: char| c.is_whitespace() || c == '#');
        let build_id = if build_id == BUILD_ID_UNKNOWN { "" } else { build_id };
        let offset = u64::from_str_radix(offset, 16).ok().filter(|_| is_sayable)?;
        Some(Address { module: module.to_owned(), offset, build_id: build_id.to_owned() })
    }

    /// Blanks separate the words of a rule.
    fn for_rule(address: &PostAddress) -> Option<Address> {
        let module = base_name(&address.module);
        let is_sayable =
            !module.is_empty() && !module.contains(|c: char| c.is_whitespace() || c == '#');
        is_sayable.then(|| Address {
            module: module.to_owned(),
            offset: address.address,
            build_id: address.build_id.clone(),
        })
    }
}

impl PolicyRule {
    pub fn everywhere(on: bool) -> PolicyRule {
        PolicyRule { on, place: None, comment: String::new() }
    }
}

impl Policy {
    /// As the recorder decides.
    pub fn is_on(&self, place: &PolicySite) -> bool {
        let last = |wanted: Option<&PolicySite>| {
            self.rules.iter().rfind(|rule| rule.place.as_ref() == wanted).map(|rule| rule.on)
        };
        last(Some(place)).or_else(|| last(None)).unwrap_or(true)
    }
}

/// "post_exchange at halo.c:76", as much of that as is known.
pub fn comment_of(name: &FrameName) -> String {
    let brief = name.brief();
    match name.function {
        Some(_) => brief.replacen(' ', " at ", 1),
        None => brief,
    }
}

const BUILD_ID_UNKNOWN: &str = "-";

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.heading {
            writeln!(f, "# {}", one_line(line))?;
        }
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}

impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.on { "on" } else { "off" };
        match &self.place {
            Some(place) => write!(f, "{word} {place}")?,
            None => write!(f, "default {word}")?,
        }
        match self.comment.as_str() {
            "" => Ok(()),
            comment => write!(f, "  # {}", one_line(comment)),
        }
    }
}

impl fmt::Display for PolicySite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.call)?;
        self.addresses.iter().try_for_each(|Address { module, offset, build_id }| {
            let build_id = if build_id.is_empty() { BUILD_ID_UNKNOWN } else { build_id };
            write!(f, " {module}+{offset:#x} {build_id}")
        })
    }
}

/// A comment ends with its line, and lines are not read beyond 4095 bytes.
fn one_line(text: &str) -> String {
    const MOST: usize = 200;
    Style::cut(&text.replace(['\n', '\r'], " "), MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(module: &str, offset: u64, build_id: &str) -> PolicySite {
        let address = Address { module: module.into(), offset, build_id: build_id.into() };
        PolicySite { call: "MPI_Irecv".into(), addresses: vec![address] }
    }

    #[test]
    fn the_file_is_as_the_recorder_reads_it() {
        let rule = |on, place, comment: &str| PolicyRule {
            on,
            place: Some(place),
            comment: comment.into(),
        };
        let policy = Policy {
            heading: vec!["Written by\na test".into()],
            rules: vec![
                PolicyRule::everywhere(true),
                rule(true, place("halo", 0x1a2b, "4f3c"), "post_exchange at halo.c:76"),
                rule(false, place("libsolver.so.2", 0x99, ""), ""),
            ],
        };
        let text = "# Written by a test\n\
                    default on\n\
                    on MPI_Irecv halo+0x1a2b 4f3c  # post_exchange at halo.c:76\n\
                    off MPI_Irecv libsolver.so.2+0x99 -\n";
        assert_eq!(policy.to_string(), text);
    }

    #[test]
    fn a_rule_for_a_place_counts_before_the_default_and_a_later_one_before_an_earlier() {
        let rule = |on, offset| PolicyRule {
            place: Some(place("a", offset, "")),
            ..PolicyRule::everywhere(on)
        };
        let rules =
            vec![rule(false, 1), rule(true, 2), rule(false, 2), PolicyRule::everywhere(true)];
        let policy = Policy { heading: Vec::new(), rules };
        let is_on = |offset, build_id| policy.is_on(&place("a", offset, build_id));
        assert_eq!([is_on(1, ""), is_on(2, ""), is_on(3, "")], [false, false, true]);
        assert!(is_on(1, "ff"), "another build");
        assert!(Policy::default().is_on(&place("a", 1, "")));
    }

    #[test]
    fn lines_are_as_long_as_the_recorder_reads_them() {
        let policy = Policy { heading: vec!["ü".repeat(2_000)], rules: Vec::new() };
        assert!(policy.to_string().len() < 4096, "LINE_BYTES of inject_policy.c");
    }

    #[test]
    fn places_are_named_by_the_file_that_posts() {
        let address = |module: &str| PostAddress {
            module: module.into(),
            build_id: "aa11".into(),
            address: 0x40,
        };
        let path = |module, callers: &[&str]| PostPath {
            call: address(module),
            callers: callers.iter().map(|caller| address(caller)).collect(),
        };
        let said = |path| PolicySite::for_post("MPI_Isend", &path).map(|place| place.to_string());
        let library = "/opt/app/lib/libsolver.so.2";
        assert_eq!(said(path(library, &[])).unwrap(), "MPI_Isend libsolver.so.2+0x40 aa11");
        let called = "MPI_Isend libsolver.so.2+0x40 aa11 app+0x40 aa11";
        assert_eq!(said(path(library, &["/opt/app/app"])).unwrap(), called);
        assert_eq!(said(path("/opt/my app", &[])), None);
        assert_eq!(said(path(library, &["/opt/my app"])), None);
        assert_eq!(said(path(library, &["/opt/app/app"; MOST_ADDRESSES])), None);
    }
}
