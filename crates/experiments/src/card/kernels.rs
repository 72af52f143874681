//! The part of the report card about overlap, progress, blocking, collectives.

use std::io::{self, Write};

use super::{cell, heading, rounded, BenchSection, BySize};
use crate::model::{MESSAGES, PREDICTED_NETWORK_PERCENT, PREDICTED_US, RESIDUAL_PERCENT};
use crate::program::CALIBRATE;
use crate::results::{Inject, Run, Spread, Table, TableRow, Threshold};
use lapscope_data::text::style::Style;
use lapscope_show::render::table::{Align, Table as Lines};

pub fn write(out: &mut dyn Write, section: BenchSection<'_>, style: Style) -> io::Result<()> {
    write_overlap(out, section, style)?;
    write_scenarios(out, section, style)?;
    write_progress(out, section, style)?;
    write_blocking(out, section, style)?;
    write_collectives(out, section, style)
}

fn find<'a>(
    section: BenchSection<'a>,
    names: [&'a str; 2],
    inject: Inject,
    side: &str,
    first: &str,
) -> Option<&'a Table> {
    section.tables(names[0], names[1]).find_map(|(run, table)| {
        let is_it = run.inject == inject
            && table.attribute("side") == side
            && table.attribute("first") == first;
        is_it.then_some(table)
    })
}

const OVERLAP: [&str; 2] = ["overlap", "overlap"];

fn write_overlap(out: &mut dyn Write, section: BenchSection<'_>, style: Style) -> io::Result<()> {
    if section.tables(OVERLAP[0], OVERLAP[1]).next().is_none() {
        return Ok(());
    }
    heading(
        out,
        style,
        "OVERLAP",
        "percent of a transfer overlapped by the most computation that does not make it longer [RA07]; at l0: with as much computation \
         as the transfer takes",
    )?;
    for side in ["send", "receive"] {
        let mut table = BySize::new();
        let of = |inject| find(section, OVERLAP, inject, side, "none");
        table.add("l0 µs", of(Inject::Off), "l0_us");
        for inject in Inject::ALL {
            table.add(inject.key(), of(inject), "overlap_percent");
        }
        table.add("off, at l0", of(Inject::Off), "achieved_percent");
        table.add("timer, at l0", of(Inject::Timer), "achieved_percent");
        writeln!(out, "  {side}")?;
        table.write(out, style)?;
    }
    Ok(())
}

fn write_scenarios(out: &mut dyn Write, section: BenchSection<'_>, style: Style) -> io::Result<()> {
    let of = |side, first| find(section, OVERLAP, Inject::Off, side, first);
    let mut table = BySize::new();
    table.add("send, sender first", of("send", "sender"), "overlap_percent");
    table.add("send, receiver first", of("send", "receiver"), "overlap_percent");
    table.add("receive, sender first", of("receive", "sender"), "overlap_percent");
    table.add("receive, receiver first", of("receive", "receiver"), "overlap_percent");
    if table.columns.is_empty() {
        return Ok(());
    }
    heading(out, style, "OVERLAP BY WHO IS FIRST", "percent, as above [RA08]")?;
    table.write(out, style)
}

fn write_progress(out: &mut dyn Write, section: BenchSection<'_>, style: Style) -> io::Result<()> {
    const PROGRESS: [&str; 2] = ["progress", "progress"];
    const VERDICT: [&str; 2] = ["progress", "verdict"];
    if section.tables(PROGRESS[0], PROGRESS[1]).next().is_none() {
        return Ok(());
    }
    heading(
        out,
        style,
        "PROGRESS",
        "growth: of the receive's latency, in percent of the delay that one side sits in (0: transfers go on by themselves, \
         100: they stand still); left: what was still to be done after the longest delay, in percent of l0 [RA07]",
    )?;
    for side in ["send", "receive"] {
        let mut table = BySize::new();
        for (inject, growth, left) in [
            (Inject::Off, "off: growth", "left"),
            (Inject::Timer, "timer: growth", "left"),
            (Inject::Thread, "thread: growth", "left"),
        ] {
            table.add(growth, find(section, VERDICT, inject, side, "none"), "growth_percent");
            table.add(left, find(section, PROGRESS, inject, side, "none"), "post_delay_percent");
        }
        writeln!(out, "  {side}")?;
        table.write(out, style)?;
    }
    Ok(())
}

