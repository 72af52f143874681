//! The model of the network fitted to a run: the protocol, what messages share, and the times, under which the replay of what was
//! recorded comes nearest to what was recorded.
//!
//! The identity replay is fitted, so it is no prediction: it says how much of the run a model with one number a size
//! class can explain. What the model says of what it was not fitted to is asked of the other half of the calls
//! (`held_out`), and the error beside each answer is the larger of both. Of protocols that are equally near, the
//! pipeline is taken: it promises least.

mod held_out;

use rayon::prelude::*;
use serde::Serialize;

pub(super) use self::held_out::Calls;

use crate::replay::scenario::{Contention, Protocol};
use crate::replay::{replay, Conditions, Durations, LocalityNetwork, Network, Outcome, Program};
use lapscope_measure::reference::{Reference, ReferenceSource};
use lapscope_measure::thresholds::{LimitVerdict, Threshold, Thresholds, WaitsFor};
use lapscope_trace::{Direction, Locality, Trace};

/// Steps on which protocols are told apart; of longer runs the first part.
const ENOUGH_STEPS: usize = 200_000;
/// Corrections of the times, each from a replay.
const ROUNDS: usize = 8;
/// How much of what a correction asks for is done at first.
const DAMPING: f64 = 0.7;
/// How much shorter and longer than first assumed corrections may make a time, as multiples: where it was calibrated, and else.
/// A run does not tell a message that takes long and is overlapped from one that does not and is not.
const CALIBRATED: (f64, f64) = (0.7, 1.4);
const OF_RUN: (f64, f64) = (0.25, f64::INFINITY);
/// So many bytes of a pipelined message at least are under way between its ends: a piece, and the sockets' buffers.
const PIECE: f64 = 131_072.0;
/// A choice is certain when the next best is off by this much more.
const CERTAIN: f64 = 1.2;

/// A network that fits a run.
#[derive(Debug, Clone)]
pub struct Fitted {
    pub network: Network,
    /// With other kinds of contention, under which the replay is about as near.
    pub others: Vec<Network>,
    pub contention_from: ContentionFrom,
    /// By locality.
    pub limits_from: [LimitFrom; Locality::ALL.len()],
    /// By locality: whether other protocols would fit worse.
    pub is_certain: [bool; Locality::ALL.len()],
    /// Messages by locality.
    pub messages: [u64; Locality::ALL.len()],
    /// How long half of the calls take, drawn at random, under a network that fits the other half, less what they took: for all
    /// calls, as a share of the run time of all ranks; `None`: too few calls.
    pub held_out_error: Option<f64>,
}

/// What an eager limit is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitFrom {
    /// The run's own sends show it.
    Run,
    /// They do not, and the MPI says it.
    Declared,
    /// Under it the replay is clearly nearest to the run.
    Fitted,
    /// Nothing tells: the usual one.
    Assumed,
}

/// What is known of what messages share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentionFrom {
    /// Several at once were measured.
    Calibration,
    /// Under it the replay is clearly nearest to the run.
    Fitted,
    /// The replay is about as near under others: of these the nearest.
    Assumed,
}

impl Fitted {
    /// Whether no message of a locality had nothing in between: how long they take is known from the waits alone.
    pub fn rests_on_waits(&self) -> bool {
        Locality::ALL.into_iter().any(|at| {
            self.messages[at as usize] > 0 && !self.network.localities[at as usize].is_measured
        })
    }
}

