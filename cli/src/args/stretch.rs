//! Arguments of commands that can look at a part of a run's time.

use clap::Args;
use lapscope_trace::stretch::StretchChoice;

/// Which part of the run counts.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "A part of the run")]
pub struct StretchArgs {
    /// Only what begins from this timestamp on, since the first rank's MPI_Init returned: 4.7, 4.7s, 4700ms
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    pub from: Option<i64>,

    /// Only what begins before this timestamp
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    pub to: Option<i64>,

    /// Only this step (iteration) of the program, or these: N or N-M, from 1 on; `lapscope report` says how many there are
    #[arg(long, value_name = "N|N-M", value_parser = steps, conflicts_with_all = ["from", "to"])]
    pub step: Option<(u64, u64)>,
}

impl StretchArgs {
    /// `None`: all of the run.
    pub fn wanted(&self) -> Option<StretchChoice> {
        let between = StretchChoice::Between { from: self.from, to: self.to };
        match self.step {
            Some((first, last)) => Some(StretchChoice::Steps { first, last }),
            None => (self.from.is_some() || self.to.is_some()).then_some(between),
        }
    }
}

/// Nanoseconds.
fn timestamp(text: &str) -> Result<i64, String> {
    const UNITS: [(&str, f64); 6] =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("min", 60e9), ("s", 1e9)];
    /// A century.
    const MOST: f64 = 3.2e18;
    let text = text.trim();
    let unit = UNITS.into_iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)));
    let (number, ns) = unit.unwrap_or((text, 1e9));
    let number = number.trim().parse::<f64>().ok().map(|number| (number * ns).round());
    let number = number.filter(|ns| (0.0..=MOST).contains(ns));
    let expected = "expected seconds since MPI_Init, as 4.7, or a time with a unit, as 4700ms";
    number.map(|ns| ns as i64).ok_or_else(|| expected.to_owned())
}

/// First and last.
fn steps(text: &str) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
    let both = number(first).zip(number(last)).filter(|(first, last)| first <= last);
    both.ok_or_else(|| {
        "expected a step, as 12, or some of them, as 12-20; the first is 1".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_units_or_are_seconds() {
        assert_eq!(timestamp("4.7"), Ok(4_700_000_000));
        assert_eq!(timestamp("4700ms"), timestamp("4.7s"));
        assert_eq!(
            (timestamp("12us"), timestamp("7 ns"), timestamp("2min")),
            (Ok(12_000), Ok(7), Ok(120_000_000_000))
        );
        for bad in ["", "s", "-1", "4.7h", "nan", "inf", "1e99"] {
            assert!(timestamp(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn steps_are_one_or_some() {
        assert_eq!((steps("12"), steps("3-5")), (Ok((12, 12)), Ok((3, 5))));
        for bad in ["0", "5-3", "-3", "3-", "a", "1.5", "18446744073709551616"] {
            assert!(steps(bad).is_err(), "{bad}");
        }
    }
}
