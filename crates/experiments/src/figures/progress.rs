//! [RA07]: does a transfer go on while nobody calls MPI?

use crate::results::{Inject, Results, Run, Spread, Table, TableRow};

use super::panels::{self, Placed};
use super::{overlap, words, Figure};
use lapscope_show::plot::chart::{self, Axis, Chart, Guide, Panel, PlottedFunction, Point, Series};
use lapscope_show::plot::palette::Dash;
use lapscope_show::plot::scale::Quantity;
use lapscope_show::plot::sheet::{Heading, LegendLine, Look};

const PANEL: (f64, f64) = (360.0, 260.0);
const AFTER: &str = "Rashti and Afsahi 2007";
/// More lines cannot be told apart.
const MOST_SIZES: usize = 4;
/// Below, there was none; in latencies without delay.
const LEAST_DELAY: f64 = 0.05;
/// Longest delay and latency, in latencies without delay, that a linear axis shows well.
const LINEAR_UP_TO: f64 = 12.0;
/// What a latency may be at a delay, both in latencies without delay.
const GUIDES: [(Dash, &str, PlottedFunction); 3] = [
    (Dash::Solid, "no progress: begins after the delay", |delay| 1.0 + delay),
    (Dash::Dashed, "ends with the delay", |delay| delay.max(1.0)),
    (Dash::Dotted, "independent progress", |_| 1.0),
];

pub fn figures(results: &Results) -> Vec<Figure> {
    let send = latency(
        results,
        "send",
        "progress-send",
        "Sends: does the transfer go on without MPI calls?",
    );
    let receive = latency(
        results,
        "receive",
        "progress-receive",
        "Receives: does the transfer go on without MPI calls?",
    );
    [send, receive, post_delay(results)].into_iter().flatten().collect()
}

/// Tables of a side in which neither is first on purpose.
fn tables<'a>(
    results: &'a Results,
    side: &'a str,
) -> impl Iterator<Item = (&'a Run, &'a Table)> + 'a {
    results.tables("progress").filter(move |(_, table)| {
        table.attribute("side") == side && matches!(table.attribute("first"), "none" | "")
    })
}

/// Bytes of a row's messages; some programs say it once for a table.
fn bytes(table: &Table, row: &TableRow) -> Option<f64> {
    let bytes = row.number("bytes").or_else(|| table.attribute("bytes").parse().ok());
    bytes.filter(|bytes| bytes.is_finite() && *bytes >= 0.0)
}

fn sizes(table: &Table) -> Vec<u64> {
    panels::distinct(table.rows.iter().filter_map(|row| bytes(table, row)).map(|size| size as u64))
}

/// Latency against delay, both in latencies without delay.
fn latency(results: &Results, side: &str, name: &str, title: &str) -> Option<Figure> {
    let shown = |run: &Run| run.inject != Inject::Thread;
    let measured: Vec<_> = tables(results, side).filter(|(run, _)| shown(run)).collect();
    let all = panels::distinct(measured.iter().flat_map(|(_, table)| sizes(table)));
    let chosen = spread_out(&all);
    let mut placed = Vec::new();
    for (run, table) in &measured {
        for (place, size) in chosen.iter().enumerate() {
            placed.push(Placed::new(run, line(table, *size, place, run.inject)));
        }
    }
    let mut panels = panels::arrange(results, placed);
    if panels.is_empty() {
        return None;
    }
    let legend = latency_legend(&panels, &chosen);
    let quantity = ratio_of(&panels);
    for panel in &mut panels {
        panel.guides = guides();
    }
    let chart = Chart {
        heading: latency_heading(results, side, title),
        legend,
        x: Axis::new(quantity, "delay before the wait, in latencies without delay"),
        y: Axis::new(quantity, "latency, in latencies without delay"),
        y_spans_x: true,
        size: PANEL,
        panels,
    };
    Some(Figure::draw(name, &chart))
}

fn latency_heading(results: &Results, side: &str, title: &str) -> Heading {
    let who = if side == "send" { "sender" } else { "receiver" };
    let subtitle = format!(
        "The {who} posts, then stays away from MPI. Latency that grows with the delay: nothing moved meanwhile. \
         Latency that stays: the transfer went on by itself."
    );
    Heading { title: title.to_owned(), subtitle, facts: words::facts(results, AFTER) }
}

/// A line of one size.
fn line(table: &Table, size: u64, place: usize, inject: Inject) -> Series {
    let rows = || table.rows.iter().filter(|row| bytes(table, row) == Some(size as f64));
    let alone = alone(rows());
    let mut points: Vec<Point> = rows().filter_map(|row| normalised(row, alone?)).collect();
    chart::sort(&mut points);
    let look = Look::series(place);
    let look = if inject == Inject::Off { look } else { look.dashed(Dash::Dashed).open() };
    Series { label: format!("{size} {}", inject.key()), look, points }
}

/// Latency without delay: as told, or that of the row with the shortest delay. What is measured of none is not quite 0.
fn alone<'a>(rows: impl Iterator<Item = &'a TableRow>) -> Option<f64> {
    let delay = |row: &&TableRow| row.number("delay_us").unwrap_or(f64::INFINITY);
    let row = rows.min_by(|a, b| delay(a).total_cmp(&delay(b)))?;
    let alone = row.number("l0_us").or_else(|| row.number("latency_us"))?;
    (alone.is_finite() && alone > 0.0).then_some(alone)
}

