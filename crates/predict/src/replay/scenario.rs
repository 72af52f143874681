//! What a replay changes: the knobs of a scenario. As text on the command line and in TOML files, both by the same names.

mod sites;

use std::fmt;
use std::str::FromStr;

pub use sites::{EveryTime, SiteList};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What to change of a recorded run; the default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Scenario {
    /// What the user calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// One way, from rank to rank: L of LogGPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Of a transfer that has the network to itself: 1/G of LogGPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// The largest message that needs no receive, S of LogGPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eager_limit: Option<Size>,
    /// How messages above the eager limit go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// When MPI handles what arrives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What messages share on their way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contention: Option<Contention>,
    /// Between whom these hold; `None`: between nodes where the run has several, else between the ranks of its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Scope>,
    /// Speed of computation, as a multiple of the recorded one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_speed")]
    pub cpu: Option<f64>,
    /// Every rank computes as long as the mean of all.
    #[serde(skip_serializing_if = "is_false")]
    pub balance: bool,
    /// Waits for receives are where their data are first touched, by what `lapscope reach` measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitAt>,
    /// Sends are posted where their data were last written, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post: Option<PostAt>,
    /// Blocking collectives become non-blocking ones that are waited for at the next call of MPI on that thread.
    #[serde(skip_serializing_if = "is_false")]
    pub nonblocking_collectives: bool,
    /// Blocking collectives of call sites that are never made: function, line, or both, with or without the call.
    #[serde(skip_serializing_if = "SiteList::is_empty")]
    pub without: SiteList,
    /// Of one, likewise, of which each so-many-th is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<EveryTime>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Scenario {
    /// Nothing is different from the recorded run.
    pub fn is_identity(&self) -> bool {
        *self == Scenario { name: self.name.clone(), on: self.on, ..Scenario::default() }
    }

    /// As this one, with the knobs that `by` turns turned as there.
    pub fn overlaid(&self, by: &Scenario) -> Scenario {
        Scenario {
            name: by.name.clone().or_else(|| self.name.clone()),
            latency: by.latency.or(self.latency),
            bandwidth: by.bandwidth.or(self.bandwidth),
            eager_limit: by.eager_limit.or(self.eager_limit),
            protocol: by.protocol.or(self.protocol),
            progress: by.progress.or(self.progress),
            contention: by.contention.or(self.contention),
            on: by.on.or(self.on),
            cpu: by.cpu.or(self.cpu),
            balance: by.balance || self.balance,
            wait: by.wait.or(self.wait),
            post: by.post.or(self.post),
            nonblocking_collectives: by.nonblocking_collectives || self.nonblocking_collectives,
            without: by.without.or(&self.without),
            every: by.every.clone().or_else(|| self.every.clone()),
        }
    }

    /// # Errors
    /// What cannot be, in a sentence.
    pub fn check(&self) -> Result<(), String> {
        let checked = self.cpu.map_or(Ok(0.0), |cpu| speed(&cpu.to_string()));
        checked.map(|_| ()).map_err(|why| format!("cpu: {why}"))
    }

    /// The knobs that are turned, as on the command line: `--latency 2us --bandwidth 10GB/s`; what a table calls it that has no
    /// name.
    pub fn options(&self) -> String {
        fn some<T: fmt::Display>(name: &str, value: &Option<T>) -> Option<String> {
            value.as_ref().map(|value| format!("--{name} {value}"))
        }
        let flag = |name: &str, value: bool| value.then(|| format!("--{name}"));
        let all = [
            some("latency", &self.latency),
            some("bandwidth", &self.bandwidth),
            some("eager-limit", &self.eager_limit),
            some("protocol", &self.protocol),
            some("progress", &self.progress),
            some("contention", &self.contention),
            some("on", &self.on),
            some("cpu", &self.cpu),
            flag("balance", self.balance),
            some("wait", &self.wait),
            some("post", &self.post),
            flag("nonblocking-collectives", self.nonblocking_collectives),
            some("without", &self.without.options("without")),
            some("every", &self.every),
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// A speed of computation as it is typed: `1.2`, a fifth faster than the recorded one.
///
/// # Errors
/// Says what is expected.
pub fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|&speed| is_positive(speed));
    speed.ok_or_else(|| format!("`{text}`: expected a speed above 0, as 1.2 for a fifth faster"))
}

fn some_speed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let text = TextOrNumber::deserialize(deserializer)?.0;
    speed(&text).map(Some).map_err(serde::de::Error::custom)
}

/// A time, or a multiple of the recorded one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Latency {
    Nanoseconds(f64),
    Times(f64),
}

