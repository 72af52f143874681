//! What replays of a run say: run time against a knob, or of scenarios beside each other. The recorded run time is a line, and
//! around what is predicted lies the error of the run replayed as it was.

use super::bars::{self, Bar, BarChart, BarGroup, BarPanel};
use super::chart::{self, Axis, Chart, Panel, Point, Series};
use super::palette::{Dash, Tone};
use super::scale::{self, Quantity};
use super::sheet::{Heading, LegendLine, Look};
use lapscope_data::model::Nanos;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::percent;
use lapscope_predict::whatif::document::{Sweep, SweepPoint, WhatIf};

const COLUMNS: usize = 2;
/// Letters of a line below a bar.
const LABEL: usize = 12;

/// One image: of the sweeps where there are any, else of the scenarios.
pub fn figure(answer: &WhatIf) -> String {
    match answer.sweeps.is_empty() {
        true => scenarios(answer),
        false => sweeps(answer),
    }
}

// --- run time against a knob -----------------------------------------------------------------------------------------

/// A panel for each knob, with an axis of its own.
pub fn sweeps(answer: &WhatIf) -> String {
    let panels: Vec<Panel> = answer
        .sweeps
        .iter()
        .enumerate()
        .map(|(place, sweep)| panel(answer, place, sweep))
        .collect();
    let knobs: Vec<&str> = answer.sweeps.iter().map(|sweep| sweep.knob.as_str()).collect();
    let times = panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
    let y =
        if spans_decade(times.map(|point| point.y)) { Quantity::TimeLog } else { Quantity::Time };
    let chart = Chart {
        heading: heading(answer, &format!("Run time against {}", knobs.join(", "))),
        legend: chart::legend(&panels),
        x: Axis::new(Quantity::Ratio, ""),
        y: Axis::new(y, "run time"),
        y_spans_x: false,
        size: (300.0, 200.0),
        panels,
    };
    chart::draw(&chart)
}

fn panel(answer: &WhatIf, place: usize, sweep: &Sweep) -> Panel {
    let (limited, unlimited): (Vec<&SweepPoint>, Vec<&SweepPoint>) =
        sweep.points.iter().partition(|point| point.number.is_finite());
    let error = answer.error();
    let to_axis = |point: &SweepPoint| x(&sweep.knob, point);
    let mut points: Vec<Point> = limited
        .iter()
        .filter_map(|point| {
            let y = us(point.run_ns?);
            Some(Point {
                x: to_axis(point),
                y,
                spread: Some((y * (1.0 - error), y * (1.0 + error))),
            })
        })
        .collect();
    chart::sort(&mut points);
    let ends: Vec<f64> = limited.iter().map(|point| to_axis(point)).collect();
    let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // where all values are without a limit, lines need an axis nevertheless
    let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
    let line = |label: String, ns: Nanos, look: Look| {
        let ends = if low < high { vec![low, high] } else { vec![low] };
        let points = ends.into_iter().map(|x| Point { x, y: us(ns), spread: None }).collect();
        Series { label, look, points }
    };
    let mut series = vec![Series { label: "replayed".to_owned(), look: Look::series(0), points }];
    series.push(line("recorded".to_owned(), answer.recorded.run_ns, Look::guide(Dash::Dashed)));
    for point in unlimited {
        if let Some(ns) = point.run_ns {
            series.push(line(
                format!("{} {}", sweep.knob, point.value),
                ns,
                Look::plain(Dash::Dotted),
            ));
        }
    }
    Panel {
        row: place / COLUMNS,
        column: place % COLUMNS,
        title: sweep.knob.clone(),
        series,
        x: Some(x_axis(sweep, &ends)),
        ..Panel::default()
    }
}

fn us(ns: Nanos) -> f64 {
    ns.0 as f64 / 1e3
}

fn is_multiple(point: &SweepPoint) -> bool {
    point.value.starts_with('x')
}

/// In the unit of the axis.
fn x(knob: &str, point: &SweepPoint) -> f64 {
    match knob {
        "latency" | "progress" if !is_multiple(point) => point.number / 1e3,
        _ => point.number,
    }
}

fn x_axis(sweep: &Sweep, values: &[f64]) -> Axis {
    let is_log = spans_decade(values.iter().copied());
    let of = |log, linear| if is_log { log } else { linear };
    let times = sweep.points.iter().any(is_multiple);
    let label = match sweep.knob.as_str() {
        "eager-limit" => "eager limit".to_owned(),
        "cpu" => "speed of computation, times the recorded one".to_owned(),
        "progress" => "time between tests; 0: asynchronous".to_owned(),
        knob if times => format!("{knob}, times the recorded one"),
        knob => knob.to_owned(),
    };
    let quantity = match sweep.knob.as_str() {
        "eager-limit" => Quantity::Bytes,
        _ if times => of(Quantity::RatioLog, Quantity::Ratio),
        "bandwidth" => of(Quantity::RateLog, Quantity::Rate),
        "latency" | "progress" => of(Quantity::TimeLog, Quantity::Time),
        _ => of(Quantity::RatioLog, Quantity::Ratio),
    };
    Axis::new(quantity, &label)
}

