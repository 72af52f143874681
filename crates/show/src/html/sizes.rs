//! Achieved, possible and lost overlap against message size, with bounds.

use super::markup::{Document, Html, Unit};
use super::Contents;
use crate::plot::chart::{draw_within_page, Axis, Chart, Panel, Point, Series};
use crate::plot::scale::Quantity;
use crate::plot::sheet::{Heading, LegendLine, Look};
use crate::render::report::{achieved, loops_of_tests, notes, source};
use lapscope_data::model::Nanos;
use lapscope_data::text::units::round_bytes;
use lapscope_measure::overlap::sums::OverlapTimes;
use lapscope_measure::transfers::{SizeClass, SizeKind};

pub const KINDS: [(SizeKind, &str); 4] = [
    (SizeKind::PointToPoint, "Messages"),
    (SizeKind::Collective, "Collectives, by size on each rank"),
    (SizeKind::Rma, "One-sided"),
    (SizeKind::Io, "Files"),
];

pub fn section(html: &mut Html, contents: &Contents, document: Document<'_>) {
    let report = &contents.report;
    let numbers = &report.overlap.totals.numbers;
    if report.size_classes.is_empty() {
        return html.missing("No transfer was recorded.");
    }
    if numbers.measured > 0 {
        html.paragraph(&achieved(numbers, contents.report.mean()));
        html.element("p", &[("class", "note")], &source(&report.overlap));
        html.within("figure", &[("class", "scroll")], |html| {
            html.own(&picture(&report.size_classes))
        });
    } else {
        html.missing(why_not(contents));
    }
    for note in notes(report) {
        html.element("p", &[("class", "note")], &note);
    }
    for sentence in loops_of_tests(report) {
        html.paragraph(&sentence);
    }
    table(html, &report.size_classes, document);
}

fn why_not(contents: &Contents) -> &'static str {
    let report = &contents.report;
    if report.totals.requests == 0 {
        "No request is non-blocking, so nothing could be overlapped: there is no picture."
    } else if report.ranks.iter().all(|rank| rank.summarized) {
        "Only sums were recorded of these ranks (LAPSCOPE_MAX_MB was reached): what was overlapped of single requests is not known."
    } else {
        "How long these transfers take undisturbed is not known, so what was overlapped of them is not, either. \
         lapscope calibrate measures reference times."
    }
}

fn picture(classes: &[SizeClass]) -> String {
    let looks = [Look::series(0), Look::series(2), Look::series(1)];
    let names = ["possible", "achieved", "lost"];
    let panels: Vec<Panel> = KINDS
        .iter()
        .filter_map(|(kind, title)| {
            let of_kind = || classes.iter().filter(|class| class.kind == *kind);
            let series = |at: usize| Series {
                label: names[at].to_owned(),
                look: looks[at],
                points: of_kind().filter_map(|class| point(class, at)).collect(),
            };
            let series = [0, 1, 2].map(series);
            let has_points = series.iter().any(|series| !series.points.is_empty());
            has_points.then(|| Panel {
                title: (*title).to_owned(),
                series: series.into(),
                ..Panel::default()
            })
        })
        .enumerate()
        .map(|(row, panel)| Panel { row, ..panel })
        .collect();
    let chart = Chart {
        heading: Heading {
            title: "Overlap against message size".to_owned(),
            subtitle: "Shares of the reference time of transfers, with bounds.".to_owned(),
            facts: String::new(),
        },
        legend: names.iter().zip(looks).map(|(name, look)| LegendLine::line(*name, look)).collect(),
        x: Axis::new(Quantity::Bytes, "bytes"),
        y: Axis::new(Quantity::Percent, "of the reference time"),
        y_spans_x: false,
        size: (560.0, 190.0),
        panels,
    };
    draw_within_page(&chart, "overlap-by-size")
}

/// Possible, achieved, lost: between their bounds, which are its spread.
pub fn point(class: &SizeClass, at: usize) -> Option<Point> {
    let part =
        class.overlap.as_ref().filter(|part| part.measured > 0 && part.reference_ns.0 > 0)?;
    let (low, high) = bounds(part, at);
    let percent = |ns: Nanos| ns.share_of(part.reference_ns) * 100.0;
    let (low, high) = (percent(low), percent(high));
    Some(Point { x: class.from_bytes as f64, y: (low + high) / 2.0, spread: Some((low, high)) })
}

fn bounds(part: &OverlapTimes, at: usize) -> (Nanos, Nanos) {
    match at {
        0 => (part.possible_low_ns, part.possible_ns),
        1 => (part.achieved_low_ns, part.achieved_high_ns),
        _ => (part.lost_low_ns, part.lost_high_ns),
    }
}

fn table(html: &mut Html, classes: &[SizeClass], document: Document<'_>) {
    html.within("details", &[], |html| {
        html.element("summary", &[], "Table by size");
        html.within("div", &[("class", "scroll")], |html| {
            html.within("table", &[], |html| {
                html.within("thead", &[], |html| {
                    html.within("tr", &[], |html| {
                        for name in [
                            "kind",
                            "size",
                            "calls",
                            "bytes",
                            "time",
                            "exposed",
                            "reference time",
                            "achieved at least",
                            "at most",
                            "possible",
                            "lost at least",
                            "at most",
                        ] {
                            html.element("th", &[("scope", "col")], name);
                        }
                    });
                });
                html.within("tbody", &[], |html| {
                    for (at, class) in classes.iter().enumerate() {
                        html.within("tr", &[], |html| row(html, at, class, document));
                    }
                });
            })
        });
    });
}

fn row(html: &mut Html, at: usize, class: &SizeClass, document: Document<'_>) {
    let kind = KINDS.iter().find(|(kind, _)| *kind == class.kind).map_or("", |(_, name)| name);
    let size = match (class.from_bytes, class.below_bytes) {
        (0, _) => "0 B".to_owned(),
        (1, _) => "1 B".to_owned(),
        (from, below) => format!("{} to {}", round_bytes(from), round_bytes(below)),
    };
    html.element("td", &[], kind);
    html.element("td", &[("class", "n")], &size);
    let mean = document.mean_time();
    let cells = [
        ("calls", Unit::Count),
        ("bytes", Unit::Bytes),
        ("time_ns", mean),
        ("exposed_ns", mean),
        ("overlap/reference_ns", mean),
        ("overlap/achieved_low_ns", mean),
        ("overlap/achieved_high_ns", mean),
        ("overlap/possible_ns", mean),
        ("overlap/lost_low_ns", mean),
        ("overlap/lost_high_ns", mean),
    ];
    // without a reference time its parts are not known, and no 0
    let is_known = class.overlap.is_some_and(|part| part.measured > 0);
    for (key, unit) in cells {
        match is_known || !key.starts_with("overlap/") {
            true => document.cell(html, &format!("/size_classes/{at}/{key}"), unit),
            false => html.element("td", &[("class", "n")], ""),
        }
    }
}