/// A bandwidth, or a multiple of the recorded one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bandwidth {
    BytesPerSecond(f64),
    Times(f64),
    Infinite,
}

/// Bytes, or no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

/// How a message comes from a sender to a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// At once, whoever is there.
    Eager,
    /// RTS, CTS, then the network writes the data into the receiver's buffer.
    RendezvousWrite,
    /// RTS, then the network reads the data from the sender's buffer.
    RendezvousRead,
    /// RTS, CTS, then both hosts move the data in pieces: only while both are inside MPI.
    Pipeline,
    /// A receiver that is first announces its buffer, and the sender writes; else as `RendezvousRead`. Rashti and Afsahi 2008.
    Speculative,
}

/// When MPI handles what arrives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// Only while the rank is inside MPI.
    Inside,
    /// At once: a thread or the network does it.
    Async,
    /// Inside MPI, and in tests that the computation makes once in so many nanoseconds.
    Every(f64),
}

/// What messages share: one after the other goes over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contention {
    /// Nothing.
    None,
    /// Each rank has a link of its own, apart for each direction.
    Rank,
    /// Each node has a link, apart for each direction; messages within a node do not use it.
    Node,
    /// Each node has one medium for both directions, and for messages within it.
    Shared,
}

/// Between whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    Node,
    Network,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitAt {
    FirstTouch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostAt {
    LastWrite,
}

/// Words with one meaning each.
macro_rules! words {
    ($type:ident: $($word:literal => $value:path),+ $(,)?) => {
        impl $type {
            pub const WORDS: &'static [(&'static str, $type)] = &[$(($word, $value)),+];
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::WORDS.iter().find(|(word, _)| *word == text);
                found.map(|&(_, value)| value).ok_or_else(|| {
                    let words: Vec<&str> = Self::WORDS.iter().map(|&(word, _)| word).collect();
                    format!("expected {}", words.join(", "))
                })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let found = Self::WORDS.iter().find(|(_, value)| value == self);
                f.write_str(found.map_or("", |(word, _)| word))
            }
        }
    };
}

words!(Protocol:
    "eager" => Protocol::Eager,
    "rendezvous-write" => Protocol::RendezvousWrite,
    "rendezvous-read" => Protocol::RendezvousRead,
    "pipeline" => Protocol::Pipeline,
    "speculative" => Protocol::Speculative,
);
words!(Contention:
    "none" => Contention::None,
    "rank" => Contention::Rank,
    "node" => Contention::Node,
    "shared" => Contention::Shared,
);
words!(Scope: "node" => Scope::Node, "network" => Scope::Network, "all" => Scope::All);
words!(WaitAt: "at-first-touch" => WaitAt::FirstTouch);
words!(PostAt: "at-last-write" => PostAt::LastWrite);

/// `x0.5`: a multiple.
fn multiple(text: &str) -> Option<f64> {
    text.strip_prefix('x')?.parse().ok().filter(|&times| is_positive(times))
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// A number and its unit, each of `units` with what it is worth.
fn measured(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (unit, factor) =
        units.iter().filter(|(unit, _)| text.ends_with(unit)).max_by_key(|(unit, _)| unit.len())?;
    let number: f64 = text[..text.len() - unit.len()].trim_end().parse().ok()?;
    Some(number * factor).filter(|value| value.is_finite() && *value >= 0.0)
}

const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const RATES: [(&str, f64); 8] = [
    ("B/s", 1.0),
    ("KB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("kbit/s", 125.0),
    ("Mbit/s", 125e3),
    ("mbit/s", 125e3),
    ("Gbit/s", 125e6),
];

/// A time as it is typed, in nanoseconds: `2us`, `1.5ms`, `0s`.
///
/// # Errors
/// Says what is expected.
pub fn time_ns(text: &str) -> Result<f64, String> {
    let expected = "expected a time with its unit, as 2us, 500ns or 1ms";
    measured(text, &TIMES).ok_or_else(|| expected.to_owned())
}

impl FromStr for Latency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let times = multiple(text).map(Latency::Times);
        let parsed = times.or_else(|| time_ns(text).ok().map(Latency::Nanoseconds));
        parsed.ok_or_else(|| "expected a time, as 2us, or a multiple, as x0.5".to_owned())
    }
}

