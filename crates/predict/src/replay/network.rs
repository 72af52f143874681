//! How long messages take, and which way they go: a model of the network, fitted to a run and changed by a scenario.

use super::scenario::{Bandwidth, Contention, Latency, Progress, Protocol, Scenario, Scope};
use lapscope_data::model::Mode;
use lapscope_measure::reference::Reference;
use lapscope_trace::Locality;

/// Time by size: what an undisturbed message takes from the post of its send to the completion of its receive, nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalityNetwork {
    /// One way, L of LogGPS with the overheads of both ends.
    pub latency: f64,
    /// Bytes and times, both rising. Between them linear, beyond the last by `gap_per_byte`.
    pub points: Vec<(f64, f64)>,
    /// Nanoseconds a byte of the largest sizes: G.
    pub gap_per_byte: f64,
    /// The largest message that needs no receive.
    pub eager_limit: u64,
    /// The largest message that waited for nobody in the recorded run: sends up to it have taken what they take.
    pub recorded_eager_limit: u64,
    /// The largest message whose send is complete although the receiver was not inside MPI; not above `eager_limit`.
    pub progress_limit: u64,
    /// Above the eager limit.
    pub protocol: Protocol,
    /// `Protocol::Pipeline`: what moves without the one or the other host, nanoseconds of wire time.
    pub buffered_ns: i64,
    /// Whether `latency` and `points` are measured, not assumed.
    pub is_measured: bool,
}

/// A network, and what MPI makes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    pub localities: [LocalityNetwork; Locality::ALL.len()],
    pub contention: Contention,
    pub progress: Progress,
    /// What collectives take, as a multiple of what they took.
    pub collectives: f64,
    /// What a copy takes, nanoseconds a byte: of a send that becomes eager.
    pub copy_per_byte: f64,
}

/// How one message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// One way, nanoseconds.
    pub latency: i64,
    /// On the link, nanoseconds.
    pub wire: i64,
    /// [`LocalityNetwork::buffered_ns`].
    pub buffered: i64,
    pub protocol: Protocol,
    /// An eager send that is complete when its receiver was inside MPI.
    pub needs_progress: bool,
    /// It was eager in the recorded run, too, so that a blocking send takes what it took.
    pub was_eager: bool,
    /// It is sent from a copy, so that it is complete at once however the message goes.
    pub is_copied: bool,
}

/// Control messages and data one after the other, each one latency.
fn trips(protocol: Protocol) -> f64 {
    match protocol {
        Protocol::Eager => 1.0,
        Protocol::RendezvousWrite
        | Protocol::RendezvousRead
        | Protocol::Pipeline
        | Protocol::Speculative => 3.0,
    }
}

impl LocalityNetwork {
    /// Where nothing was measured: 1 µs, 10 GB/s.
    pub const ASSUMED: LocalityNetwork = LocalityNetwork {
        latency: 1_000.0,
        points: Vec::new(),
        gap_per_byte: 0.1,
        eager_limit: u64::MAX,
        recorded_eager_limit: u64::MAX,
        progress_limit: u64::MAX,
        protocol: Protocol::RendezvousRead,
        buffered_ns: 0,
        is_measured: false,
    };

    /// From the measured times of a locality; assumed ones where there are none.
    pub fn from_reference(reference: &Reference, locality: Locality) -> LocalityNetwork {
        let measured = reference.points(locality);
        let points: Vec<(f64, f64)> =
            measured.iter().map(|point| (point.bytes, point.ns.max(1.0))).collect();
        let Some(&(_, least)) = points.first() else { return Self::ASSUMED };
        LocalityNetwork {
            latency: least,
            gap_per_byte: slope(&points).unwrap_or(Self::ASSUMED.gap_per_byte),
            points,
            is_measured: true,
            ..Self::ASSUMED
        }
    }

    /// What a message takes with nothing in between.
    pub fn time(&self, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        let next = self.points.partition_point(|&(size, _)| size < bytes);
        match (next.checked_sub(1).map(|last| self.points[last]), self.points.get(next)) {
            (Some((a, time_a)), Some(&(b, time_b))) => {
                time_a + (time_b - time_a) * (bytes - a) / (b - a)
            }
            (Some((size, time)), None) => time + (bytes - size) * self.gap_per_byte,
            (None, Some(&(size, time))) => {
                self.latency.min(time) + (time - self.latency.min(time)) * bytes / size.max(1.0)
            }
            (None, None) => self.latency + bytes * self.gap_per_byte,
        }
    }

