//! What a replay says, as it is told.

use std::collections::HashMap;

use super::document::{
    LocalityModel, Model, RankResult, Recorded, ReplayNote, ScenarioResult, SiteResult, Sweep,
    SweepPoint,
};
use super::replayer::{Exposed, Replayer};
use super::sweep::SweepRequest;
use super::{paths, standstill};
use crate::replay::scenario::Scenario;
use crate::replay::Outcome;
use lapscope_data::model::Nanos;
use lapscope_data::places::SiteId;
use lapscope_data::symbols::NameFrames;
use lapscope_trace::Locality;

/// Endpoints above which sweeps say nothing of exposed time: it takes longer than the replay.
const MANY_ENDPOINTS: usize = 5_000_000;

/// Answers questions about one run.
pub struct Predictor<'a> {
    replayer: Replayer,
    run: String,
    top: usize,
    names: &'a mut dyn NameFrames,
    recorded: Exposed,
    /// The identity replay.
    replayed: Exposed,
    identity_ns: Option<i64>,
    /// The same without what recording took: what scenarios are compared with.
    base_ns: Option<i64>,
}

impl<'a> Predictor<'a> {
    /// Replays the run as it was; the answer of that.
    pub fn new(
        replayer: Replayer,
        (run, top): (String, usize),
        names: &'a mut dyn NameFrames,
    ) -> (Predictor<'a>, ScenarioResult, Model) {
        let network = replayer.fitted.network.clone();
        let recorded = replayer.exposed(&network, &run, names);
        let base_ns = replayer.under(&Scenario::default()).run_ns(&replayer.trace);
        let mut answers = Predictor {
            replayer,
            run,
            top,
            names,
            recorded,
            replayed: Exposed::default(),
            identity_ns: None,
            base_ns,
        };
        let replayer = &mut answers.replayer;
        let note =
            replayer.with_injected.as_ref().map(|_| ReplayNote::Injected(replayer.injected_ns));
        let with = replayer.with_injected.take();
        let without = with.map(|with| std::mem::replace(&mut replayer.program, with));
        let begin = std::time::Instant::now();
        let outcome = answers.replayer.identity();
        let took = begin.elapsed();
        answers.identity_ns = outcome.run_ns(&answers.replayer.trace);
        let mut model = answers.model(&outcome, Nanos(took.as_nanos() as i64));
        model.to_know.extend(note);
        let mut identity = answers.answer(Scenario::default(), &outcome);
        if let Some(without) = without {
            answers.replayer.program = without;
        }
        identity.name = "as it was".to_owned();
        (answers, identity, model)
    }

    /// As the run was.
    pub fn recorded(&self) -> Recorded {
        let trace = &self.replayer.trace;
        let first = trace.ranks.first().map(|rank| rank.info());
        Recorded {
            command: first.map_or(String::new(), |info| info.command.clone()),
            mpi_library: first.map_or(String::new(), |info| info.mpi_library.clone()),
            ranks: trace.ranks.len(),
            run_ns: self.replayer.recorded_ns,
            exposed_ns: self.recorded.total(),
            exposed: self.recorded.part,
        }
    }

    /// The run under a scenario.
    pub fn under(&mut self, scenario: &Scenario) -> ScenarioResult {
        let Some((program, to_know)) = self.replayer.rearranged(scenario) else {
            let outcome = self.replayer.under(scenario);
            return self.answer(scenario.clone(), &outcome);
        };
        let recorded = std::mem::replace(&mut self.replayer.program, program);
        let outcome = self.replayer.under(scenario);
        let mut answer = self.answer(scenario.clone(), &outcome);
        self.replayer.program = recorded;
        answer.to_know.extend(to_know);
        answer
    }

    /// Run time against a knob.
    pub fn sweep(&mut self, asked: &SweepRequest) -> Sweep {
        let points = asked.points.iter().map(|value| self.sweep_point(value)).collect();
        Sweep { knob: asked.knob.clone(), points }
    }

