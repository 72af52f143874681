//! The most that any cure of a run's communication can bring, for its report.

use std::collections::BTreeSet;

use serde::Serialize;

use super::buffering::{hands_out_work, may_keep, nothing_kept};
use super::document::larger;
use super::fit::fit;
use super::standard::{balanced_load, ideal_network, perfect_progress};
use super::uneven::{ComputingWait, UnevenWorks};
use crate::replay::collective::is_replayed as is_replayed_whole;
use crate::replay::replayed::is_replayed;
use crate::replay::scenario::Scenario;
use crate::replay::work::even;
use crate::replay::{replay, Conditions, Durations, Network, Outcome, Program};
use lapscope_data::model::{Kind, Nanos};
use lapscope_measure::reference::Reference;
use lapscope_measure::thresholds::Thresholds;
use lapscope_trace::{Direction, Locality, RankTrace, Trace};

/// Run times of replays; keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunTimeBounds {
    /// From the first return of MPI_Init to the last entry of MPI_Finalize.
    pub recorded_ns: Nanos,
    /// The run replayed with nothing changed.
    pub identity_ns: Nanos,
    /// Difference of `identity_ns` from `recorded_ns`, as a share of the latter.
    pub identity_error: f64,
    /// The same of calls that the model was not fitted to: [`Fitted::held_out_error`](super::fit::Fitted); `None`: too few calls.
    pub held_out_error: Option<f64>,
    /// The same without what recording took: what the next two are compared with.
    pub base_ns: Nanos,
    /// With messages that move as soon as they can, whatever their ends do; `None`: not known, as where the replay is off by more
    /// than [`MOST_ERROR`].
    pub perfect_progress_ns: Option<Nanos>,
    /// The same where messages share more of their way than the run needs to show; `None`: that is all that they may share.
    pub perfect_progress_high_ns: Option<Nanos>,
    /// The same with messages that take no time; `None`: not known.
    pub ideal_network_ns: Option<Nanos>,
    /// With every rank computing as long as the mean of all; `None`: not known.
    pub balanced_load_ns: Option<Nanos>,
    /// The share of its run time that a rank, at most, is in communication whose durations no network changes: they are as recorded,
    /// as nothing tells whom it waits for.
    #[serde(skip)]
    pub kept_share: f64,
    /// Whether the times of messages are fitted to the waits alone; then the run may become faster than these two.
    pub rests_on_waits: bool,
    /// Whether ranks fetch from a counter in a window, as programs do that hand out work while they run: in a replay each rank has
    /// the work that it had.
    pub hands_out_work: bool,
}

/// What a report has replayed.
#[derive(Debug)]
pub struct ReportReplays {
    pub bounds: RunTimeBounds,
    /// Where MPI keeps no message; `None`: it kept none.
    pub unbuffered: Option<Outcome>,
    program: Program,
    network: Network,
    durations: Durations,
}

/// A replay that is further from the record, as a share of it, is no ground for a prediction.
pub const MOST_ERROR: f64 = 0.05;

/// Runs with more endpoints are not replayed for a report: that takes longer than all the rest of it.
const MOST_ENDPOINTS: u64 = 2_000_000;

/// Whether a report on so many requests, blocking messages and collectives would wait for its bounds longer than for all the rest of it.
pub fn is_too_large(endpoints: u64) -> bool {
    endpoints > MOST_ENDPOINTS
}

