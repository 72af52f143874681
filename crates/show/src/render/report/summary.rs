//! The report's first lines: how much communication is exposed, how much of it could be overlapped, why it is not, what to do
//! first, what that may win, and the most that any cure can bring.

use std::io::{self, Write};

use super::{split, MpiTimePart};
use crate::render::cause;
use crate::render::whatif::off;
use lapscope_advise::advice::{Advice, Cure, Replay};
use lapscope_advise::measures_in_words::how_to_calibrate;
use lapscope_data::model::Nanos;
use lapscope_data::text::capitalized;
use lapscope_data::text::plural;
use lapscope_data::text::shell;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{percent, percent_range, time, time_range};
use lapscope_measure::reference::ReferenceSource;
use lapscope_predict::whatif::bounds::{RunTimeBounds, MOST_ERROR};
use lapscope_report::report::Report;
use lapscope_trace::gpu::UPPER_BOUND;
use lapscope_trace::problem::ProblemKind;

/// Below this fraction of the run time there is nothing to win.
const WORTH_ANSWERING: f64 = 0.01;
/// Below this fraction of the run time a replay gains nothing to speak of.
const HARDLY_ANY: f64 = 0.005;
/// From this fraction of the exposed communication on blocking calls are named.
const MUCH: f64 = 0.1;

pub(super) fn write(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    writeln!(out)?;
    answers(report).into_iter().try_for_each(|(label, text)| {
        let head = format!("{label:<15}");
        writeln!(out, "{}", style.labelled(&head, &text))
    })
}

/// Each answer, and what it is to.
pub fn answers(report: &Report) -> Vec<(&'static str, String)> {
    let mut lines = gains(report);
    if let Some(relies) = &report.relies_on_buffering {
        lines.push(("Unsafe", capitalized(&relies.says)));
    }
    lines.extend(report.buffering_not_known.iter().map(|says| ("Buffering", capitalized(says))));
    lines
}

fn gains(report: &Report) -> Vec<(&'static str, String)> {
    let died = report.problems.iter().any(|it| it.kind == ProblemKind::Died);
    let mut lines: Vec<(&str, String)> = Vec::new();
    let has_rows = report.summary.in_detail_share != Some(0.0);
    lines.extend((died && has_rows).then(|| ("Ended early", ended_early(report))));
    lines.push(("Exposed", exposed(report)));
    if report.summary.exposed_share < WORTH_ANSWERING && died {
        return lines;
    }
    if report.summary.exposed_share < WORTH_ANSWERING {
        let text = "Nothing in the communication: overlap cannot make this run much faster.";
        lines.push(("Do first", text.to_owned()));
        return lines;
    }
    lines.extend(report.summary.in_detail_share.map(|share| ("In detail", in_detail(share))));
    if !has_rows {
        return lines;
    }
    lines.push(("Overlappable", overlappable(report)));
    lines.extend(why(report).map(|why| ("Why exposed", why)));
    let first = report.summary.first.map(|first| &report.advice[first]);
    lines.push(("Do first", what_first(first)));
    lines.push(("May win", win(first, report)));
    lines.extend(report.bounds.iter().flat_map(|bounds| bounds_lines(bounds, report)));
    lines
}

/// Of a run of which ranks died the wait that they died in is not in any number.
fn ended_early(report: &Report) -> String {
    format!(
        "Ranks died before MPI_Finalize. These numbers are of the time up to their last records; what they waited for then: lapscope \
         hang {}",
        shell::quote(&report.run)
    )
}