    fn sweep_point(&mut self, value: &super::sweep::SweepValue) -> SweepPoint {
        let program = self.replayer.rearranged(&value.scenario).map(|(program, _)| program);
        let recorded =
            program.map(|program| std::mem::replace(&mut self.replayer.program, program));
        let outcome = self.replayer.under(&value.scenario);
        if let Some(recorded) = recorded {
            self.replayer.program = recorded;
        }
        let run_ns = self.run_ns(&value.scenario, &outcome).map(Nanos);
        let endpoints: usize =
            self.replayer.trace.ranks.iter().map(|rank| rank.endpoints.len()).sum();
        let exposed_ns = (run_ns.is_some() && endpoints <= MANY_ENDPOINTS)
            .then(|| self.exposed(&value.scenario, &outcome).total());
        SweepPoint { value: value.text.clone(), number: value.number, run_ns, exposed_ns }
    }

    /// How long the run takes under a scenario: no longer than recorded where messages take less and nothing else changes. In a
    /// replay, as in a run, one that is there sooner may meet its rank elsewhere and wait longer for the next visit; nobody who asks
    /// what a quicker network would bring asks for that.
    fn run_ns(&self, scenario: &Scenario, outcome: &Outcome) -> Option<i64> {
        let replayed = outcome.run_ns(&self.replayer.trace)?;
        let most = self.base_ns.filter(|_| self.replayer.is_quicker_alone(scenario));
        Some(most.map_or(replayed, |most| replayed.min(most)))
    }

    fn exposed(&mut self, scenario: &Scenario, outcome: &Outcome) -> Exposed {
        self.replayer.retime(outcome, scenario.is_identity());
        let network = self.replayer.network(scenario);
        self.replayer.exposed(&network, &self.run, self.names)
    }

    fn answer(&mut self, scenario: Scenario, outcome: &Outcome) -> ScenarioResult {
        let run_ns = self.run_ns(&scenario, outcome);
        let ends = run_ns.is_some();
        let exposed = if ends { self.exposed(&scenario, outcome) } else { Exposed::default() };
        if scenario.is_identity() {
            self.replayed = exposed.clone();
        }
        let recorded = self.replayer.recorded_ns.0;
        let share = |ns: Option<i64>, of: i64| {
            ns.map_or(f64::INFINITY, |ns| (ns - of) as f64 / of.max(1) as f64)
        };
        let missing = self.replayed.total() - self.recorded.total();
        let (trace, program) = (&self.replayer.trace, &self.replayer.program);
        let critical_path =
            paths::critical_path(trace, program, outcome, self.top, &mut *self.names);
        let (root_causes, untraced) =
            paths::root_causes(trace, program, outcome, self.top, &mut *self.names);
        let deadlock = standstill::deadlock(trace, outcome, &mut *self.names);
        let mut others = self.replayer.under_others(&scenario);
        if self.replayer.is_quicker_alone(&scenario) {
            others
                .iter_mut()
                .for_each(|run| *run = self.base_ns.map_or(*run, |most| most.min(*run)));
        }
        let all = || others.iter().copied().chain(run_ns).map(Nanos);
        let end = |ns: Option<Nanos>| ns.filter(|_| ends && !others.is_empty());
        let compared = if scenario.is_identity() { self.identity_ns } else { self.base_ns };
        ScenarioResult {
            name: scenario.name.clone().unwrap_or_else(|| scenario.options()),
            change: run_ns.zip(compared).map(|(run, of)| share(Some(run), of)),
            identity_error: share(self.identity_ns, recorded),
            identity_exposed_error: missing.share_of(self.replayer.recorded_all_ns),
            run_ns: run_ns.map(Nanos),
            run_low_ns: end(all().min()),
            run_high_ns: end(all().max()),
            exposed_ns: exposed.total(),
            exposed: exposed.part,
            sites: self.sites(&exposed),
            ranks: ranks(&self.replayer, outcome),
            critical_path,
            root_causes,
            deadlock,
            to_know: untraced.into_iter().collect(),
            notes: Vec::new(),
            scenario,
        }
    }

