//! The part of the report card about the small applications, with what lapscope advises.

use std::io::{self, Write};

use super::{cell, heading, BenchSection};
use crate::results::{Inject, Run, Table, TableRow};
use lapscope_data::text::style::Style;
use lapscope_show::render::table::{Align, Table as Lines};

pub fn write(out: &mut dyn Write, section: BenchSection<'_>, style: Style) -> io::Result<()> {
    write_ghost_cells(out, section, style)?;
    write_wavefront(out, section, style)
}

/// What a run of one row says.
fn only_row(table: &Table) -> Option<&TableRow> {
    table.rows.first()
}

fn write_ghost_cells(
    out: &mut dyn Write,
    section: BenchSection<'_>,
    style: Style,
) -> io::Result<()> {
    let tables: Vec<(&Run, &Table)> = section.tables("ghost_cells", "steps").collect();
    if tables.is_empty() {
        return Ok(());
    }
    heading(
        out,
        style,
        "GHOST CELLS",
        "µs of a step, and of it in MPI, with load that moves [SP04]; test: strategy 1, waitall: strategy 2",
    )?;
    let mut lines = Lines::new(&[
        ("form", Align::Left),
        ("step", Align::Right),
        ("in MPI", Align::Right),
        ("waiting for sends", Align::Right),
        ("for receives", Align::Right),
    ]);
    for (run, table) in &tables {
        let is_alone = !run.arguments.ends_with("-f all");
        if is_alone && run.inject == Inject::Off {
            continue; // the same in the other run, beside the other forms
        }
        let form = match run.inject {
            Inject::Off => table.attribute("form").to_owned(),
            inject => format!("{}, injected by {}", table.attribute("form"), inject.key()),
        };
        let of = |quantity| cell(only_row(table), quantity);
        let mut cells = vec![form];
        cells.extend(["step_us", "communication_us", "wait_send_us", "wait_receive_us"].map(of));
        lines.row(cells, None);
    }
    lines.write(out, style)?;
    write_gains(out, &tables, style)?;
    write_advice(out, section, "ghost_cells", style)
}

/// How much of what strategy 1 gains comes by injection alone.
fn write_gains(out: &mut dyn Write, tables: &[(&Run, &Table)], style: Style) -> io::Result<()> {
    let communication = |form: &str, inject: Inject, is_alone: bool| {
        let is_it = |(run, table): &&(&Run, &Table)| {
            let alone = !run.arguments.ends_with("-f all");
            table.attribute("form") == form && run.inject == inject && alone == is_alone
        };
        let (_, table) = tables.iter().find(is_it)?;
        only_row(table)?.number("communication_us")
    };
    let plain = communication("plain", Inject::Off, false);
    let saved = |time: Option<f64>, of: Option<f64>| Some(100.0 * (1.0 - time? / of?));
    let of = |form| saved(communication(form, Inject::Off, false), plain);
    let mut parts = Vec::new();
    for (name, percent) in
        [("strategy 1", of("test")), ("strategy 2", of("waitall")), ("both", of("both"))]
    {
        parts.extend(percent.map(|percent| format!("{name} {percent:.0} %")));
    }
    let alone = communication("plain", Inject::Off, true);
    for inject in [Inject::Timer, Inject::Thread] {
        let percent = saved(communication("plain", inject, true), alone);
        let share = percent.zip(of("test")).map(|(percent, test)| 100.0 * percent / test);
        parts.extend(percent.zip(share).map(|(percent, share)| {
            format!(
                "injection alone ({}) {percent:.0} %, {share:.0} % of what strategy 1 does",
                inject.key()
            )
        }));
    }
    let line = format!("Saved of the time in MPI: {}.", parts.join(", "));
    writeln!(out, "{}", style.wrap(&line, "  ", "    "))
}

fn write_advice(
    out: &mut dyn Write,
    section: BenchSection<'_>,
    program: &str,
    style: Style,
) -> io::Result<()> {
    for run in section.runs().filter(|run| run.program == program) {
        for advice in &run.advice {
            let (form, sentence) = (&run.arguments, &advice.sentence);
            let line =
                format!("lapscope on {program} {form}: {:.0} %: {sentence}", 100.0 * advice.share);
            writeln!(out, "{}", style.wrap(&line, "  ", "    "))?;
        }
    }
    Ok(())
}

fn write_wavefront(out: &mut dyn Write, section: BenchSection<'_>, style: Style) -> io::Result<()> {
    let tables: Vec<(&Run, &Table)> = section.tables("wavefront", "wavefront").collect();
    if tables.is_empty() {
        return Ok(());
    }
    heading(
        out,
        style,
        "WAVEFRONT",
        "µs of a sweep, what it would take without communication, and in MPI",
    )?;
    let mut lines = Lines::new(&[
        ("form", Align::Left),
        ("sweep", Align::Right),
        ("ideal", Align::Right),
        ("in MPI", Align::Right),
    ]);
    for (_, table) in tables.iter().filter(|(run, _)| run.arguments.ends_with("-f all")) {
        let of = |quantity| cell(only_row(table), quantity);
        let mut cells = vec![table.attribute("form").to_owned()];
        cells.extend(["sweep_us", "ideal_us", "communication_us"].map(of));
        lines.row(cells, None);
    }
    lines.write(out, style)?;
    write_advice(out, section, "wavefront", style)
}
