//! What would be, as text, as rows and as a page: the error of the replay first, then scenarios, then why they are as long.

mod detail;
mod page;
mod rows;
mod sweeps;

#[cfg(test)]
pub(crate) mod made_up;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use super::cause;
use super::table::{Align, Cell, Table};
use lapscope_advise::problem::in_short;
use lapscope_data::model::Nanos;
use lapscope_data::text::library::library_name;
use lapscope_data::text::plural;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, count, percent, time, time_range, MeanOfRanks};
use lapscope_measure::overlap::sums::{Cause, OverlapTimes};
use lapscope_predict::replay::scenario::{Bandwidth, Contention};
use lapscope_predict::whatif::document::{LocalityModel, Model, ScenarioResult, WhatIf};
use lapscope_predict::whatif::fit::{ContentionFrom, LimitFrom};

pub use page::page;
pub use rows::write_rows;

/// Causes with less of the exposed time are not named beside a scenario.
const WORTH_NAMING: f64 = 0.05;

/// In place of a run time.
const DEADLOCK: &str = "deadlock";

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, answer: &WhatIf, style: Style) -> io::Result<()> {
    write_deadlocks(out, answer, style)?;
    write_head(out, answer, style)?;
    write_model(out, &answer.model, style)?;
    if !answer.scenarios.is_empty() {
        write_scenarios(out, answer, style)?;
    }
    sweeps::write(out, answer, style)?;
    match answer.scenarios.as_slice() {
        [] => Ok(()),
        [scenario] => detail::write(out, scenario, answer, style),
        _ => detail::write(out, &answer.identity, answer, style),
    }
}

/// What never ends comes first of all.
fn write_deadlocks(out: &mut dyn Write, answer: &WhatIf, style: Style) -> io::Result<()> {
    if answer.identity.run_ns.is_none() {
        let text =
            "the replay of the run as it was does not end: what scenarios do to it is not known";
        return writeln!(out, "{}\n", style.warning(text));
    }
    let mut has_any = false;
    for scenario in &answer.scenarios {
        if scenario.run_ns.is_some() {
            continue;
        }
        has_any = true;
        let name = match answer.scenarios.len() {
            1 => String::new(),
            _ => format!("{}: ", scenario.name),
        };
        let says = scenario.deadlock.as_ref().map_or_else(
            || format!("with {} the run never ends", scenario.scenario.options()),
            |deadlock| format!("{} ({} into the run)", deadlock.says, time(deadlock.at_ns)),
        );
        writeln!(out, "{}", style.warning(&format!("{name}{says}")))?;
    }
    for sweep in &answer.sweeps {
        let stuck = sweep.points.iter().filter(|point| point.run_ns.is_none());
        let stuck: Vec<&str> = stuck.map(|point| point.value.as_str()).collect();
        if !stuck.is_empty() {
            has_any = true;
            let text = format!("the run never ends with {} {}", sweep.knob, stuck.join(", "));
            writeln!(out, "{}", style.warning(&text))?;
        }
    }
    if has_any {
        writeln!(out)
    } else {
        Ok(())
    }
}

fn write_head(out: &mut dyn Write, answer: &WhatIf, style: Style) -> io::Result<()> {
    let recorded = &answer.recorded;
    writeln!(out, "{}", style.headed("lapscope whatif", &answer.run))?;
    writeln!(out, "{}", style.wrap(&recorded.command, "", "  "))?;
    let library = library_name(&recorded.mpi_library);
    let ranks = format!("{} rank{}", recorded.ranks, plural(recorded.ranks as u64));
    let run = format!("{} from MPI_Init to MPI_Finalize", time(recorded.run_ns));
    let facts = [ranks.as_str(), &library, &run];
    let facts: Vec<&str> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    writeln!(out, "{}", style.wrap(&facts.join(" · "), "", "  "))?;
    writeln!(out, "{}", style.wrap(&identity(answer), "", "  "))?;
    for sentence in in_short(&answer.problems) {
        writeln!(out, "{}", style.warning(&sentence))?;
    }
    Ok(())
}

