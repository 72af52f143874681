//! Sizes and times as a user types them: with a unit, or without one in that of the option.

use std::ops::RangeInclusive;
use std::time::Duration;

use lapscope_data::calendar;
use lapscope_data::options::{self, scaled, Values};

fn within<T: TryFrom<i64>>(text: &str, own: &str, range: RangeInclusive<i64>) -> Result<T, String> {
    let number = scaled(text, own).filter(|number| range.contains(number));
    let (low, high) = range.into_inner();
    let example = match own {
        "bytes" => "64k or 2M",
        "mb" => "512 or 2G",
        "us" => "300 or 1ms",
        _ => "90 or 2min",
    };
    let unit = if own == "mb" { "MB" } else { own };
    let text = number.and_then(|number| T::try_from(number).ok());
    text.ok_or_else(|| match high {
        i64::MAX => {
            format!("expected a number of {unit} from {low} on, or one with a unit, as {example}")
        }
        _ => format!("expected {low} to {high} {unit}, or a number with a unit, as {example}"),
    })
}

/// A number of bytes: 65536, 64k, 2MiB.
pub fn bytes(text: &str) -> Result<u64, String> {
    within(text, "bytes", 0..=i64::MAX)
}

/// Memory, in bytes: 300M, 2G. Below 16 MB nothing can be done.
pub fn memory(text: &str) -> Result<u64, String> {
    let what = |_| "expected 16M or more, with a unit, as 300M or 2G".to_owned();
    within(text, "bytes", 16 << 20..=i64::MAX).map_err(what)
}

/// As the variable of that name.
fn as_option<T: TryFrom<i64>>(text: &str, name: &str) -> Result<T, String> {
    match options::find(name).map(|option| option.values) {
        Some(Values::Count { low, high, unit }) => within(text, unit, low..=high),
        _ => Err(format!("{name} is no number")),
    }
}

pub fn min_bytes(text: &str) -> Result<u64, String> {
    as_option(text, "LAPSCOPE_INJECT_MIN_BYTES")
}

pub fn reach_min_bytes(text: &str) -> Result<u64, String> {
    as_option(text, "LAPSCOPE_REACH_MIN_BYTES")
}

pub fn max_mb(text: &str) -> Result<u64, String> {
    as_option(text, "LAPSCOPE_MAX_MB")
}

pub fn interval_us(text: &str) -> Result<u32, String> {
    as_option(text, "LAPSCOPE_INJECT_INTERVAL_US")
}

/// How long to measure.
pub fn seconds(text: &str) -> Result<u32, String> {
    within(text, "s", 1..=3600)
}

/// How long to wait, in seconds.
pub fn timeout(text: &str) -> Result<u64, String> {
    within(text, "s", 1..=i64::MAX)
}

/// How long to go on.
pub fn minutes(text: &str) -> Result<u32, String> {
    within(text, "min", 1..=i64::from(u32::MAX))
}

/// A time between looks: 0.5, 2, 2min.
pub fn interval(text: &str) -> Result<Duration, String> {
    const LEAST: f64 = 0.1;
    const MOST: f64 = 1e6;
    let whole = || scaled(text, "s").map(|seconds| seconds as f64);
    let seconds = text.trim().parse().ok().or_else(whole).filter(|s| (LEAST..=MOST).contains(s));
    let what = || format!("expected {LEAST} to {MOST} s, as 0.5, or a number with a unit, as 2min");
    seconds.map(Duration::from_secs_f64).ok_or_else(what)
}

/// A moment, in nanoseconds since 1970: a date, or so long ago.
pub fn moment(text: &str) -> Result<i64, String> {
    const DAY: i64 = 86400;
    let days = text.strip_suffix('d').and_then(|days| days.parse::<i64>().ok());
    let age = days.map(|days| days.saturating_mul(DAY)).or_else(|| scaled(text, "s"));
    let ago = age.filter(|age| *age >= 0).map(|age| calendar::now_s().saturating_sub(age));
    let moment = ago.or_else(|| calendar::local_moment(text));
    let what = || "expected 2026-01-31, 2026-01-31T12:00, or how long ago, as 7d or 12h".to_owned();
    moment.and_then(|seconds| seconds.checked_mul(1_000_000_000)).ok_or_else(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_the_option_or_its_own() {
        assert_eq!(
            (bytes("64k"), bytes("65536"), min_bytes("2T").is_err()),
            (Ok(65536), Ok(65536), true)
        );
        assert_eq!(
            (max_mb("2G"), interval_us("1ms"), minutes("2h")),
            (Ok(2048), Ok(1000), Ok(120))
        );
        assert_eq!((seconds("2min"), timeout("1h"), seconds("90")), (Ok(120), Ok(3600), Ok(90)));
        let error = bytes("64x").unwrap_err();
        assert!(error.contains("bytes") && error.contains("64k"), "{error}");
    }
}
