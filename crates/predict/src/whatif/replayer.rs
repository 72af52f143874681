//! A run ready to be replayed: its program, the network that fits it, and what is needed to say what a replay costs.

use std::collections::HashMap;

use rustc_hash::FxHashSet;

use lapscope_data::model::Nanos;
use lapscope_data::places::SiteId;
use lapscope_data::symbols::{FrameName, NameFrames};

use super::bounds::is_too_large;
use super::document::ReplayNote;
use super::fit::{fit, Fitted};
use crate::replay::injected::{split, Injected};
use crate::replay::kernels::AnchoredWork;
use crate::replay::moves;
use crate::replay::nonblocking;
use crate::replay::scenario::{Progress, Scenario};
use crate::replay::thinned::{thin, Thinned, Thinning};
use crate::replay::{replay, retime, Conditions, Durations, Network, Outcome, Program};
use lapscope_measure::overlap::sums::OverlapTimes;
use lapscope_measure::overlap::{EagerLimits, Measuring, Overlap, OverlapOptions};
use lapscope_measure::reach::room::MoveRoom;
use lapscope_measure::reference::Reference;
use lapscope_measure::thresholds::Thresholds;
use lapscope_trace::{Direction, Locality, Observation, Starvation, Trace};

/// A run and its model.
pub struct Replayer {
    pub trace: Trace,
    /// What scenarios change: without injected tests.
    pub program: Program,
    /// With injected tests, where there were any: until the identity replay is done.
    pub with_injected: Option<Program>,
    /// What these took, of all ranks.
    pub injected_ns: Nanos,
    pub fitted: Fitted,
    reference: Reference,
    durations: Durations,
    /// How far calls can be moved that a scenario moves.
    pub room: MoveRoom,
    /// Call sites of collectives that a scenario leaves out, by what it calls them.
    pub collective_sites: HashMap<String, FxHashSet<SiteId>>,
    /// Observations of each rank, as recorded: a replay changes them.
    observations: Vec<Vec<Observation>>,
    /// Likewise, and when MPI_Finalize was entered.
    starvation: Vec<(Starvation, i64)>,
    gpu_work: Vec<AnchoredWork>,
    /// Run time of the recorded run, and summed over ranks.
    pub recorded_ns: Nanos,
    pub recorded_all_ns: Nanos,
}

/// Exposed time, of all and by call site.
#[derive(Debug, Clone, Default)]
pub struct Exposed {
    pub part: OverlapTimes,
    pub sites: Vec<ExposedSite>,
}

#[derive(Debug, Clone)]
pub struct ExposedSite {
    pub id: SiteId,
    pub call: String,
    pub site: Option<FrameName>,
    pub ns: Nanos,
}

impl Replayer {
    /// `injected`: by rank, where tests were injected.
    pub fn new(
        trace: Trace,
        reference: Reference,
        thresholds: &Thresholds,
        injected: Option<&[Injected]>,
    ) -> Replayer {
        let recorded = Program::new(&trace);
        let (program, with_injected, injected_ns) = match injected {
            Some(injected) => {
                let split = split(&trace, &recorded, injected);
                (split.without, Some(split.with), Nanos(split.ns))
            }
            None => (recorded, None, Nanos(0)),
        };
        let durations = Durations::measure(&trace);
        let whole = with_injected.as_ref().unwrap_or(&program);
        let fitted = fit(&trace, whole, &reference, thresholds, &durations);
        Replayer {
            observations: trace.ranks.iter().map(|rank| rank.observations.clone()).collect(),
            starvation: trace
                .ranks
                .iter()
                .map(|rank| (rank.starvation.clone(), rank.end))
                .collect(),
            gpu_work: trace.ranks.iter().map(AnchoredWork::of_rank).collect(),
            recorded_ns: Nanos(trace.run_ns()),
            recorded_all_ns: trace.ranks.iter().map(|rank| Nanos(rank.end - rank.init_end)).sum(),
            trace,
            program,
            with_injected,
            injected_ns,
            fitted,
            reference,
            durations,
            room: MoveRoom::default(),
            collective_sites: HashMap::new(),
        }
    }

