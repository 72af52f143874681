//! [SP04]: an application's steps, as it was written, in forms that wait later, and with injected tests.

use std::collections::BTreeMap;

use crate::results::{Inject, Link, Results, Run, Spread, Table, TableRow};

use super::{panels, words, Figure};
use lapscope_show::plot::bars::{self, Bar, BarChart, BarGroup, BarPanel};
use lapscope_show::plot::palette::Tone;
use lapscope_show::plot::scale;
use lapscope_show::plot::sheet::{Heading, LegendLine, Sample};

const PROGRAM: &str = "ghost_cells";
const QUANTITIES: [(&str, &str, Tone, f64); 2] = [
    ("step_us", "a step", Tone::Series(0), 0.3),
    ("communication_us", "communication in it", Tone::Series(1), 0.85),
];
/// Forms and how they are run, from left to right.
const WAYS: [(&str, Inject, [&str; 2]); 6] = [
    ("plain", Inject::Off, ["plain", ""]),
    ("test", Inject::Off, ["test", ""]),
    ("waitall", Inject::Off, ["waitall", ""]),
    ("both", Inject::Off, ["both", ""]),
    ("plain", Inject::Timer, ["plain,", "timer tests"]),
    ("plain", Inject::Thread, ["plain,", "thread tests"]),
];

pub fn figure(results: &Results) -> Option<Figure> {
    let mut cells: BTreeMap<(Link, usize), Vec<BarGroup>> = BTreeMap::new();
    for way in &WAYS {
        for (link, mpi, group) in groups(results, way) {
            let all = cells.entry((link, mpi)).or_default();
            if all.iter().all(|other| other.label != group.label) {
                all.push(group);
            }
        }
    }
    if cells.is_empty() {
        return None;
    }
    let rows = panels::distinct(cells.keys().map(|(link, _)| *link));
    let columns = panels::distinct(cells.keys().map(|(_, mpi)| *mpi));
    let panel = |((link, mpi), groups)| BarPanel {
        row: rows.iter().position(|row| *row == link).unwrap_or(0),
        column: columns.iter().position(|column| *column == mpi).unwrap_or(0),
        title: words::place(results, mpi, link),
        groups,
    };
    let chart = BarChart {
        heading: heading(results),
        legend: legend(),
        panels: cells.into_iter().map(panel).collect(),
    };
    Some(Figure { name: "ghost-cells.svg".to_owned(), svg: bars::draw(&chart) })
}

fn heading(results: &Results) -> Heading {
    let subtitle = "Time of a step and of the communication in it: as the program was written (plain), with tests in its \
                    computation (test), with one Waitall for sends and receives (waitall), with both, and plain with tests that \
                    lapscope injects. Whiskers: quartiles.";
    Heading {
        title: "Ghost cells: what waiting later and testing save".to_owned(),
        subtitle: subtitle.to_owned(),
        facts: words::facts(results, "Saif and Parashar 2004"),
    }
}

fn legend() -> Vec<LegendLine> {
    let key = |(_, label, tone, opacity): (&str, &str, Tone, f64)| LegendLine {
        label: label.to_owned(),
        sample: Sample::Bar(tone, opacity),
    };
    QUANTITIES.map(key).to_vec()
}

fn groups<'a>(
    results: &'a Results,
    (form, inject, label): &'a (&str, Inject, [&str; 2]),
) -> impl Iterator<Item = (Link, usize, BarGroup)> + 'a {
    let measured = results.tables("steps").filter(move |(run, table)| {
        run.program == PROGRAM && run.inject == *inject && table.attribute("form") == *form
    });
    measured.filter_map(move |(run, table): (&Run, &Table)| {
        let row = largest(table)?;
        let bars: Vec<Bar> = QUANTITIES.iter().filter_map(|kind| bar(row, kind, label)).collect();
        let group = BarGroup { label: label.map(str::to_owned), bars };
        (!group.bars.is_empty()).then_some((run.link, run.mpi, group))
    })
}

/// The row with the largest messages.
fn largest(table: &Table) -> Option<&TableRow> {
    let bytes = |row: &&TableRow| row.number("bytes").unwrap_or(0.0);
    table.rows.iter().max_by(|a, b| bytes(a).total_cmp(&bytes(b)))
}

fn bar(row: &TableRow, kind: &(&str, &str, Tone, f64), label: &[&str; 2]) -> Option<Bar> {
    let (quantity, words, tone, opacity) = *kind;
    let Spread { median, low, high } = row.program(quantity)?;
    let is_duration = |us: &f64| us.is_finite() && *us >= 0.0;
    let value = Some(median).filter(is_duration)?;
    let spread = low.filter(is_duration).zip(high.filter(is_duration));
    let hover = format!("{}: {words} {}", label.join(" ").trim(), scale::time(value));
    Some(Bar { value, spread, tone, opacity, hover })
}
