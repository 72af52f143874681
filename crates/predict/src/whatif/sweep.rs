//! A knob with several values, as `--sweep` has it.

use std::fmt;
use std::str::FromStr;

use crate::replay::scenario::{self, Bandwidth, Latency, Progress, Scenario, Size};

/// One knob and the values that it is to have.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepRequest {
    /// As in a scenario: `bandwidth`, `latency`, `eager-limit`, `cpu`, `progress`.
    pub knob: String,
    pub points: Vec<SweepValue>,
}

/// A value of a knob.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepValue {
    /// As it was typed.
    pub text: String,
    /// In the knob's base unit: nanoseconds, bytes a second, bytes, a factor. Without a limit it is infinite; progress that is
    /// asynchronous is 0, and inside MPI alone infinite.
    pub number: f64,
    /// The scenario in which that knob alone is turned.
    pub scenario: Scenario,
}

/// Knobs that have an order.
pub const KNOBS: [&str; 5] = ["bandwidth", "latency", "eager-limit", "cpu", "progress"];

/// Points of a range that says no number.
const POINTS: usize = 8;
const MOST_POINTS: usize = 1000;

/// What one `--sweep` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweeps(pub Vec<SweepRequest>);

impl FromStr for Sweeps {
    type Err = String;

    /// Reads `bandwidth=1GB/s..100GB/s,latency=1us,2us,5us`: what stands behind a comma begins another knob where it has the name of
    /// one and an equals sign, else it is another value.
    fn from_str(text: &str) -> Result<Sweeps, String> {
        let mut sweeps: Vec<SweepRequest> = Vec::new();
        for item in text.split(',') {
            let value = match item.split_once('=') {
                Some((knob, value)) if KNOBS.contains(&knob.trim()) => {
                    sweeps.push(SweepRequest { knob: knob.trim().to_owned(), points: Vec::new() });
                    value
                }
                Some((knob, _)) if knob.trim() != "every" => return Err(unknown(knob)),
                _ => item,
            };
            let Some(sweep) = sweeps.last_mut() else { return Err(unknown(item)) };
            let values = values(&sweep.knob, value.trim());
            let values = values.map_err(|why| format!("{}={}: {why}", sweep.knob, value.trim()))?;
            sweep.points.extend(values.into_iter().map(|(text, value)| value.point(text)));
        }
        check(&sweeps)?;
        Ok(Sweeps(sweeps))
    }
}

fn unknown(knob: &str) -> String {
    format!("`{}`: expected KNOB=VALUES, with one of the knobs {}", knob.trim(), KNOBS.join(", "))
}

/// Whether each knob is there once, with values that one axis can have.
///
/// # Errors
/// Says what cannot be.
pub fn check(sweeps: &[SweepRequest]) -> Result<(), String> {
    for (place, SweepRequest { knob, points }) in sweeps.iter().enumerate() {
        if sweeps[..place].iter().any(|other| other.knob == *knob) {
            return Err(format!("{knob} is swept twice; give all its values at once"));
        }
        let finite = points.iter().filter(|point| point.number.is_finite());
        let multiples: Vec<bool> = finite.map(|point| point.text.starts_with('x')).collect();
        if multiples.iter().any(|&is_multiple| is_multiple != multiples[0]) {
            return Err(format!(
                "{knob}: values and multiples have no axis in common; take one of them"
            ));
        }
        if points.len() > MOST_POINTS {
            return Err(format!("{knob}: {} values; {MOST_POINTS} are the most", points.len()));
        }
    }
    Ok(())
}