    pub fn has_network(&self) -> bool {
        self.fitted.messages[Locality::Network as usize] > 0
    }

    pub fn network(&self, scenario: &Scenario) -> Network {
        self.fitted.network.with(scenario, self.has_network())
    }

    /// Whether all that a scenario changes is that messages take less.
    pub fn is_quicker_alone(&self, scenario: &Scenario) -> bool {
        let besides = Scenario { latency: None, bandwidth: None, ..scenario.clone() };
        let (own, other) = (&self.fitted.network.localities, self.network(scenario).localities);
        besides.is_identity()
            && !scenario.is_identity()
            && own.iter().zip(&other).all(|(own, other)| {
                other.latency <= own.latency && other.gap_per_byte <= own.gap_per_byte
            })
    }

    /// The program with its calls where a scenario has them, and what to know of that; `None`: it changes none.
    pub fn rearranged(&self, scenario: &Scenario) -> Option<(Program, Vec<ReplayNote>)> {
        let asked =
            moves::MoveSelection { waits: scenario.wait.is_some(), posts: scenario.post.is_some() };
        let mut notes = Vec::new();
        let moved = (asked != moves::MoveSelection::default()).then(|| {
            let moved = moves::apply(&self.trace, &self.program, &self.room, asked);
            notes.push(ReplayNote::Moved {
                calls: moved.calls,
                over: Nanos(moved.ns),
                unknown: moved.unknown.len(),
            });
            moved.program
        });
        let changed = self.thinned(scenario, moved, &mut notes);
        if !scenario.nonblocking_collectives {
            return changed.map(|changed| (changed, notes));
        }
        let program = changed.as_ref().unwrap_or(&self.program);
        let copy_per_byte = self.fitted.network.copy_per_byte;
        let (program, collectives) = nonblocking::apart(&self.trace, program, copy_per_byte);
        notes.push(ReplayNote::NonBlocking(collectives));
        Some((program, notes))
    }

    /// Without collectives that a scenario leaves out.
    fn thinned(
        &self,
        scenario: &Scenario,
        moved: Option<Program>,
        notes: &mut Vec<ReplayNote>,
    ) -> Option<Program> {
        let mut changed = moved;
        let without = scenario.without.0.iter().map(|site| (site.as_str(), None));
        let every = scenario.every.as_ref().map(|it| (it.site.as_str(), Some(it.every)));
        for (site, every) in without.chain(every) {
            let Some(sites) = self.collective_sites.get(site) else { continue };
            let Thinned { program, left_out, collectives, unknown } = thin(
                &self.trace,
                changed.as_ref().unwrap_or(&self.program),
                &Thinning { sites, every },
            );
            let site = site.to_owned();
            notes.push(ReplayNote::LeftOut { site, left_out, collectives, unknown });
            changed = Some(program);
        }
        changed
    }

    /// The run as it was: what recording took is in it.
    pub fn identity(&self) -> Outcome {
        let conditions = Conditions::as_recorded(self.trace.ranks.len());
        self.replay(&self.program, &self.fitted.network, &conditions)
    }

    /// The run with what a scenario changes of its network and its computation, and without what recording took.
    pub fn under(&self, scenario: &Scenario) -> Outcome {
        self.replay(
            &self.program,
            &self.network(scenario),
            &Conditions::under(scenario, &self.program),
        )
    }

    /// Run times under a scenario with the other networks that fit the run about as well; none of runs of which a replay takes
    /// long.
    pub fn under_others(&self, scenario: &Scenario) -> Vec<i64> {
        if scenario.is_identity() || is_too_large(self.trace.endpoints()) {
            return Vec::new();
        }
        let conditions = Conditions::under(scenario, &self.program);
        let run_ns = |other: &Network| {
            let network = other.with(scenario, self.has_network());
            self.replay(&self.program, &network, &conditions).run_ns(&self.trace)
        };
        self.fitted.others.iter().filter_map(run_ns).collect()
    }

    fn replay(&self, program: &Program, network: &Network, conditions: &Conditions) -> Outcome {
        replay(&self.trace, program, network, conditions, &self.durations)
    }

