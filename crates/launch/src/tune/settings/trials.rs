//! Goes through the settings of an MPI: pairs of whole runs of the bare program, one as it is and one with the setting, in
//! alternating order.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::candidate::{asked_for, candidates, CandidateSetting, NotTried};
use super::document::{
    BestSetting, SettingPair, SettingProof, SettingsAnswer, SettingsResult, StoppedBy, TriedSetting,
};
use super::first::MpiOfRun;
use super::printed::Printed;
use super::proof::{Proof, MOST_PAIRS};
use super::search::{Screened, SearchStep, SettingsSearch};
use super::table;
use crate::tune::bar::{signed_percent, TrialBar};
use crate::tune::confirm;
use crate::tune::session::{was_interrupted, Session};
use crate::tune::trial::nanos;
use crate::tune::variable::Variable;
use lapscope_data::text::units::{percent, time};

/// What was tried so far, in the directory of the runs: `--from` goes on with it.
pub const FILE: &str = "settings.json";
/// Pairs of a proof that time is kept for while settings are screened: five where runs hardly differ, some more where they do.
const KEPT_PAIRS: u32 = 7;

/// A search among settings under way.
pub struct SettingsTrials<'t, 'a> {
    session: &'t mut Session<'a>,
    bar: &'t TrialBar,
    run: MpiOfRun,
    search: SettingsSearch,
    tried: Vec<TriedSetting>,
    not_tried: Vec<NotTried>,
    /// What an earlier search tried.
    earlier: Vec<TriedSetting>,
    proof: Vec<SettingPair>,
    printed: Printed,
    usual: Duration,
    until: Option<Instant>,
    stopped: Option<StoppedBy>,
    pairs: usize,
}

/// What an earlier search left in its directory.
///
/// # Errors
/// It is not what a search leaves.
pub fn of_earlier(directory: &Path) -> Result<Vec<TriedSetting>> {
    let file = directory.join(FILE);
    match std::fs::read_to_string(&file) {
        Err(_) => Ok(Vec::new()),
        Ok(text) => serde_json::from_str(&text).with_context(|| file.display().to_string()),
    }
}

impl<'t, 'a> SettingsTrials<'t, 'a> {
    /// `usual`: how long a run takes; no run begins that would end after `until`.
    pub fn new(
        session: &'t mut Session<'a>,
        bar: &'t TrialBar,
        run: MpiOfRun,
        earlier: Vec<TriedSetting>,
        (usual, until): (Duration, Option<Instant>),
    ) -> SettingsTrials<'t, 'a> {
        let own = |name: &str| std::env::var_os(name).is_some();
        let asked = session.options.own_settings;
        let (found, not_tried) = match asked.is_empty() {
            true => candidates(&table::lines(), &run, own),
            false => (asked_for(asked, &run), Vec::new()),
        };
        let mut trials = SettingsTrials {
            session,
            bar,
            run,
            search: SettingsSearch::default(),
            tried: Vec::new(),
            not_tried,
            earlier,
            proof: Vec::new(),
            printed: Printed::default(),
            usual,
            until,
            stopped: None,
            pairs: 0,
        };
        found.into_iter().for_each(|candidate| trials.add(candidate));
        trials
    }

    /// To be tried, unless that was done already.
    fn add(&mut self, candidate: CandidateSetting) {
        let known = self.earlier.iter().find(|it| it.candidate.variables == candidate.variables);
        let tried = match known {
            Some(known) => TriedSetting { candidate, ..known.clone() },
            None => TriedSetting::new(candidate),
        };
        let same = |it: &TriedSetting| it.candidate.names() == tried.candidate.names();
        let place = self.tried.iter().position(same).unwrap_or(self.tried.len());
        let variable = (!tried.candidate.is_combination).then_some(place);
        let logs = tried.pairs.iter().map(SettingPair::log).collect();
        self.search.screened.push(Screened { logs, failed: tried.failed.is_some(), variable });
        self.tried.push(tried);
    }

