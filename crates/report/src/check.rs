//! Runs held against limits, and against earlier runs: what `lapscope check` answers.

pub(crate) mod alike;
mod judge;
mod names;
mod runs;
mod sites;

use serde::Serialize;
use serde_json::Value;

use lapscope_data::model::Nanos;
use lapscope_data::text::units::time;
use lapscope_data::JSON_VERSION;
use lapscope_measure::efficiency::Bounds;
use lapscope_trace::stats::Interval;

pub use names::{Name, SHORT_NAMES};
pub use runs::{read_baseline, unfit_for_baseline, write_baseline, CheckedRun};
pub use sites::ChangedSite;

/// What `lapscope check` says. Keys are documented in `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct Check {
    pub json_version: u32,
    /// Of all checks.
    pub verdict: Verdict,
    pub runs: Vec<String>,
    pub against: Vec<String>,
    /// A smaller change, as a fraction, is none.
    pub tolerance: f64,
    /// What to know before believing it.
    pub notes: Vec<String>,
    pub checks: Vec<CheckRow>,
    /// Whose time changed most, the largest first; `None`: nothing to compare with.
    pub sites: Option<Vec<ChangedSite>>,
    /// What following a piece of advice gained.
    pub advice: Option<FollowedAdvice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Holds,
    NotJudged,
    FallsShort,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    Max,
    Min,
    Against,
}

/// One number that was checked.
#[derive(Debug, Clone, Serialize)]
pub struct CheckRow {
    /// As it was asked for.
    pub what: String,
    /// Its name in the report.
    pub name: String,
    pub kind: CheckKind,
    pub verdict: Verdict,
    /// Mean over the runs, or over the earlier ones; `None`: a run has no such number.
    pub value: Option<f64>,
    /// The limit, or the mean of the earlier runs.
    pub limit: Option<f64>,
    /// Against earlier runs: the change as a fraction of theirs, or the difference of fractions, with its 95 % interval; `None`: too
    /// few runs.
    pub change: Option<Interval>,
    pub sentence: String,
}

/// A piece of advice of the earlier runs, what it promised, and what was measured.
#[derive(Debug, Clone, Serialize)]
pub struct FollowedAdvice {
    /// Its place in `advice` of the first earlier run.
    pub number: usize,
    pub cure: String,
    pub cause: String,
    pub headline: String,
    /// Where the time went by, and where something was to change, as that run's report has it.
    pub waiting: Value,
    pub change: Value,
    /// What following it could save, as a fraction of the run time.
    pub predicted: Bounds,
    /// Run time that was saved, as a fraction of that of the earlier runs, with its 95 % interval; `None`: too few runs, or ranks that
    /// lacked processors.
    pub verified: Option<Interval>,
    pub sentence: String,
}

/// A limit that somebody set.
#[derive(Debug, Clone)]
pub struct Limit {
    pub name: Name,
    pub is_max: bool,
    pub value: f64,
}

/// What is compared where nothing else is said.
const COMPARED: [&str; 4] = ["run-time", "exposed", "efficiency", "step"];

/// Says in what falls short against earlier runs whose time grew most.
fn name_sites(checks: &mut [CheckRow], changed: &[ChangedSite]) {
    let Some(most) = changed.iter().find(|site| site.difference_ns > Nanos(0)) else { return };
    let is_short =
        |row: &&mut CheckRow| row.kind == CheckKind::Against && row.verdict == Verdict::FallsShort;
    for row in checks.iter_mut().filter(is_short) {
        row.sentence +=
            &format!("; most grew {}, by {} a rank", most.place(), time(most.difference_ns));
    }
}

impl Check {
    /// Holds runs against limits and, where there are any, against earlier runs.
    ///
    /// # Errors
    /// There is no such advice, or a run is named twice; as a sentence.
    pub fn new(
        runs: &[CheckedRun],
        against: &[CheckedRun],
        limits: &[Limit],
        (tolerance, advice): (f64, Option<usize>),
    ) -> Result<Check, String> {
        for side in [runs, against] {
            alike::refuse_twice(side)?;
        }
        let mut checks: Vec<CheckRow> =
            limits.iter().map(|limit| judge::limit(limit, runs)).collect();
        let mut sites = None;
        if !against.is_empty() {
            let compared = COMPARED.iter().filter_map(|name| Name::find(name));
            let sides = judge::SidesOfCheck { runs, against, tolerance };
            checks.extend(compared.filter_map(|name| judge::compare(&name, &sides)));
            let is_comparable = alike::other_ranks(runs, against).is_none();
            let changed = if is_comparable { sites::changed(runs, against) } else { Vec::new() };
            name_sites(&mut checks, &changed);
            sites = Some(changed);
        }
        let verdict = checks.iter().map(|row| row.verdict).max().unwrap_or(Verdict::NotJudged);
        Ok(Check {
            json_version: JSON_VERSION,
            verdict,
            runs: runs.iter().map(|run| run.name.clone()).collect(),
            against: against.iter().map(|run| run.name.clone()).collect(),
            tolerance,
            notes: alike::notes(runs, against),
            checks,
            sites,
            advice: advice.map(|number| judge::followed(number, runs, against)).transpose()?,
        })
    }
}
