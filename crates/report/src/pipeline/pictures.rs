//! The report on a run with its pictures, for a page.

use std::collections::BTreeMap;

use anyhow::{bail, Context, Error, Result};

use super::report::{build_with, AnalyzedRun, Reported};
use super::OpenRun;
use crate::findings::FindingsChoice;
use crate::pictures::timeline::{collect, Chosen, RanksChosen, Timeline, TimelineWindow};
use crate::pictures::Pictures;
use crate::report::{Report, ReportOptions};
use lapscope_data::model::{Rank, RankList};
use lapscope_measure::overlap::Overlap;
use lapscope_measure::steps;
use lapscope_trace::stretch;
use lapscope_trace::{Direction, Stretch, Trace};

/// Ranks of a timeline where nobody asks for others.
const RANKS: usize = 16;

/// Which stretch the timeline is of.
#[derive(Debug, Clone, Default)]
pub struct TimelineChoice {
    /// `None`: the costliest step, or where there are no steps the costliest stretch.
    pub stretch: Option<stretch::StretchChoice>,
    /// `None`: the rank with most exposed time, and its partners.
    pub ranks: Option<RankList>,
}

/// A run as a page shows it.
pub struct Pictured {
    pub report: Report,
    /// All of it, with every call site.
    pub overlap: Overlap,
    pub pictures: Pictures,
}

/// The report on `ranks`, or on all, and pictures.
///
/// # Errors
/// As [`super::report::build`].
pub fn build(
    open: &mut OpenRun,
    ranks: &[Rank],
    options: ReportOptions,
    shown: &TimelineChoice,
) -> Result<Pictured> {
    let wanted = FindingsChoice { advice: true, pictures: true, steps: true, kept: true };
    let look = |mut seen: AnalyzedRun<'_>| {
        let timeline = timeline(&mut seen, shown)?;
        Ok(Pictures::build(&seen.view.trace, seen.drawn, timeline))
    };
    let (Reported { report, overlap }, pictures) = build_with(open, ranks, options, wanted, look)?;
    Ok(Pictured { report, overlap, pictures })
}

/// Or why there is none.
fn timeline(
    seen: &mut AnalyzedRun<'_>,
    shown: &TimelineChoice,
) -> Result<Result<Timeline, String>> {
    let Stretched { begin, end, steps, chosen } = choose_stretch(seen, shown.stretch)?;
    if begin >= end {
        return Ok(Err("the run has no length".to_owned()));
    }
    let (ranks, ranks_chosen) = choose_ranks(seen, shown.ranks.as_ref())?;
    let window = TimelineWindow {
        begin,
        end,
        steps,
        chosen,
        ranks_chosen,
        may_be_fitted: chosen != Chosen::Asked,
        ranks: ranks.clone(),
    };
    let known = (seen.reference, seen.eager);
    let names = &mut *seen.names;
    Ok(Ok(seen.view.with_detail_of(&ranks, |trace| collect(trace, window, known, names))?))
}

/// Moments on the run's clock.
struct Stretched {
    begin: i64,
    end: i64,
    steps: Option<(u64, u64)>,
    chosen: Chosen,
}

fn choose_stretch(
    seen: &AnalyzedRun<'_>,
    asked: Option<stretch::StretchChoice>,
) -> Result<Stretched> {
    let trace = &seen.view.trace;
    let count = seen.view.plan().map_or(0, |plan| plan.count);
    let of_steps = |((first, last), (begin, end)): steps::StepSpan, chosen| Stretched {
        begin,
        end,
        // the last cell may have room for more
        steps: Some((first, last.min(count))),
        chosen,
    };
    let ((begin, end), chosen) = match asked {
        Some(stretch::StretchChoice::Steps { first, last }) => {
            seen.view.plan_with_step(last)?;
            let found = seen.steps.span(first, last).with_context(|| {
                format!("--step {last}: none of the ranks that were asked for has it")
            })?;
            return Ok(of_steps(found, Chosen::Asked));
        }
        Some(stretch::StretchChoice::Between { from, to }) => {
            let asked = Stretch::between(trace, from, to).map_err(Error::msg)?;
            (asked.span(trace).unwrap_or_default(), Chosen::Asked)
        }
        None => match (seen.steps.costliest(), seen.drawn.costliest_slice(trace)) {
            (Some(step), _) => return Ok(of_steps(step, Chosen::CostliestStep)),
            (None, Some(slice)) => (slice, Chosen::CostliestSlice),
            (None, None) => (trace.span(), Chosen::CostliestSlice),
        },
    };
    Ok(Stretched { begin, end, steps: None, chosen })
}

fn choose_ranks(
    seen: &AnalyzedRun<'_>,
    asked: Option<&RankList>,
) -> Result<(Vec<u32>, RanksChosen)> {
    let trace = &seen.view.trace;
    let count = trace.ranks.len() as u32;
    if let Some(asked) = asked {
        let is_asked = |place: &u32| asked.contains(trace.ranks[*place as usize].info().rank);
        let places: Vec<u32> = (0..count).filter(is_asked).collect();
        if places.is_empty() {
            let last = trace.ranks.last().map(|rank| rank.info().rank);
            let last = last.map_or_else(String::new, |rank| format!("; its last one is {rank}"));
            bail!("--timeline-ranks: the run has none of these ranks{last}");
        }
        return Ok((places, RanksChosen::Asked));
    }
    if count as usize <= RANKS {
        return Ok(((0..count).collect(), RanksChosen::All));
    }
    let worst = seen.measured.costliest_rank().unwrap_or(0);
    let mut places = seen.view.with_detail_of(&[worst], |trace| partners(trace, worst))?;
    places.truncate(RANKS - 1);
    places.push(worst);
    let mut neighbour = worst.saturating_sub(RANKS as u32 / 2).min(count - RANKS as u32);
    while places.len() < RANKS {
        if !places.contains(&neighbour) {
            places.push(neighbour);
        }
        neighbour += 1;
    }
    places.sort_unstable();
    Ok((places, RanksChosen::Worst(trace.ranks[worst as usize].info().rank)))
}

/// Ranks that a rank exchanged messages with, those with most of them first.
fn partners(trace: &Trace, place: u32) -> Vec<u32> {
    let rank = &trace.ranks[place as usize];
    let mut messages: BTreeMap<u32, u64> = BTreeMap::new();
    for endpoint in &rank.endpoints {
        let operation = &rank.operations[endpoint.operation as usize];
        let is_message = matches!(operation.direction, Direction::Send | Direction::Receive);
        if let Some(peer) = operation.peer.filter(|&peer| is_message && peer != place) {
            *messages.entry(peer).or_default() += 1;
        }
    }
    let mut partners: Vec<u32> = messages.keys().copied().collect();
    partners.sort_by_key(|peer| std::cmp::Reverse(messages[peer]));
    partners
}
