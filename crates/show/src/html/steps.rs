//! Steps of the program: how long each took, how much of that was exposed, how much was overlapped; and marked regions.

use super::markup::{Document, Html, Unit};
use super::Contents;
use crate::plot::chart::{draw_within_page, Axis, Chart, Panel, Point, Series};
use crate::plot::scale::Quantity;
use crate::plot::sheet::{Heading, LegendLine, Look};
use crate::render::report::{step_lines, what_steps};
use lapscope_data::text::units::{count, MeanOfRanks};
use lapscope_measure::steps::{RegionRow, StepRow, Steps};

const MOST_REGIONS: usize = 40;
/// Rows of the table: those of the steps that took longest.
const MOST_ROWS: usize = 100;
/// Points of a picture; of more steps each point is several, with the least and the most of them as its spread.
const MOST_POINTS: usize = 400;

pub fn section(html: &mut Html, contents: &Contents, document: Document<'_>) {
    let report = &contents.report;
    match &report.steps {
        Some(steps) => all(html, steps, report.stretch.is_some(), document),
        None => {
            let why = report.no_steps.as_deref().unwrap_or("they were not looked for");
            html.missing(&format!("No steps are reported: {why}."));
        }
    }
    regions(html, &report.regions, document);
}

fn all(html: &mut Html, steps: &Steps, in_stretch: bool, document: Document<'_>) {
    html.paragraph(&format!("{} steps, each {}.", count(steps.count), what_steps(&steps.what)));
    for line in step_lines(steps, in_stretch) {
        html.paragraph(&line);
    }
    if steps.rows.len() > 1 {
        html.within("figure", &[("class", "scroll")], |html| html.own(&times(steps)));
        if steps.rows.iter().any(|row| row.numbers.achieved_low.is_some()) {
            html.within("figure", &[("class", "scroll")], |html| html.own(&overlap(steps)));
        }
    }
    if steps.steps_in_row > 1 {
        let text =
            format!("Each point, and each row of the table, is {} steps.", steps.steps_in_row);
        html.element("p", &[("class", "note")], &text);
    }
    table(html, steps, document);
}

fn chart(title: &str, y: Axis, series: Vec<Series>) -> Chart {
    let heading = Heading { title: title.to_owned(), ..Heading::default() };
    Chart {
        heading,
        legend: series
            .iter()
            .map(|series| LegendLine::line(series.label.clone(), series.look))
            .collect(),
        x: Axis::new(Quantity::Ratio, "step"),
        y,
        y_spans_x: false,
        size: (560.0, 150.0),
        panels: vec![Panel { title: title.to_owned(), series, ..Panel::default() }],
    }
}

fn series(
    steps: &Steps,
    label: &str,
    look: Look,
    point: impl Fn(&StepRow) -> Option<(f64, Option<(f64, f64)>)>,
) -> Series {
    let together = steps.rows.len().div_ceil(MOST_POINTS).max(1);
    let points: Vec<Point> = steps
        .rows
        .chunks(together)
        .filter_map(|rows| {
            let found: Vec<_> = rows.iter().filter_map(&point).collect();
            let ends = found
                .iter()
                .flat_map(|(y, spread)| spread.map_or([*y, *y], |(low, high)| [low, high]));
            let ends = ends.fold(None, |ends: Option<(f64, f64)>, y| {
                Some(ends.map_or((y, y), |(low, high)| (low.min(y), high.max(y))))
            });
            let y = found.iter().map(|(y, _)| y).sum::<f64>() / found.len() as f64;
            let x = (rows[0].step + rows[rows.len() - 1].last_step) as f64 / 2.0;
            ends.map(|ends| Point { x, y, spread: Some(ends) })
        })
        .collect();
    // markers of many steps would hide the line
    let marker = look.marker.filter(|_| points.len() <= 60);
    Series { label: label.to_owned(), look: Look { marker, ..look }, points }
}

/// For sums over the ranks and steps of a row: of one step on one rank, as its duration is.
fn mean_of(steps: &Steps, row: &StepRow) -> MeanOfRanks {
    MeanOfRanks((row.last_step - row.step + 1) * steps.ranks.max(1))
}

/// Microseconds.
fn times(steps: &Steps) -> String {
    let us = |ns: f64| ns / 1e3;
    let duration =
        series(steps, "duration, up to that of the longest rank", Look::series(0), |row| {
            let mean = us(row.duration_ns.0 as f64);
            Some((mean, Some((mean, us(row.longest_ns.0 as f64)))))
        });
    let exposed = series(steps, "exposed of it, mean over ranks", Look::series(1), |row| {
        Some((us(mean_of(steps, row).of(row.numbers.exposed_ns).0 as f64), None))
    });
    let chart = chart("Time of a step", Axis::new(Quantity::Time, ""), vec![duration, exposed]);
    draw_within_page(&chart, "step-times")
}

