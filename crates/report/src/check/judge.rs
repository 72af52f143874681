//! What a number of some runs says against a limit, and against the same number of earlier runs.

use std::ops::Neg;

use super::alike;
use super::names::Name;
use super::runs::{in_part, starved, CheckedRun};
use super::{CheckKind, CheckRow, FollowedAdvice, Limit, Verdict};
use lapscope_data::model::Nanos;
use lapscope_data::text::plural;
use lapscope_data::text::units::{percent, time};
use lapscope_measure::efficiency::Bounds;
use lapscope_trace::stats::{student_975, Interval};

/// Fewer runs of a side tell no interval that is worth anything.
const FEWEST_RUNS: usize = 3;

/// Mean, variance of that mean, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeanOfRuns {
    pub mean: f64,
    variance: f64,
    count: f64,
}

impl MeanOfRuns {
    /// `None`: of nothing.
    pub fn new(values: &[f64]) -> Option<MeanOfRuns> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let variance = squares / (count - 1.0).max(1.0) / count;
        (!values.is_empty()).then_some(MeanOfRuns { mean, variance, count })
    }

    /// By how much the mean of others is more than this one, with its 95 % interval: Welch's (1947), which takes neither spread for
    /// the other's.
    pub fn to(self, other: MeanOfRuns) -> Interval {
        let variance = self.variance + other.variance;
        let part = |it: MeanOfRuns| it.variance.powi(2) / (it.count - 1.0);
        let freedom = variance.powi(2) / (part(self) + part(other));
        let reach = if variance > 0.0 { variance.sqrt() * student_975(freedom) } else { 0.0 };
        let estimate = other.mean - self.mean;
        Interval { low: estimate - reach, estimate, high: estimate + reach }
    }
}

/// How a number is shown.
pub(super) fn shown(name: &Name, value: f64) -> String {
    match name.is_time() {
        true => time(Nanos(value.round() as i64)),
        false if is_count(name, value) => format!("{value:.0}"),
        _ => percent(value),
    }
}

/// Requests, calls, bytes: nothing that a lack of processors changes.
fn is_count(name: &Name, value: f64) -> bool {
    !name.is_time() && value.fract() == 0.0 && !name.is_share()
}

/// Why that number of these runs tells nothing.
fn unfit(name: &Name, value: f64, runs: &[CheckedRun]) -> Option<String> {
    in_part(runs).or_else(|| starved(runs).filter(|_| !is_count(name, value)))
}

/// The values of all runs: the least and the most.
fn values(name: &Name, runs: &[CheckedRun]) -> Option<Vec<(f64, f64)>> {
    let values: Option<Vec<_>> = runs.iter().map(|run| run.value(&name.pointer)).collect();
    values.filter(|values| !values.is_empty())
}

fn mean(values: &[(f64, f64)], of: fn(&(f64, f64)) -> f64) -> f64 {
    values.iter().map(of).sum::<f64>() / values.len() as f64
}

/// What is not known of a number, as GPUs may have computed in some run, and nobody knows when.
#[derive(Debug, Clone, Copy)]
struct GpuDoubt {
    may_be_less: bool,
    may_be_more: bool,
}

impl GpuDoubt {
    fn of(name: &Name, runs: &[CheckedRun]) -> GpuDoubt {
        let is_there = runs.iter().any(CheckedRun::is_upper_bound);
        GpuDoubt {
            may_be_less: is_there && name.gpus_may_lessen(),
            may_be_more: is_there && name.gpus_may_raise(),
        }
    }

    /// They may have computed all the while.
    fn least(self, low: f64) -> f64 {
        if self.may_be_less {
            low.min(0.0)
        } else {
            low
        }
    }

    fn most(self, high: f64) -> f64 {
        if self.may_be_more {
            f64::INFINITY
        } else {
            high
        }
    }

    /// Behind the number.
    fn in_words(self) -> &'static str {
        match (self.may_be_less, self.may_be_more) {
            (false, false) => "",
            (true, false) => " or less, as GPUs may have computed meanwhile",
            (false, true) => " or more, as GPUs may have computed meanwhile",
            (true, true) => ", or less or more, as GPUs may have computed meanwhile",
        }
    }
}

