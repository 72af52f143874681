//! [HO07]: how much processor time do blocking collectives take?

use crate::model::PREDICTED_NETWORK_PERCENT;
use crate::results::{Inject, Results, Run, Table, TableRow};

use super::panels::{self, Placed};
use super::{words, Figure};
use lapscope_show::plot::chart::{self, Axis, Chart, Panel, Series};
use lapscope_show::plot::palette::Dash;
use lapscope_show::plot::scale::Quantity;
use lapscope_show::plot::sheet::{Heading, LegendLine, Look};

const OPERATIONS: [&str; 3] = ["allreduce", "bcast", "barrier"];
const SHARES: [(&str, &str); 4] = [
    ("user_percent", "user, share of wall time"),
    ("system_percent", "system, share of wall time"),
    ("idle_percent", "idle, share of wall time"),
    (PREDICTED_NETWORK_PERCENT, "network, share by LogGP"),
];

pub fn figure(results: &Results) -> Option<Figure> {
    let measured: Vec<(&Run, &Table)> = results
        .tables("collective_cpu")
        .filter(|(run, _)| run.inject == Inject::Off && run.settings.is_empty())
        .collect();
    let processors = results.facts.get("processors").and_then(|fact| fact.trim().parse().ok());
    let worlds = Worlds::find(&measured, processors)?;
    let mut panels = Vec::new();
    for (row, (quantity, share)) in SHARES.into_iter().enumerate() {
        add_row(results, &measured, &worlds, (row, quantity, share), &mut panels);
    }
    if panels.is_empty() {
        return None;
    }
    let chart = Chart {
        heading: heading(results),
        legend: legend(&panels, &worlds),
        x: Axis::new(Quantity::Bytes, "message size"),
        y: Axis::new(Quantity::Percent, "share of wall time"),
        y_spans_x: false,
        size: (270.0, 130.0),
        panels,
    };
    Some(Figure::draw("collective-cpu", &chart))
}

fn heading(results: &Results) -> Heading {
    let subtitle = "Where the time of a blocking collective goes: computing in the process (user), in the kernel (system), or not \
                    on a processor at all (idle). A library that polls is never idle; the network's part as LogGP predicts \
                    it is what it could leave to the program.";
    Heading {
        title: "Processor time of blocking collectives".to_owned(),
        subtitle: subtitle.to_owned(),
        facts: words::facts(results, "Hoefler and others 2007"),
    }
}

/// Numbers of ranks that are drawn.
struct Worlds {
    /// The most that have a processor each.
    fitting: Option<u32>,
    /// The most of all, where that is more.
    crowded: Option<u32>,
}

impl Worlds {
    fn find(measured: &[(&Run, &Table)], processors: Option<u32>) -> Option<Worlds> {
        let all = panels::distinct(measured.iter().map(|(run, table)| ranks(run, table)));
        let most = *all.last()?;
        let fitting =
            all.iter().rev().find(|ranks| processors.map_or(true, |most| **ranks <= most));
        let crowded = (fitting != Some(&most)).then_some(most);
        Some(Worlds { fitting: fitting.copied(), crowded })
    }

    fn dash(&self, ranks: u32) -> Option<Dash> {
        match ranks {
            _ if self.fitting == Some(ranks) => Some(Dash::Solid),
            _ if self.crowded == Some(ranks) => Some(Dash::Dashed),
            _ => None,
        }
    }
}

fn ranks(run: &Run, table: &Table) -> u32 {
    table.attribute("ranks").parse().unwrap_or(run.ranks)
}

/// Panels of one share, a column for each MPI and link.
fn add_row(
    results: &Results,
    measured: &[(&Run, &Table)],
    worlds: &Worlds,
    (row, quantity, share): (usize, &str, &str),
    panels: &mut Vec<Panel>,
) {
    let series = |(run, table): &(&Run, &Table)| {
        let dash = worlds.dash(ranks(run, table))?;
        Some(Placed::new(run, line(table, quantity, dash)?))
    };
    let placed = measured.iter().filter_map(series).collect();
    for (column, mut panel) in panels::arrange(results, placed).into_iter().enumerate() {
        panel.y_label = Some(share.to_owned());
        panels.push(Panel { row, column, ..panel });
    }
}

fn line(table: &Table, quantity: &str, dash: Dash) -> Option<Series> {
    let operation = table.attribute("op");
    let place = OPERATIONS.iter().position(|known| *known == operation)?;
    let look = Look::series(place).dashed(dash);
    let look = if dash == Dash::Solid { look } else { look.open() };
    // a barrier moves nothing
    let point = |row: &TableRow| {
        let bytes = row.number("bytes").unwrap_or(0.0);
        panels::point(bytes, row.program(quantity).or_else(|| row.outside(quantity))?)
    };
    let mut points: Vec<_> = table.rows.iter().filter_map(point).collect();
    chart::sort(&mut points);
    Some(Series { label: format!("{operation} {dash:?}"), look, points })
}

/// Operations by colour and marker, numbers of ranks by dash.
fn legend(panels: &[Panel], worlds: &Worlds) -> Vec<LegendLine> {
    let has = |operation: &str| {
        let mut series = panels.iter().flat_map(|panel| &panel.series);
        series.any(|series| series.label.starts_with(operation))
    };
    let operations = OPERATIONS.into_iter().enumerate().filter(|(_, operation)| has(operation));
    let mut legend: Vec<LegendLine> =
        operations.map(|(place, name)| LegendLine::line(name, Look::series(place))).collect();
    if let Some(ranks) = worlds.fitting {
        legend.push(LegendLine::line(format!("{ranks} ranks"), Look::plain(Dash::Solid)));
    }
    if let Some(ranks) = worlds.crowded {
        let label = format!("{ranks} ranks, more than processors");
        legend.push(LegendLine::line(label, Look::plain(Dash::Dashed)));
    }
    legend
}