    /// Takes the bandwidth from the times, after these were changed.
    pub fn set_bandwidth(&mut self) {
        let of_one = || {
            let &(bytes, time) = self.points.last().filter(|point| point.0 > 0.0)?;
            Some((time - self.latency) / bytes).filter(|gap| *gap > 0.0)
        };
        self.gap_per_byte = slope(&self.points).or_else(of_one).unwrap_or(self.gap_per_byte);
    }

    fn plan(&self, bytes: u64, mode: Mode) -> Plan {
        let is_eager = mode != Mode::Synchronous && bytes <= self.eager_limit;
        let is_copied = mode == Mode::Buffered;
        let protocol = if is_eager { Protocol::Eager } else { self.protocol };
        // the times are of the recorded run: what was on the wire there is so under another protocol, too
        let recorded = match bytes <= self.recorded_eager_limit {
            true => Protocol::Eager,
            false => Protocol::RendezvousRead,
        };
        let wire = match self.points.is_empty() {
            true => bytes as f64 * self.gap_per_byte,
            false => self.time(bytes) - trips(recorded) * self.latency,
        };
        Plan {
            latency: self.latency.round() as i64,
            wire: wire.max(0.0).round() as i64,
            buffered: self.buffered_ns,
            protocol,
            was_eager: is_copied || bytes <= self.recorded_eager_limit,
            needs_progress: is_eager && !is_copied && bytes > self.progress_limit,
            is_copied,
        }
    }

    /// With what a scenario says of messages of this locality.
    fn change(&mut self, scenario: &Scenario) {
        self.change_times(scenario);
        if let Some(limit) = scenario.eager_limit {
            // what is eager in the scenario is complete at once; who asks for that does not ask for half of it
            (self.eager_limit, self.progress_limit) = (limit.0, limit.0);
        }
        match scenario.protocol {
            Some(Protocol::Eager) => {
                (self.eager_limit, self.progress_limit) = (u64::MAX, u64::MAX);
            }
            Some(protocol) => self.protocol = protocol,
            None => {}
        }
    }

    fn change_times(&mut self, scenario: &Scenario) {
        let latency = match scenario.latency {
            None => self.latency,
            Some(Latency::Nanoseconds(ns)) => ns,
            Some(Latency::Times(times)) => self.latency * times,
        };
        let rate = self.gap_per_byte;
        let gap_per_byte = match scenario.bandwidth {
            None => rate,
            Some(Bandwidth::Infinite) => 0.0,
            Some(Bandwidth::BytesPerSecond(rate)) => 1e9 / rate,
            Some(Bandwidth::Times(times)) => rate / times,
        };
        let old = self.clone();
        for (bytes, time) in &mut self.points {
            let trips = trips(old.plan(*bytes as u64, Mode::Standard).protocol);
            // below 0 where a message took less than so many trips: a knob that stays where it was changes nothing there either
            let other = *time - trips * old.latency - *bytes * rate;
            // what is neither latency nor bandwidth, such as copies, stays; an ideal network has none of it
            let other = if gap_per_byte == 0.0 { 0.0 } else { other };
            *time = (trips * latency + *bytes * gap_per_byte + other).max(latency);
        }
        let shrink = if rate > 0.0 { gap_per_byte / rate } else { 1.0 };
        self.buffered_ns = (self.buffered_ns as f64 * shrink) as i64;
        (self.latency, self.gap_per_byte) = (latency, gap_per_byte);
    }
}

/// Nanoseconds a byte between the largest size and the first that is at least a quarter of it.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    const PART: f64 = 4.0;
    let &(most, time) = points.last()?;
    let &(least, before) = points.iter().find(|&&(bytes, _)| bytes * PART >= most)?;
    let &(least, before) = match least < most {
        true => &(least, before),
        false => points.iter().rev().nth(1)?,
    };
    Some((time - before) / (most - least)).filter(|slope| slope.is_finite() && *slope > 0.0)
}

impl Network {
    /// As the run's reference times have it, with one protocol for all.
    pub fn from_reference(reference: &Reference) -> Network {
        Network {
            localities: Locality::ALL
                .map(|locality| LocalityNetwork::from_reference(reference, locality)),
            contention: Contention::None,
            progress: Progress::Inside,
            collectives: 1.0,
            copy_per_byte: 0.1,
        }
    }