pub(super) fn limit(limit: &Limit, runs: &[CheckedRun]) -> CheckRow {
    let name = &limit.name;
    let row = |verdict, value, sentence| CheckRow {
        what: name.asked.clone(),
        name: name.dotted(),
        kind: if limit.is_max { CheckKind::Max } else { CheckKind::Min },
        verdict,
        value,
        limit: Some(limit.value),
        change: None,
        sentence,
    };
    let Some(values) = values(name, runs) else {
        let without = runs.iter().find(|run| run.value(&name.pointer).is_none());
        let run = without.map_or("a run", |run| run.name.as_str());
        return row(Verdict::NotJudged, None, format!("{} is not known of {run}", name.asked));
    };
    let (low, high) = (mean(&values, |it| it.0), mean(&values, |it| it.1));
    let value = (low + high) / 2.0;
    let doubt = GpuDoubt::of(name, runs);
    let is_within = |value: f64| match limit.is_max {
        true => value <= limit.value,
        false => value >= limit.value,
    };
    let verdict = match (is_within(doubt.least(low)), is_within(doubt.most(high))) {
        (true, true) => Verdict::Holds,
        (false, false) => Verdict::FallsShort,
        _ => Verdict::NotJudged,
    };
    let than = if limit.is_max { "at most" } else { "at least" };
    let is = match low < high {
        true => format!("{} to {}", shown(name, low), shown(name, high)),
        false => shown(name, value),
    };
    let sentence = format!(
        "{} is {is}{}, and has to be {than} {}",
        name.asked,
        doubt.in_words(),
        shown(name, limit.value)
    );
    match unfit(name, value, runs) {
        Some(why) => row(Verdict::NotJudged, Some(value), format!("{sentence}; {why}")),
        None => row(verdict, Some(value), sentence),
    }
}

/// Runs, and the earlier ones that they are held against.
pub(super) struct SidesOfCheck<'a> {
    pub runs: &'a [CheckedRun],
    pub against: &'a [CheckedRun],
    /// A smaller change is none.
    pub tolerance: f64,
}

