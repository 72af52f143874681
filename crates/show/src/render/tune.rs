//! What a search has found, as text.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::table::{Align, Table};
use lapscope_data::model::Nanos;
use lapscope_data::text::shell;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, count, percent, time, MeanOfRanks};
use lapscope_launch::tune::bar::{limits, signed_percent};
use lapscope_launch::tune::confirm::Confirmation;
use lapscope_launch::tune::document::{
    Best, BestOfAll, InjectedSite, RunRow, TuneDocument, TuneResult,
};
use lapscope_launch::tune::first::{FirstRun, Hopeless};
use lapscope_launch::tune::settings::document::SettingsAnswer;
use lapscope_measure::injection::{GainVerdict, SiteInjection};
use lapscope_trace::stats::Interval;

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, answer: &TuneDocument, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.headed("lapscope tune", &answer.command.join(" ")))?;
    let is_first = answer.best_of_all != Some(BestOfAll::Injection);
    let settings = answer.settings.as_ref();
    if let Some(settings) = settings.filter(|_| is_first) {
        write_settings_verdict(out, settings, style)?;
    }
    if answer.found != TuneResult::NotTried {
        writeln!(out, "{}", style.wrap(&verdict(answer), "", ""))?;
    }
    if let Some(best) = answer.best.as_ref().filter(|_| answer.found == TuneResult::Gain) {
        write_environment(out, best, &answer.command)?;
    }
    if let Some(settings) = settings.filter(|_| !is_first) {
        writeln!(out)?;
        write_settings_verdict(out, settings, style)?;
    }
    if let Some(settings) = settings {
        super::settings::write(out, settings, style)?;
    }
    write_confirmation(out, answer, style)?;
    write_runs(out, answer, style)?;
    write_sites(out, answer, style)?;
    if !answer.notes.is_empty() {
        writeln!(out, "\n{}", style.bold("TO KNOW"))?;
        for note in &answer.notes {
            writeln!(out, "{}", style.wrap(note, "  ", "    "))?;
        }
    }
    if answer.found != TuneResult::Gain {
        let mean = MeanOfRanks(answer.first.ranks);
        super::advice::write(out, &answer.advice, (None, mean), style)?;
    }
    match &answer.directory {
        Some(directory) => {
            let text = format!("The runs are in {}", directory.display());
            writeln!(out, "\n{}", style.wrap(&text, "", "  "))
        }
        None => Ok(()),
    }
}

/// With the lines that make it so.
fn write_settings_verdict(
    out: &mut dyn Write,
    settings: &SettingsAnswer,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "{}", style.wrap(&super::settings::verdict(settings), "", ""))?;
    if let Some(best) = settings.best.as_ref().filter(|_| settings.certain_gain().is_some()) {
        super::settings::write_lines(out, best, style)?;
        writeln!(out)?;
    }
    Ok(())
}

fn verdict(answer: &TuneDocument) -> String {
    match (answer.found, &answer.best, answer.hopeless) {
        (TuneResult::Gain, Some(best), _) => match &answer.confirmation {
            Some(confirmation) => saves(best, confirmation),
            None => promises(best),
        },
        (TuneResult::Unconfirmed, Some(best), _) => {
            does_not_show(best, answer.confirmation.as_ref())
        }
        (_, _, Some(hopeless)) => format!("Nothing to gain: {}", why(hopeless, &answer.first)),
        _ => "No measurable gain: no setting that was tried makes the program surely faster."
            .to_owned(),
    }
}

fn setting(best: &Best) -> String {
    let copied = best.environment.iter().find(|it| it.name == "LAPSCOPE_BUFFER_SENDS");
    match copied.and_then(|it| it.value.parse().ok()) {
        Some(size) => format!("sends of up to {} from copies", bytes(size)),
        None => format!("{} every {} us", best.setting.mode.word(), best.setting.interval_us),
    }
}