    /// As a scenario has it; `has_network`: whether the run has messages between nodes.
    pub fn with(&self, scenario: &Scenario, has_network: bool) -> Network {
        let mut changed = self.clone();
        let scope = scenario.on.unwrap_or(match has_network {
            true => Scope::Network,
            false => Scope::Node,
        });
        for locality in Locality::ALL {
            let is_meant = match scope {
                Scope::Node => locality == Locality::Node,
                Scope::Network => locality == Locality::Network,
                Scope::All => true,
            };
            if is_meant {
                changed.localities[locality as usize].change(scenario);
            }
        }
        changed.collectives *= self.collectives_change(&changed, has_network);
        changed.contention = scenario.contention.unwrap_or(self.contention);
        changed.progress = scenario.progress.unwrap_or(self.progress);
        changed
    }

    /// Collectives of a size of their own take rounds of small messages: their time goes with that of one.
    fn collectives_change(&self, changed: &Network, has_network: bool) -> f64 {
        const BYTES: u64 = 1_024;
        let locality = if has_network { Locality::Network } else { Locality::Node } as usize;
        let [old, new] = [self, changed].map(|network| network.localities[locality].time(BYTES));
        if old > 0.0 {
            new / old
        } else {
            1.0
        }
    }

    pub fn plan(&self, locality: Locality, bytes: u64, mode: Mode) -> Plan {
        self.localities[locality as usize].plan(bytes, mode)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::Size;
    use super::*;

    fn network() -> Network {
        let node = LocalityNetwork {
            latency: 1_000.0,
            points: vec![(0.0, 1_000.0), (1_000.0, 2_000.0), (100_000.0, 103_000.0)],
            gap_per_byte: 1.0,
            eager_limit: 4_096,
            recorded_eager_limit: 4_096,
            is_measured: true,
            ..LocalityNetwork::ASSUMED
        };
        let localities = [LocalityNetwork::ASSUMED, node, LocalityNetwork::ASSUMED];
        let empty = Network::from_reference(&Reference::default());
        Network { localities, ..empty }
    }

    #[test]
    fn what_is_no_latency_is_on_the_wire() {
        let plan = |bytes| network().plan(Locality::Node, bytes, Mode::Standard);
        assert_eq!(
            (plan(500).protocol, plan(500).latency, plan(500).wire),
            (Protocol::Eager, 1_000, 500)
        );
        let large = plan(100_000);
        assert_eq!((large.protocol, large.wire), (Protocol::RendezvousRead, 100_000));
        assert_eq!(plan(200_000).wire, 200_000);
        let small = network().plan(Locality::Node, 8, Mode::Synchronous);
        assert_eq!((small.protocol, small.wire), (Protocol::RendezvousRead, 8));
        let all_eager = Scenario { eager_limit: Some(Size(1 << 20)), ..Scenario::default() };
        let plan = network().with(&all_eager, false).plan(Locality::Node, 100_000, Mode::Standard);
        assert_eq!((plan.protocol, plan.wire), (Protocol::Eager, large.wire));
    }

    #[test]
    fn a_scenario_changes_the_part_that_it_names() {
        let with = |scenario: Scenario| network().with(&scenario, false);
        let quick = Scenario { latency: Some(Latency::Nanoseconds(100.0)), ..Scenario::default() };
        let plan = with(quick).plan(Locality::Node, 100_000, Mode::Standard);
        assert_eq!((plan.latency, plan.wire), (100, 100_000));
        let wide = Scenario { bandwidth: Some(Bandwidth::Times(2.0)), ..Scenario::default() };
        let plan = with(wide.clone()).plan(Locality::Node, 100_000, Mode::Standard);
        assert_eq!((plan.latency, plan.wire), (1_000, 50_000));
        let elsewhere = Scenario { on: Some(Scope::Network), ..wide };
        assert_eq!(with(elsewhere).localities[1], network().localities[1]);
        let none = Scenario { eager_limit: Some(Size(0)), ..Scenario::default() };
        let plan = with(none).plan(Locality::Node, 8, Mode::Standard);
        assert_eq!(plan.protocol, Protocol::RendezvousRead);
    }

    #[test]
    fn a_knob_that_stays_where_it_was_changes_nothing() {
        let mut short = network();
        // less than three trips, above the eager limit
        short.localities[1].points = vec![(0.0, 1_000.0), (8_192.0, 2_000.0), (1e6, 1_010_000.0)];
        let same = Scenario {
            latency: Some(Latency::Times(1.0)),
            bandwidth: Some(Bandwidth::Times(1.0)),
            ..Scenario::default()
        };
        assert_eq!(short.with(&same, false), short);
        let none = network().localities[0].clone();
        // of what was not measured, bytes are all that the wire takes
        assert_eq!(none.plan(1_000, Mode::Synchronous).wire, 100);
    }
}
