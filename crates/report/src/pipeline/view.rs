//! How a run is looked at: all of it in memory, or in parts where it is larger than that or an engine was asked for.

use std::sync::Arc;

use anyhow::{bail, Error, Result};

use super::OpenRun;
use crate::findings::{find, By, Findings, FindingsChoice};
use crate::parts::load::Run;
use crate::parts::partial::Matches;
use crate::parts::plan::overhead;
use crate::parts::{EarlierStages, Engine, Partial, Question, Stage};
use lapscope_advise::{measures_in_words, thresholds_in_words};
use lapscope_data::db::DbError;
use lapscope_data::model::Rank;
use lapscope_data::places::group::Grouping;
use lapscope_data::text::progress::Progress;
use lapscope_measure::overlap::EagerLimits;
use lapscope_measure::reference::Reference;
use lapscope_measure::steps::{self, NoSteps, Plan, StepCounts, StepRule};
use lapscope_measure::thresholds::{Declared, ThresholdEvidence, Thresholds};
use lapscope_measure::unexpected::KeptLimits;
use lapscope_trace::clock::ClockFit;
use lapscope_trace::stretch::{self, NamedStretch, Windows};
use lapscope_trace::sums::combine::RunSums;
use lapscope_trace::survey::Survey;
use lapscope_trace::{Cache, Matching, Paired, Settled, Stretch, Trace};

/// A run.
pub struct View {
    /// All rows of it; where it is looked at in parts who took part, and what is known of all.
    pub trace: Trace,
    /// What of it counts, where not all of it does.
    pub stretch: Option<NamedStretch>,
    /// Requests, blocking messages and collectives.
    pub endpoints: u64,
    /// Once they were looked for; or why there are none.
    steps: Option<std::result::Result<Plan, NoSteps>>,
    parts: Option<InParts>,
}

struct InParts {
    run: Run,
    parts: Vec<Vec<u32>>,
    engine: Box<dyn Engine>,
    known: Arc<EarlierStages>,
}

/// A question was not answered: files could not be read, and the run has to be looked at without them.
struct Unreadable(Vec<DbError>);

type PartialResult = Result<std::result::Result<Partial, Unreadable>>;

macro_rules! answer {
    ($asked:expr, $of:pat => $value:expr) => {
        match $asked {
            $of => $value,
            _ => bail!("a part answered another question than it was asked"),
        }
    };
}

impl InParts {
    fn ask(&mut self, stage: Stage) -> PartialResult {
        let question = Question { stage, known: Arc::clone(&self.known) };
        let told = |(path, what)| DbError::Elsewhere { path, what };
        Ok(match self.engine.ask(&self.run, &question, &self.parts)? {
            Partial::Unreadable(mut files) => {
                // several parts may have met one file
                files.sort_unstable();
                files.dedup_by(|a, b| a.0 == b.0);
                Err(Unreadable(files.into_iter().map(told).collect()))
            }
            answer => Ok(answer),
        })
    }

    /// Sums of all files.
    fn sums(&mut self) -> Result<std::result::Result<RunSums, Unreadable>> {
        Ok(match self.ask(Stage::Sums)? {
            Ok(answer) => {
                let files = answer!(answer, Partial::Sums(files) => files);
                Ok(RunSums::combine(self.run.places.clone(), files))
            }
            Err(unreadable) => Err(unreadable),
        })
    }

    /// As [`InParts::ask`], once all files were read.
    fn ask_again(&mut self, stage: Stage) -> Result<Partial> {
        match self.ask(stage)? {
            Ok(answer) => Ok(answer),
            Err(Unreadable(mut failed)) => Err(failed.swap_remove(0).into()),
        }
    }
}

impl View {
    /// The view of a run that was read.
    pub fn whole(trace: Trace) -> View {
        let endpoints = trace.endpoints();
        View { trace, stretch: None, endpoints, steps: None, parts: None }
    }