fn saves(best: &Best, Confirmation { pairs, gain, .. }: &Confirmation) -> String {
    format!(
        "{} saves {} of the time from launch to end ({} in {}, one without lapscope and one with injection), its cost \
         included; slots of one run promised {} of the run time.",
        setting(best),
        percent(gain.estimate),
        limits(*gain),
        super::settings::pairs_of_runs(pairs.len()),
        percent(best.slots_gain.estimate)
    )
}

fn promises(best: &Best) -> String {
    format!(
        "{} may save {} of the run time ({}, with a confidence of 95 %), its cost included{}: so say slots of one run. It is not \
         confirmed by whole runs, which often gain less: --pairs or --minutes left no room for them.",
        setting(best),
        percent(best.slots_gain.estimate),
        limits(best.slots_gain),
        match best.hidden_cost {
            0.0 => String::new(),
            cost => format!("; {} of it go for what MPI_THREAD_MULTIPLE costs", percent(cost)),
        }
    )
}

fn does_not_show(best: &Best, confirmation: Option<&Confirmation>) -> String {
    let whole = confirmation.map(|Confirmation { pairs, gain, .. }| {
        let median = signed_percent(gain.estimate);
        format!(
            " gained {} in {}, {median} in the median",
            limits(*gain),
            super::settings::pairs_of_runs(pairs.len())
        )
    });
    format!(
        "No certain gain: slots of one run promised {} for {}, but whole runs{}, without lapscope and with injection in turn.",
        percent(best.slots_gain.estimate),
        setting(best),
        whole.unwrap_or_default()
    )
}

fn why(hopeless: Hopeless, first: &FirstRun) -> String {
    let limit = bytes(first.min_bytes);
    let smaller = first
        .smaller_bytes
        .map(|bytes| format!(" Smaller ones wait, though: try --min-bytes {bytes}."));
    let smaller = smaller.unwrap_or_default();
    match hopeless {
        Hopeless::OnlySmall if first.requests == 0 => {
            "the program makes no non-blocking request, and tests move nothing else.".to_owned()
        }
        Hopeless::OnlySmall if first.largest_bytes.0 == 0 => {
            "no request carries any bytes, and so there is no transfer that could go on meanwhile.".to_owned()
        }
        Hopeless::OnlySmall => format!(
            "no request is as large as {limit} (--min-bytes), the largest is of {}.{smaller}",
            bytes(first.largest_bytes.0)
        ),
        Hopeless::NoComputation => format!(
            "hardly anything is computed while requests of at least {limit} are pending ({} in all ranks), so there is nothing \
             to overlap with.{smaller}",
            time(first.compute_ns)
        ),
        Hopeless::NothingLost => format!(
            "only {} of the run time goes by waiting for what could have moved during computation.{smaller}",
            percent(first.stake_ns.share_of(first.run_ns))
        ),
    }
}

/// For pasting into a shell.
fn write_environment(out: &mut dyn Write, best: &Best, command: &[String]) -> io::Result<()> {
    writeln!(out)?;
    for variable in &best.environment {
        writeln!(out, "export {}={}", variable.name, shell::quote(&variable.value))?;
    }
    writeln!(out, "lapscope run -- {}", shell::join(command))
}

// --- tables ----------------------------------------------------------------------------------------------------------

fn write_confirmation(out: &mut dyn Write, answer: &TuneDocument, style: Style) -> io::Result<()> {
    let Some(confirmation) = &answer.confirmation else { return Ok(()) };
    let legend = "from launch to end, in turn";
    writeln!(out, "\n{}", style.headed_dimly("WHOLE RUNS", legend))?;
    let heads = ["pair", "without lapscope", "with injection", "gain"];
    let mut table = Table::new(&heads.map(|head| (head, Align::Right)));
    for (number, pair) in (1..).zip(&confirmation.pairs) {
        let (bare, injected) = (time(pair.bare_ns), time(pair.injected_ns));
        table.row(vec![count(number), bare, injected, signed_percent(pair.gain)], None);
    }
    table.write(out, style)
}