/// Whether values are further apart than an axis from 0 can show.
fn spans_decade(values: impl Iterator<Item = f64>) -> bool {
    let positive: Vec<f64> = values.filter(|value| *value > 0.0).collect();
    let low = positive.iter().copied().fold(f64::INFINITY, f64::min);
    positive.iter().any(|high| *high > 10.0 * low)
}

// --- scenarios beside each other ---------------------------------------------------------------------------------------

/// Bars of run times: as recorded, as replayed, and of each scenario that ends.
pub fn scenarios(answer: &WhatIf) -> String {
    let error = answer.error();
    let bar = |name: &str, ns: Nanos, tone: Tone, error: Option<f64>| {
        let value = us(ns);
        let spread = error.map(|error| (value * (1.0 - error), value * (1.0 + error)));
        let hover = format!("{name}: {}", scale::time(value));
        BarGroup {
            label: label(name),
            bars: vec![Bar { value, spread, tone, opacity: 0.85, hover }],
        }
    };
    let mut groups = vec![bar("recorded", answer.recorded.run_ns, Tone::Dim, None)];
    groups.extend(answer.identity.run_ns.map(|ns| bar("replayed", ns, Tone::Series(5), None)));
    for scenario in &answer.scenarios {
        let ended = scenario.run_ns;
        groups.extend(ended.map(|ns| bar(&scenario.name, ns, Tone::Series(0), Some(error))));
    }
    let panel = BarPanel { row: 0, column: 0, title: "run time".to_owned(), groups };
    let heading = heading(answer, "Run time, as recorded and as it would be");
    bars::draw(&BarChart { heading, legend: Vec::<LegendLine>::new(), panels: vec![panel] })
}

/// Two lines that fit below a bar.
fn label(name: &str) -> [String; 2] {
    let mut lines = [String::new(), String::new()];
    let mut words = name.split_whitespace().peekable();
    while let Some(word) = words.next_if(|word| lines[0].len() + word.len() < LABEL) {
        lines[0] = format!("{} {word}", lines[0]).trim_start().to_owned();
    }
    let rest: Vec<&str> = words.collect();
    let at = usize::from(!lines[0].is_empty());
    lines[at] = Style::cut(&rest.join(" "), LABEL);
    lines
}

fn heading(answer: &WhatIf, title: &str) -> Heading {
    let recorded = &answer.recorded;
    let mut subtitle = format!(
        "{}, {} ranks, replayed. The error of the replay, {} of the run time, lies around each value.",
        recorded.command,
        recorded.ranks,
        percent(answer.error())
    );
    let of_sweeps = answer.sweeps.iter().flat_map(|sweep| {
        let stuck = sweep.points.iter().filter(|point| point.run_ns.is_none());
        stuck.map(|point| format!("{} {}", sweep.knob, point.value))
    });
    let stuck = answer.scenarios.iter().filter(|scenario| scenario.run_ns.is_none());
    let stuck: Vec<String> = stuck.map(|scenario| scenario.name.clone()).chain(of_sweeps).collect();
    if !stuck.is_empty() {
        subtitle += &format!(" Deadlock: {}.", stuck.join("; "));
    }
    let library = recorded.mpi_library.split([',', '\n']).next().unwrap_or_default().trim();
    let version = format!("lapscope {}", env!("CARGO_PKG_VERSION"));
    let parts = [answer.run.as_str(), library, &version];
    let facts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Heading { title: title.to_owned(), subtitle, facts: facts.join(" · ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_two_lines() {
        let lines = |name: &str| label(name).join("|");
        assert_eq!(lines("recorded"), "recorded|");
        assert_eq!(lines("perfect progress"), "perfect|progress");
        assert_eq!(lines("--bandwidth x2 --latency x0.5"), "--bandwidth|x2 --latenc…");
        assert_eq!(lines("averyveryverylongname"), "averyveryve…|");
    }

    #[test]
    fn axes_are_logarithmic_where_values_are_far_apart() {
        assert!(spans_decade([0.0, 1.0, 11.0].into_iter()));
        assert!(!spans_decade([0.0, 1.0, 10.0].into_iter()));
        assert!(!spans_decade([].into_iter()));
    }
}