    /// Tries settings until the answer is known, the time is over, or the user ends it.
    ///
    /// # Errors
    /// The program cannot be started, or fails as it is.
    pub fn run(mut self) -> Result<SettingsAnswer> {
        self.say_what_comes();
        while let Some(step) = self.search.next_step() {
            if !self.has_time(step) {
                continue; // the search is closed now
            }
            if self.stopped.is_some() {
                break;
            }
            let went = match step {
                SearchStep::Combine(one, other) => {
                    let both = self.tried[one].candidate.combined(&self.tried[other].candidate);
                    self.add(both);
                    Ok(())
                }
                SearchStep::Screen(which) | SearchStep::Prove(which) => self.pair(step, which),
            };
            match went {
                Err(error) if was_interrupted(&error) => {
                    self.stopped = Some(StoppedBy::Interrupt);
                    break;
                }
                went => went?,
            }
            self.save()?;
        }
        Ok(self.answer())
    }

    fn say_what_comes(&self) {
        if self.tried.is_empty() {
            return;
        }
        let most = self.search.most_pairs() as u32;
        self.bar.say(&[format!(
            "settings of {}: {} to try, by at most {most} pairs of whole runs without lapscope ({})",
            self.run.identity.title(),
            self.tried.len(),
            time(nanos(self.usual * 2 * most))
        )]);
    }

    /// Whether the next pair may begin. While settings are screened, time is kept for the proof of one that has gained.
    fn has_time(&mut self, step: SearchStep) -> bool {
        let Some(until) = self.until else { return true };
        let left = until.saturating_duration_since(Instant::now());
        let fitting = confirm::that_fit(Some(left), self.usual) / 2;
        let has_gained = self.tried.iter().any(|tried| tried.gain.is_some_and(|gain| gain > 0.0));
        match step {
            SearchStep::Prove(_) if fitting == 0 => self.stopped = Some(StoppedBy::Budget),
            SearchStep::Screen(_) | SearchStep::Combine(..)
                if fitting <= KEPT_PAIRS * u32::from(has_gained) =>
            {
                self.search.close();
                self.bar.say(&["the time is short: what is left of it proves the best so far"]);
                return false;
            }
            _ => {}
        }
        true
    }

    /// A pair of runs, and what it shows.
    fn pair(&mut self, step: SearchStep, which: usize) -> Result<()> {
        let variables = self.tried[which].candidate.variables.clone();
        let left = self.search.most_pairs() as u32;
        self.bar.expect_more(2 * left);
        let number = self.pairs;
        self.pairs += 1;
        let mut walls = [Duration::ZERO; 2];
        for is_set in confirm::order(number) {
            let what = if is_set { named(&variables) } else { "as it is".to_owned() };
            self.bar.begin(&format!("whole runs, pair {}: {what}", number + 1));
            let name =
                format!("settings-{}-{}", number + 1, if is_set { "with" } else { "without" });
            let set = if is_set { &variables[..] } else { &[] };
            let ended = self.session.time_bare(&name, set, self.bar)?;
            self.bar.end();
            match ended {
                Ok(wall) => {
                    walls[usize::from(is_set)] = wall;
                    let file = self.session.output(&name, "stdout");
                    self.printed.add(is_set.then_some(which), &file);
                }
                Err(reason) if is_set => {
                    self.bar.say(&[format!("{what}: {reason}")]);
                    self.tried[which].failed = Some(reason);
                    self.search.screened[which].failed = true;
                    return Ok(());
                }
                Err(reason) => anyhow::bail!("the program as it is: {reason}"),
            }
        }
        // what else a machine does makes runs longer than the first one was
        self.usual = self.usual.max((walls[0] + walls[1]) / 2);
        let pair = SettingPair::new(walls[0], walls[1]);
        self.bar.say(&[format!(
            "{}: {}, {} as it is: gain {}",
            named(&variables),
            time(pair.with_ns),
            time(pair.without_ns),
            signed_percent(pair.gain)
        )]);
        match step {
            SearchStep::Prove(_) => self.proof.push(pair),
            _ => self.tried[which].add(pair),
        }
        self.search.learn(step, pair.log());
        Ok(())
    }