/// How what is summed over ranks is shown.
fn mean_of(answer: &WhatIf) -> MeanOfRanks {
    MeanOfRanks(answer.recorded.ranks as u64)
}

/// "0.4 % less": what a replay is off by.
pub fn off(error: f64) -> String {
    format!("{} {}", percent(error.abs()), if error < 0.0 { "less" } else { "more" })
}

/// "replayed as it was: 4.50 s, 0.4 % less than recorded; exposed 4.05 s, 0.3 % more …"
fn identity(answer: &WhatIf) -> String {
    let (identity, recorded) = (&answer.identity, &answer.recorded);
    let Some(run_ns) = identity.run_ns else {
        let says = identity.deadlock.as_ref().map_or("", |deadlock| &deadlock.says);
        return format!("replayed as it was: it does not end, as the recorded run did; {says}");
    };
    let held_out = answer.model.held_out_error.map_or(String::new(), |error| {
        format!("; calls that the model was not fitted to: {}", off(error))
    });
    format!(
        "replayed as it was: {}, {} than recorded; exposed {}, recorded {} (mean over ranks): {} of the run time{held_out}. That is \
         the error to reckon with.",
        time(run_ns),
        off(identity.identity_error),
        mean_of(answer).time(identity.exposed_ns),
        mean_of(answer).time(recorded.exposed_ns),
        off(identity.identity_exposed_error)
    )
}

fn write_model(out: &mut dyn Write, model: &Model, style: Style) -> io::Result<()> {
    let what = format!(
        "{} message{} replayed, {} request{} and call{} as long as recorded; {} events in {}",
        count(model.messages),
        plural(model.messages),
        count(model.as_recorded),
        plural(model.as_recorded),
        plural(model.as_recorded),
        count(model.events),
        time(model.replay_ns)
    );
    writeln!(out, "\n{}", style.headed_dimly("MODEL", &what))?;
    let mut table = Table::new(&[
        ("between", Align::Left),
        ("messages", Align::Right),
        ("latency", Align::Right),
        ("bandwidth", Align::Right),
        ("eager up to", Align::Right),
        ("above", Align::Left),
    ]);
    for locality in &model.localities {
        table.row(locality_cells(locality), None);
    }
    table.write(out, style)?;
    let shared = match model.contention {
        Contention::None => "messages share nothing on their way",
        Contention::Rank => "messages of a rank share its link, apart for each direction",
        Contention::Node => "messages of a node share its link, apart for each direction",
        Contention::Shared => "messages of a node share one medium for both directions",
    };
    let from = match model.contention_from {
        ContentionFrom::Calibration => "as calibrated",
        ContentionFrom::Fitted => "as the run shows",
        ContentionFrom::Assumed => {
            "assumed: the run does not show what they share; --contention assumes something else, lapscope calibrate measures it"
        }
    };
    let shared = format!("{shared} ({from})");
    for note in [&shared].into_iter().chain(&model.notes) {
        writeln!(out, "{}", style.wrap(note, "  ", "  "))?;
    }
    Ok(())
}

fn locality_cells(model: &LocalityModel) -> Vec<String> {
    let rate = model.bandwidth_bytes_per_second.map(|rate| {
        let round = format!("{rate:.2e}").parse().unwrap_or(rate);
        Bandwidth::BytesPerSecond(round).to_string()
    });
    let from = match model.eager_limit_from {
        LimitFrom::Run => "",
        LimitFrom::Declared => " (declared)",
        LimitFrom::Fitted => " (fitted)",
        LimitFrom::Assumed => " (assumed)",
    };
    let protocol = match (model.eager_limit_bytes, model.is_protocol_certain) {
        (None, _) => String::new(),
        (Some(_), true) => model.protocol.to_string(),
        (Some(_), false) => format!("{} (not certain)", model.protocol),
    };
    vec![
        super::overlap::locality_name(Some(model.locality)).to_owned(),
        count(model.messages),
        time(model.latency_ns),
        rate.unwrap_or_default(),
        model.eager_limit_bytes.map_or_else(|| "any size".to_owned(), bytes) + from,
        protocol,
    ]
}

