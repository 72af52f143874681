//! Runs of growing rank counts as a page: the table, and what it looks like.

use anyhow::Result;

use super::markup::{Document, Html, Unit};
use super::page::{framed, navigation, sections};
use crate::plot::chart::{draw_within_page, legend, Axis, Chart, Panel, Point, Series};
use crate::plot::palette::Dash;
use crate::plot::scale::Quantity;
use crate::plot::sheet::{Heading, Look};
use crate::render::scaling::{about, mode, ranks};
use lapscope_measure::scaling::{ScalingMode, ScalingUnit};
use lapscope_report::scaling::Scaling;

const SCRIPT: &str = concat!("\"use strict\";\n", include_str!("js/theme.js"));

const SECTIONS: [(&str, &str); 2] = [("summary", "Scaling"), ("pictures", "Against ranks")];

/// The whole file.
///
/// # Errors
/// It cannot be a document: a program error.
pub fn page(scaling: &Scaling) -> Result<String> {
    let document = serde_json::to_value(scaling)?;
    let mut html = Html::default();
    html.within("header", &[], |html| {
        html.element("a", &[("class", "skip"), ("href", "#summary")], "To the contents");
        html.within("h1", &[], |html| {
            html.text("lapscope ");
            html.element("span", &[("class", "run")], &about(scaling));
        });
        html.within("dl", &[("class", "runs")], |html| {
            for run in &scaling.runs {
                html.element("dt", &[], &ranks(run));
                html.within("dd", &[], |html| html.element("b", &[], &run.run));
            }
        });
        notes(html, scaling);
    });
    navigation(&mut html, &SECTIONS);
    sections(&mut html, &SECTIONS, |html, at| match at {
        0 => table(html, scaling, Document(&document)),
        _ => pictures(html, scaling),
    });
    html.within("footer", &[], |html| {
        html.text("Numbers are those of lapscope report RUN RUN... --format json; a point at a number shows its exact value.");
    });
    Ok(framed(&about(scaling), SCRIPT, "{}", &html.finish()))
}

fn notes(html: &mut Html, scaling: &Scaling) {
    if scaling.notes.is_empty() {
        return;
    }
    html.within("ul", &[("class", "problems"), ("aria-label", "What to know first")], |html| {
        for note in &scaling.notes {
            html.within("li", &[], |html| html.whole_text(note));
        }
    });
}

/// A column for each run.
pub(super) fn table(html: &mut Html, scaling: &Scaling, document: Document<'_>) {
    html.paragraph(&format!("{}.", mode(scaling.mode)));
    let Some(first) = scaling.runs.first() else { return };
    html.within("div", &[("class", "scroll")], |html| {
        html.within("table", &[], |html| {
            html.within("thead", &[], |html| {
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "col")], "");
                    for run in &scaling.runs {
                        html.element("th", &[("scope", "col"), ("title", &run.run)], &ranks(run));
                    }
                });
            });
            html.within("tbody", &[], |html| {
                for line in first.numbers.lines() {
                    html.within("tr", &[], |html| {
                        html.element("th", &[("scope", "row")], line.label.trim_start());
                        for at in 0..scaling.runs.len() {
                            let pointer = format!("/runs/{at}/{}", line.key);
                            cell(html, document, &pointer, unit(line.unit));
                        }
                    });
                }
            });
        });
    });
}

fn unit(unit: ScalingUnit) -> Unit {
    match unit {
        ScalingUnit::Count => Unit::Count,
        ScalingUnit::Time => Unit::Time,
        ScalingUnit::Factor => Unit::Factor,
        ScalingUnit::Share => Unit::Percent,
        ScalingUnit::Hertz => Unit::Hertz,
    }
}

/// What is known to within bounds has both.
fn cell(html: &mut Html, document: Document<'_>, pointer: &str, unit: Unit) {
    let (low, high) = (format!("{pointer}/low"), format!("{pointer}/high"));
    html.within("td", &[("class", "n")], |html| {
        if document.get(&low).is_some() {
            document.write(html, &low, unit);
            html.text(" to ");
            document.write(html, &high, unit);
        } else if document.get(pointer).is_some() {
            document.write(html, pointer, unit);
        } else {
            html.text("-");
        }
    });
}

/// Labels of lines that are drawn, by picture.
const FACTORS: [&str; 6] = [
    "Global efficiency",
    "Parallel efficiency",
    "Load balance",
    "Serialisation efficiency",
    "Transfer efficiency",
    "Computation scaling",
];
const COMPUTATION: [&str; 4] =
    ["Computation scaling", "Instruction scaling", "IPC scaling", "Frequency scaling"];

fn pictures(html: &mut Html, scaling: &Scaling) {
    let mut speedup = series(scaling, &["Speedup"], 1.0);
    speedup.push(as_many_times(scaling));
    let of_computation = series(scaling, &COMPUTATION, 100.0);
    let pictures = [
        ("speedup", "Speedup", Quantity::Ratio, speedup),
        ("factors", "Efficiencies", Quantity::Percent, series(scaling, &FACTORS, 100.0)),
        ("computation", "Computation scaling", Quantity::Percent, of_computation),
    ];
    for (id, title, quantity, series) in pictures {
        if series.len() < 2 {
            continue; // what is drawn above already, or nothing
        }
        let panels = vec![Panel { title: title.to_owned(), series, ..Panel::default() }];
        let chart = Chart {
            heading: Heading {
                title: title.to_owned(),
                subtitle: format!("Of {}.", about(scaling)),
                facts: String::new(),
            },
            legend: legend(&panels),
            x: Axis::new(Quantity::Ratio, "ranks"),
            y: Axis::new(quantity, if quantity == Quantity::Ratio { "times" } else { "%" }),
            y_spans_x: false,
            size: (560.0, 220.0),
            panels,
        };
        html.within("figure", &[("class", "scroll")], |html| {
            html.own(&draw_within_page(&chart, id));
        });
    }
}

/// Lines with these labels, each against ranks.
fn series(scaling: &Scaling, labels: &[&str], times: f64) -> Vec<Series> {
    let of_label = |(place, label): (usize, &&str)| {
        let points = scaling.runs.iter().filter_map(|run| {
            let lines = run.numbers.lines();
            let value = lines.iter().find(|line| line.label.trim_start() == *label)?.value?;
            let spread =
                (value.low < value.high).then_some((value.low * times, value.high * times));
            let y = (value.low + value.high) / 2.0 * times;
            Some(Point { x: run.numbers.ranks as f64, y, spread })
        });
        let points: Vec<Point> = points.collect();
        Series { label: (*label).to_owned(), look: Look::series(place), points }
    };
    let all = labels.iter().enumerate().map(of_label);
    all.filter(|series| !series.points.is_empty()).collect()
}

/// The speedup that as many times the ranks could give.
fn as_many_times(scaling: &Scaling) -> Series {
    let fewest = scaling.runs.first().map_or(1, |run| run.numbers.ranks).max(1) as f64;
    let ranks = scaling.runs.iter().map(|run| run.numbers.ranks as f64);
    let points = ranks.map(|x| Point { x, y: x / fewest, spread: None }).collect();
    let label = match scaling.mode {
        ScalingMode::Strong => "as many times the ranks",
        ScalingMode::Weak => "as many times the ranks and the work",
    };
    Series { label: label.to_owned(), look: Look::guide(Dash::Dashed), points }
}