// --- blocking sends --------------------------------------------------------------------------------------------------

fn write_blocking(out: &mut dyn Write, section: BenchSection<'_>, style: Style) -> io::Result<()> {
    let tables: Vec<(&Run, &Table)> = section.tables("t0_t3", "t0_t3").collect();
    if tables.is_empty() {
        return Ok(());
    }
    heading(
        out,
        style,
        "BLOCKING SENDS",
        "µs in MPI_Isend and in the wait of a sender whose receiver computes for long [SP04]",
    )?;
    for part in [SideBySide::Freed, SideBySide::Varied] {
        let mut lines = BySize::new();
        for (run, table) in &tables {
            if let Some((_, isend, wait)) = title(run, table).filter(|title| title.0 == part) {
                lines.add(isend, Some(table), "isend_us");
                lines.add(wait, Some(table), "wait0_us");
            }
        }
        if !lines.columns.is_empty() {
            lines.write(out, style)?;
        }
    }
    write_thresholds(out, section, style)
}

/// What is shown side by side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SideBySide {
    /// What frees the sender.
    Freed,
    /// Other messages, other limits.
    Varied,
}

/// How the columns of a variation are headed: MPI_Isend, and its wait.
fn title(run: &Run, table: &Table) -> Option<(SideBySide, &'static str, &'static str)> {
    use SideBySide::{Freed, Varied};
    let attribute = |name| table.attribute(name);
    let is_plain = run.settings.is_empty();
    match (attribute("messages"), attribute("tests"), attribute("both"), run.inject) {
        ("1", "0", "0", Inject::Off) if is_plain => Some((Freed, "Isend", "Wait")),
        ("1", "0", "0", Inject::Off) => Some((Varied, "lower limit: Isend", "Wait")),
        ("1", "0", "0", Inject::Timer) => Some((Freed, "timer: Isend", "Wait")),
        ("1", _, "0", Inject::Off) => Some((Freed, "receiver tests: Isend", "Wait")),
        ("1", "0", _, Inject::Off) => Some((Varied, "both send: Isend", "Wait")),
        (_, "0", "0", Inject::Off) if is_plain => Some((Varied, "8 messages: Isend", "Wait")),
        (_, "0", "0", Inject::Off) => Some((Varied, "8, small buffers: Isend", "Wait")),
        _ => None,
    }
}

/// Verdicts that say nothing.
const SILENT: [&str; 2] = ["not_enough", "no_evidence"];

fn write_thresholds(
    out: &mut dyn Write,
    section: BenchSection<'_>,
    style: Style,
) -> io::Result<()> {
    for run in section.runs().filter(|run| run.program == "t0_t3" && !run.thresholds.is_empty()) {
        let found = run.tables.iter().find(|table| table.name == "thresholds");
        let Some(row) = found.and_then(|table| table.rows.first()) else { continue };
        let settings = if run.settings.is_empty() { "" } else { ", " };
        let title = format!("{} {}{settings}{}", run.program, run.arguments, run.settings);
        writeln!(out, "{}", style.wrap(&title, "  ", "    "))?;
        let program = format!(
            "the program: MPI_Isend {}; its wait {}",
            bracket(row, "isend_buffered_bytes", "isend_blocking_bytes"),
            bracket(row, "wait_buffered_bytes", "wait_blocking_bytes")
        );
        writeln!(out, "{}", style.wrap(&program, "    ", "      "))?;
        let tells = |found: &&Threshold| {
            !found.sentence.is_empty() && !SILENT.contains(&found.verdict.as_str())
        };
        for threshold in run.thresholds.iter().filter(tells) {
            let line = format!("lapscope: {}", threshold.sentence);
            writeln!(out, "{}", style.wrap(&line, "    ", "      "))?;
        }
    }
    Ok(())
}