    /// What was tried so far, for a search that goes on.
    fn save(&self) -> Result<()> {
        let file = self.session.file(FILE);
        let text = serde_json::to_string_pretty(&self.tried)?;
        std::fs::write(&file, text).with_context(|| file.display().to_string())
    }

    // --- what follows ------------------------------------------------------------------------------------------------

    fn answer(mut self) -> SettingsAnswer {
        let mpi = self.run.identity.title();
        let proof = self.search.proof().cloned();
        let which = proof.as_ref().map(|(which, _)| *which).or_else(|| self.search.best());
        let pairs = std::mem::take(&mut self.proof);
        let proved = proof.as_ref().and_then(|(_, proof)| SettingProof::from_pairs(pairs, proof));
        let best = which.map(|which| {
            let candidate = self.tried[which].candidate.clone();
            BestSetting::new(candidate, proved, self.run.identity.family.name())
        });
        let was_tried = self.tried.iter().any(|it| !it.pairs.is_empty() || it.failed.is_some());
        let is_certain = proof.as_ref().is_some_and(|(_, proof)| proof.is_certain());
        let found = match (&best, was_tried) {
            (Some(_), _) if is_certain => SettingsResult::Gain,
            (Some(_), _) => SettingsResult::Unproved,
            (None, true) => SettingsResult::NoGain,
            (None, false) => SettingsResult::NothingToTry,
        };
        if self.stopped.is_none() && self.tried.iter().any(is_left) {
            self.stopped = Some(StoppedBy::Budget);
        }
        let mut notes = notes(best.as_ref(), proof.as_ref().map(|(_, proof)| proof));
        let changed = which.zip(best.as_ref());
        notes.extend(changed.and_then(|(which, best)| {
            self.printed.changed(which, &named(&best.candidate.variables))
        }));
        let (left, tried): (Vec<_>, Vec<_>) = self.tried.into_iter().partition(is_left);
        let left = left.into_iter().map(|it| NotTried {
            variables: it.candidate.variables,
            reason: "there was no time left".to_owned(),
        });
        self.not_tried.extend(left);
        let (not_tried, stopped) = (self.not_tried, self.stopped);
        SettingsAnswer { mpi, found, best, tried, not_tried, stopped, notes }
    }
}

fn is_left(tried: &TriedSetting) -> bool {
    tried.pairs.is_empty() && tried.failed.is_none()
}

/// "A=1 B=2"
pub fn named(variables: &[Variable]) -> String {
    let words: Vec<String> =
        variables.iter().map(|it| format!("{}={}", it.name, it.value)).collect();
    words.join(" ")
}

fn notes(best: Option<&BestSetting>, proof: Option<&Proof>) -> Vec<String> {
    let mut notes = Vec::new();
    let Some((best, proof)) = best.zip(proof) else { return notes };
    let of_pairs = best.proof.as_ref();
    if let Some(of_pairs) = of_pairs.filter(|it| !it.is_certain) {
        let gains = || of_pairs.pairs.iter().map(|pair| pair.gain);
        let least = gains().fold(f64::INFINITY, f64::min);
        let most = gains().fold(f64::NEG_INFINITY, f64::max);
        if most - least > of_pairs.estimate.abs() {
            notes.push(format!(
                "Pairs of runs differ by {}, more than the gain of {}: a longer run, or processors without other work, tell more.",
                percent(most - least),
                signed_percent(of_pairs.estimate)
            ));
        }
        if proof.pairs() >= MOST_PAIRS {
            notes.push(format!("{MOST_PAIRS} pairs of runs did not settle it."));
        }
    }
    let certain = of_pairs.filter(|it| it.is_certain);
    let most = best.candidate.at_stake.max(best.candidate.predicted.unwrap_or_default());
    let more = certain.filter(|it| it.gain.is_some_and(|gain| gain.low > most));
    if let Some(more) = more {
        notes.push(format!(
            "{} is more than the {} of the run time that was at stake: something else differs between these runs, too.",
            percent(more.estimate),
            percent(most)
        ));
    }
    notes
}