/// The most that any cure can bring, with the error of the replay that says so.
fn bounds_lines(bounds: &RunTimeBounds, report: &Report) -> Vec<(&'static str, String)> {
    let error = percent(bounds.error());
    let reference = &report.overlap.reference.description;
    let is_calibrated = matches!(reference.source, ReferenceSource::Calibration { .. });
    let calibrate = |what: &str| match is_calibrated {
        true => String::new(),
        false => format!("{what}: {}", how_to_calibrate(reference.refused.as_ref())),
    };
    if bounds.identity_error.abs() > MOST_ERROR {
        let is_starved = report.problems.iter().any(|it| it.kind == ProblemKind::Starved);
        let shows = match (is_starved, is_calibrated) {
            (true, _) => "; a run with a processor for each rank may show it".to_owned(),
            (false, false) => calibrate("; reference times may show it"),
            (false, true) => String::new(),
        };
        let text = format!(
            "Not known. {} Where that is more than {}, nothing is predicted{shows}.",
            as_it_was(bounds),
            percent(MOST_ERROR),
        );
        return vec![("Best progress", text)];
    }
    let of = |run_ns: Nanos, high_ns: Option<Nanos>| {
        let gain = bounds.gain(run_ns);
        let high_ns = high_ns.unwrap_or(run_ns);
        let (run, as_it_was) = (time_range(run_ns, high_ns), time(bounds.base_ns));
        let less = percent_range(bounds.gain(high_ns).max(0.0), gain);
        match gain > bounds.error() {
            true if gain < HARDLY_ANY => format!("Hardly any gain, {},", percent(gain)),
            true => format!("{run} instead of {as_it_was} ({less} less)"),
            false if bounds.error() > MOST_ERROR => {
                format!("Not known, as the replay is off by {error}: what the run would take")
            }
            false => format!("No gain beyond the error of the replay, {error},"),
        }
    };
    let progress = bounds.perfect_progress_ns.map(|run| {
        let more = bounds.perfect_progress_high_ns;
        let why = more.map_or(String::new(), |_| {
            format!(
                " The run does not show what messages share on their way{}.",
                calibrate("; to measure it")
            )
        });
        format!(
            "{} if messages moved as soon as they could, whatever their ends do.{why}",
            of(run, more)
        )
    });
    let network =
        bounds.ideal_network_ns.map(|run| format!("{} if messages took no time.", of(run, None)));
    let mut lines: Vec<(&str, String)> = Vec::new();
    lines.extend(progress.map(|text| ("Best progress", text)));
    lines.extend(network.map(|text| ("Best network", text)));
    if let Some((_, last)) = lines.last_mut() {
        if bounds.hands_out_work {
            *last += " Each rank keeps the work that it had: what a counter in a window hands out may go elsewhere then, and more be \
                      gained.";
        }
        *last += " ";
        *last += &as_it_was(bounds);
        if bounds.rests_on_waits {
            *last += " These are estimates: no message went undisturbed, so how long messages take is fitted to the waits.";
        }
    }
    lines
}

fn as_it_was(bounds: &RunTimeBounds) -> String {
    let larger = bounds.held_out_error.filter(|error| error.abs() > bounds.identity_error.abs());
    let held_out = larger.map_or(String::new(), |error| {
        format!("; calls that the replay was not fitted to, {}", off(error))
    });
    format!(
        "Replayed as it was the run takes {}, {} than recorded{held_out}.",
        time(bounds.identity_ns),
        off(bounds.identity_error)
    )
}

/// Shares of the run time of all ranks.
fn share(part: Nanos, report: &Report) -> String {
    percent(part.share_of(report.totals.run_ns))
}

fn exposed(report: &Report) -> String {
    let (totals, summary) = (&report.totals, &report.summary);
    let at_most = if summary.exposed_is_upper_bound { "At most " } else { "" };
    let mut text = format!(
        "{at_most}{} of the run time is communication inside MPI with no computation beside it ({} of {}, mean over ranks)",
        percent(summary.exposed_share),
        report.mean().time(summary.exposed_ns),
        report.mean().time(totals.run_ns)
    );
    let parts = split(totals);
    let communication = parts.iter().filter(|(part, _)| part.is_communication);
    if let Some((MpiTimePart { in_sentence, .. }, most)) =
        communication.max_by_key(|(_, part)| *part).filter(|(_, part)| part.0 > 0)
    {
        text += &format!(", most of it {in_sentence} ({})", share(*most, report));
    }
    text.push('.');
    if summary.exposed_is_upper_bound {
        text += " ";
        text += UPPER_BOUND;
    }
    if let Some(beside) = summary.overlapped_with_gpu_ns {
        let share = share(beside, report);
        text +=
            &format!(" Communication beside kernels of the rank's GPUs, {share}, is not counted.");
    }
    if let Some(why) = beyond_all(report.head.threaded_ranks) {
        text += &format!(" {why}");
    }
    text
}

/// Why shares of a run in which so many ranks have several threads that call MPI may be more than all.
pub fn beyond_all(threaded_ranks: u64) -> Option<String> {
    (threaded_ranks > 0).then(|| {
        format!(
            "On {threaded_ranks} rank{} several threads call MPI; their times add up, so shares may exceed 100 %.",
            plural(threaded_ranks)
        )
    })
}

/// The sentence on a run that was too long to record each call of it.
fn in_detail(share: f64) -> String {
    if share == 0.0 {
        let text = "Nothing: sums alone were kept. Why communication is exposed, what of it could be overlapped and what to change is not \
                    known; lapscope run -- <launch line> records it.";
        return text.to_owned();
    }
    format!(
        "What follows is of {} of that time, which has single records: of the rest sums alone were kept, and the run is not \
         replayed.",
        percent(share)
    )
}

