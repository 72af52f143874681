//! The `LAPSCOPE_*` variables: the table that `interposer/options.def` makes, and its rules for values, which the recorder
//! follows too.

use strsim::levenshtein;

/// A `LAPSCOPE_*` variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionDef {
    pub name: &'static str,
    pub values: Values,
    /// As a user would write it; empty: not set.
    pub default: &'static str,
    /// `on|off`, `1..128 frames`, `auto|tsc|monotonic`, or what the value is.
    pub unit: &'static str,
    pub doc: &'static str,
}

/// Which values a variable may have; options.def explains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    Bool,
    /// `unit`: of `UNITS`, or empty.
    Count {
        low: i64,
        high: i64,
        unit: &'static str,
    },
    Choice(&'static [&'static str]),
    Text,
    /// The least and the greatest of each number.
    Tuples(&'static [(i64, i64)]),
}

include!(concat!(env!("OUT_DIR"), "/generated/options.rs"));

/// What tells the ranks which launch they are of; the recorder's job.c reads it.
pub const LAUNCH_VARIABLE: &str = "LAPSCOPE_LAUNCH";

/// Variables that only the command line reads, or sets.
pub const OWN_VARIABLES: [&str; 3] =
    ["LAPSCOPE_LIBRARY", "LAPSCOPE_CALIBRATION_DIR", LAUNCH_VARIABLE];

/// The option that `name` means; the prefix may be left out, and small letters are fine.
pub fn find(name: &str) -> Option<&'static OptionDef> {
    let name = full_name(name);
    OPTIONS.iter().find(|option| option.name == name)
}

/// `name` as a variable: in capitals, with the prefix.
pub fn full_name(name: &str) -> String {
    let name = name.to_ascii_uppercase().replace('-', "_");
    if name.starts_with("LAPSCOPE_") {
        name
    } else {
        format!("LAPSCOPE_{name}")
    }
}

/// The known variable whose name is nearest to `name`, when it is near enough to be what was meant.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = full_name(name);
    let bare = name.len() - "LAPSCOPE_".len();
    let known = OPTIONS.iter().map(|option| option.name).chain(OWN_VARIABLES);
    let candidate = known.map(|known| (levenshtein(&name, known), known)).min()?;
    // of three letters three may be wrong in anything
    let is_near = candidate.0 <= 3.min(bare / 2);
    (is_near || bare > 0 && candidate.1.starts_with(&name)).then_some(candidate.1)
}

/// Whether the recorder will take `value`; it uses the default when it will not.
pub fn is_valid(option: &OptionDef, value: &str) -> bool {
    number(option, value).is_some()
}

/// What the recorder takes `value` for: a number, 1 or 0 for on or off, the place of a word, 0 for text and tuples. `None`: it
/// will not take it.
pub fn number(option: &OptionDef, value: &str) -> Option<i64> {
    let is_it = |word: &&str| word.eq_ignore_ascii_case(value);
    match option.values {
        Values::Bool if TRUTHS[0].iter().any(is_it) => Some(1),
        Values::Bool => TRUTHS[1].iter().any(is_it).then_some(0),
        Values::Choice(words) => words.iter().position(is_it).map(|at| at as i64),
        Values::Text => Some(0),
        Values::Tuples(ranges) => value.split(',').all(|text| is_tuple(text, ranges)).then_some(0),
        Values::Count { low, high, unit } => {
            scaled(value, unit).filter(|number| (low..=high).contains(number))
        }
    }
}

/// "64k" in bytes, "1ms" in us: a whole number of `own` units, with a unit of its kind or without one. `None`: it is none.
pub fn scaled(value: &str, own: &str) -> Option<i64> {
    let value = value.trim_start();
    let end = value
        .char_indices()
        .find(|&(at, c)| !(c.is_ascii_digit() || (at == 0 && "+-".contains(c))));
    let (number, suffix) = value.split_at(end.map_or(value.len(), |(at, _)| at));
    let number: i64 = number.parse().ok()?;
    if suffix.is_empty() {
        return Some(number);
    }
    UNITS.iter().find_map(|units| {
        let size = |name: &str| {
            units.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, size)| *size)
        };
        let number = number.checked_mul(size(suffix)?)?;
        let own = size(own)?;
        (number % own == 0).then(|| number / own)
    })
}

/// Numbers with `:` between them, each in its range.
fn is_tuple(text: &str, ranges: &[(i64, i64)]) -> bool {
    let numbers: Vec<&str> = text.split(':').collect();
    let fits = |(text, (low, high)): (&&str, &(i64, i64))| {
        text.parse().is_ok_and(|number: i64| (low..=high).contains(&&number))
    };
    numbers.len() == ranges.len() && numbers.iter().zip(ranges).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorder's test reads the same file.
    #[test]
    fn values_are_read_as_the_recorder_does() {
        let vectors = include_str!("../../../interposer/test/values.txt");
        let lines: Vec<&str> = vectors.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.len() >= 70);
        for line in lines {
            let [name, value, expected] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            assert_eq!(number(find(name).unwrap(), value), expected.parse().ok(), "{line}");
        }
    }

    #[test]
    fn what_one_line_cannot_say() {
        let valid = |name: &str, value: &str| is_valid(find(name).unwrap(), value);
        assert!(valid("max_mb", "512") && valid("dir", "anything at all"));
        assert!(!valid("max_mb", "12 MB") && !valid("max_mb", ""));
        assert!(OPTIONS
            .iter()
            .all(|option| option.default.is_empty() || is_valid(option, option.default)));
    }

    #[test]
    fn misspelt_names_are_guessed_when_near() {
        assert_eq!(nearest("LAPSCOPE_MAXMB"), Some("LAPSCOPE_MAX_MB"));
        assert_eq!(nearest("callpaht"), Some("LAPSCOPE_CALLPATH"));
        assert_eq!(nearest("LAPSCOPE_LIBARY"), Some("LAPSCOPE_LIBRARY"));
        assert_eq!(nearest("LAPSCOPE_FLUX_CAPACITOR"), None);
    }
}