    /// Reads a run, and its sums where they are wanted too.
    ///
    /// # Errors
    /// No file of it can be read, or an engine fails.
    pub fn open(
        open: &mut OpenRun,
        grouping: Grouping,
        sums: bool,
    ) -> Result<(View, Option<RunSums>)> {
        if open.resources.is_in_parts(open.rows()) {
            return View::open_in_parts(open, grouping, sums);
        }
        if let Some(wanted) = open.stretch {
            let mut view = View::whole(open.trace(&[], grouping)?);
            let stretch = view.narrow(wanted)?;
            let windows = Windows::place(&view.trace, &stretch);
            let sums = sums.then(|| open.sum_within(grouping, Some(&windows))).transpose()?;
            return Ok((view, sums));
        }
        if sums && grouping == Grouping::Line {
            let (sums, trace) = open.sum_and_trace()?;
            return Ok((View::whole(trace), Some(sums)));
        }
        let sums = sums.then(|| open.sum(grouping)).transpose()?;
        Ok((View::whole(open.trace(&[], grouping)?), sums))
    }

    /// From now on only that counts.
    fn narrow(&mut self, wanted: stretch::StretchChoice) -> Result<Stretch> {
        let (stretch, steps) = match wanted {
            stretch::StretchChoice::Between { from, to } => {
                (Stretch::between(&self.trace, from, to).map_err(Error::msg)?, None)
            }
            stretch::StretchChoice::Steps { first, last } => {
                let (stretch, of) = self.stretch_of(first, last)?;
                (stretch, Some((first, last, of)))
            }
        };
        self.stretch = Some(stretch.named(&self.trace, steps));
        self.trace.stretch = Some(stretch.clone());
        if let Some(parts) = &mut self.parts {
            Arc::make_mut(&mut parts.known).stretch = Some(stretch.clone());
        }
        Ok(stretch)
    }

    fn open_in_parts(
        open: &mut OpenRun,
        grouping: Grouping,
        sums: bool,
    ) -> Result<(View, Option<RunSums>)> {
        let mut engine = open.resources.engine(&open.files.root)?;
        loop {
            let places = open.places(grouping)?;
            let (survey, failed) = Survey::read(&open.files.databases)?;
            if !failed.is_empty() {
                open.leave_out(failed)?;
                continue;
            }
            let (parts, side_by_side) = open.resources.plan(&survey);
            let times_read = overhead(&survey, &parts);
            let cache = Cache::new(open.resources.rows_of_a_file(), times_read).ok().map(Arc::new);
            let run = Run { survey: survey.into(), places, cache };
            engine.look_side_by_side(side_by_side);
            let known = Arc::new(EarlierStages::default());
            let mut view = View {
                trace: Paired::without_rows(&run.survey.roster, &run.places)
                    .finish(&known.meetings, Matching::default()),
                stretch: None,
                endpoints: 0,
                steps: None,
                parts: Some(InParts { run, parts, engine, known }),
            };
            match view.begin(open.stretch, sums)? {
                Ok(sums) => return Ok((view, sums)),
                Err(Unreadable(failed)) => {
                    open.leave_out(failed)?;
                    engine = view.parts.expect("was just made").engine;
                }
            }
        }
    }

    /// Asks for what everything else rests on: sums, clocks and collectives. Sums of a stretch need the clocks.
    fn begin(
        &mut self,
        wanted: Option<stretch::StretchChoice>,
        sums: bool,
    ) -> Result<std::result::Result<Option<RunSums>, Unreadable>> {
        let Some(parts) = &mut self.parts else { return Ok(Ok(None)) };
        let mut summed = None;
        if sums && wanted.is_none() {
            summed = match parts.sums()? {
                Ok(sums) => Some(sums),
                Err(unreadable) => return Ok(Err(unreadable)),
            };
        }
        let mut split = Vec::new();
        let (settled, found) = loop {
            let answer = match parts.ask(Stage::Clocks { split: split.clone() })? {
                Ok(answer) => answer,
                Err(unreadable) => return Ok(Err(unreadable)),
            };
            let (evidence, found) = answer!(answer, Partial::Clocks(a, b) => (a, b));
            match Settled::fit(&self.trace.ranks, &split, evidence) {
                ClockFit::Settled(settled) => break (settled, found),
                ClockFit::Split(nodes) => split = nodes,
            }
        };
        let is_as_recorded = settled.is_as_recorded();
        Arc::make_mut(&mut parts.known).clocks = settled;
        let Matches { meetings, matching, endpoints } = match found.filter(|_| is_as_recorded) {
            Some(found) => *found,
            None => answer!(parts.ask_again(Stage::Meetings)?, Partial::Meetings(found) => *found),
        };
        self.endpoints = endpoints;
        let known = Arc::make_mut(&mut parts.known);
        (known.meetings, known.matching) = (meetings, matching.clone());
        let run = &parts.run;
        let mut bare = Paired::without_rows(&run.survey.roster, &run.places);
        bare.set_clocks(&parts.known.clocks);
        self.trace = bare.finish(&parts.known.meetings, matching);
        if let Some(wanted) = wanted {
            self.narrow(wanted)?;
        }
        if let (Some(parts), true, None) = (&mut self.parts, sums, &summed) {
            return Ok(parts.sums()?.map(Some));
        }
        Ok(Ok(summed))
    }