impl SidesOfCheck<'_> {
    /// Why a difference of these runs tells nothing of the program.
    fn tell_nothing(&self, name: &Name, (old, new): (MeanOfRuns, MeanOfRuns)) -> Option<String> {
        let fewest = self.runs.len().min(self.against.len());
        let are_few = fewest < FEWEST_RUNS;
        let few = are_few.then(|| {
            let s = plural(fewest as u64);
            format!("{fewest} run{s} of a side cannot tell that from chance; {FEWEST_RUNS} can")
        });
        alike::other_ranks(self.runs, self.against)
            .or_else(|| self.other_bounds(name))
            .or(few)
            .or_else(|| unfit(name, new.mean, self.runs))
            .or_else(|| unfit(name, old.mean, self.against))
    }

    /// What GPUs computed meanwhile is not in the exposed time of the one, and in that of the other.
    fn other_bounds(&self, name: &Name) -> Option<String> {
        let all = || self.runs.iter().chain(self.against);
        let (without, with): (Vec<_>, Vec<_>) = all().partition(|run| run.is_upper_bound());
        let names = |runs: Vec<&CheckedRun>| {
            runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let is_other = !with.is_empty() && !without.is_empty();
        (is_other && (name.gpus_may_lessen() || name.gpus_may_raise())).then(|| {
            format!(
                "it is known when GPUs computed of {}, and not of {}",
                names(with),
                names(without)
            )
        })
    }

    /// Those that have no such number.
    fn lack(&self, name: &Name) -> String {
        let all = self.runs.iter().chain(self.against);
        let without = all.filter(|run| run.value(&name.pointer).is_none());
        without.map(|run| run.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// `None`: neither side has such a number.
pub(super) fn compare(name: &Name, sides: &SidesOfCheck<'_>) -> Option<CheckRow> {
    let row = |verdict, values: Option<(f64, f64)>, change, sentence: String| CheckRow {
        what: name.asked.clone(),
        name: name.dotted(),
        kind: CheckKind::Against,
        verdict,
        value: values.map(|it| it.1),
        limit: values.map(|it| it.0),
        change,
        sentence: format!("{} {sentence}", name.asked),
    };
    let (before, after) = match (values(name, sides.against), values(name, sides.runs)) {
        (None, None) => return None,
        (Some(before), Some(after)) => (before, after),
        _ => {
            let why = format!("is not known of {}", sides.lack(name));
            return Some(row(Verdict::NotJudged, None, None, why));
        }
    };
    let middle = |values: &[(f64, f64)]| -> Vec<f64> {
        values.iter().map(|(low, high)| (low + high) / 2.0).collect()
    };
    let (before, after) = (middle(&before), middle(&after));
    let (old, new) = (MeanOfRuns::new(&before)?, MeanOfRuns::new(&after)?);
    let means = Some((old.mean, new.mean));
    let is = format!("is {}, and was {}", shown(name, new.mean), shown(name, old.mean));
    if alike::are_same(sides.runs, sides.against) {
        return Some(row(Verdict::Holds, means, None, format!("{is}: the same runs")));
    }
    if let Some(why) = sides.tell_nothing(name, (old, new)) {
        return Some(row(Verdict::NotJudged, means, None, format!("{is}; {why}")));
    }
    let change = change(name, old, new);
    if change.is_some_and(|it| !(it.low.is_finite() && it.high.is_finite())) {
        let why = format!("{is}; these are no numbers that runs have");
        return Some(row(Verdict::NotJudged, None, None, why));
    }
    let worse = match name.is_more_better() {
        Some(true) => change.map(Neg::neg),
        _ => change,
    };
    let is_worse = worse.is_some_and(|it| it.low > 0.0 && it.estimate > sides.tolerance);
    let verdict = if is_worse { Verdict::FallsShort } else { Verdict::Holds };
    let by = change.map_or_else(String::new, |it| format!(": {}", in_words(it)));
    Some(row(verdict, means, change, format!("{is}{by}")))
}

/// As a fraction of the earlier mean; of what is a fraction itself, the difference: of a share of a thousandth no multiple matters.
fn change(name: &Name, old: MeanOfRuns, new: MeanOfRuns) -> Option<Interval> {
    let difference = old.to(new);
    match name.is_time() || is_count(name, old.mean) {
        true => (old.mean != 0.0).then(|| difference.map(|it| it / old.mean.abs())),
        false => Some(difference),
    }
}

/// "+8.1 % (+6.0 % to +10.2 % with 95 % confidence)"
fn in_words(change: Interval) -> String {
    format!("{} ({})", signed(change.estimate), confidence(change))
}

/// A share below zero has a sign of its own.
fn signed(value: f64) -> String {
    match value < 0.0 {
        true => format!("−{}", percent(-value)),
        false => format!("+{}", percent(value)),
    }
}

/// "+6.0 % to +10.2 % with 95 % confidence"
fn confidence(change: Interval) -> String {
    format!("{} to {} with 95 % confidence", signed(change.low), signed(change.high))
}

pub(super) fn followed(
    number: usize,
    runs: &[CheckedRun],
    against: &[CheckedRun],
) -> Result<FollowedAdvice, String> {
    let base = against.first().ok_or("--advice needs --against: the runs that had that advice")?;
    let advice = &base.report["advice"];
    let count = advice.as_array().map_or(0, Vec::len);
    let advice = advice.get(number).ok_or_else(|| {
        format!("--advice {number}: {} has {count} pieces of advice, from 0 on", base.name)
    })?;
    let share = |key: &str| advice["predicted"][key].as_f64().unwrap_or(0.0);
    let predicted = Bounds { low: share("low"), high: share("high") };
    let run_time = Name::new("run-time");
    let row = compare(&run_time, &SidesOfCheck { runs, against, tolerance: 0.0 });
    let saved = row.as_ref().and_then(|row| row.change).map(Neg::neg);
    let text = |key: &str| advice[key].as_str().unwrap_or_default().to_owned();
    let headline = text("headline");
    let sentence = format!(
        "{headline} It could save at most {} of the run time; {}.",
        percent(predicted.high),
        what_was_measured(saved, row.as_ref(), predicted)
    );
    Ok(FollowedAdvice {
        number,
        cure: text("cure"),
        cause: text("cause"),
        headline,
        waiting: advice["waiting"].clone(),
        change: advice["change"].clone(),
        predicted,
        verified: saved,
        sentence,
    })
}

/// "measured 20.0 % less run time (19.1 to 20.9 % with 95 % confidence)"
fn what_was_measured(saved: Option<Interval>, row: Option<&CheckRow>, predicted: Bounds) -> String {
    let Some(saved) = saved else {
        let why = row.map(|row| format!(": {}", row.sentence)).unwrap_or_default();
        return format!("what it saved is not known{why}");
    };
    let (size, word) = match saved.estimate < 0.0 {
        true => (-saved, "more"),
        false => (saved, "less"),
    };
    let found =
        format!("measured {} {word} run time ({})", percent(size.estimate), confidence(size));
    match (saved.low > predicted.high, saved.low <= 0.0 && saved.high >= 0.0) {
        (true, _) => format!("{found}, more than that: something else changed, too"),
        (_, true) => format!("{found}, which may be chance"),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Check;
    use serde_json::json;

    fn runs(times: &[i64]) -> Vec<CheckedRun> {
        let run = |(number, ns): (usize, &i64)| CheckedRun {
            name: format!("r{number}"),
            problems: Vec::new(),
            report: json!({
                "head": { "longest_run_ns": ns, "started_unix_ns": ns, "ranks": 2 },
                "problems": [],
                "totals": { "run_ns": ns, "mpi_ns": 1, "requests": 4 },
                "efficiency": { "transfer_efficiency": { "low": 0.5, "high": 0.7 } },
                "sites": [{ "call": "MPI_Wait", "site": { "function": "f", "file": "a.c", "line": 7 }, "inside_ns": ns / 2 }],
                "advice": [{ "cure": "test", "cause": "no_local_progress", "headline": "Test.", "change": [], "predicted": { "low": 0.0, "high": 0.3 } }],
            }),
        };
        times.iter().enumerate().map(run).collect()
    }

    fn check(new: &[i64], old: &[i64]) -> Check {
        Check::new(&runs(new), &runs(old), &[], (0.05, None)).unwrap()
    }

    /// Means of 101 and 121; both variances of the mean are 1/3, so Welch has 4 degrees of freedom and a reach of
    /// 2.776 × sqrt(2/3) = 2.267.
    #[test]
    fn the_interval_of_a_difference_is_welchs() {
        let (old, new) = ([100.0, 101.0, 102.0], [120.0, 121.0, 122.0]);
        let found = MeanOfRuns::new(&old).unwrap().to(MeanOfRuns::new(&new).unwrap());
        assert_eq!(found.estimate, 20.0);
        assert!((found.high - found.estimate - 2.267).abs() < 0.01, "{found:?}");
        assert!((found.estimate - found.low - 2.267).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn slower_runs_fall_short_and_name_the_site() {
        let slower = check(&[120, 121, 122], &[100, 101, 102]);
        assert_eq!(slower.verdict, Verdict::FallsShort, "{slower:?}");
        let site = &slower.sites.as_ref().unwrap()[0];
        assert_eq!(
            (site.call.as_str(), site.line, site.difference_ns),
            ("MPI_Wait", Some(7), Nanos(5))
        );
        assert_eq!(check(&[100, 101, 102], &[120, 121, 122]).verdict, Verdict::Holds);
        assert_eq!(
            check(&[103, 104, 105], &[100, 101, 102]).verdict,
            Verdict::Holds,
            "3 % are tolerated"
        );
        assert_eq!(check(&[90, 120, 150], &[80, 100, 120]).verdict, Verdict::Holds, "chance");
    }

    #[test]
    fn a_run_against_itself_holds_and_two_single_runs_are_not_judged() {
        assert_eq!(check(&[100], &[100]).verdict, Verdict::Holds);
        assert_eq!(check(&[150], &[100]).verdict, Verdict::NotJudged);
        assert_eq!(check(&[90, 100, 140], &[140, 90, 100]).verdict, Verdict::Holds);
        let mut other = runs(&[100]);
        other[0].report["head"]["started_unix_ns"] = json!(7);
        let found = Check::new(&other, &runs(&[100]), &[], (0.05, None)).unwrap();
        assert_eq!(found.verdict, Verdict::NotJudged, "another run, as long by chance");
    }

    #[test]
    fn limits_hold_fall_short_or_cannot_be_judged() {
        let verdict = |name: &str, is_max: bool, value: f64, runs: &[CheckedRun]| {
            limit(&Limit { name: Name::new(name), is_max, value }, runs).verdict
        };
        let mut some = runs(&[100, 110]);
        assert_eq!(verdict("run-time", true, 105.0, &some), Verdict::Holds);
        assert_eq!(verdict("run-time", true, 104.0, &some), Verdict::FallsShort);
        assert_eq!(verdict("transfer", false, 0.5, &some), Verdict::Holds);
        assert_eq!(verdict("transfer", false, 0.6, &some), Verdict::NotJudged, "0.5 to 0.7");
        assert_eq!(verdict("transfer", false, 0.8, &some), Verdict::FallsShort);
        assert_eq!(verdict("step", true, 1.0, &some), Verdict::NotJudged, "there are none");
        some[1].report["problems"] = json!([{ "kind": "starved" }]);
        assert_eq!(verdict("run-time", true, 105.0, &some), Verdict::NotJudged);
        assert_eq!(
            verdict("requests", true, 4.0, &some),
            Verdict::Holds,
            "no lack of processors makes more"
        );
    }

    /// What GPUs compute beside MPI is in what is exposed of the one, and not of the other.
    #[test]
    fn an_upper_bound_of_what_is_exposed_is_not_judged_as_if_it_were_exposed() {
        let with = |shares: [f64; 3], is_bound: bool| {
            let mut runs = runs(&[100, 101, 102]);
            for (run, share) in runs.iter_mut().zip(shares) {
                run.report["head"]["started_unix_ns"] = json!(share);
                run.report["summary"] =
                    json!({ "exposed_share": share, "exposed_is_upper_bound": is_bound });
            }
            runs
        };
        let (less, more) = ([0.10, 0.11, 0.12], [0.40, 0.41, 0.42]);
        let exposed = Name::new("exposed");
        let at_most = |value: f64, is_bound: bool| {
            let limit = Limit { name: exposed.clone(), is_max: true, value };
            super::limit(&limit, &with(more, is_bound))
        };
        let verdicts = [(0.5, true), (0.3, true), (0.3, false)]
            .map(|(value, is_bound)| at_most(value, is_bound).verdict);
        assert_eq!(verdicts, [Verdict::Holds, Verdict::NotJudged, Verdict::FallsShort]);
        let said = at_most(0.3, true).sentence;
        assert!(said.contains("41.0 % or less, as GPUs may have computed meanwhile"), "{said}");
        let against = |new: bool, old: bool| {
            let (runs, against) = (with(more, new), with(less, old));
            compare(&exposed, &SidesOfCheck { runs: &runs, against: &against, tolerance: 0.05 })
                .unwrap()
        };
        let other = against(true, false);
        assert_eq!(other.verdict, Verdict::NotJudged);
        assert!(
            other.sentence.contains("known when GPUs computed of r0, r1, r2, and not of r0, r1"),
            "{other:?}"
        );
        assert_eq!(against(true, true).verdict, Verdict::FallsShort);
        assert_eq!(against(false, false).verdict, Verdict::FallsShort);
    }

    /// More was overlapped, and more or less was lost, if GPUs computed in calls.
    #[test]
    fn a_lower_bound_of_what_was_overlapped_is_not_judged_as_if_no_more_were() {
        let mut runs = runs(&[100, 101]);
        for run in &mut runs {
            run.report["summary"] = json!({ "exposed_is_upper_bound": true });
            run.report["overlap"] = json!({ "totals": { "achieved_low": 0.3, "lost_high": 0.1 } });
        }
        let verdict = |name: &str, is_max: bool, value: f64| {
            limit(&Limit { name: Name::new(name), is_max, value }, &runs).verdict
        };
        assert_eq!(verdict("achieved", false, 0.2), Verdict::Holds);
        assert_eq!(verdict("achieved", false, 0.5), Verdict::NotJudged);
        assert_eq!(verdict("lost", true, 0.2), Verdict::NotJudged);
        assert_eq!(verdict("lost", true, 0.05), Verdict::NotJudged);
    }

    #[test]
    fn what_following_advice_gained() {
        let (new, old) = (runs(&[79, 80, 81]), runs(&[99, 100, 101]));
        let found = Check::new(&new, &old, &[], (0.05, Some(0))).unwrap().advice.unwrap();
        assert!((found.verified.unwrap().estimate - 0.2).abs() < 1e-9, "{found:?}");
        assert_eq!(found.predicted, Bounds { low: 0.0, high: 0.3 });
        assert_eq!((found.cause.as_str(), &found.change), ("no_local_progress", &json!([])));
        assert!(Check::new(&new, &old, &[], (0.05, Some(1))).unwrap_err().contains("has 1 pieces"));
    }
}
