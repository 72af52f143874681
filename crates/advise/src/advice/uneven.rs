//! Whose work is uneven, between which lines, and how often: said beside advice on waits for ranks that come late.

use std::collections::BTreeMap;

use serde::Serialize;

use super::words::place;
use super::{least_gain, Advice, CallSite, Doing};
use lapscope_data::model::{Nanos, Rank};
use lapscope_data::places::SiteId;
use lapscope_data::text::ranks;
use lapscope_data::text::units::{count, percent, time};
use lapscope_measure::uneven::UnevenPattern;
use lapscope_predict::whatif::uneven::{UnevenWork, UnevenWorks};

/// A region of the program for which ranks take unequally long. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Serialize)]
pub struct UnevenAdvice {
    /// The calls before and behind it; `None`: MPI_Init, MPI_Finalize.
    pub from: Option<CallSite>,
    pub to: Option<CallSite>,
    pub pattern: UnevenPattern,
    /// Who takes longest; by turns, who does so most often.
    pub ranks: Vec<Rank>,
    /// Ranks that are there at some time.
    pub of_ranks: usize,
    /// Of each of them.
    pub visits: u64,
    pub uneven_visits: u64,
    /// Share of the uneven visits in which one of `ranks` took longest.
    pub same_share: f64,
    /// In uneven visits, means: of `ranks`, by turns of the longest; of the others; and how many times as long that is.
    pub slow_ns: Nanos,
    pub others_ns: Nanos,
    pub factor: f64,
    /// Share of waits for ranks that computed in which these were there.
    pub waits_share: f64,
    /// What a replay gains in which all take equally long there, as a share of the run time, and how long the run takes then; `None`:
    /// not known.
    pub gain: Option<f64>,
    pub run_ns: Option<Nanos>,
    pub sentence: String,
}

/// Most of the waits of these calls, and what is uneven where the awaited ranks were meanwhile, if one thing is.
pub(super) fn choose<'a>(
    found: &'a UnevenWorks,
    waiting: &BTreeMap<SiteId, i64>,
    error: f64,
) -> Option<(&'a UnevenWork, f64)> {
    let time = |waits: &BTreeMap<SiteId, i64>| -> i64 {
        waiting.keys().filter_map(|site| waits.get(site)).sum()
    };
    let work = found.works.iter().max_by_key(|work| time(&work.waits))?;
    let share = Nanos(time(&work.waits)).share_of(Nanos(time(&found.waits)));
    let is_gain = work.gain.map_or(true, |gain| gain > least_gain(error));
    (share >= 0.5 && is_gain).then_some((work, share))
}

/// Whether these ranks are those that are waited for: late from computing themselves, or where most of the waits began.
pub(super) fn is_awaited(advice: &Advice, uneven: &UnevenAdvice) -> bool {
    let is_slow = |rank: &Rank| uneven.ranks.contains(rank);
    if advice.evidence.late_partner_outside.map_or(true, |outside| outside >= 0.5) {
        return uneven.pattern == UnevenPattern::ByTurns || advice.change_ranks.iter().any(is_slow);
    }
    let began = advice.began.as_ref();
    began.is_some_and(|began| began.doing == Doing::Computing && is_slow(&began.rank))
}

/// Says of each region once what there is to say, in the first advice that rests on it.
pub(super) fn say_once(advice: &mut [Advice]) {
    let mut said = Vec::new();
    for uneven in advice.iter_mut().filter_map(|advice| advice.uneven.as_mut()) {
        let region = (uneven.from.clone(), uneven.to.clone());
        if said.contains(&region) {
            let [from, to] = ends(uneven);
            uneven.sentence = format!("Again it is the work between {from} and {to}.");
        } else {
            said.push(region);
        }
    }
}

fn ends(uneven: &UnevenAdvice) -> [String; 2] {
    let ends = [(&uneven.from, "MPI_Init"), (&uneven.to, "MPI_Finalize")];
    ends.map(|(site, end)| site.as_ref().map_or(end.to_owned(), place))
}

pub(super) fn sentence(uneven: &UnevenAdvice, recorded_ns: Nanos) -> String {
    let [from, to] = ends(uneven);
    let whom = ranks::in_words(&uneven.ranks, uneven.of_ranks);
    let s = ranks::third_person(&uneven.ranks);
    let (slow, others) = (time(uneven.slow_ns), time(uneven.others_ns));
    let factor = match uneven.factor {
        factor if factor < 100.0 => format!("{factor:.1}"),
        _ => "over 100".to_owned(),
    };
    let (visits, all) = (count(uneven.uneven_visits), count(uneven.visits));
    let how_often = match (uneven.uneven_visits == uneven.visits, uneven.visits) {
        (_, 1) => "the one time that they are there".to_owned(),
        (true, _) => format!("each of {all} times"),
        (false, _) => format!("{visits} of {all} times"),
    };
    let who = match uneven.pattern {
        UnevenPattern::ByTurns => format!(
            "one rank or another takes {slow}, {factor} times the {others} of the others, {how_often}; most often {whom}, in {} \
             of them",
            percent(uneven.same_share)
        ),
        UnevenPattern::Always => {
            format!("{whom} take{s} {slow}, {factor} times the {others} of the others, {how_often}")
        }
        UnevenPattern::NowAndThen => format!(
            "{whom} take{s} {slow} now and then, {how_often}, {factor} times the {others} of the others then"
        ),
    };
    let gain = uneven.gain.zip(uneven.run_ns).map(|(gain, run_ns)| {
        format!(
            " Even work there alone: {} instead of {} ({} less, replayed).",
            time(run_ns),
            time(recorded_ns),
            percent(gain)
        )
    });
    format!("Between {from} and {to} {who}.{}", gain.unwrap_or_default())
}