impl FromStr for Bandwidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "inf" {
            return Ok(Bandwidth::Infinite);
        }
        let times = multiple(text).map(Bandwidth::Times);
        let rate = || measured(text, &RATES).filter(|&rate| is_positive(rate));
        times.or_else(|| rate().map(Bandwidth::BytesPerSecond)).ok_or_else(|| {
            "expected a bandwidth, as 12GB/s or 100Gbit/s, a multiple, as x2, or inf".to_owned()
        })
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "inf" {
            return Ok(Size(u64::MAX));
        }
        let bytes = lapscope_data::options::scaled(text, "bytes");
        let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok());
        bytes.map(Size).ok_or_else(|| "expected bytes, as 65536 or 64k, or inf".to_owned())
    }
}

impl FromStr for Progress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let every = || time_ns(text.strip_prefix("every=")?).ok().filter(|&ns| ns >= 100.0);
        match text {
            "inside" => Ok(Progress::Inside),
            "async" => Ok(Progress::Async),
            _ => every().map(Progress::Every).ok_or_else(|| {
                "expected inside, async, or every=TIME, as every=1ms (100ns at least)".to_owned()
            }),
        }
    }
}

/// With the largest unit that leaves at least 1, as it can be typed again.
fn with_unit(value: f64, units: &[(&str, f64)]) -> String {
    let fits = |(_, factor): &&(&str, f64)| value >= *factor;
    let largest = units.iter().filter(fits).max_by(|a, b| a.1.total_cmp(&b.1));
    let (unit, factor) = largest.unwrap_or(&units[0]);
    format!("{}{unit}", value / factor)
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Latency::Nanoseconds(ns) => f.write_str(&with_unit(*ns, &TIMES)),
            Latency::Times(times) => write!(f, "x{times}"),
        }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bandwidth::BytesPerSecond(rate) => f.write_str(&with_unit(*rate, &RATES[..4])),
            Bandwidth::Times(times) => write!(f, "x{times}"),
            Bandwidth::Infinite => f.write_str("inf"),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("inf"),
            bytes => write!(f, "{bytes}"),
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Inside => f.write_str("inside"),
            Progress::Async => f.write_str("async"),
            Progress::Every(ns) => write!(f, "every={}", with_unit(*ns, &TIMES)),
        }
    }
}

/// As text in documents; in files also as a bare number (`eager-limit = 0`).
macro_rules! as_text {
    ($($type:ident),+) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = TextOrNumber::deserialize(deserializer)?.0;
                text.parse().map_err(|why| serde::de::Error::custom(format!("`{text}`: {why}")))
            }
        }
    )+};
}

as_text!(
    Latency, Bandwidth, Size, Protocol, Progress, Contention, Scope, WaitAt, PostAt, EveryTime
);

struct TextOrNumber(String);

impl<'de> Deserialize<'de> for TextOrNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected text or a number")]
        enum Either {
            Text(String),
            Whole(i64),
            Number(f64),
        }
        Ok(TextOrNumber(match Either::deserialize(deserializer)? {
            Either::Text(text) => text,
            Either::Whole(number) => number.to_string(),
            Either::Number(number) => number.to_string(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_are_read_as_they_are_shown() {
        let knob = |text: &str| text.parse::<Latency>().map(|latency| latency.to_string());
        assert_eq!(knob("2us"), Ok("2us".into()));
        assert_eq!(knob("1500 ns"), Ok("1.5us".into()));
        assert_eq!(knob("x0.5"), Ok("x0.5".into()));
        assert!(knob("2").unwrap_err().contains("2us") && knob("x-1").is_err());
        let rate = |text: &str| text.parse::<Bandwidth>().map(|rate| rate.to_string());
        assert_eq!(rate("100Gbit/s"), Ok("12.5GB/s".into()));
        assert_eq!(rate("950MB/s"), Ok("950MB/s".into()));
        assert!(rate("0B/s").is_err() && rate("fast").is_err());
        assert_eq!("64k".parse(), Ok(Size(65536)));
        assert_eq!("every=1ms".parse(), Ok(Progress::Every(1e6)));
        assert!("every=0s".parse::<Progress>().is_err());
        assert!("rdma".parse::<Protocol>().unwrap_err().contains("rendezvous-read"));
    }

    #[test]
    fn the_default_changes_nothing() {
        let named = Scenario { name: Some("as it is".into()), ..Scenario::default() };
        assert!(named.is_identity() && named.options().is_empty());
        let faster = Scenario { cpu: Some(1.2), balance: true, ..Scenario::default() };
        assert!(!faster.is_identity());
        assert_eq!(faster.options(), "--cpu 1.2 --balance");
        assert!(Scenario { cpu: Some(0.0), ..Scenario::default() }.check().is_err());
        let slower = Scenario { cpu: Some(0.5), on: Some(Scope::All), ..Scenario::default() };
        assert_eq!(faster.overlaid(&slower).options(), "--on all --cpu 0.5 --balance");
    }
}