/// Fits the network to the run that `program` was made of.
pub fn fit(
    trace: &Trace,
    program: &Program,
    reference: &Reference,
    thresholds: &Thresholds,
    durations: &Durations,
) -> Fitted {
    let mut network = Network::from_reference(reference);
    let mut limits_from = Locality::ALL.map(|locality| {
        set_limits(&mut network.localities[locality as usize], thresholds, locality)
    });
    let messages = messages(trace);
    let sample = program.beginning(ENOUGH_STEPS);
    let within = match reference.source {
        ReferenceSource::Calibration { .. } => CALIBRATED,
        ReferenceSource::Run | ReferenceSource::None => OF_RUN,
    };
    let fitting = Fitting { trace, program: &sample, durations, of: Calls::All, within };
    let mut order: Vec<Locality> = Locality::ALL.into_iter().collect();
    order.sort_by_key(|&locality| std::cmp::Reverse(messages[locality as usize]));
    let present = order.into_iter().filter(|&locality| messages[locality as usize] > 0);
    let present: Vec<Locality> = present.collect();
    for &locality in &present {
        if limits_from[locality as usize] == LimitFrom::Assumed {
            limits_from[locality as usize] = fitting.choose_limit(&mut network, locality);
        }
    }
    let unfitted = network.clone();
    let allowed = contentions(reference, present.first().copied());
    let mut fitted = fitting.under_each(&network, &allowed, &present);
    let (least, mut network, is_certain) = fitted.remove(0);
    let contention = network.contention;
    let (held_out_error, ()) = rayon::join(
        || fitting.held_out_error(&unfitted, contention, &present),
        || fitting.correct_collectives(&mut network, trace),
    );
    let near = fitted.into_iter().filter(|(distance, ..)| distance.0 <= least.0 * CERTAIN);
    let others = near.map(|(_, other, _)| Network { collectives: network.collectives, ..other });
    let others: Vec<Network> = others.collect();
    let contention_from = match (allowed.len() < CONTENTIONS.len(), others.is_empty()) {
        _ if present.is_empty() => ContentionFrom::Assumed,
        (true, _) => ContentionFrom::Calibration,
        (false, true) => ContentionFrom::Fitted,
        (false, false) => ContentionFrom::Assumed,
    };
    Fitted { network, others, contention_from, limits_from, is_certain, messages, held_out_error }
}

/// Messages that are replayed, by locality, counted at their sends.
fn messages(trace: &Trace) -> [u64; Locality::ALL.len()] {
    let mut messages = [0; Locality::ALL.len()];
    for (place, rank) in trace.ranks.iter().enumerate() {
        for endpoint in &rank.endpoints {
            let operation = &rank.operations[endpoint.operation as usize];
            let is_matched = endpoint.partner != lapscope_trace::NONE;
            if let (Direction::Send, Some(peer), true) =
                (operation.direction, operation.peer, is_matched)
            {
                messages[trace.locality(place, peer as usize) as usize] += 1;
            }
        }
    }
    messages
}

/// The limits that the run's own sends show, or else the one that the MPI declares.
fn set_limits(
    network: &mut LocalityNetwork,
    thresholds: &Thresholds,
    locality: Locality,
) -> LimitFrom {
    let limit = |threshold: &Threshold| match threshold.verdict {
        LimitVerdict::Unclear | LimitVerdict::NoEvidence => None,
        LimitVerdict::AlwaysEager => Some(u64::MAX),
        LimitVerdict::AlwaysWaits => Some(0),
        LimitVerdict::Bracket | LimitVerdict::NotEnoughSizes => threshold.largest_eager_bytes,
    };
    let found = thresholds.localities.iter().find(|found| found.locality == locality);
    let rendezvous = found.and_then(|found| limit(&found.rendezvous));
    let progress = found.and_then(|found| limit(&found.needs_receiver_progress));
    let shown = rendezvous.or(progress);
    let declared = found.and_then(|found| found.declared.as_ref()?.bytes);
    let eager = shown.or(declared).unwrap_or(ASSUMED_EAGER_LIMIT);
    network.progress_limit = progress.unwrap_or(eager).min(eager);
    // what MPI keeps up to a limit of its own, and what waits all the same, waits for its receiver, not for the receive
    let waits_for_receiver = found.is_some_and(|found| found.waits_for == WaitsFor::Receiver);
    network.eager_limit = eager.max(declared.filter(|_| waits_for_receiver).unwrap_or(0));
    network.recorded_eager_limit = network.progress_limit;
    match (shown, declared) {
        (Some(_), _) => LimitFrom::Run,
        (None, Some(_)) => LimitFrom::Declared,
        (None, None) => LimitFrom::Assumed,
    }
}

