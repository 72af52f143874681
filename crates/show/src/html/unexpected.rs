//! Messages that MPI had to keep for receives that were not posted.

use super::markup::Html;
use super::Contents;
use crate::plot::chart::{draw_within_page, Axis, Chart, Panel, Point, Series};
use crate::plot::scale::Quantity;
use crate::plot::sheet::{Heading, LegendLine, Look};
use crate::render::unexpected::{credit, sentences};
use lapscope_measure::unexpected::KeptOverTime;

pub fn section(html: &mut Html, contents: &Contents) {
    let report = &contents.report;
    let Some(found) = &report.unexpected else {
        html.missing(
            "Unexpected messages are not looked for: the run was looked at in part, or in parts.",
        );
        return;
    };
    if found.ranks.is_empty() {
        let text = "MPI had to keep few messages at once for receives that were not posted.";
        html.missing(&match found.all.messages {
            0 => "There are no messages whose both ends are known.".to_owned(),
            _ => format!("{text} {}", credit(found)),
        });
        return;
    }
    if let Some(kept) = &found.over_time {
        html.within("figure", &[("class", "scroll")], |html| html.own(&picture(kept)));
    }
    html.within("ul", &[], |html| {
        for line in sentences(found, report) {
            html.within("li", &[], |html| html.whole_text(&line));
        }
    });
}

fn picture(kept: &KeptOverTime) -> String {
    let series = |label: &str, look: Look, bytes: &[u64]| {
        let point = |(slot, &bytes): (usize, &u64)| Point {
            x: (slot as f64 + 0.5) * kept.slot_ns.0 as f64 / 1e3,
            y: bytes as f64 / f64::from(1 << 20),
            spread: None,
        };
        Series {
            label: label.to_owned(),
            look: Look { marker: None, ..look },
            points: bytes.iter().enumerate().map(point).collect(),
        }
    };
    let title = format!("Kept for rank {}", kept.rank);
    let series = vec![
        series("at most", Look::series(1), &kept.high_bytes),
        series("for certain", Look::series(0), &kept.low_bytes),
    ];
    let chart = Chart {
        heading: Heading { title: title.clone(), ..Heading::default() },
        legend: series
            .iter()
            .map(|series| LegendLine::line(series.label.clone(), series.look))
            .collect(),
        x: Axis::new(Quantity::Time, "since MPI_Init"),
        y: Axis::new(Quantity::Ratio, "MiB"),
        y_spans_x: false,
        size: (560.0, 150.0),
        panels: vec![Panel { title, series, ..Panel::default() }],
    };
    draw_within_page(&chart, "unexpected")
}