fn overlappable(report: &Report) -> String {
    let summary = &report.summary;
    let numbers = &report.overlap.totals.numbers;
    let high = summary.overlappable_high_ns;
    let is_measured = numbers.measured * 2 > numbers.requests;
    let mut text = if report.totals.requests == 0 {
        "Nothing as it stands: no request is non-blocking.".to_owned()
    } else if high.0 > 0 {
        let why = match is_measured {
            true => "ranks compute that long between posts and waits, and the messages did not move meanwhile.",
            false => {
                "ranks compute that long between posts and waits. How long most of these transfers take undisturbed is not known."
            }
        };
        format!(
            "At most {} of the run time ({}): {why}",
            share(high, report),
            report.mean().time(high)
        )
    } else if numbers.achieved_high_ns.0 > 0 {
        "Nothing more: the computation between posts and waits is used.".to_owned()
    } else {
        "Nothing as it stands: no computation lies between posts and waits.".to_owned()
    };
    if summary.exposed_is_upper_bound {
        text += " What GPUs compute there is not, or not all, recorded.";
    }
    if summary.blocked_ns.share_of(summary.exposed_ns) >= MUCH {
        text += &format!(
            " Blocking calls ({} of the run time) can overlap nothing as they are.",
            share(summary.blocked_ns, report)
        );
    }
    text
}

fn why(report: &Report) -> Option<String> {
    let (first, others) = report.summary.causes.split_first()?;
    let mut text =
        format!("{} of the waiting: {}", percent(first.share), cause::answer(first.cause));
    for other in others {
        text += &format!("; {}: {}", percent(other.share), cause::answer(other.cause));
    }
    text.push('.');
    Some(text)
}

fn what_first(first: Option<&Advice>) -> String {
    match first {
        Some(advice) => advice.headline.clone(),
        None => "Nothing: no single finding is worth a change.".to_owned(),
    }
}

fn win(first: Option<&Advice>, report: &Report) -> String {
    match first {
        Some(advice) if advice.helps => {
            let trial = if advice.is_for_tests() {
                " Without changing the program: lapscope tune -- <launch line>."
            } else {
                ""
            };
            format!("{}{trial}", at_most(advice, report))
        }
        Some(advice) if advice.cure == Cure::PartnerLate => {
            let besides = if report.advice.iter().any(|it| it.helps && it.is_worth_reading()) {
                " What overlap wins besides stands under ADVICE."
            } else {
                ""
            };
            format!("{}.{besides}", by_even_work(advice, report.summary.exposed_share))
        }
        Some(advice) if advice.is_blocking_transfer() => format!(
            "At most {} of the run time, if so much other work can be computed meanwhile.",
            percent(advice.share_at_most())
        ),
        _ => "Nothing, by a change in the communication alone.".to_owned(),
    }
}

/// What the calls wait that the advice is about, or what a replay gains, which may be less or more.
fn at_most(advice: &Advice, report: &Report) -> String {
    let (low, high) = (report.summary.win_low_ns, report.summary.win_high_ns);
    let mean = report.mean();
    let is_more = high > advice.time_high_ns;
    let high = if advice.is_vague() || is_more { high } else { high.min(advice.time_ns) };
    let time = if advice.is_vague() { mean.time_range(low, high) } else { mean.time(high) };
    let most = format!("At most {} of the run time ({time})", share(high, report));
    let (won, stake) = (high.share_of(report.totals.run_ns), advice.share_at_most());
    let (won, stake) = (percent(won), percent(stake));
    match is_more && won != stake {
        true => format!("{most}, by replay: {stake} in these calls, the rest in calls that wait for their ranks."),
        false => format!("{most}; less if another call waits longer then."),
    }
}

/// Never more than is exposed: what loops of tests pass between these is waiting, too, and is not counted as such.
fn by_even_work(advice: &Advice, exposed_share: f64) -> String {
    let most = advice.win_at_most().min(exposed_share);
    match advice.replay {
        Some(Replay { is_gain: true, gain, of_region, .. }) => {
            let gain = gain.min(exposed_share);
            let (gain, most) = (percent(gain), percent(most));
            let what = match of_region {
                true => "the work between the two calls that are named below",
                false => "all work of a rank",
            };
            match gain == most {
                true => format!("{most} of the run time, by even work alone (replayed)"),
                false => format!(
                    "At most {most} of the run time, by even work alone; replayed, {gain} if {what} becomes even"
                ),
            }
        }
        Some(_) if advice.is_order() => format!(
            "At most {} of the run time, and nothing by even work: how much the order costs is not known",
            percent(advice.share_at_most())
        ),
        None if advice.threaded => {
            format!("Not known: {} of the run time at most, where no other thread computes", percent(most))
        }
        _ => format!("At most {} of the run time, by even work alone", percent(most)),
    }
}
