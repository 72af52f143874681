//! What injected tests did, cost and gained.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::table::{Align, Table};
use lapscope_data::model::{Nanos, Rank};
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, percent, time};
use lapscope_data::text::visible::visible;
use lapscope_data::text::{list_ranks, plural};
use lapscope_measure::injection::automatic::{Automatic, FinalMode};
use lapscope_measure::injection::{
    Gain, GainVerdict, Injection, SiteInjection, WholeGain, LEAST_SLOTS,
};
use lapscope_trace::injected::page::{Arm, Decision, Saving};

/// Writes the section on injection; nothing where no rank was asked for any.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, injection: Option<&Injection>, style: Style) -> io::Result<()> {
    let Some(injection) = injection else { return Ok(()) };
    writeln!(out, "\n{}", style.headed("INJECTION", &modes(injection)))?;
    for (problem, ranks) in problems(injection) {
        let text = format!("rank{} {}: {problem}", plural(ranks.len() as u64), list_ranks(&ranks));
        writeln!(out, "{}", style.warning(&text))?;
    }
    for sentence in sentences(injection) {
        writeln!(out, "{}", style.wrap(&sentence, "  ", "  "))?;
    }
    write_sites(out, injection, style)
}

/// Writes what is known of a run of which nothing was recorded.
///
/// # Errors
/// Of the writer.
pub fn write_pages(out: &mut dyn Write, automatic: &Automatic, style: Style) -> io::Result<()> {
    let page = &automatic.page;
    let what = format!("auto, on {} rank{}", automatic.ranks, plural(automatic.ranks as u64));
    writeln!(out, "{}", visible(&page.command))?;
    writeln!(out, "Nothing was recorded of this run but what LAPSCOPE_INJECT=auto decided.")?;
    writeln!(out, "\n{}", style.headed("INJECTION", &what))?;
    let cost = format!(
        "Interrupts and tests that found nothing cost {} of the run time.",
        percent(automatic.spent)
    );
    for sentence in automatic_sentences(automatic).into_iter().chain([cost]) {
        writeln!(out, "{}", style.wrap(&sentence, "  ", "  "))?;
    }
    Ok(())
}

/// What stands under the heading.
pub(crate) fn sentences(injection: &Injection) -> Vec<String> {
    let what_was_done = [Some(found(injection)), cost(injection)].into_iter().flatten();
    let what_it_gained = match &injection.automatic {
        Some(automatic) => automatic_sentences(automatic),
        None => vec![gained(injection)],
    };
    what_was_done.chain(what_it_gained).collect()
}

/// "timer every 1.00 ms"
fn way(mode: &str, interval_us: Option<u64>) -> String {
    match interval_us {
        Some(us) => format!("{mode} every {}", time(Nanos(us as i64 * 1000))),
        None => "none".to_owned(),
    }
}

fn saving(saving: &Saving) -> String {
    format!(
        "{} of a step's time saved ({} to {}, 95 % confidence)",
        percent(saving.share),
        percent(saving.low),
        percent(saving.high)
    )
}

/// What `LAPSCOPE_INJECT=auto` did by itself.
pub(crate) fn automatic_sentences(automatic: &Automatic) -> Vec<String> {
    let page = &automatic.page;
    let mut sentences: Vec<String> = automatic.outcomes.iter().map(outcome).collect();
    let tried: Vec<String> = page.arms.iter().filter_map(tried).collect();
    if tried.len() > 1 {
        sentences.push(format!("Tried on rank {}: {}.", page.rank, tried.join("; ")));
    }
    let problems = page.arms.iter().filter_map(|arm| {
        let problem = arm.problem.as_ref()?;
        Some(format!("Not to be had: {}: {problem}.", way(&arm.mode, arm.interval_us)))
    });
    sentences.extend(problems);
    let decisions: Vec<String> =
        page.decisions.iter().map(|decision| decided(decision, &page.arms)).collect();
    if !decisions.is_empty() {
        sentences.push(format!("Decided on rank {}: {}.", page.rank, decisions.join("; ")));
    }
    if automatic.sites_left_out > 0 {
        let sites = automatic.sites_left_out as u64;
        sentences.push(format!(
            "No tests are made for {} call site{} at which they found nothing.",
            count(sites),
            plural(sites)
        ));
    }
    if automatic.lost > 0.0 {
        sentences.push(format!("Trying it out lost {} of the run time.", percent(automatic.lost)));
    }
    sentences
}

fn outcome(outcome: &FinalMode) -> String {
    let ranks = format!("{} rank{}", outcome.ranks, plural(outcome.ranks as u64));
    match (&outcome.gain, outcome.mode.as_str()) {
        (_, "off") => format!("At the end nothing was injected on {ranks}."),
        (None, _) => {
            format!("In force at the end on {ranks}: {}.", way(&outcome.mode, outcome.interval_us))
        }
        (Some(gain), _) => format!(
            "In force at the end on {ranks}: {}: {}.",
            way(&outcome.mode, outcome.interval_us),
            saving(gain)
        ),
    }
}