    /// What the run as it stands in the trace exposes; `network`: under which it was replayed.
    pub fn exposed(&self, network: &Network, run: &str, names: &mut dyn NameFrames) -> Exposed {
        let before = &self.fitted.network;
        let reference = self.reference.scaled(|locality, bytes| {
            let [before, now] = [before, network]
                .map(|network| network.localities[locality as usize].time(bytes as u64));
            if before > 0.0 {
                now / before
            } else {
                1.0
            }
        });
        let limits = Locality::ALL.map(|locality| {
            let network = &network.localities[locality as usize];
            Some(network.eager_limit.min(network.progress_limit))
        });
        let eager = EagerLimits::new(limits);
        let measured = Measuring {
            trace: &self.trace,
            reference: &reference,
            eager,
            ranks: &[],
            progress: &|_| (),
        }
        .sums();
        let all = OverlapOptions { top: 0, ranks: &[] };
        let overlap = Overlap::build(run, &self.trace, &reference, &measured, all, names);
        let mut exposed = Exposed::from_overlap(overlap);
        if network.progress == Progress::Async {
            exposed.lay_progress_to_transfers();
        }
        exposed
    }

    /// Puts a replay in the place of what the trace had. When a rank had no processor is told of the run as it was alone: what of
    /// it a scenario would leave, nobody knows.
    pub fn retime(&mut self, outcome: &Outcome, is_identity: bool) {
        for (rank, observations) in self.trace.ranks.iter_mut().zip(&self.observations) {
            rank.observations.clone_from(observations);
        }
        retime::retime(&mut self.trace, outcome);
        for (rank, work) in self.trace.ranks.iter_mut().zip(&self.gpu_work) {
            rank.devices = work.of_replayed(rank);
        }
        for (rank, (starvation, end)) in self.trace.ranks.iter_mut().zip(&self.starvation) {
            let (begin, before, now) = (rank.init_end, *end, rank.end);
            let times = (now - begin) as f64 / (before - begin).max(1) as f64;
            let moved = |moment: i64| begin + ((moment - begin) as f64 * times).round() as i64;
            rank.starvation = match is_identity {
                true => starvation.moved(moved),
                false => Starvation::default(),
            };
        }
    }

    /// Messages that are replayed, and what has its recorded duration: endpoints.
    pub fn counts(&self) -> (u64, u64) {
        let ranks = self.trace.ranks.iter();
        let endpoints = ranks.flat_map(|rank| {
            rank.endpoints.iter().map(|row| (row, &rank.operations[row.operation as usize]))
        });
        let as_recorded = endpoints.filter(|(row, operation)| {
            operation.direction != Direction::None
                && !crate::replay::replayed::is_replayed(&self.trace, row, operation)
        });
        (self.fitted.messages.iter().sum(), as_recorded.count() as u64)
    }
}

impl Exposed {
    fn from_overlap(overlap: Overlap) -> Exposed {
        let mut part = OverlapTimes::default();
        part.add_requests(&overlap.totals.numbers);
        part.add_blocking(&overlap.blocking.totals);
        let requests = overlap.sites.into_iter().map(|row| ExposedSite {
            id: row.id,
            call: row.call,
            site: row.site,
            ns: row.numbers.exposed_ns,
        });
        let blocking = overlap.blocking.sites.into_iter().map(|row| ExposedSite {
            id: row.id,
            call: row.call,
            site: row.site,
            ns: row.numbers.blocked_ns,
        });
        Exposed { part, sites: requests.chain(blocking).collect() }
    }

    /// Where messages move whatever their ends do, nothing is exposed for want of progress: what looks like it is what messages
    /// wait for each other on a link.
    fn lay_progress_to_transfers(&mut self) {
        let part = &mut self.part;
        let [local, remote] = [
            std::mem::take(&mut part.exposed_no_local_progress_ns),
            std::mem::take(&mut part.exposed_no_remote_progress_ns),
        ];
        part.exposed_transfer_ns += local + remote;
        part.exposed_no_local_progress_low_ns = Nanos(0);
        part.exposed_no_local_progress_high_ns = Nanos(0);
    }

    pub fn total(&self) -> Nanos {
        self.part.exposed().0
    }
}
