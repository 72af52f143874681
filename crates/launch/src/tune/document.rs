//! What a search has found, for people and for programs.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;

use super::choice::hidden_cost;
use super::confirm::Confirmation;
use super::first::{FirstRun, Hopeless, Slots};
use super::policy::{Policy, PolicySite};
use super::settings::document::SettingsAnswer;
use super::trial::{nanos, InjectionSetting, Trial};
use super::variable::Variable;
use crate::run::Mode;
use lapscope_advise::advice::{Advice, Cure};
use lapscope_data::model::Nanos;
use lapscope_data::JSON_VERSION;
use lapscope_measure::injection::{SiteInjection, WholeGain};
use lapscope_trace::stats::Interval;

/// Keys are documented in `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct TuneDocument {
    pub json_version: u32,
    pub command: Vec<String>,
    pub found: TuneResult,
    /// Why it was not even tried.
    pub hopeless: Option<Hopeless>,
    pub first: FirstRun,
    pub slots: Option<Slots>,
    pub runs: Vec<RunRow>,
    pub best: Option<Best>,
    /// What whole runs with the best setting gained; `null`: none was made.
    pub confirmation: Option<Confirmation>,
    pub sites: Vec<InjectedSite>,
    /// What was found of the MPI's own settings; `None`: they were not tried.
    pub settings: Option<SettingsAnswer>,
    /// Which of the two surely gains most; `None`: neither surely gains.
    pub best_of_all: Option<BestOfAll>,
    /// The user ended it: what was learned until then.
    pub is_interrupted: bool,
    /// Sentences on what to know of all this.
    pub notes: Vec<String>,
    /// What would help instead; where injection does, the advice that it follows, with what that gained.
    pub advice: Vec<Advice>,
    /// Where the recorded runs are; `null`: nowhere.
    pub directory: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TuneResult {
    /// A setting that makes the program faster.
    Gain,
    /// Slots of one run promise a gain that whole runs do not show for certain.
    Unconfirmed,
    /// None of those that were tried surely does.
    NoGain,
    /// The first run shows that none can.
    NothingToGain,
    /// Injection was not asked for, or the user ended the search before.
    NotTried,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BestOfAll {
    Injection,
    Settings,
}

/// The setting to use.
#[derive(Debug, Serialize)]
pub struct Best {
    pub run: String,
    #[serde(flatten)]
    pub setting: InjectionSetting,
    /// What whole runs gained; `null`: none was made.
    pub gain: Option<Interval>,
    /// What slots of one run promise, with a confidence of 95 %.
    pub slots_gain: Interval,
    pub hidden_cost: f64,
    /// Variables to set.
    pub environment: Vec<Variable>,
    pub policy: PathBuf,
}

/// A run with injection.
#[derive(Debug, Serialize)]
pub struct RunRow {
    pub run: String,
    #[serde(flatten)]
    pub setting: InjectionSetting,
    pub with_policy: bool,
    pub ab_slot_ns: Option<Nanos>,
    pub wall_ns: Nanos,
    /// What the program gained; `null` keys where it is not known.
    pub whole: Option<WholeGain>,
    pub cost: f64,
    pub tests: u64,
    pub found: u64,
    pub idle_slowdown: Option<f64>,
    pub hidden_cost: f64,
}

impl RunRow {
    pub fn for_trial(trial: &Trial, tried: &[Trial]) -> RunRow {
        RunRow {
            run: trial.name.clone(),
            setting: trial.setting,
            with_policy: trial.with_policy,
            ab_slot_ns: trial.injection.ab_slot_ns,
            wall_ns: nanos(trial.wall),
            whole: trial.injection.whole.clone(),
            cost: trial.cost(),
            tests: trial.tests(),
            found: trial.found(),
            idle_slowdown: trial.idle_slowdown,
            hidden_cost: hidden_cost(trial.setting, tried),
        }
    }
}

/// A call site whose requests were large enough.
#[derive(Debug, Serialize)]
pub struct InjectedSite {
    /// As the policy has it.
    pub on: bool,
    #[serde(flatten)]
    pub injection: SiteInjection,
}

impl InjectedSite {
    /// Several addresses of a site have the same rule.
    pub fn from_injection(site: &SiteInjection, policy: &Policy) -> InjectedSite {
        let mut places =
            site.addresses.iter().filter_map(|address| PolicySite::for_post(&site.call, address));
        let on = places.next().map_or(true, |place| policy.is_on(&place));
        InjectedSite { on, injection: site.clone() }
    }
}

impl TuneDocument {
    /// What the first run tells.
    pub fn new(command: &[OsString], first: FirstRun) -> TuneDocument {
        TuneDocument {
            json_version: JSON_VERSION,
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            found: TuneResult::NothingToGain,
            hopeless: None,
            first,
            slots: None,
            runs: Vec::new(),
            best: None,
            confirmation: None,
            sites: Vec::new(),
            settings: None,
            best_of_all: None,
            is_interrupted: false,
            notes: Vec::new(),
            advice: Vec::new(),
            directory: None,
        }
    }

    /// Says which of both gains most, and is certain to gain. Settings, which need nothing of lapscope, where both gain as much.
    pub fn compare(&mut self) {
        let settings = self.settings.as_ref().and_then(SettingsAnswer::certain_gain);
        let best = self.best.as_ref().filter(|_| self.found == TuneResult::Gain);
        let injection = best.map(|best| best.gain.unwrap_or(best.slots_gain));
        self.best_of_all = match (settings, injection) {
            (Some(settings), Some(injection)) if settings.estimate < injection.estimate => {
                Some(BestOfAll::Injection)
            }
            (Some(_), _) => Some(BestOfAll::Settings),
            (None, Some(_)) => Some(BestOfAll::Injection),
            (None, None) => None,
        };
    }

    /// What helps where injection does not: calls of MPI_Test that are advised are what was injected, if it was. Where it does, these,
    /// with what whole runs gained by all of them together.
    pub fn advise(&mut self, advice: Vec<Advice>, were_made: bool) {
        self.advice = advice;
        if self.found == TuneResult::Gain {
            let verified = self.confirmation.as_ref().map(|confirmation| confirmation.gain);
            let is_copied = self.best.as_ref().is_some_and(|best| best.setting.mode == Mode::Sends);
            self.advice.retain(|advice| match is_copied {
                true => advice.or_copy.is_some(),
                false => advice.is_for_tests(),
            });
            self.advice.iter_mut().for_each(|advice| advice.verified = verified);
        } else if were_made {
            self.advice.retain(|advice| advice.cure != Cure::Test);
            self.advice.iter_mut().for_each(|advice| advice.or_test = None);
        }
    }
}