/// Replays a run as it was, with perfect progress, with an ideal network, and with even work. `None`: nothing of it can be replayed, or it does
/// not end when it is replayed as it was.
pub fn bounds(
    trace: &Trace,
    reference: &Reference,
    thresholds: &Thresholds,
) -> Option<ReportReplays> {
    let program = Program::new(trace);
    let durations = Durations::measure(trace);
    let fitted = fit(trace, &program, reference, thresholds, &durations);
    let has_messages = fitted.messages.iter().any(|&messages| messages > 0);
    // what blocks takes as long whoever moves it: of blocking collectives alone progress is not asked
    let moves = has_messages || trace.ranks.iter().any(|rank| has_others(trace, rank));
    if !moves && !trace.collectives.iter().any(|collective| is_replayed_whole(trace, collective)) {
        return None;
    }
    let has_network = fitted.messages[Locality::Network as usize] > 0;
    let run_ns = |network: &Network, conditions: &Conditions| {
        replay(trace, &program, network, conditions, &durations).run_ns(trace).map(Nanos)
    };
    let under = |network: &Network, scenario: &Scenario| {
        let network = network.with(scenario, has_network);
        run_ns(&network, &Conditions::under(scenario, &program))
    };
    let recorded_ns = Nanos(trace.run_ns());
    let as_it_was = fitted.network.with(&Scenario::default(), has_network);
    let as_recorded = Conditions::as_recorded(trace.ranks.len());
    // two at a time: each takes memory by the run
    let (identity_ns, base_ns) = rayon::join(
        || run_ns(&as_it_was, &as_recorded),
        || under(&fitted.network, &Scenario::default()),
    );
    let (identity_ns, base_ns) = (identity_ns?, base_ns?);
    let identity_error = (identity_ns - recorded_ns).share_of(recorded_ns);
    let is_near = identity_error.abs() <= MOST_ERROR;
    if !moves && !is_near {
        return None;
    }
    let predicted =
        |scenario: &Scenario| is_near.then(|| under(&fitted.network, scenario)).flatten();
    let moved = |scenario: &Scenario| moves.then(|| predicted(scenario)).flatten();
    let kept_share = kept_ns(trace).share_of(recorded_ns);
    let in_progress = || {
        let progress = moved(&perfect_progress());
        let others = fitted.others.iter().filter(|_| progress.is_some());
        let others = others.filter_map(|other| under(other, &perfect_progress()));
        progress.into_iter().chain(others).collect::<Vec<Nanos>>()
    };
    let in_other_ways = || {
        let unbuffered = may_keep(trace).then(|| {
            let network = fitted.network.with(&nothing_kept(), has_network);
            replay(trace, &program, &network, &as_recorded, &durations)
        });
        let ideal = predicted(&ideal_network()).filter(|_| kept_share <= MOST_ERROR);
        (unbuffered, ideal, predicted(&balanced_load()).filter(|_| program.may_be_evened()))
    };
    let (in_progress, others) = rayon::join(in_progress, in_other_ways);
    let (unbuffered, ideal_network_ns, balanced_load_ns) = others;
    let (least, most) = (in_progress.iter().min().copied(), in_progress.iter().max().copied());
    let bounds = RunTimeBounds {
        recorded_ns,
        identity_ns,
        identity_error,
        held_out_error: fitted.held_out_error,
        base_ns,
        perfect_progress_ns: least,
        perfect_progress_high_ns: most.filter(|_| most > least),
        ideal_network_ns,
        balanced_load_ns,
        kept_share,
        rests_on_waits: fitted.rests_on_waits(),
        hands_out_work: hands_out_work(trace),
    };
    let network = fitted.network.with(&Scenario::default(), has_network);
    Some(ReportReplays { bounds, unbuffered, program, network, durations })
}

/// How long a rank, at most, is in calls that communicate and are not replayed, as MPI_Scan.
fn kept_ns(trace: &Trace) -> Nanos {
    let of_rank = |rank: &RankTrace| -> i64 {
        let kept = rank.endpoints.iter().filter(|endpoint| {
            let operation = &rank.operations[endpoint.operation as usize];
            let communicates =
                operation.direction != Direction::None || operation.kind == Kind::Rma;
            communicates && !is_replayed(trace, endpoint, operation)
        });
        let calls: BTreeSet<u32> = kept.map(|endpoint| endpoint.call).collect();
        let durations = calls.into_iter().filter_map(|call| rank.calls.get(call as usize));
        durations.map(|call| call.duration).sum()
    };
    Nanos(trace.ranks.iter().map(of_rank).max().unwrap_or(0))
}

/// Whether non-blocking collectives or one-sided calls of a rank are replayed.
fn has_others(trace: &Trace, rank: &RankTrace) -> bool {
    rank.endpoints.iter().any(|endpoint| {
        let operation = &rank.operations[endpoint.operation as usize];
        let is_collective = operation.is_request && operation.direction == Direction::Collective;
        (is_collective || operation.kind == Kind::Rma) && is_replayed(trace, endpoint, operation)
    })
}

impl ReportReplays {
    /// Whose work makes others wait, and what even work there gains, as far as the replay is near enough to the record.
    pub fn uneven_works(&self, trace: &Trace, waits: &[ComputingWait]) -> UnevenWorks {
        let mut found = UnevenWorks::find(trace, &self.program, waits);
        let is_near = self.bounds.error() <= MOST_ERROR;
        for work in found.works.iter_mut().filter(|_| is_near) {
            let evened = even(trace, &self.program, work.region);
            let conditions = Conditions::under(&Scenario::default(), &self.program);
            let run_ns = evened.and_then(|program| {
                replay(trace, &program, &self.network, &conditions, &self.durations).run_ns(trace)
            });
            work.gain = run_ns.map(|run_ns| self.bounds.gain(Nanos(run_ns)));
        }
        found
    }
}

impl RunTimeBounds {
    /// The error to reckon with, as a share.
    pub fn error(&self) -> f64 {
        larger(self.identity_error, self.held_out_error)
    }

