//! The search itself: a first run without injection, runs with one setting after the other, whole runs that confirm the best.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::bar::{pair_line, trial_line, TrialBar};
use super::choice;
use super::confirm::{self, Confirmation, RunPair};
use super::document::{Best, InjectedSite, RunRow, TuneDocument, TuneResult};
use super::earlier::Earlier;
use super::first::{Crowd, FirstRun, Hopeless, Slots};
use super::notes;
use super::pace::Pace;
use super::policy::Policy;
use super::search::Search;
use super::session::{was_interrupted, Launched, Session, TuneOptions};
use super::settings::document::{SettingsAnswer, StoppedBy, TriedSetting};
use super::settings::first::MpiOfRun;
use super::settings::trials::SettingsTrials;
use super::trial::{nanos, read_injection, InjectionSetting, Trial};
use super::variable::Variable;
use crate::run::{Mode, SAMPLES_A_SECOND};
use lapscope_advise::advice::Advice;
use lapscope_data::files::cannot_write;
use lapscope_data::options;
use lapscope_data::places::group::Grouping;
use lapscope_data::store;
use lapscope_data::text::shell;
use lapscope_data::text::units::{bytes, percent, time};
use lapscope_report::pipeline::report::advise;
use lapscope_report::pipeline::view::View;
use lapscope_report::pipeline::OpenRun;
use lapscope_trace::query::PostSelection;

/// Name of the run without injection.
pub const FIRST: &str = "1-plain";
/// It notes where the program computes.
const SAMPLE: &str = "LAPSCOPE_SAMPLE";

/// A search under way.
pub struct Tuning<'a, 's> {
    asked: TuneOptions<'a>,
    session: &'s mut Session<'a>,
    search: Search,
    bar: TrialBar,
    began: Instant,
    slot_ms: i64,
    /// For LAPSCOPE_BUFFER_SENDS where that is tried.
    copied_bytes: u64,
    /// The user's own.
    copied_anyway: String,
    sampled_anyway: String,
    tried: Vec<Trial>,
    /// What an earlier run has found to be of no use.
    left_out: Option<Policy>,
    /// Settings of the MPI that an earlier search has tried.
    settings_of_earlier: Vec<TriedSetting>,
}

/// What the first run leaves to the others.
struct FirstRunResults {
    launched: Launched,
    first: FirstRun,
    advice: Vec<Advice>,
    slots: Slots,
    /// The user has said how long slots are to be.
    is_given: bool,
}

impl<'a, 's> Tuning<'a, 's> {
    pub fn new(session: &'s mut Session<'a>, earlier: Option<&Earlier>) -> Tuning<'a, 's> {
        let asked = session.options;
        let of_earlier = earlier.map(|it| (it.modes(asked.modes), it.intervals(asked.intervals)));
        let (modes, intervals) =
            of_earlier.unwrap_or_else(|| (asked.modes.to_vec(), asked.intervals.to_vec()));
        let search = Search::new(&modes, &intervals, asked.runs);
        let left_out = earlier.and_then(Earlier::policy);
        let settings_of_earlier = earlier.map_or(Vec::new(), |it| it.settings.clone());
        let bar = TrialBar::new(search.longest() as u32 + 1 + 2 * asked.pairs);
        let (began, tried) = (Instant::now(), Vec::new());
        let anyway =
            |name| session.setting(name).unwrap_or("0".into()).to_string_lossy().into_owned();
        let (copied_anyway, sampled_anyway) = (anyway("LAPSCOPE_BUFFER_SENDS"), anyway(SAMPLE));
        Tuning {
            asked,
            session,
            search,
            bar,
            began,
            slot_ms: 0,
            copied_bytes: 0,
            copied_anyway,
            sampled_anyway,
            tried,
            left_out,
            settings_of_earlier,
        }
    }

