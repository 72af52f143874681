//! What the programs measured themselves against what lapscope says of the same runs.

use std::collections::BTreeMap;

use crate::outside::spread;
use crate::results::{Inject, Results, Value};

use super::{words, Figure};
use lapscope_show::plot::chart::{Axis, Chart, Guide, Panel, Point, Series};
use lapscope_show::plot::palette::Dash;
use lapscope_show::plot::scale::Quantity;
use lapscope_show::plot::sheet::{Heading, LegendLine, Look};

const COLUMNS: usize = 3;
/// Programs print hundredths of a microsecond: below, digits are lost.
const LEAST_US: f64 = 1.0;

pub fn figure(results: &Results) -> Option<Figure> {
    let series = by_program(results);
    let deviations: Vec<f64> = series
        .iter()
        .flat_map(|series| &series.points)
        .map(|point| (point.y / point.x - 1.0).abs())
        .collect();
    let count = deviations.len();
    let median = spread(deviations)?.median;
    let subtitle = format!(
        "{} medians of 1 µs and more in {} programs, each measured by the program itself and by lapscope from outside in the same \
         run, without injection. Half of them differ by less than {:.1} %.",
        count,
        series.len(),
        median * 100.0
    );
    let panels = series.into_iter().enumerate().map(|(place, series)| panel(place, series));
    let chart = Chart {
        heading: Heading {
            title: "Measured inside and from outside".to_owned(),
            subtitle,
            facts: facts(results),
        },
        legend: vec![LegendLine::line("the same", Look::guide(Dash::Solid))],
        x: Axis::new(Quantity::TimeLog, "as the program measured it"),
        y: Axis::new(Quantity::TimeLog, "as lapscope has it"),
        y_spans_x: true,
        size: (270.0, 250.0),
        panels: panels.collect(),
    };
    Some(Figure::draw("agreement", &chart))
}

/// One program, as one would hide the others.
fn panel(place: usize, series: Series) -> Panel {
    Panel {
        row: place / COLUMNS,
        column: place % COLUMNS,
        title: series.label.clone(),
        series: vec![series],
        guides: vec![Guide { look: Look::guide(Dash::Solid), function: |x| x }],
        ..Panel::default()
    }
}

fn facts(results: &Results) -> String {
    let mpis: Vec<&str> = results.mpis.iter().map(words::mpi).collect();
    let parts = [mpis.join(", "), words::facts(results, "")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn by_program(results: &Results) -> Vec<Series> {
    let mut programs: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    // with injection lapscope's own work lies between the two clocks
    for run in results.runs.iter().filter(|run| run.inject == Inject::Off) {
        let rows = run.tables.iter().flat_map(|table| &table.rows);
        let values = rows.flat_map(|row| &row.values);
        let points = values.filter_map(|(quantity, value)| pair(quantity, value));
        programs.entry(&run.program).or_default().extend(points);
    }
    programs.retain(|_, points| !points.is_empty());
    let series = |(place, (program, points)): (usize, (&str, Vec<Point>))| Series {
        label: program.to_owned(),
        look: Look::series(place).points().open(),
        points,
    };
    programs.into_iter().enumerate().map(series).collect()
}

/// A duration that both have.
fn pair(quantity: &str, value: &Value) -> Option<Point> {
    if !quantity.ends_with("_us") {
        return None;
    }
    let (x, y) = (value.program?.median, value.outside?.median);
    let is_shown = x.is_finite() && y.is_finite() && x >= LEAST_US && y > 0.0;
    is_shown.then_some(Point { x, y, spread: None })
}
