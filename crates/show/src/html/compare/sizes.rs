//! Overlap against message size in both runs.

use super::Compared;
use crate::html::markup::Html;
use crate::html::sizes::{point, KINDS};
use crate::plot::chart::{draw_within_page, Axis, Chart, Panel, Series};
use crate::plot::palette::Dash;
use crate::plot::scale::Quantity;
use crate::plot::sheet::{Heading, LegendLine, Look};
use lapscope_measure::transfers::{SizeClass, SizeKind};

/// Rows of panels, by their places among possible, achieved and lost.
const PARTS: [(usize, &str); 2] = [(1, "achieved"), (0, "possible")];

pub fn section(html: &mut Html, compared: &Compared) {
    let panels = panels(compared);
    if panels.is_empty() {
        return html.missing(
            "How long transfers of these sizes take undisturbed is not known of either run, so what was overlapped of them is \
             not, either. lapscope calibrate measures reference times.",
        );
    }
    let chart = Chart {
        heading: Heading {
            title: "Overlap against message size".to_owned(),
            subtitle: "Shares of the reference time of transfers, with bounds.".to_owned(),
            facts: String::new(),
        },
        legend: looks().map(|(name, look)| LegendLine::line(name, look)).into(),
        x: Axis::new(Quantity::Bytes, "bytes"),
        y: Axis::new(Quantity::Percent, "of the reference time"),
        y_spans_x: false,
        size: (560.0, 190.0),
        panels,
    };
    html.within("figure", &[("class", "scroll")], |html| {
        html.own(&draw_within_page(&chart, "overlap-by-size"));
    });
}

fn looks() -> [(&'static str, Look); 2] {
    [("A", Look::series(0)), ("B", Look::series(1).dashed(Dash::Dashed))]
}

fn panels(compared: &Compared) -> Vec<Panel> {
    let classes = compared.runs().map(|(_, run)| &run.report.size_classes[..]);
    let all = KINDS.iter().flat_map(|kind| PARTS.map(|part| (kind, part)));
    let panels = all.filter_map(|(&(kind, title), (part, name))| {
        let series = [0, 1].map(|run| series(classes[run], kind, part, looks()[run]));
        let has_points = series.iter().any(|series| !series.points.is_empty());
        let title = format!("{title}: {name}");
        has_points.then(|| Panel { title, series: series.into(), ..Panel::default() })
    });
    panels.enumerate().map(|(row, panel)| Panel { row, ..panel }).collect()
}

fn series(
    classes: &[SizeClass],
    kind: SizeKind,
    part: usize,
    (name, look): (&str, Look),
) -> Series {
    let of_kind = classes.iter().filter(|class| class.kind == kind);
    let points = of_kind.filter_map(|class| point(class, part)).collect();
    Series { label: name.to_owned(), look, points }
}