/// A value, or those of a range; each with its text.
fn values(knob: &str, text: &str) -> Result<Vec<(String, KnobValue)>, String> {
    let Some((from, to)) = text.split_once("..") else {
        return Ok(vec![(text.to_owned(), KnobValue::parse(knob, text)?)]);
    };
    // a bandwidth has a slash in its unit
    let counted = to.rsplit_once('/').and_then(|(to, count)| Some((to, count.parse().ok()?)));
    let (to, count): (&str, usize) = counted.unwrap_or((to, POINTS));
    if !(2..=MOST_POINTS).contains(&count) {
        return Err(format!("expected 2 to {MOST_POINTS} points"));
    }
    let to = match knob {
        "progress" if !to.starts_with("every=") => format!("every={to}"),
        _ => to.to_owned(),
    };
    let (first, last) = (KnobValue::parse(knob, from)?, KnobValue::parse(knob, &to)?);
    let (low, high) = (first.number(), last.number());
    if !(low > 0.0 && low.is_finite() && high > 0.0 && high.is_finite()) {
        return Err("the steps of a range are even factors, so that it neither begins nor ends at 0 or without a limit; \
                    list such values beside it"
            .to_owned());
    }
    if first.is_multiple() != last.is_multiple() {
        return Err("one end is a value and the other a multiple".to_owned());
    }
    let step = |place: usize| match place {
        0 => first,
        place if place + 1 == count => last,
        place => first.at(low * (high / low).powf(place as f64 / (count - 1) as f64)),
    };
    let mut values: Vec<KnobValue> = (0..count).map(step).collect();
    values.dedup_by_key(|value| value.number());
    Ok(values.into_iter().map(|value| (value.to_string(), value)).collect())
}

/// What one of [`KNOBS`] is set to.
#[derive(Debug, Clone, Copy)]
enum KnobValue {
    Bandwidth(Bandwidth),
    Latency(Latency),
    EagerLimit(Size),
    Cpu(f64),
    Progress(Progress),
}

impl KnobValue {
    fn parse(knob: &str, text: &str) -> Result<KnobValue, String> {
        match knob {
            "bandwidth" => text.parse().map(KnobValue::Bandwidth),
            "latency" => text.parse().map(KnobValue::Latency),
            "eager-limit" => text.parse().map(KnobValue::EagerLimit),
            "cpu" => scenario::speed(text).map(KnobValue::Cpu),
            _ => text.parse().map(KnobValue::Progress),
        }
    }

    fn is_multiple(self) -> bool {
        matches!(
            self,
            KnobValue::Bandwidth(Bandwidth::Times(_)) | KnobValue::Latency(Latency::Times(_))
        )
    }

    fn number(self) -> f64 {
        match self {
            KnobValue::Bandwidth(Bandwidth::BytesPerSecond(number) | Bandwidth::Times(number))
            | KnobValue::Latency(Latency::Nanoseconds(number) | Latency::Times(number))
            | KnobValue::Cpu(number)
            | KnobValue::Progress(Progress::Every(number)) => number,
            KnobValue::EagerLimit(Size(bytes)) if bytes < u64::MAX => bytes as f64,
            KnobValue::Progress(Progress::Async) => 0.0,
            KnobValue::Bandwidth(Bandwidth::Infinite)
            | KnobValue::EagerLimit(_)
            | KnobValue::Progress(Progress::Inside) => f64::INFINITY,
        }
    }

    /// A value of the same kind; three digits are enough.
    fn at(self, number: f64) -> KnobValue {
        let round: f64 = format!("{number:.2e}").parse().unwrap_or(number);
        match self {
            KnobValue::Bandwidth(Bandwidth::Times(_)) => {
                KnobValue::Bandwidth(Bandwidth::Times(round))
            }
            KnobValue::Bandwidth(_) => KnobValue::Bandwidth(Bandwidth::BytesPerSecond(round)),
            KnobValue::Latency(Latency::Times(_)) => KnobValue::Latency(Latency::Times(round)),
            KnobValue::Latency(_) => KnobValue::Latency(Latency::Nanoseconds(round)),
            KnobValue::EagerLimit(_) => KnobValue::EagerLimit(Size(number.round() as u64)),
            KnobValue::Cpu(_) => KnobValue::Cpu(round),
            KnobValue::Progress(_) => KnobValue::Progress(Progress::Every(round)),
        }
    }