fn overlap(steps: &Steps) -> String {
    let percent = |low: Option<f64>, high: Option<f64>| {
        let (low, high) = (low? * 100.0, high? * 100.0);
        Some(((low + high) / 2.0, Some((low, high))))
    };
    let possible = series(steps, "possible", Look::series(0), |row| {
        percent(row.numbers.possible_low, row.numbers.possible)
    });
    let achieved = series(steps, "achieved", Look::series(2), |row| {
        percent(row.numbers.achieved_low, row.numbers.achieved_high)
    });
    let axis = Axis::new(Quantity::Percent, "of the reference time");
    draw_within_page(&chart("Overlap of a step", axis, vec![possible, achieved]), "step-overlap")
}

fn heads(html: &mut Html, names: &[&str]) {
    html.within("thead", &[], |html| {
        html.within("tr", &[], |html| {
            names.iter().for_each(|name| html.element("th", &[("scope", "col")], name));
        });
    });
}

fn table(html: &mut Html, steps: &Steps, document: Document<'_>) {
    html.within("details", &[], |html| {
        let shown = longest(&steps.rows);
        let title = match shown.len() < steps.rows.len() {
            true => format!("Table of the {} that took longest", shown.len()),
            false => "Table of steps".to_owned(),
        };
        html.element("summary", &[], &title);
        html.within("div", &[("class", "scroll")], |html| {
            html.within("table", &[], |html| {
                let names = [
                    "step",
                    "begins at",
                    "takes",
                    "longest",
                    "on rank",
                    "exposed",
                    "achieved at least",
                    "at most",
                ];
                heads(html, &names);
                html.within("tbody", &[], |html| {
                    for &at in &shown {
                        html.within("tr", &[], |html| step(html, at, steps, document));
                    }
                });
            });
        });
    });
}

/// Places of the rows that the table has, in order.
fn longest(rows: &[StepRow]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.sort_by_key(|&at| std::cmp::Reverse(rows[at].duration_ns));
    places.truncate(MOST_ROWS);
    places.sort_unstable();
    places
}

fn step(html: &mut Html, at: usize, steps: &Steps, document: Document<'_>) {
    let row = &steps.rows[at];
    let name = match row.step == row.last_step {
        true => row.step.to_string(),
        false => format!("{}–{}", row.step, row.last_step),
    };
    html.element("th", &[("scope", "row"), ("class", "n")], &name);
    let cell = |html: &mut Html, key: &str, unit: Unit| {
        document.cell(html, &format!("/steps/rows/{at}/{key}"), unit);
    };
    cell(html, "begin_ns", Unit::Time);
    cell(html, "duration_ns", Unit::Time);
    cell(html, "longest_ns", Unit::Time);
    html.element("td", &[("class", "n")], &row.longest_rank.to_string());
    cell(html, "exposed_ns", Unit::MeanTime(mean_of(steps, row)));
    cell(html, "achieved_low", Unit::Percent);
    cell(html, "achieved_high", Unit::Percent);
}

fn regions(html: &mut Html, regions: &[RegionRow], document: Document<'_>) {
    if regions.is_empty() {
        return;
    }
    html.element("h3", &[], "Regions, marked by MPI_Pcontrol");
    html.within("div", &[("class", "scroll")], |html| {
        html.within("table", &[], |html| {
            heads(
                html,
                &[
                    "region",
                    "times",
                    "time, mean over ranks",
                    "longest",
                    "on rank",
                    "exposed",
                    "achieved at least",
                    "at most",
                    "parallel efficiency",
                    "load balance",
                    "communication efficiency",
                ],
            );
            html.within("tbody", &[], |html| {
                for (at, region) in regions.iter().take(MOST_REGIONS).enumerate() {
                    html.within("tr", &[], |html| region_row(html, at, region, document));
                }
            });
        });
    });
    if regions.len() > MOST_REGIONS {
        let more =
            format!("and {} more in lapscope report --format json.", regions.len() - MOST_REGIONS);
        html.element("p", &[("class", "note")], &more);
    }
}

fn region_row(html: &mut Html, at: usize, region: &RegionRow, document: Document<'_>) {
    html.element("th", &[("scope", "row")], &region.name);
    let cell = |html: &mut Html, key: &str, unit: Unit| {
        document.cell(html, &format!("/regions/{at}/{key}"), unit);
    };
    cell(html, "count", Unit::Count);
    cell(html, "time_ns", document.mean_time());
    cell(html, "longest_ns", Unit::Time);
    html.element("td", &[("class", "n")], &region.longest_rank.to_string());
    cell(html, "exposed_ns", document.mean_time());
    cell(html, "achieved_low", Unit::Percent);
    cell(html, "achieved_high", Unit::Percent);
    for key in ["parallel_efficiency", "load_balance", "communication_efficiency"] {
        cell(html, &format!("efficiency/{key}"), Unit::Percent);
    }
}