fn write_runs(out: &mut dyn Write, answer: &TuneDocument, style: Style) -> io::Result<()> {
    if answer.runs.is_empty() {
        return Ok(());
    }
    let slots: BTreeSet<Nanos> = answer.runs.iter().filter_map(|run| run.ab_slot_ns).collect();
    let slots: Vec<String> = slots.into_iter().map(time).collect();
    let slots = format!("on and off in slots of {}", slots.join(", "));
    writeln!(out, "\n{}", style.headed_dimly("RUNS", &slots))?;
    let legend = "gain: of the run time, cost included; cost: interrupts and tests that found nothing; moved: tests that moved \
                  something; while off: how much longer steps took, while nothing was injected, than in the run without it";
    writeln!(out, "{}", style.dim(&style.wrap(legend, "  ", "  ")))?;
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("gain", Align::Right),
        ("between", Align::Left),
        ("cost", Align::Right),
        ("tests", Align::Right),
        ("moved", Align::Right),
        ("while off", Align::Right),
    ]);
    answer.runs.iter().for_each(|run| table.row(run_cells(run), None));
    table.write(out, style)
}

fn run_cells(run: &RunRow) -> Vec<String> {
    let [gain, between] = gain_cells(run);
    let while_off = run.idle_slowdown.map(|slowdown| format!("{:+.1} %", 100.0 * slowdown));
    vec![
        run.run.clone(),
        gain,
        between,
        percent(run.cost),
        count(run.tests),
        count(run.found),
        while_off.unwrap_or_default(),
    ]
}

fn gain_cells(run: &RunRow) -> [String; 2] {
    let Some(whole) = &run.whole else { return Default::default() };
    match (whole.estimate, whole.low, whole.high) {
        (Some(estimate), Some(low), Some(high)) => {
            [format!("{:.1} %", 100.0 * estimate), limits(Interval { low, estimate, high })]
        }
        _ => [String::new(), unknown(whole.verdict).to_owned()],
    }
}

fn unknown(verdict: GainVerdict) -> &'static str {
    match verdict {
        GainVerdict::IterationsTooLong => "steps longer than slots",
        _ => "too few slots",
    }
}

fn write_sites(out: &mut dyn Write, answer: &TuneDocument, style: Style) -> io::Result<()> {
    let best = answer.best.as_ref().filter(|_| answer.found == TuneResult::Gain);
    let (Some(best), false) = (best, answer.sites.is_empty()) else { return Ok(()) };
    let file = best.policy.display().to_string();
    writeln!(out, "\n{}", style.headed_dimly("POLICY", &file))?;
    let mut table = Table::new(&[
        ("", Align::Left),
        ("call", Align::Left),
        ("requests", Align::Right),
        ("gain of one", Align::Right),
        ("between", Align::Left),
        ("tests", Align::Right),
        ("moved", Align::Right),
    ]);
    for row in &answer.sites {
        let name = row.injection.site.as_ref().map(|name| name.short());
        table.row(site_cells(row), name);
    }
    table.write(out, style)
}

fn site_cells(InjectedSite { on, injection }: &InjectedSite) -> Vec<String> {
    let SiteInjection { call, tests, gain, .. } = injection;
    let requests = gain.as_ref().map(|gain| count(gain.requests_on + gain.requests_off));
    let times =
        gain.as_ref().and_then(|gain| Some((gain.estimate_ns?, gain.low_ns?, gain.high_ns?)));
    let each = |time: fn((Nanos, Nanos, Nanos)) -> String| times.map(time).unwrap_or_default();
    vec![
        if *on { "on" } else { "off" }.to_owned(),
        call.clone(),
        requests.unwrap_or_default(),
        each(|(estimate, _, _)| time(estimate)),
        each(|(_, low, high)| format!("{} to {}", time(low), time(high))),
        count(tests.tests),
        count(tests.found),
    ]
}