    /// Sites with most exposed time, whenever that was.
    fn sites(&self, exposed: &Exposed) -> Vec<SiteResult> {
        let mut sites: Vec<(SiteId, SiteResult)> = Vec::new();
        let mut places: HashMap<SiteId, usize> = HashMap::new();
        type Field = fn(&mut SiteResult) -> &mut Nanos;
        let fields: [(&Exposed, Field); 3] = [
            (&self.recorded, |answer| &mut answer.recorded_ns),
            (&self.replayed, |answer| &mut answer.identity_ns),
            (exposed, |answer| &mut answer.exposed_ns),
        ];
        for (all, field) in fields {
            for row in &all.sites {
                let place = *places.entry(row.id).or_insert_with(|| {
                    let answer = SiteResult {
                        call: row.call.clone(),
                        site: row.site.clone(),
                        recorded_ns: Nanos(0),
                        identity_ns: Nanos(0),
                        exposed_ns: Nanos(0),
                    };
                    sites.push((row.id, answer));
                    sites.len() - 1
                });
                *field(&mut sites[place].1) += row.ns;
            }
        }
        let mut sites: Vec<SiteResult> = sites.into_iter().map(|(_, site)| site).collect();
        let most = |site: &SiteResult| site.identity_ns.max(site.exposed_ns).max(site.recorded_ns);
        sites.sort_by_key(|site| std::cmp::Reverse(most(site)));
        if self.top > 0 {
            sites.truncate(self.top);
        }
        sites
    }

    fn model(&self, outcome: &Outcome, took: Nanos) -> Model {
        let fitted = &self.replayer.fitted;
        let present = Locality::ALL.into_iter().filter(|&at| fitted.messages[at as usize] > 0);
        let locality = |at: Locality| {
            let network = &fitted.network.localities[at as usize];
            LocalityModel {
                locality: at,
                messages: fitted.messages[at as usize],
                latency_ns: Nanos(network.latency.round() as i64),
                bandwidth_bytes_per_second: (network.gap_per_byte > 0.0)
                    .then(|| 1e9 / network.gap_per_byte),
                eager_limit_bytes: (network.eager_limit != u64::MAX).then_some(network.eager_limit),
                eager_limit_from: fitted.limits_from[at as usize],
                protocol: network.protocol,
                is_protocol_certain: fitted.is_certain[at as usize],
            }
        };
        let (messages, as_recorded) = self.replayer.counts();
        Model {
            localities: present.map(locality).collect(),
            contention: fitted.network.contention,
            contention_from: fitted.contention_from,
            held_out_error: fitted.held_out_error,
            events: outcome.events,
            replay_ns: took,
            messages,
            as_recorded,
            to_know: to_know(&self.replayer),
            notes: Vec::new(),
        }
    }
}

fn to_know(replayer: &Replayer) -> Vec<ReplayNote> {
    let summed_up = replayer.trace.is_summarized().then_some(ReplayNote::SummedUp);
    let fitted = replayer.fitted.rests_on_waits().then_some(ReplayNote::FittedToWaits);
    summed_up.into_iter().chain(fitted).collect()
}

fn ranks(replayer: &Replayer, outcome: &Outcome) -> Vec<RankResult> {
    let ranks = replayer.trace.ranks.iter().zip(&outcome.ranks);
    let answer =
        |(rank, replayed): (&lapscope_trace::RankTrace, &crate::replay::outcome::RankOutcome)| {
            RankResult {
                rank: rank.info().rank,
                run_ns: Nanos(replayed.end - rank.init_end),
                compute_ns: Nanos(replayed.compute),
                overhead_ns: Nanos(replayed.overhead),
                wait_ns: Nanos(replayed.wait),
            }
        };
    ranks.map(answer).collect()
}