/// "timer every 1.00 ms in 12 slots, steps of 31.2 ms"
fn tried(arm: &Arm) -> Option<String> {
    let step = Nanos(i64::try_from(arm.step_ns?).ok()?);
    Some(format!(
        "{} in {} slot{}, steps of {}",
        way(&arm.mode, arm.interval_us),
        count(arm.slots),
        plural(arm.slots),
        time(step)
    ))
}

fn decided(decision: &Decision, arms: &[Arm]) -> String {
    let arm = &arms[decision.arm];
    let what = match decision.what.as_str() {
        "nothing_beside" => "no computation beside large requests".to_owned(),
        "explore" => "ways taken in turn".to_owned(),
        "off" => "none gains".to_owned(),
        "keep" => format!("{} kept", way(&arm.mode, arm.interval_us)),
        "changed" => "the program has changed".to_owned(),
        "without" => "the gain is gone".to_owned(),
        "again" => "time to look again".to_owned(),
        "idle" => "no large requests any more".to_owned(),
        other => other.to_owned(),
    };
    let gain = decision.gain.as_ref().map(|gain| format!(", {}", saving(gain)));
    format!("at {:.1} s {what}{}", decision.at, gain.unwrap_or_default())
}

/// "timer, interrupts by perf, on 4 ranks"
pub(crate) fn modes(injection: &Injection) -> String {
    let mut modes: BTreeMap<String, u64> = BTreeMap::new();
    for rank in &injection.ranks {
        let clock = rank.clock.as_ref().map(|clock| format!(", interrupts by {clock}"));
        *modes.entry(format!("{}{}", rank.mode, clock.unwrap_or_default())).or_default() += 1;
    }
    let parts =
        modes.iter().map(|(mode, ranks)| format!("{mode}, on {ranks} rank{}", plural(*ranks)));
    parts.collect::<Vec<_>>().join("; ")
}

/// Each problem once, with its ranks.
pub(crate) fn problems(injection: &Injection) -> BTreeMap<&str, Vec<Rank>> {
    let mut problems: BTreeMap<&str, Vec<Rank>> = BTreeMap::new();
    for rank in &injection.ranks {
        if let Some(problem) = &rank.problem {
            problems.entry(problem).or_default().push(rank.rank);
        }
    }
    problems
}

fn found(injection: &Injection) -> String {
    let tests = &injection.totals.tests;
    if injection.sites.is_empty() {
        return "No request was posted that is as long as LAPSCOPE_INJECT_MIN_BYTES.".to_owned();
    }
    if injection.ranks.iter().all(|rank| rank.mode == "sends") {
        return "Nothing was injected: in slots that are on standard sends went from copies (LAPSCOPE_BUFFER_SENDS).".to_owned();
    }
    let mut text = format!(
        "{} test{} for {} request{}; {} of the tests moved something ({}).",
        count(tests.tests),
        plural(tests.tests),
        count(tests.requests),
        plural(tests.requests),
        count(tests.found),
        percent(tests.found as f64 / tests.tests.max(1) as f64)
    );
    if tests.interrupts > 0 {
        text += &format!(
            " {} interrupt{}, {} of them where MPI could not be entered.",
            count(tests.interrupts),
            plural(tests.interrupts),
            percent(tests.deferred as f64 / tests.interrupts as f64)
        );
    }
    text
}

/// For a processor, of the run time: from here on it is said.
const MUCH_WAITED: f64 = 0.05;

fn cost(injection: &Injection) -> Option<String> {
    let totals = &injection.totals;
    let budget = injection.ranks.iter().filter_map(|rank| rank.budget).reduce(f64::max);
    let mut limit =
        budget.map(|budget| format!(", budget {}", percent(budget))).unwrap_or_default();
    let waited: Nanos = injection.ranks.iter().map(|rank| rank.waited_ns).sum();
    let waited = waited.share_of(injection.ranks.iter().map(|rank| rank.run_ns).sum());
    if waited > MUCH_WAITED {
        limit += &format!(
            ", less than asked for as ranks waited for a processor for {}",
            percent(waited)
        );
    }
    (totals.tests.tests + totals.tests.interrupts > 0).then(|| {
        format!(
            "Interrupts and tests that found nothing cost {}, {} of the run time{limit}.",
            time(totals.spent_ns),
            percent(totals.spent_ns.share_of(totals.run_ns))
        )
    })
}