    /// Runs the program until it is known what to set.
    ///
    /// # Errors
    /// The program cannot be run or recorded ([`super::session::Stopped`]), a run cannot be read, or the policy not be written.
    pub fn run(mut self) -> Result<TuneDocument> {
        let files = self.session.directory().display().to_string();
        let printed = format!("what they print is in {files}/*.stdout and *.stderr");
        self.bar.say(&[match self.asked.tries_injection {
            true => format!(
                "at most {} runs, the first without injection, and {} pairs of whole runs to confirm what is found; {printed}",
                self.search.longest() + 1,
                self.asked.pairs
            ),
            false => format!("a first run, then pairs of whole runs without lapscope; {printed}"),
        }]);
        let known = self.first()?;
        let mut answer = TuneDocument::new(self.asked.command, known.first.clone());
        if self.asked.tries_settings {
            let settings = self.settings(&known)?;
            answer.is_interrupted = settings.stopped == Some(StoppedBy::Interrupt);
            answer.settings = Some(settings);
        }
        answer.found = TuneResult::NotTried;
        if self.asked.tries_injection && !answer.is_interrupted {
            match self.injection(known, &mut answer) {
                Err(error) if was_interrupted(&error) && answer.settings.is_some() => {
                    answer.is_interrupted = true;
                }
                other => other?,
            }
        }
        answer.compare();
        Ok(answer)
    }

    /// Settings of the MPI itself, for up to half of the time where injection comes behind them.
    fn settings(&mut self, known: &FirstRunResults) -> Result<SettingsAnswer> {
        let (directory, wrappers) = (&known.launched.directory, self.asked.wrappers);
        let run = MpiOfRun::look(directory, wrappers, &known.advice, known.first.crowd)?;
        let share = if self.asked.tries_injection { 2 } else { 1 };
        let until = self.left().map(|left| Instant::now() + left / share);
        let earlier = std::mem::take(&mut self.settings_of_earlier);
        let limits = (known.launched.wall, until);
        let answer = SettingsTrials::new(self.session, &self.bar, run, earlier, limits).run()?;
        self.bar.expect_more(self.search.longest() as u32 + 2 * self.asked.pairs);
        Ok(answer)
    }

    /// Injected tests and copied sends.
    fn injection(&mut self, known: FirstRunResults, answer: &mut TuneDocument) -> Result<()> {
        answer.found = TuneResult::NothingToGain;
        answer.hopeless = self.hopeless(&known.first);
        let copies = known.first.copies;
        if copies.is_some() {
            self.search.add_sends(answer.hopeless.take().is_some());
        }
        self.copied_bytes = copies.map_or(0, |copies| copies.bytes);
        if answer.hopeless.is_none() {
            if known.first.has_gpu_driver && self.search.leave_out(Mode::Timer) {
                answer.notes.push(notes::NO_TIMER.to_owned());
            }
            answer.slots = Some(known.slots);
            self.slot_ms = known.slots.ms;
            while let Some(setting) =
                self.search.next(&self.tried).filter(|_| self.has_time(&known))
            {
                let policy = self.policy_of_earlier()?;
                let trial = self.try_out(setting, &known, policy.as_deref())?;
                self.learn(&trial, &known);
                self.tried.push(trial);
            }
            self.conclude(&known, answer)?;
        }
        if answer.found == TuneResult::Gain {
            answer.notes.extend(self.by_hand(&known));
        }
        let were_made = self.tried.iter().any(Trial::tested_computation);
        answer.advise(known.advice, were_made);
        Ok(())
    }

    // --- the first run -----------------------------------------------------------------------------------------------

    fn first(&mut self) -> Result<FirstRunResults> {
        self.bar.begin("without injection");
        let off = ["LAPSCOPE_INJECT", "LAPSCOPE_INJECT_AB"].map(|name| (name, "off".to_owned()));
        let rate = match self.sampled_anyway.parse::<u32>() {
            Ok(1..) => self.sampled_anyway.as_str(),
            _ => SAMPLES_A_SECOND,
        };
        let sample = (SAMPLE, rate.to_owned());
        let set = [off.as_slice(), &[sample]].concat();
        let launched = self.session.launch(FIRST, &set, &self.bar)?;
        self.bar.end();
        let min_bytes = self.count("LAPSCOPE_INJECT_MIN_BYTES")?;
        let (first, advice) = read_first(&launched, min_bytes as u64, self.asked.wrappers)?;
        let is_given = self.session.setting("LAPSCOPE_INJECT_AB_MS").is_some();
        let wanted = is_given.then(|| self.count("LAPSCOPE_INJECT_AB_MS")).transpose()?;
        let slots = first.slots(wanted);
        self.say_first(&first, &slots, launched.wall);
        Ok(FirstRunResults { launched, first, advice, slots, is_given })
    }

    /// The number that runs get.
    fn count(&self, name: &str) -> Result<i64> {
        let option = options::find(name).with_context(|| format!("no option {name}"))?;
        let value = self.session.setting(name).unwrap_or(option.default.into());
        let value = value.to_string_lossy();
        options::number(option, &value)
            .with_context(|| format!("{name}={value}: expected {}", option.unit))
    }