    /// The share of its run time that the run takes on an ideal network, and the error of that. `None`: the replay is no ground for
    /// it, or an estimate at best.
    pub fn on_ideal_network(&self) -> Option<(f64, f64)> {
        let is_sure = self.error() <= MOST_ERROR && !self.rests_on_waits;
        let ideal = self.ideal_network_ns.filter(|_| is_sure)?;
        Some((1.0 - self.gain(ideal), self.error() + self.kept_share))
    }

    /// What a scenario with that run time saves, as a share of the run time; negative: it is slower.
    pub fn gain(&self, run_ns: Nanos) -> f64 {
        (self.base_ns - run_ns).share_of(self.base_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whatif::fit::Calls;
    use lapscope_trace::made_up::MadeUp;

    const STEPS: usize = 200;
    const COMPUTATION: i64 = 5_000;

    /// Two ranks that answer each other; a message takes what `time` says of the receiving call's place among those of its rank.
    fn answers(time: impl Fn(usize) -> i64) -> RunTimeBounds {
        let mut run = MadeUp::new(2);
        for step in 0..STEPS {
            for (rank, receive) in [(0, 2 * step), (1, 2 * step + 1)] {
                let other = 1 - rank;
                run.compute(rank, COMPUTATION);
                let arrives = run.now(rank) + time(receive);
                run.send(rank, 1, other, 1_000, 100);
                run.receive_until(other, 2, rank, 1_000, arrives);
            }
        }
        of(run)
    }

    fn of(run: MadeUp) -> RunTimeBounds {
        of_trace(run.finish())
    }

    fn of_trace(trace: Trace) -> RunTimeBounds {
        let reference = Reference::default();
        let thresholds = Thresholds::find(&trace, &reference, &[], Vec::new());
        bounds(&trace, &reference, &thresholds).expect("it can be replayed").bounds
    }

    #[test]
    fn the_error_is_that_of_calls_that_nothing_was_fitted_to() {
        let constant = answers(|_| 2_000);
        assert!(constant.error() < 0.01, "{constant:?}");
        // as if nothing but the calls that are drawn were quick: a model of them says nothing of the others
        let drawn = answers(|place| if Calls::Half.has(place) { 1_000 } else { 3_000 });
        assert!(drawn.identity_error.abs() < 0.02, "{drawn:?}");
        let held_out = drawn.held_out_error.unwrap();
        assert!(held_out < -0.05 && drawn.error() == -held_out, "{drawn:?}");
    }

    /// Rank 0 computes twice as long as rank 1; a barrier takes twice that from when both are there.
    #[test]
    fn runs_of_blocking_collectives_have_an_ideal_network_too() {
        let mut run = MadeUp::new(2);
        for _ in 0..STEPS {
            run.compute(0, 2 * COMPUTATION);
            run.compute(1, COMPUTATION);
            run.collective("MPI_Barrier", 1, 0, 4 * COMPUTATION);
        }
        let bounds = of(run);
        assert_eq!(bounds.recorded_ns, Nanos(STEPS as i64 * 6 * COMPUTATION));
        assert_eq!(bounds.perfect_progress_ns, None, "nothing of it can move");
        let (transfer, _) = bounds.on_ideal_network().expect("the replay is exact");
        // entering and leaving MPI takes as long as anywhere
        assert!((1.0 / 3.0..0.4).contains(&transfer), "{bounds:?}");
    }

    /// Every fifth collective takes as long as recorded, whatever the network: no small part of the run.
    #[test]
    fn what_is_not_replayed_is_no_ground_for_an_ideal_network() {
        let mut run = MadeUp::new(2);
        for _ in 0..STEPS {
            run.compute(0, COMPUTATION);
            run.compute(1, COMPUTATION);
            run.collective("MPI_Barrier", 1, 0, COMPUTATION);
        }
        let mut trace = run.finish();
        trace.collectives.iter_mut().step_by(5).for_each(|collective| collective.agrees = false);
        let bounds = of_trace(trace);
        assert!((bounds.kept_share - 0.1).abs() < 1e-9, "{bounds:?}");
        assert_eq!((bounds.ideal_network_ns, bounds.on_ideal_network()), (None, None));
    }

    #[test]
    fn half_of_the_calls_are_drawn_whatever_their_pattern() {
        for period in [2, 3, 4, 7, 16] {
            for first in 0..period {
                let places = (0..1_000).map(|number| first + number * period);
                let drawn = places.filter(|&place| Calls::Half.has(place)).count();
                assert!((420..580).contains(&drawn), "{drawn} of 1000 from {first} by {period}");
            }
        }
    }
}