/// Where the run shows none: what most MPIs have.
const ASSUMED_EAGER_LIMIT: u64 = 65_536;

/// All kinds, the simplest first: of equally near ones that is taken.
const CONTENTIONS: [Contention; 4] =
    [Contention::None, Contention::Rank, Contention::Node, Contention::Shared];

/// Those that a calibration allows between ranks of the locality of most messages; all where it does not say. What shares nothing,
/// as there are no messages, is fitted once.
fn contentions(reference: &Reference, of_most: Option<Locality>) -> Vec<Contention> {
    let Some(of_most) = of_most else {
        return vec![Contention::None];
    };
    let Some(sharing) = reference.sharing(of_most) else {
        return CONTENTIONS.to_vec();
    };
    // one after the other, `several` take 4 times as long as one, and two that share a medium twice as long
    let is_possible = |contention: &Contention| match contention {
        Contention::None => sharing.several < 3.0 && sharing.both_ways < 1.75,
        Contention::Rank | Contention::Node => sharing.several > 1.5 && sharing.both_ways < 1.75,
        Contention::Shared => sharing.both_ways > 1.25,
    };
    CONTENTIONS.into_iter().filter(is_possible).collect()
}

/// How far a replay is from the record: nanoseconds, over all calls and ranks.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct Distance(f64);

struct Fitting<'a> {
    trace: &'a Trace,
    program: &'a Program,
    durations: &'a Durations,
    /// What the network is fitted to.
    of: Calls,
    /// [`CALIBRATED`] or [`OF_RUN`].
    within: (f64, f64),
}