    fn hopeless(&self, first: &FirstRun) -> Option<Hopeless> {
        first.hopeless().filter(|_| !self.asked.anyway)
    }

    fn say_first(&self, first: &FirstRun, slots: &Slots, wall: Duration) {
        let at_stake = percent(first.stake_ns.share_of(first.run_ns));
        let took = time(nanos(wall));
        let mut lines = vec![format!("{FIRST}: {took}, {at_stake} of the run time at stake")];
        if self.hopeless(first).is_none() && self.asked.tries_injection {
            let more = self.search.longest() as u32;
            lines.push(format!(
                "at most {more} more of about as long ({}), injecting in half of all slots of {} ms",
                time(nanos(wall * more)),
                slots.ms
            ));
        }
        self.bar.say(&lines);
    }

    // --- runs with injection -----------------------------------------------------------------------------------------

    fn most_time(&self) -> Option<Duration> {
        self.asked.budget
    }

    /// Until no run may go on.
    fn left(&self) -> Option<Duration> {
        self.most_time().map(|most| most.saturating_sub(self.began.elapsed()))
    }

    /// Whether another run fits into the time, less what is kept for those that confirm: up to half of it.
    fn has_time(&self, known: &FirstRunResults) -> bool {
        let usual = known.launched.wall;
        let Some((most, left)) = self.most_time().zip(self.left()) else { return true };
        let kept = match self.tried.is_empty() {
            true => Duration::ZERO,
            false => (usual * 2 * self.asked.pairs).min(most / 2),
        };
        usual + kept <= left
    }

    /// As a file.
    fn policy_of_earlier(&self) -> Result<Option<PathBuf>> {
        let Some(policy) = &self.left_out else { return Ok(None) };
        let file = self.session.file("earlier-policy");
        std::fs::write(&file, policy.to_string()).with_context(|| file.display().to_string())?;
        Ok(Some(file))
    }

    fn try_out(
        &mut self,
        setting: InjectionSetting,
        known: &FirstRunResults,
        policy: Option<&Path>,
    ) -> Result<Trial> {
        let InjectionSetting { mode, interval_us } = setting;
        let with = if policy.is_some() { "-policy" } else { "" };
        let name = format!("{}-{}-{interval_us}us{with}", self.tried.len() + 2, mode.word());
        self.bar.begin(&self.named(setting));
        let policy_file = policy.map(|path| path.to_string_lossy().into_owned());
        let variables = [
            ("LAPSCOPE_INJECT", if mode == Mode::Sends { "off" } else { mode.word() }.to_owned()),
            ("LAPSCOPE_INJECT_INTERVAL_US", interval_us.to_string()),
            ("LAPSCOPE_BUFFER_SENDS", self.copied(mode)),
            ("LAPSCOPE_INJECT_AB", "on".to_owned()),
            ("LAPSCOPE_INJECT_AB_MS", self.slot_ms.to_string()),
            ("LAPSCOPE_INJECT_POLICY", policy_file.unwrap_or_default()),
            (SAMPLE, self.sampled_anyway.clone()),
        ];
        let launched = self.session.launch(&name, &variables, &self.bar)?;
        self.bar.end();
        let trial = Trial {
            setting,
            name,
            with_policy: policy.is_some(),
            wall: launched.wall,
            injection: read_injection(&launched.directory, self.asked.wrappers)?,
            idle_slowdown: self.idle_slowdown(&launched, known)?,
        };
        self.bar.say(&[trial_line(&trial)]);
        Ok(trial)
    }

    fn idle_slowdown(&self, launched: &Launched, known: &FirstRunResults) -> Result<Option<f64>> {
        let slot_ns = self.slot_ms * 1_000_000;
        let posts = PostSelection::AtLeast(known.first.min_bytes);
        let first = Pace::of_run(&known.launched.directory, posts, slot_ns)?;
        Ok(Pace::of_run(&launched.directory, PostSelection::Off, slot_ns)?.slowdown_against(&first))
    }

    /// Runs may be shorter or longer than the first: then other slots tell more.
    fn learn(&mut self, trial: &Trial, known: &FirstRunResults) {
        let whole = trial.injection.whole.as_ref().filter(|_| !known.is_given);
        self.slot_ms = whole.and_then(|whole| whole.suggested_ab_ms).unwrap_or(self.slot_ms);
    }

    // --- what follows ------------------------------------------------------------------------------------------------