/// What the whole program gained, or what would show it.
fn gained(injection: &Injection) -> String {
    match (&injection.whole, injection.ab_slot_ns) {
        (Some(whole), Some(slot)) => whole_sentence(whole, slot),
        _ => "What that gains is not known: LAPSCOPE_INJECT_AB=1 beside LAPSCOPE_INJECT would show it within one run."
            .to_owned(),
    }
}

/// What the program gained, in a sentence; `slot` is the length of the run's slots.
pub fn whole_sentence(whole: &WholeGain, slot: Nanos) -> String {
    let all = whole.estimate.zip(whole.low).zip(whole.high);
    let ((estimate, low), high) = all.unwrap_or_default();
    let interval = |low, high| format!("{} to {}, 95 % confidence", percent(low), percent(high));
    let slots = format!("slots of {}: {} on, {} off", time(slot), whole.slots_on, whole.slots_off);
    let suggested = whole.suggested_ab_ms.map(|ms| format!("LAPSCOPE_INJECT_AB_MS={ms}"));
    match whole.verdict {
        GainVerdict::Gain => format!(
            "With it the program takes {} less time ({}), its cost included; {slots}.",
            percent(estimate),
            interval(low, high)
        ),
        GainVerdict::Loss => format!(
            "With it the program takes {} more time ({}), its cost included; {slots}.",
            percent(-estimate),
            interval(-high, -low)
        ),
        GainVerdict::NoMeasurableGain | GainVerdict::SwitchedOff => format!(
            "No measurable gain for the program: what it saves lies between {} and {} of its time (95 % confidence), cost \
             included; {slots}.",
            percent(low),
            percent(high)
        ),
        GainVerdict::NotEnoughSlots => format!(
            "Whether the program gains is not known, from {slots} have such requests, and {LEAST_SLOTS} of each are \
             needed: {}.",
            suggested.map_or_else(|| "run it for longer".to_owned(), |option| format!("{option}, or a longer run"))
        ),
        GainVerdict::IterationsTooLong => format!(
            "Whether the program gains is not known: its iterations of about {} are longer than {slots}; {} could show it.",
            time(whole.iteration_ns.unwrap_or_default()),
            suggested.unwrap_or_default()
        ),
    }
}

/// Writes the table of call sites.
///
/// # Errors
/// Of the writer.
pub fn write_sites(out: &mut dyn Write, injection: &Injection, style: Style) -> io::Result<()> {
    if injection.sites.is_empty() {
        return Ok(());
    }
    if injection.whole.is_some() {
        let note = "saved: exposed time of a request without injection, less that with it and less the cost of its tests \
                    and interrupts; from, to: its 95 % confidence interval; in all: had it been on throughout";
        writeln!(out, "{}", style.dim(&style.wrap(note, "  ", "  ")))?;
    }
    let mut table = Table::new(&[
        ("requests", Align::Right),
        ("tests", Align::Right),
        ("found", Align::Right),
        ("cost", Align::Right),
        ("saved", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
        ("in all", Align::Right),
        ("call", Align::Left),
    ]);
    for site in &injection.sites {
        table.row(cells(site), Some(place(site)));
    }
    table.write(out, style)
}

fn cells(site: &SiteInjection) -> Vec<String> {
    let gain = site.gain.as_ref();
    let of_gain =
        |value: fn(&Gain) -> Option<Nanos>| gain.and_then(value).map(time).unwrap_or_default();
    let requests = gain.map_or(site.tests.requests, |gain| gain.requests_on + gain.requests_off);
    vec![
        count(requests),
        count(site.tests.tests),
        count(site.tests.found),
        time(site.tests.cost()),
        of_gain(|gain| gain.estimate_ns),
        of_gain(|gain| gain.low_ns),
        of_gain(|gain| gain.high_ns),
        of_gain(|gain| gain.run_estimate_ns),
        site.call.clone(),
    ]
}

/// "post_exchange halo.c:76: gains"
fn place(site: &SiteInjection) -> String {
    let place = site.site.as_ref().map_or_else(|| "(no call path)".to_owned(), |site| site.short());
    match &site.gain {
        Some(gain) => format!("{place}: {}", verdict(gain)),
        None if site.policy => place,
        None => format!("{place}: left out by the policy"),
    }
}

pub(crate) fn verdict(gain: &Gain) -> String {
    match gain.verdict {
        GainVerdict::Gain => "gains".to_owned(),
        GainVerdict::Loss => "loses: better left out".to_owned(),
        GainVerdict::NoMeasurableGain | GainVerdict::IterationsTooLong => "no measurable gain".to_owned(),
        GainVerdict::SwitchedOff => "left out by the policy".to_owned(),
        GainVerdict::NotEnoughSlots => format!(
            "not enough slots: {} on and {} off have such requests, {LEAST_SLOTS} of each are needed",
            gain.slots_on, gain.slots_off
        ),
    }
}