    /// Whether all of it is in memory.
    pub fn is_whole(&self) -> bool {
        self.parts.is_none()
    }

    /// Gives one part of the run after the other to `look`; the whole, where it is in memory. Of each its focus counts.
    ///
    /// # Errors
    /// A file cannot be read any more, or those of `look`.
    pub fn each_part(&self, mut look: impl FnMut(&Trace) -> Result<()>) -> Result<()> {
        let Some(InParts { run, parts, known, .. }) = &self.parts else {
            return look(&self.trace);
        };
        parts.iter().try_for_each(|focus| look(&run.trace(focus, known)?))
    }

    /// Reference times from the run's own transfers. Where parts are asked and `steps` are wanted, they count these on the way.
    ///
    /// # Errors
    /// As [`View::open`].
    pub fn own_reference(&mut self, steps: bool) -> Result<Reference> {
        let wants_steps = steps && self.steps.is_none() && self.parts.is_some();
        let rule = wants_steps.then(|| self.step_rule()).transpose()?;
        let Some(parts) = &mut self.parts else { return Ok(Reference::of_run(&self.trace)) };
        let steps = rule.as_ref().and_then(|rule| rule.as_ref().ok().cloned());
        let answer = parts.ask_again(Stage::Samples { steps })?;
        let (samples, counted) = answer!(answer, Partial::Samples(a, b) => (a, b));
        if let Some(rule) = rule {
            self.set_steps(rule.and_then(|rule| Plan::new(rule, &counted.unwrap_or_default())));
        }
        Ok(samples.reference(&self.trace))
    }

    /// From which size on sends of `ranks`, or of all, wait: by all of the run, or by what counts of it.
    ///
    /// # Errors
    /// As [`View::open`].
    pub fn thresholds(
        &mut self,
        reference: &Reference,
        ranks: &[Rank],
        declared: Vec<Declared>,
        in_stretch: bool,
    ) -> Result<Thresholds> {
        let evidence = match &mut self.parts {
            None => ThresholdEvidence::collect(&self.trace, reference, ranks, in_stretch),
            Some(parts) => {
                Arc::make_mut(&mut parts.known).reference = reference.clone();
                let stage = Stage::Thresholds { ranks: ranks.to_vec(), in_stretch };
                answer!(parts.ask_again(stage)?, Partial::Thresholds(evidence) => evidence)
            }
        };
        let mut found = evidence.thresholds(&self.trace, declared);
        thresholds_in_words::fill(&mut found, &self.trace);
        Ok(found)
    }

    /// What `ranks`, or all, overlapped, and what else is `wanted`, by which sends wait for nobody, and up to which size messages may
    /// be kept.
    ///
    /// # Errors
    /// As [`View::open`].
    pub fn find(
        &mut self,
        reference: &Reference,
        (eager, kept): (EagerLimits, KeptLimits),
        ranks: &[Rank],
        wanted: FindingsChoice,
    ) -> Result<Findings> {
        if let Some(parts) = &mut self.parts {
            let known = Arc::make_mut(&mut parts.known);
            known.reference = reference.clone();
            (known.eager, known.kept) = (eager, kept);
            let answer = parts.ask_again(Stage::Overlap { ranks: ranks.to_vec(), wanted })?;
            return Ok(answer!(answer, Partial::Overlap(findings) => *findings));
        }
        let trace = &self.trace;
        let progress = Progress::default();
        progress.expect(trace.ranks.iter().map(|rank| rank.endpoints.len() as u64).sum());
        let by = By { reference, eager, kept, steps: self.plan() };
        Ok(find(trace, by, ranks, wanted, &|requests| progress.add(requests)))
    }