    fn conclude(&mut self, known: &FirstRunResults, answer: &mut TuneDocument) -> Result<()> {
        let checked = self.check_policy(known)?;
        let tried = &self.tried;
        let all = || tried.iter().chain(&checked);
        answer.found = TuneResult::NoGain;
        answer.notes.extend(notes::on_slots(&known.slots));
        answer.notes.extend(all().flat_map(|trial| notes::on_trial(trial, &known.first)));
        answer.notes.extend(notes::on_threads(tried, known.first.crowd));
        answer.runs = all().map(|trial| RunRow::for_trial(trial, tried)).collect();
        let Some(best) = choice::best(tried) else {
            answer.notes.extend(notes::on_unsure(tried));
            return Ok(());
        };
        let confirmed = checked.as_ref().filter(|checked| choice::is_no_worse(checked, best));
        let policy =
            choice::policy(best, known.first.run_ns, self.heading(best), confirmed.is_some());
        let shown = confirmed.unwrap_or(best);
        answer.sites = best
            .injection
            .sites
            .iter()
            .map(|site| InjectedSite::from_injection(site, &policy))
            .collect();
        let mut best = Best {
            run: shown.name.clone(),
            setting: best.setting,
            gain: None,
            slots_gain: shown.gain().context("what is best gains")?,
            hidden_cost: choice::hidden_cost(best.setting, tried),
            environment: self.environment(best.setting, self.asked.policy)?,
            policy: self.asked.policy.to_owned(),
        };
        let confirmation = self.confirm(best.setting, &policy, known.launched.wall)?;
        best.gain = confirmation.as_ref().map(|confirmation| confirmation.gain);
        answer.notes.extend(notes::on_stake(best.gain.unwrap_or(best.slots_gain), &known.first));
        answer.found = match &confirmation {
            Some(confirmation) if !confirmation.is_certain => TuneResult::Unconfirmed,
            _ => TuneResult::Gain,
        };
        if answer.found == TuneResult::Gain && best.setting.mode != Mode::Sends {
            std::fs::write(self.asked.policy, policy.to_string())
                .map_err(|error| cannot_write(self.asked.policy, error))?;
        }
        (answer.best, answer.confirmation) = (Some(best), confirmation);
        Ok(())
    }

    // --- whole runs --------------------------------------------------------------------------------------------------

    /// Pairs of whole runs, without lapscope and with the setting, as many as are asked for and fit into the time. `usual`: how
    /// long a run takes.
    fn confirm(
        &mut self,
        setting: InjectionSetting,
        policy: &Policy,
        usual: Duration,
    ) -> Result<Option<Confirmation>> {
        let fitting = confirm::that_fit(self.left(), usual) / 2;
        let pairs = self.asked.pairs.min(fitting);
        self.bar.expect_more(2 * pairs);
        if pairs == 0 {
            return Ok(None);
        }
        self.bar.say(&[format!(
            "{}: confirming by {pairs} pairs of whole runs, without lapscope and with it, for about {}",
            self.named(setting),
            time(nanos(usual * 2 * pairs))
        )]);
        let file = self.session.file("chosen-policy");
        std::fs::write(&file, policy.to_string()).with_context(|| file.display().to_string())?;
        let environment = self.environment(setting, &file)?;
        let mut variables: Vec<(String, String)> =
            environment.into_iter().map(|variable| (variable.name, variable.value)).collect();
        variables.push(("LAPSCOPE_INJECT_AB".to_owned(), "off".to_owned()));
        let mut made = Vec::new();
        for number in 0..pairs as usize {
            if confirm::that_fit(self.left(), usual) < 2 {
                break; // these runs take longer than the first
            }
            made.push(self.pair(number, &variables)?);
        }
        Ok(Confirmation::from_pairs(made))
    }

    fn pair(&mut self, number: usize, variables: &[(String, String)]) -> Result<RunPair> {
        let mut walls = [Duration::ZERO; 2];
        for is_injected in confirm::order(number) {
            let (what, with) = match is_injected {
                true => ("injected", "with injection"),
                false => ("bare", "without lapscope"),
            };
            self.bar.begin(&format!("pair {} of whole runs, {with}", number + 1));
            let name = format!("pair-{}-{what}", number + 1);
            let variables = is_injected.then_some(variables);
            walls[usize::from(is_injected)] =
                self.session.time_whole(&name, variables, &self.bar)?;
            self.bar.end();
        }
        let pair = RunPair::new(walls[0], walls[1]);
        self.bar.say(&[pair_line(number + 1, &pair)]);
        Ok(pair)
    }