fn normalised(row: &TableRow, alone: f64) -> Option<Point> {
    let latency = row.program("latency_us")?;
    let share = |us: f64| us / alone;
    let spread = Spread {
        median: share(latency.median),
        low: latency.low.map(share),
        high: latency.high.map(share),
    };
    let delay = share(row.number("delay_us")?);
    panels::point(if delay < LEAST_DELAY { 0.0 } else { delay }, spread)
}

fn ratio_of(panels: &[Panel]) -> Quantity {
    let points = panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
    let longest = points.map(|point| point.x.max(point.y)).fold(0.0, f64::max);
    if longest > LINEAR_UP_TO {
        Quantity::RatioLog
    } else {
        Quantity::Ratio
    }
}

fn guides() -> Vec<Guide> {
    GUIDES.map(|(dash, _, function)| Guide { look: Look::guide(dash), function }).to_vec()
}

/// Sizes by colour and marker, injection by dash.
fn latency_legend(panels: &[Panel], chosen: &[u64]) -> Vec<LegendLine> {
    let of_size = |(place, size): (usize, &u64)| {
        LegendLine::line(words::size(*size as f64), Look::series(place))
    };
    let mut legend: Vec<LegendLine> = chosen.iter().enumerate().map(of_size).collect();
    let labels = || panels.iter().flat_map(|panel| &panel.series).map(|series| &series.label);
    if labels().any(|label| label.ends_with(Inject::Timer.key())) {
        legend.push(LegendLine::line(words::inject(Inject::Off), Look::plain(Dash::Solid)));
        legend.push(LegendLine::line(words::inject(Inject::Timer), Look::plain(Dash::Dashed)));
    }
    legend.extend(GUIDES.map(|(dash, label, _)| LegendLine::line(label, Look::guide(dash))));
    legend
}

/// Up to [`MOST_SIZES`], with the smallest and the largest.
fn spread_out(sizes: &[u64]) -> Vec<u64> {
    if sizes.len() <= MOST_SIZES {
        return sizes.to_vec();
    }
    let place = |number: usize| sizes[number * (sizes.len() - 1) / (MOST_SIZES - 1)];
    (0..MOST_SIZES).map(place).collect()
}

/// What is left after the longest delay.
fn post_delay(results: &Results) -> Option<Figure> {
    let mut placed = Vec::new();
    for inject in Inject::ALL {
        for side in ["send", "receive"] {
            let measured = tables(results, side).filter(|(run, _)| run.inject == inject);
            placed.extend(
                measured.map(|(run, table)| Placed::new(run, left_over(table, side, inject))),
            );
        }
    }
    let panels = panels::arrange(results, placed);
    if panels.is_empty() {
        return None;
    }
    let subtitle = "After the longest delay: the time that the transfer still takes, as a share of what it takes without delay. \
                    100 %: nothing had been done; 0 %: all. What is above 140 % is at the edge.";
    let chart = Chart {
        heading: Heading {
            title: "Work that is left after a delay".to_owned(),
            subtitle: subtitle.to_owned(),
            facts: words::facts(results, AFTER),
        },
        legend: chart::legend(&panels),
        x: Axis::new(Quantity::Bytes, "message size"),
        y: Axis::new(Quantity::Percent, "post-delay work"),
        y_spans_x: false,
        size: (360.0, 220.0),
        panels,
    };
    Some(Figure::draw("post-delay", &chart))
}

/// The row with the longest delay of each size.
fn left_over(table: &Table, side: &str, inject: Inject) -> Series {
    let delay = |row: &&TableRow| row.number("delay_us").unwrap_or(0.0);
    let of_size = |size: u64| {
        let rows = table.rows.iter().filter(|row| {
            bytes(table, row) == Some(size as f64) && row.program("post_delay_percent").is_some()
        });
        let longest = rows.max_by(|a, b| delay(a).total_cmp(&delay(b)))?;
        panels::point(size as f64, longest.program("post_delay_percent")?)
    };
    let look = overlap::injection_look(inject);
    let look = if side == "send" { look } else { look.open() };
    Series {
        label: format!("{side}, {}", words::inject(inject)),
        look,
        points: sizes(table).into_iter().filter_map(of_size).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Value;

    fn row(delay: f64, latency: f64) -> TableRow {
        let value = |median| {
            let program = Some(Spread { median, low: None, high: None });
            Value { program, outside: None }
        };
        let columns = [("bytes", 1024.0), ("delay_us", delay), ("latency_us", latency)];
        let values = columns.map(|(name, number)| (name.to_owned(), value(number)));
        TableRow { values: values.into() }
    }

    #[test]
    fn latencies_are_shares_of_that_without_delay() {
        let rows = vec![row(100.0, 60.0), row(0.03, 50.0), row(200.0, 250.0)];
        let table = Table { rows, ..Table::default() };
        let line = line(&table, 1024, 0, Inject::Off);
        let points: Vec<_> = line.points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(points, [(0.0, 1.0), (2.0, 1.2), (4.0, 5.0)]);
    }

    #[test]
    fn few_sizes_with_the_ends() {
        assert_eq!(spread_out(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(spread_out(&[1, 2, 3, 4, 5, 6, 7]), [1, 3, 5, 7]);
        assert!(spread_out(&[]).is_empty());
    }
}