    /// Takes out of sums what GPUs computed in meanwhile, for who asks for nothing else.
    ///
    /// # Errors
    /// As [`View::open`].
    pub fn lay_to_gpus(&mut self, sums: &mut RunSums) -> Result<()> {
        if self.trace.ranks.iter().any(|rank| rank.info().has_device_time()) {
            let limits = Default::default();
            let found = self.find(&Reference::default(), limits, &[], FindingsChoice::default())?;
            sums.lay_to_gpus(&found.measured.laid_to_gpus(&self.trace));
        }
        Ok(())
    }

    /// Looks for the steps of the run, once. Or why there are none.
    ///
    /// # Errors
    /// As [`View::open`].
    pub fn find_steps(&mut self) -> Result<std::result::Result<&Plan, NoSteps>> {
        if self.steps.is_none() {
            let plan = match self.step_rule()? {
                Ok(rule) => Plan::new(rule.clone(), &self.count_steps(rule, None)?),
                Err(why) => Err(why),
            };
            self.set_steps(plan);
        }
        let plan = self.steps.as_ref().map(|plan| plan.as_ref().map_err(|why| *why));
        Ok(plan.unwrap_or(Err(NoSteps::NothingRecurs)))
    }

    /// By what steps are told apart.
    fn step_rule(&self) -> Result<std::result::Result<StepRule, NoSteps>> {
        let sample = steps::sample(self.trace.ranks.len());
        let places: Vec<u32> = sample.iter().map(|&place| place as u32).collect();
        let found = self.with_detail_of(&places, |trace| StepRule::find(trace, &sample))?;
        Ok(found.and_then(|rule| rule.known_of(&self.trace)))
    }

    fn set_steps(&mut self, plan: std::result::Result<Plan, NoSteps>) {
        if let Some(parts) = &mut self.parts {
            Arc::make_mut(&mut parts.known).steps = plan.clone().ok();
        }
        self.steps = Some(plan);
    }

    /// The steps that [`View::find_steps`] found.
    pub fn plan(&self) -> Option<&Plan> {
        self.steps.as_ref().and_then(|plan| plan.as_ref().ok())
    }

    /// The steps that there are, for who asks for this one.
    ///
    /// # Errors
    /// There are none, which [`View::find_steps`] has to have found before, or not so many.
    pub fn plan_with_step(&self, step: u64) -> Result<&Plan> {
        let plan = match &self.steps {
            Some(Ok(plan)) => plan,
            Some(Err(why)) => {
                bail!(
                    "--step: {}; --from and --to take timestamps",
                    measures_in_words::no_steps(*why)
                )
            }
            None => bail!("--step: steps were not looked for"),
        };
        if step > plan.count {
            bail!("--step {step}: there are {} steps", plan.count);
        }
        Ok(plan)
    }

    /// `asked`: the first and the last of so many.
    fn count_steps(
        &mut self,
        rule: StepRule,
        asked: Option<(u64, u64, u64)>,
    ) -> Result<StepCounts> {
        match &mut self.parts {
            None => Ok(StepCounts::count(&self.trace, &rule, asked)),
            Some(parts) => {
                let answer = parts.ask_again(Stage::Steps { rule, asked })?;
                Ok(answer!(answer, Partial::Steps(counted) => counted))
            }
        }
    }

    /// Where steps lie, and how many there are.
    fn stretch_of(&mut self, first: u64, last: u64) -> Result<(Stretch, u64)> {
        let _ = self.find_steps()?;
        let plan = self.plan_with_step(last)?.clone();
        let counted = self.count_steps(plan.rule, Some((first, last, plan.count)))?;
        Ok((counted.stretch(self.trace.ranks.len()), plan.count))
    }

    /// The ranks at these places in detail, with those that they have to be read with, which may be more than these.
    ///
    /// # Errors
    /// A file cannot be read any more.
    pub fn with_detail_of<T>(&self, places: &[u32], look: impl FnOnce(&Trace) -> T) -> Result<T> {
        match &self.parts {
            None => Ok(look(&self.trace)),
            Some(InParts { run, known, .. }) => Ok(look(&run.trace(places, known)?)),
        }
    }
}