impl Fitting<'_> {
    fn replay(&self, network: &Network) -> Outcome {
        let conditions = Conditions::as_recorded(self.trace.ranks.len());
        replay(self.trace, self.program, network, &conditions, self.durations)
    }

    /// Distance in single waits, and in their sum and the run time: what is too long in one place does not make up for
    /// another one, and a model that is right on the whole is better than one that is not.
    fn distance(&self, network: &Network) -> Distance {
        self.distance_of(&self.replay(network))
    }

    fn distance_of(&self, outcome: &Outcome) -> Distance {
        let (mut single, mut sum) = (0.0, 0.0);
        for (rank, replayed) in self.trace.ranks.iter().zip(&outcome.ranks) {
            for (place, (call, time)) in rank.calls.iter().zip(&replayed.calls).enumerate() {
                if let Some(duration) = time.duration.get().filter(|_| self.of.has(place)) {
                    let difference = (duration - call.duration) as f64;
                    single += difference.abs();
                    sum += difference;
                }
            }
        }
        let mut distance = single + sum.abs();
        let is_all = self.program.is_whole && self.of == Calls::All;
        if let Some(run) = outcome.run_ns(self.trace).filter(|_| is_all) {
            distance += (run - self.trace.run_ns()).abs() as f64 * self.trace.ranks.len() as f64;
        }
        // the beginning of a run leaves waits behind whose partners are cut off
        let never = if self.program.is_whole { outcome.stuck.len() } else { 0 };
        Distance(distance * (1.0 + never as f64))
    }

    /// Where sends show no limit and the MPI says none: the usual one, unless the replay is clearly nearer under another one.
    fn choose_limit(&self, network: &mut Network, locality: Locality) -> LimitFrom {
        // that MPI buffers any size is shown by sends that return, or not at all: it explains away whatever a receiver is late
        const CANDIDATES: [u64; 3] = [ASSUMED_EAGER_LIMIT, 4_096, 1_048_576];
        let with = |limit: u64| {
            let mut candidate = network.clone();
            let of_locality = &mut candidate.localities[locality as usize];
            (of_locality.eager_limit, of_locality.recorded_eager_limit) = (limit, limit);
            of_locality.progress_limit = limit;
            candidate
        };
        let distance = |&limit: &u64| (self.distance(&with(limit)).0, limit);
        let all: Vec<(f64, u64)> = CANDIDATES.par_iter().map(distance).collect();
        let usual = all[0].0 / CERTAIN;
        let nearer = all.into_iter().filter(|&(distance, _)| distance < usual);
        let best = nearer.min_by(|a, b| a.0.total_cmp(&b.0));
        *network = with(best.map_or(ASSUMED_EAGER_LIMIT, |(_, limit)| limit));
        best.map_or(LimitFrom::Assumed, |_| LimitFrom::Fitted)
    }

    /// Takes the protocol under which the replay is nearest; whether it is much nearer than under any other.
    fn choose_protocol(&self, network: &mut Network, locality: Locality) -> bool {
        let place = locality as usize;
        let largest = network.localities[place].points.last().map_or(0.0, |point| point.1);
        let piece = PIECE * network.localities[place].gap_per_byte;
        let candidates = [
            (Protocol::Pipeline, piece as i64),
            (Protocol::Pipeline, (largest / 8.0).max(piece) as i64),
            (Protocol::RendezvousWrite, 0),
            (Protocol::RendezvousRead, 0),
        ];
        let with = |(protocol, buffered_ns)| {
            let mut candidate = network.clone();
            candidate.localities[place].protocol = protocol;
            candidate.localities[place].buffered_ns = buffered_ns;
            (self.distance(&candidate), candidate)
        };
        let mut found: Vec<(Distance, Network)> = candidates.into_par_iter().map(with).collect();
        found.sort_by(|a, b| a.0 .0.total_cmp(&b.0 .0));
        let best = found[0].1.localities[place].protocol;
        let others = found.iter().filter(|(_, other)| other.localities[place].protocol != best);
        let next = others.map(|(distance, _)| distance.0).fold(f64::INFINITY, f64::min);
        let is_certain = next > found[0].0 .0 * CERTAIN;
        *network = found.swap_remove(0).1;
        is_certain
    }

    /// The network with the protocols and times that fit best under each kind of contention, the nearest first; whether the
    /// protocols are certain.
    fn under_each(
        &self,
        network: &Network,
        contentions: &[Contention],
        present: &[Locality],
    ) -> Vec<(Distance, Network, [bool; Locality::ALL.len()])> {
        let under = |&contention: &Contention| {
            let mut network = Network { contention, ..network.clone() };
            let mut is_certain = [false; Locality::ALL.len()];
            for &locality in present {
                is_certain[locality as usize] = self.choose_protocol(&mut network, locality);
            }
            let distance = self.correct_times(&mut network);
            (distance, network, is_certain)
        };
        let mut all: Vec<_> = contentions.par_iter().map(under).collect();
        all.sort_by(|a, b| a.0 .0.total_cmp(&b.0 .0));
        all
    }

    /// Brings the times by size to those under which waits take, on the mean, what they took. Waits depend on each other, so a
    /// correction may be too much: then it is made again by half.
    fn correct_times(&self, network: &mut Network) -> Distance {
        let first = network.clone();
        let outcome = self.replay(network);
        let mut distance = self.distance_of(&outcome);
        let mut wanted = self.differences(&outcome);
        drop(outcome);
        let mut part = DAMPING;
        for _ in 0..ROUNDS {
            if wanted.iter().all(Vec::is_empty) {
                break;
            }
            let mut corrected = network.clone();
            for (place, sizes) in wanted.iter().enumerate() {
                let measured = &first.localities[place];
                let corrected = &mut corrected.localities[place];
                correct(corrected, (measured, self.within), sizes, part);
            }
            let outcome = self.replay(&corrected);
            let reached = self.distance_of(&outcome);
            if reached < distance {
                (distance, *network) = (reached, corrected);
                wanted = self.differences(&outcome);
            } else {
                part /= 2.0;
            }
        }
        distance
    }

    /// Brings the times of collectives, all by the same factor, to where the replay is nearest: who leaves one late need not delay
    /// anybody.
    fn correct_collectives(&self, network: &mut Network, trace: &Trace) {
        // of equally near ones the first
        const FACTORS: [f64; 7] = [1.0, 0.5, 0.7, 0.85, 0.93, 1.07, 1.15];
        if trace.collectives.is_empty() {
            return;
        }
        let with = |&collectives: &f64| {
            (self.distance(&Network { collectives, ..network.clone() }), collectives)
        };
        let all: Vec<(Distance, f64)> = FACTORS.par_iter().map(with).collect();
        let nearest =
            |best: (Distance, f64), it: (Distance, f64)| if it.0 < best.0 { it } else { best };
        network.collectives = all.into_iter().reduce(nearest).map_or(1.0, |best| best.1);
    }

    /// By locality and size class: the size, and how much longer than replayed those calls took that waited for such a message.
    fn differences(&self, outcome: &Outcome) -> Vec<Vec<(f64, f64)>> {
        const CLASSES: usize = 65;
        let mut all = vec![vec![Vec::<(f64, f64)>::new(); CLASSES]; Locality::ALL.len()];
        for (place, (rank, replayed)) in self.trace.ranks.iter().zip(&outcome.ranks).enumerate() {
            for (index, (call, time)) in rank.calls.iter().zip(&replayed.calls).enumerate() {
                let counted = time.duration.get().filter(|_| self.of.has(index));
                let Some(duration) = counted else { continue };
                let Some(endpoint) = rank.endpoints.get(time.endpoint as usize) else { continue };
                let operation = &rank.operations[endpoint.operation as usize];
                let is_message =
                    matches!(operation.direction, Direction::Send | Direction::Receive);
                let Some(peer) = operation.peer.filter(|_| is_message) else { continue };
                let locality = self.trace.locality(place, peer as usize) as usize;
                let bytes = operation.bytes.0;
                let class = (u64::BITS - bytes.leading_zeros()) as usize;
                let difference = (call.duration - duration) as f64;
                all[locality][class].push((difference, bytes as f64));
            }
        }
        let of_class = |mut found: Vec<(f64, f64)>| {
            const FEWEST: usize = 3;
            if found.len() < FEWEST {
                return None;
            }
            found.sort_by(|a, b| a.0.total_cmp(&b.0));
            // what a processor that was away adds to a few is none of the network's
            let cut = found.len() / 10;
            let kept = &found[cut..found.len() - cut];
            let mean =
                |of: fn(&(f64, f64)) -> f64| kept.iter().map(of).sum::<f64>() / kept.len() as f64;
            Some((mean(|pair| pair.1), mean(|pair| pair.0)))
        };
        let of_locality = |classes: Vec<Vec<(f64, f64)>>| {
            classes.into_iter().filter_map(of_class).collect::<Vec<_>>()
        };
        all.into_iter().map(of_locality).collect()
    }
}

