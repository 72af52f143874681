//! The `LAPSCOPE_*` variables: the table that `interposer/options.def` makes, and the checks that the recorder does.

use strsim::levenshtein;

use crate::options_def::{OptionDef, OptionKind};

/// Every variable of the recorder, in the order of `options.def`.
pub const OPTIONS: &[OptionDef<&str>] = include!(concat!(env!("OUT_DIR"), "/options_table.rs"));

/// What tells the ranks which launch they are of; the recorder's job.c reads it.
pub const LAUNCH_VARIABLE: &str = "LAPSCOPE_LAUNCH";

/// Variables that only the command line reads, or sets.
pub const OWN_VARIABLES: [&str; 3] =
    ["LAPSCOPE_LIBRARY", "LAPSCOPE_CALIBRATION_DIR", LAUNCH_VARIABLE];

/// The option that `name` means; the prefix may be left out, and small letters are fine.
pub fn find(name: &str) -> Option<&'static OptionDef<&'static str>> {
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
    let known = OPTIONS.iter().map(|option| option.name).chain(OWN_VARIABLES);
    let candidate = known.map(|known| (levenshtein(&name, known), known)).min()?;
    (candidate.0 <= 3 || candidate.1.starts_with(&name)).then_some(candidate.1)
}

/// Whether the recorder will take `value`; as `config.c`, which uses the default when it will not.
pub fn is_valid(option: &OptionDef<&str>, value: &str) -> bool {
    let is_word = |words: &str| words.split('|').any(|word| word.eq_ignore_ascii_case(value));
    match option.kind {
        OptionKind::Bool => is_word("on|1|yes|true|off|0|no|false"),
        OptionKind::Choice => is_word(option.unit),
        OptionKind::String => true,
        OptionKind::Clocks => value.split(',').all(is_clock),
        OptionKind::Count => count(option, value).is_some(),
    }
}

/// The number that the recorder takes `value` for; `None`: it will not take it.
pub fn count(option: &OptionDef<&str>, value: &str) -> Option<i64> {
    let (low, high) = count_range(option.unit).unwrap_or((0, i64::MAX));
    let own = option.unit.split(' ').nth(1).unwrap_or_default();
    scaled(value, own).filter(|number| (low..=high).contains(number))
}

/// What may stand behind a number: sizes in bytes, and times in microseconds; as in `config.c`.
const SIZES: [(&str, i64); 14] = [
    ("b", 1),
    ("bytes", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1 << 40),
    ("tib", 1 << 40),
];
const TIMES: [(&str, i64); 5] =
    [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("min", 60_000_000), ("h", 3_600_000_000)];

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
    [&SIZES[..], &TIMES].iter().find_map(|units| {
        let size = |name: &str| {
            units.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, size)| *size)
        };
        let number = number.checked_mul(size(suffix)?)?;
        let own = size(own)?;
        (number % own == 0).then(|| number / own)
    })
}

/// `RANK:MICROSECONDS:PPM`, within the bounds of `clock.c`.
fn is_clock(text: &str) -> bool {
    let bounds =
        [0..=i64::from(i32::MAX), -1_000_000_000_000..=1_000_000_000_000, -100_000..=100_000];
    let numbers: Vec<&str> = text.split(':').collect();
    let fits = |(text, bounds): (&&str, &std::ops::RangeInclusive<i64>)| {
        text.parse().is_ok_and(|number| bounds.contains(&number))
    };
    numbers.len() == bounds.len() && numbers.iter().zip(&bounds).all(fits)
}

/// `1..128 frames` as (1, 128).
fn count_range(unit: &str) -> Option<(i64, i64)> {
    let (low, high) = unit.split(' ').next()?.split_once("..")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_judged_as_the_recorder_does() {
        let valid = |name: &str, value: &str| is_valid(find(name).unwrap(), value);
        assert!(valid("max_mb", "512") && valid("LAPSCOPE_MAX_MB", "1"));
        assert!(!valid("max_mb", "0") && !valid("max_mb", "12 MB") && !valid("max_mb", ""));
        assert!(valid("clock", "TSC") && !valid("clock", "sundial"));
        assert!(valid("enable", "Yes") && !valid("enable", "maybe"));
        assert!(valid("dir", "anything at all"));
        assert!(valid("test_clock", "1:2500:-40") && valid("test_clock", "0:-1:0,3:0:100000"));
        assert!(
            !valid("test_clock", "1:2500")
                && !valid("test_clock", "-1:0:0")
                && !valid("test_clock", "1:0:100001")
        );
    }

    /// The recorder's test reads the same file.
    #[test]
    fn numbers_with_units_are_read_as_the_recorder_does() {
        let vectors = include_str!("../../../interposer/test/units.txt");
        let lines: Vec<&str> = vectors.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.len() >= 40);
        for line in lines {
            let [name, value, number] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            assert_eq!(count(find(name).unwrap(), value), number.parse().ok(), "{line}");
        }
    }

    #[test]
    fn misspelt_names_are_guessed_when_near() {
        assert_eq!(nearest("LAPSCOPE_MAXMB"), Some("LAPSCOPE_MAX_MB"));
        assert_eq!(nearest("callpaht"), Some("LAPSCOPE_CALLPATH"));
        assert_eq!(nearest("LAPSCOPE_LIBARY"), Some("LAPSCOPE_LIBRARY"));
        assert_eq!(nearest("LAPSCOPE_FLUX_CAPACITOR"), None);
    }
}
