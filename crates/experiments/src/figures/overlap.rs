//! [RA07], [RA08]: how much of a transfer is overlapped with computation.

use crate::results::{Inject, Results, Run, Table, TableRow};

use super::panels::{self, Placed};
use super::{words, Figure};
use lapscope_show::plot::chart::{self, Axis, Chart, Series};
use lapscope_show::plot::palette::Dash;
use lapscope_show::plot::scale::Quantity;
use lapscope_show::plot::sheet::{Heading, Look};

const PANEL: (f64, f64) = (360.0, 220.0);

pub fn figures(results: &Results) -> Vec<Figure> {
    [
        by_injection(results, "send", "overlap-send", "Sends: how much overlaps with computation"),
        by_injection(
            results,
            "receive",
            "overlap-receive",
            "Receives: how much overlaps with computation",
        ),
        scenarios(results),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One line for each way of injecting.
fn by_injection(results: &Results, side: &str, name: &str, title: &str) -> Option<Figure> {
    let measured = results.tables("overlap").filter(|(_, table)| {
        table.attribute("side") == side && matches!(table.attribute("first"), "none" | "")
    });
    let series = |(run, table): (&Run, &Table)| {
        let look = injection_look(run.inject);
        Placed::new(run, overlap(table, words::inject(run.inject), look))
    };
    let mut placed: Vec<Placed> = measured.map(series).collect();
    placed.sort_by_key(|placed| injection_place(&placed.series.label));
    let subtitle = "Computation that fits beside a message without delaying it, as a share of what the message takes alone: \
                    100 % hides all of it. Shaded: quartiles.";
    figure(results, placed, name, title, subtitle, "Rashti and Afsahi 2007")
}

/// One line for each side and each side that is first.
fn scenarios(results: &Results) -> Option<Figure> {
    let kinds =
        [("send", "sender"), ("send", "receiver"), ("receive", "sender"), ("receive", "receiver")];
    let mut placed = Vec::new();
    for (side, first) in kinds {
        let look = Look::series(if side == "send" { 0 } else { 1 });
        let look = if first == "receiver" { look.dashed(Dash::Dashed).open() } else { look };
        let label = format!("{side}, {first} first");
        let measured = results.tables("overlap").filter(|(run, table)| {
            run.inject == Inject::Off
                && table.attribute("side") == side
                && table.attribute("first") == first
        });
        placed.extend(measured.map(|(run, table)| Placed::new(run, overlap(table, &label, look))));
    }
    let subtitle = "The sender or the receiver posts on purpose before the other: which side a protocol overlaps depends on it. \
                    Without injection. Shaded: quartiles.";
    let title = "Overlap when one side is first";
    figure(results, placed, "overlap-scenarios", title, subtitle, "Rashti and Afsahi 2008")
}

fn figure(
    results: &Results,
    placed: Vec<Placed>,
    name: &str,
    title: &str,
    subtitle: &str,
    after: &str,
) -> Option<Figure> {
    let panels = panels::arrange(results, placed);
    if panels.is_empty() {
        return None;
    }
    let chart = Chart {
        heading: Heading {
            title: title.to_owned(),
            subtitle: subtitle.to_owned(),
            facts: words::facts(results, after),
        },
        legend: chart::legend(&panels),
        x: Axis::new(Quantity::Bytes, "message size"),
        y: Axis::new(Quantity::Percent, "overlap"),
        y_spans_x: false,
        size: PANEL,
        panels,
    };
    Some(Figure::draw(name, &chart))
}

fn overlap(table: &Table, label: &str, look: Look) -> Series {
    let point = |row: &TableRow| panels::against_bytes(row, "overlap_percent");
    let mut points: Vec<_> = table.rows.iter().filter_map(point).collect();
    chart::sort(&mut points);
    Series { label: label.to_owned(), look, points }
}

/// The same colour, marker and dash in all figures.
pub fn injection_look(inject: Inject) -> Look {
    match inject {
        Inject::Off => Look::series(0),
        Inject::Timer => Look::series(1).dashed(Dash::Dashed),
        Inject::Thread => Look::series(2).dashed(Dash::Dotted),
    }
}

fn injection_place(label: &str) -> Option<usize> {
    Inject::ALL.iter().position(|inject| words::inject(*inject) == label)
}