/// Changes the times of a locality by what sizes near to each ask for.
fn correct(
    network: &mut LocalityNetwork,
    (measured, within): (&LocalityNetwork, (f64, f64)),
    wanted: &[(f64, f64)],
    part: f64,
) {
    for &(bytes, _) in wanted {
        let is_near = |&(size, _): &(f64, f64)| size <= bytes * 1.5 && bytes <= size * 1.5;
        if !network.points.iter().any(is_near) {
            let time = network.time(bytes as u64);
            network.points.push((bytes, time));
            network.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
    for (bytes, time) in &mut network.points {
        let distance = |&&(size, _): &&(f64, f64)| (size.max(1.0) / bytes.max(1.0)).ln().abs();
        let nearest = wanted.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let Some(nearest) = nearest.filter(|near| distance(near) < 0.7) else { continue };
        let measured = measured.time(*bytes as u64);
        let (least, most) = (measured * within.0, (measured * within.1).max(1.0));
        *time = (*time + part * nearest.1).clamp(least.min(most), most);
    }
    let mut longest = 0.0;
    for (_, time) in &mut network.points {
        longest = f64::max(longest, *time);
        *time = longest;
    }
    network.set_bandwidth();
    if let Some(&(_, least)) = network.points.first() {
        network.latency = network.latency.min(least);
    }
}
