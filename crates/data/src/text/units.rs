//! Numbers for people: three digits and a unit.

use crate::model::Nanos;

/// "12.3 s", "450 ms", "3.20 µs", "87 ns".
pub fn time(time: Nanos) -> String {
    let ns = time.0 as f64;
    match ns.abs() {
        n if n < 999.5 => format!("{} ns", time.0),
        n if n < 999.5e3 => format!("{} µs", three_digits(ns / 1e3)),
        n if n < 999.5e6 => format!("{} ms", three_digits(ns / 1e6)),
        n if n < 9999.5e9 => format!("{} s", three_digits(ns / 1e9)),
        _ => format!("{} h", three_digits(ns / 3600e9)),
    }
}

/// Seconds of many ranks, which may be more nanoseconds than a whole number holds: also "12.3 M h".
pub fn long_time(seconds: f64) -> String {
    if seconds < 9e9 {
        time(Nanos((seconds * 1e9) as i64))
    } else {
        format!("{} h", count((seconds / 3600.0) as u64))
    }
}

/// Shows times that are summed over so many ranks as the mean of one, beside which the run time on the wall can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeanOfRanks(pub u64);

impl MeanOfRanks {
    pub fn of(self, sum: Nanos) -> Nanos {
        sum.mean(self.0).unwrap_or(sum)
    }

    pub fn time(self, sum: Nanos) -> String {
        time(self.of(sum))
    }

    pub fn time_range(self, low: Nanos, high: Nanos) -> String {
        time_range(self.of(low), self.of(high))
    }
}

/// "0 B", "512 B", "4.00 KiB", "1.25 GiB".
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1023.5 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(size), UNITS[unit])
}

/// A size class's limit, a power of two: "4 KiB".
pub fn round_bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (63u32.saturating_sub(bytes.leading_zeros()) / 10) as usize;
    format!("{} {}", bytes >> (10 * unit), UNITS[unit])
}

/// "38.2 %"; very small but not nothing is "<0.1 %".
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent > 0.0 && percent < 0.05 {
        "<0.1 %".to_owned()
    } else {
        format!("{percent:.1} %")
    }
}

/// Digits up to a million, then "12.3 M".
pub fn count(count: u64) -> String {
    match count {
        0..=999_999 => count.to_string(),
        1_000_000..=999_499_999 => format!("{} M", three_digits(count as f64 / 1e6)),
        _ => format!("{} G", three_digits(count as f64 / 1e9)),
    }
}

/// "2.50": so many times.
pub fn factor(value: f64) -> String {
    three_digits(value)
}

/// "2.45 GHz"
pub fn hertz(value: f64) -> String {
    format!("{} GHz", three_digits(value / 1e9))
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// "36.3 to 38.5 %"; "36.3 %" of what is printed alike. Of fractions.
pub fn percent_range(low: f64, high: f64) -> String {
    let (least, most) = (percent(low), percent(high));
    match least.strip_suffix(" %") {
        Some(number) if least != most => format!("{number} to {most}"),
        _ => most,
    }
}

/// "120 to 496 ms", "0 to 1.20 s", "87.0 µs to 496 ms"; "4.10 ms" of what is printed alike.
pub fn time_range(low: Nanos, high: Nanos) -> String {
    let (least, most) = (time(low), time(high));
    let split = |text: &str| text.split_once(' ').map(|(n, unit)| (n.to_owned(), unit.to_owned()));
    match (split(&least), split(&most)) {
        _ if least == most => most,
        _ if low.0 == 0 => format!("0 to {most}"),
        (Some((n, unit)), Some((_, other))) if unit == other => format!("{n} to {most}"),
        _ => format!("{least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(time(Nanos(87)), "87 ns");
        assert_eq!(time(Nanos(3_200)), "3.20 µs");
        assert_eq!(time(Nanos(999_600)), "1.00 ms");
        assert_eq!(time(Nanos(12_345_000_000)), "12.3 s");
        assert_eq!(time_range(Nanos(0), Nanos(496_000_000)), "0 to 496 ms");
        assert_eq!(time_range(Nanos(120_000_000), Nanos(496_000_000)), "120 to 496 ms");
        assert_eq!(time_range(Nanos(87_000), Nanos(496_000_000)), "87.0 µs to 496 ms");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(4096), "4.00 KiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!(round_bytes(4096), "4 KiB");
        assert_eq!(round_bytes(512), "512 B");
        assert_eq!(round_bytes(0), "0 B");
        assert_eq!(count(12_345_678), "12.3 M");
    }

    #[test]
    fn percentages() {
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(percent(0.0001), "<0.1 %");
        assert_eq!(percent(0.382), "38.2 %");
    }
}