/// "blocks from 8192 bytes on, not up to 4096"
fn bracket(row: &TableRow, buffered: &str, blocking: &str) -> String {
    match (row.number(buffered), row.number(blocking)) {
        (Some(no), Some(yes)) => format!("blocks from {yes} bytes on, not up to {no}"),
        (Some(_), None) => "never blocks".to_owned(),
        (None, Some(_)) => "always blocks".to_owned(),
        (None, None) => "is not known".to_owned(),
    }
}

// --- collectives -----------------------------------------------------------------------------------------------------

fn write_collectives(
    out: &mut dyn Write,
    section: BenchSection<'_>,
    style: Style,
) -> io::Result<()> {
    let tables: Vec<(&Run, &Table)> = section.tables("collective_cpu", "collective_cpu").collect();
    if tables.is_empty() {
        return Ok(());
    }
    heading(
        out,
        style,
        "PROCESSOR TIME OF BLOCKING COLLECTIVES",
        "percent of the time of a call [HO07]: a library that polls has no idle time, whatever the network does; watched: with \
         LAPSCOPE_CPU_TIME. LogGP: the time that messages between two ranks let expect of a tree of them, its error, and the \
         network's part of it, which a processor need not wait for",
    )?;
    let mut lines = Lines::new(&[
        ("call", Align::Left),
        ("ranks", Align::Right),
        ("bytes", Align::Right),
        ("µs", Align::Right),
        ("user", Align::Right),
        ("system", Align::Right),
        ("idle", Align::Right),
        ("LogGP µs", Align::Right),
        ("error", Align::Right),
        ("network", Align::Right),
    ]);
    for (run, table) in tables {
        // the larger run has the smaller communicators, too
        let ranks = table.attribute("ranks");
        if ranks != run.ranks.to_string() {
            continue;
        }
        for row in &table.rows {
            let of = |quantity| cell(Some(row), quantity);
            let bytes = row.bytes().unwrap_or(0).to_string();
            let watched = if run.settings.is_empty() { "" } else { ", watched" };
            let mut cells =
                vec![format!("{}{watched}", table.attribute("op")), ranks.to_owned(), bytes];
            cells.extend(["call_us", "user_percent", "system_percent", "idle_percent"].map(of));
            cells.extend(predicted(row));
            lines.row(cells, None);
        }
    }
    lines.write(out, style)?;
    write_residual(out, section, style)
}

/// Messages that a busy machine disturbed predict nothing.
fn write_residual(out: &mut dyn Write, section: BenchSection<'_>, style: Style) -> io::Result<()> {
    let Some((_, messages)) = section.tables(CALIBRATE.name, MESSAGES).next() else {
        return Ok(());
    };
    let residual = messages.attribute(RESIDUAL_PERCENT);
    let sentence = format!(
        "The round trips that LogGP's parameters are from differ from them by {residual} % (median over sizes); predictions are \
         no better."
    );
    writeln!(out, "{}", style.wrap(&sentence, "  ", "  "))
}

/// Time, its error and the network's part of it; empty where nothing was predicted.
fn predicted(row: &TableRow) -> [String; 3] {
    let predicted = |quantity| row.outside(quantity).map(|spread: Spread| spread.median);
    let Some((time, share)) = predicted(PREDICTED_US).zip(predicted(PREDICTED_NETWORK_PERCENT))
    else {
        return Default::default();
    };
    let error = row.number("call_us").filter(|&measured| measured > 0.0);
    let error = error.map(|measured| format!("{:+.0} %", 100.0 * (time - measured) / measured));
    [rounded(time), error.unwrap_or_default(), format!("{share:.0}")]
}