    /// Where in the program the tests would go that were found to gain something: of the advice with most at stake.
    fn by_hand(&self, known: &FirstRunResults) -> Option<String> {
        let tests = known.advice.iter().filter(|advice| advice.is_for_tests());
        let sampled = tests.filter(|advice| advice.computes.is_some());
        let place = sampled.max_by_key(|advice| advice.time_ns)?.computes.as_ref()?.by_hand()?;
        let run = known.launched.directory.display();
        let how = self.session.keeps().then(|| format!(" The code: lapscope report --how {run}"));
        Some(place + &how.unwrap_or_default())
    }

    fn named(&self, InjectionSetting { mode, interval_us }: InjectionSetting) -> String {
        match mode {
            Mode::Sends => format!("sends of up to {} from copies", bytes(self.copied_bytes)),
            _ => format!("{} every {interval_us} us", mode.word()),
        }
    }

    /// The value of LAPSCOPE_BUFFER_SENDS.
    fn copied(&self, mode: Mode) -> String {
        match mode {
            Mode::Sends => self.copied_bytes.to_string(),
            _ => self.copied_anyway.clone(),
        }
    }

    /// Runs the best setting without the call sites that gain nothing, if there are any and another run is allowed.
    fn check_policy(&mut self, known: &FirstRunResults) -> Result<Option<Trial>> {
        let Some(best) = choice::best(&self.tried) else { return Ok(None) };
        if best.setting.mode == Mode::Sends {
            return Ok(None); // they all go from copies
        }
        let policy = choice::policy(best, known.first.run_ns, self.heading(best), true);
        let is_allowed = self.search.has_room(&self.tried) && self.has_time(known);
        let run_ns = known.first.run_ns;
        let leaves_out_more =
            best.injection.sites.iter().any(|site| choice::leaves_out(site, run_ns));
        if !is_allowed || !leaves_out_more || policy.rules.iter().all(|rule| rule.on) {
            return Ok(None);
        }
        let setting = best.setting;
        let file = self.session.file("policy");
        std::fs::write(&file, policy.to_string()).with_context(|| file.display().to_string())?;
        self.try_out(setting, known, Some(&file)).map(Some)
    }

    fn heading(&self, best: &Trial) -> Vec<String> {
        let line = shell::join(self.asked.command);
        vec![
            format!("For LAPSCOPE_INJECT_POLICY, made by: lapscope tune -- {line}"),
            format!("with {}", self.named(best.setting)),
        ]
    }

    /// What to set so that injection is as in the best run, all the time.
    fn environment(&self, setting: InjectionSetting, policy: &Path) -> Result<Vec<Variable>> {
        if setting.mode == Mode::Sends {
            let mb = "LAPSCOPE_BUFFER_SENDS_MB";
            let memory = self.session.setting(mb);
            let size = Variable::new("LAPSCOPE_BUFFER_SENDS", self.copied(setting.mode));
            let memory = memory.map(|value| Variable::new(mb, value.to_string_lossy().into()));
            return Ok([size].into_iter().chain(memory).collect());
        }
        let policy = std::path::absolute(policy)?.to_string_lossy().into_owned();
        let mut variables = vec![
            Variable::new("LAPSCOPE_INJECT", setting.mode.word().to_owned()),
            Variable::new("LAPSCOPE_INJECT_INTERVAL_US", setting.interval_us.to_string()),
            Variable::new("LAPSCOPE_INJECT_POLICY", policy),
        ];
        for name in ["MIN_BYTES", "BUDGET", "CLOCK", "SIGNAL"] {
            let name = format!("LAPSCOPE_INJECT_{name}");
            let value = self.session.setting(&name);
            variables
                .extend(value.map(|value| Variable::new(&name, value.to_string_lossy().into())));
        }
        Ok(variables)
    }
}

fn read_first(
    launched: &Launched,
    min_bytes: u64,
    wrappers: &[String],
) -> Result<(FirstRun, Vec<Advice>)> {
    let mut open = OpenRun::open(Some(&launched.directory))?;
    open.find_wrappers(wrappers)?;
    let mut view = View::whole(open.trace(&[], Grouping::Line)?);
    let advice = advise(&mut open, &mut view)?;
    let crowd = Crowd::measure(&view.trace, &store::host_name());
    Ok((FirstRun { crowd, ..FirstRun::new(&view.trace, &advice, min_bytes) }, advice))
}