// --- scenarios ---------------------------------------------------------------------------------------------------------

fn write_scenarios(out: &mut dyn Write, answer: &WhatIf, style: Style) -> io::Result<()> {
    let about =
        "change: against the run replayed without what recording took; exposed: mean over ranks";
    writeln!(out, "\n{}", style.headed_dimly("SCENARIOS", about))?;
    let mut table = Table::new(&[
        ("run time", Align::Right),
        ("change", Align::Right),
        ("exposed", Align::Right),
        ("scenario", Align::Left),
    ]);
    let recorded = &answer.recorded;
    let cells = |run: String, change: String, exposed: Nanos, name: &str| {
        let exposed = if run == DEADLOCK { String::new() } else { mean_of(answer).time(exposed) };
        vec![Cell::from(run), change.into(), exposed.into(), name.into()]
    };
    let exposed = (recorded.exposed_ns, &recorded.exposed);
    let row = cells(time(recorded.run_ns), String::new(), exposed.0, "as recorded");
    table.row(row, causes(exposed.0, exposed.1));
    for (place, it) in [&answer.identity].into_iter().chain(&answer.scenarios).enumerate() {
        let name = if place == 0 { "as it was, replayed" } else { &it.name };
        let run = it.run_ns.map_or_else(|| DEADLOCK.to_owned(), |run| run_time(it, run));
        let change = if place == 0 { String::new() } else { change(it) };
        let below = causes(it.exposed_ns, &it.exposed).filter(|_| it.run_ns.is_some());
        table.row(
            cells(run, change, it.exposed_ns, name),
            below.into_iter().chain(it.notes.clone()),
        );
    }
    table.write(out, style)?;
    write_within(out, answer, style)
}

/// "3.07 s", "3.07 to 3.30 s" where the run does not show what messages share.
fn run_time(answer: &ScenarioResult, run_ns: Nanos) -> String {
    let [low, high] = [answer.run_low_ns, answer.run_high_ns].map(|end| end.unwrap_or(run_ns));
    time_range(low, high)
}

/// "-31.2 %"
fn change(answer: &ScenarioResult) -> String {
    answer.change.map_or_else(String::new, signed)
}

/// A change as a share.
fn signed(change: f64) -> String {
    match format!("{:+.1} %", change * 100.0).as_str() {
        "+0.0 %" | "-0.0 %" => "0.0 %".to_owned(),
        text => text.to_owned(),
    }
}

fn write_within(out: &mut dyn Write, answer: &WhatIf, style: Style) -> io::Result<()> {
    // the replay may be wrong by as much as they change, in either direction
    let is_within = |scenario: &&ScenarioResult| {
        let (Some(run), Some(change)) = (scenario.run_ns, scenario.change) else { return false };
        let ends = [scenario.run_low_ns, scenario.run_high_ns].map(|end| end.unwrap_or(run));
        let base = run.0 as f64 / (1.0 + change);
        let [least, most] = ends.map(|end| end.0 as f64 / base - 1.0);
        most >= -answer.error() && least <= answer.error()
    };
    for scenario in answer.scenarios.iter().filter(is_within) {
        let text = format!(
            "{}: the change is within the error of the replay, {}; whether it gains or costs anything is not known",
            scenario.name,
            percent(answer.error())
        );
        writeln!(out, "{}", style.wrap(&text, "  ", "    "))?;
    }
    Ok(())
}

/// "no local progress 83.0 %, transfer 12.0 %": of the exposed time.
fn causes(exposed_ns: Nanos, exposed: &OverlapTimes) -> Option<String> {
    let (_, by_cause) = exposed.exposed();
    let mut parts: Vec<(Cause, f64)> =
        Cause::ALL.into_iter().zip(by_cause.map(|part| part.share_of(exposed_ns))).collect();
    parts.retain(|(_, share)| *share >= WORTH_NAMING);
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let parts: Vec<String> = parts
        .iter()
        .map(|(cause, share)| format!("{} {}", cause::name(*cause), percent(*share)))
        .collect();
    (!parts.is_empty()).then(|| format!("exposed: {}", parts.join(", ")))
}