    fn point(self, text: String) -> SweepValue {
        let mut scenario = Scenario::default();
        match self {
            KnobValue::Bandwidth(value) => scenario.bandwidth = Some(value),
            KnobValue::Latency(value) => scenario.latency = Some(value),
            KnobValue::EagerLimit(value) => scenario.eager_limit = Some(value),
            KnobValue::Cpu(value) => scenario.cpu = Some(value),
            KnobValue::Progress(value) => scenario.progress = Some(value),
        }
        SweepValue { text, number: self.number(), scenario }
    }
}

impl fmt::Display for KnobValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KnobValue::Bandwidth(value) => value.fmt(f),
            KnobValue::Latency(value) => value.fmt(f),
            KnobValue::EagerLimit(value) => value.fmt(f),
            KnobValue::Cpu(value) => value.fmt(f),
            KnobValue::Progress(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweeps(text: &str) -> Vec<(String, Vec<String>)> {
        let Sweeps(sweeps) = text.parse().unwrap();
        let texts = |points: Vec<SweepValue>| points.into_iter().map(|point| point.text).collect();
        sweeps.into_iter().map(|sweep| (sweep.knob, texts(sweep.points))).collect()
    }

    fn error(text: &str) -> String {
        text.parse::<Sweeps>().unwrap_err()
    }

    #[test]
    fn several_knobs_stand_behind_each_other() {
        let found = sweeps("bandwidth=1GB/s, inf");
        assert_eq!(found, [("bandwidth".to_owned(), vec!["1GB/s".to_owned(), "inf".to_owned()])]);
        let found = sweeps("latency=1us,2us,progress=inside,every=1ms,async");
        let [(latency, times), (progress, ways)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((latency.as_str(), times.join(" ")), ("latency", "1us 2us".to_owned()));
        assert_eq!(
            (progress.as_str(), ways.join(" ")),
            ("progress", "inside every=1ms async".into())
        );
    }

    #[test]
    fn steps_of_ranges_are_even_factors() {
        let found = sweeps("eager-limit=4k..256k/7");
        assert_eq!(found[0].1.join(" "), "4096 8192 16384 32768 65536 131072 262144");
        let found = sweeps("bandwidth=100GB/s..1GB/s/3,cpu=0.5..2/3");
        assert_eq!(found[0].1.join(" "), "100GB/s 10GB/s 1GB/s");
        assert_eq!(found[1].1.join(" "), "0.5 1 2");
        assert_eq!(sweeps("latency=x0.1..x10")[0].1.len(), 8);
        assert_eq!(sweeps("progress=every=1ms..10ms/2")[0].1.join(" "), "every=1ms every=10ms");
        // 1 to 3 bytes have no eight values
        assert_eq!(sweeps("eager-limit=1..3")[0].1.join(" "), "1 2 3");
    }

    #[test]
    fn a_point_turns_its_knob_alone() {
        let Sweeps(sweeps) = "bandwidth=2GB/s".parse().unwrap();
        let point = &sweeps[0].points[0];
        assert_eq!((point.number, point.scenario.options()), (2e9, "--bandwidth 2GB/s".to_owned()));
        let Sweeps(sweeps) = "eager-limit=inf".parse().unwrap();
        assert_eq!(sweeps[0].points[0].number, f64::INFINITY);
    }

    #[test]
    fn errors_say_what_is_expected() {
        assert!(error("speed=3").contains("one of the knobs bandwidth, latency"));
        assert!(error("1us,2us").contains("expected KNOB=VALUES"));
        assert!(error("latency=1us,spped=3").starts_with("`spped`"));
        assert!(error("latency=fast").starts_with("latency=fast: expected a time"));
        assert!(error("latency=0us..2us").contains("list such values"));
        assert!(error("bandwidth=1GB/s..inf").contains("list such values"));
        assert!(error("bandwidth=x1..2GB/s").contains("the other a multiple"));
        assert!(error("bandwidth=x1,2GB/s").contains("no axis in common"));
        assert!(error("latency=1us..2us/1").contains("2 to 1000 points"));
        assert!(error("latency=1us,latency=2us").contains("twice"));
        assert!(error("").contains("KNOB=VALUES"));
    }
}
