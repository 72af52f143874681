//! How the ranks differ: a bar each of few, distributions of many, and those that stand apart by name.

use std::collections::BTreeSet;

use super::markup::{Document, Html, Unit};
use super::Contents;
use crate::plot::palette::Tone;
use crate::plot::svg::{Anchor, Area, Font, Svg};
use crate::render::alike::{name, sentences};
use crate::render::report::split;
use lapscope_data::model::{Ended, Nanos, Rank};
use lapscope_data::text::units::time;
use lapscope_measure::alike::{self, Distribution, Likeness};
use lapscope_measure::totals::RankRow;

/// Ranks that have a bar and a row each.
const MOST_BARS: usize = 64;

pub fn section(html: &mut Html, contents: &Contents, document: Document<'_>) {
    let report = &contents.report;
    if report.ranks.len() == 1 {
        html.missing("One rank was recorded: there is no other to compare it with.");
    }
    for sentence in sentences(&report.alike) {
        html.paragraph(&sentence);
    }
    html.within("p", &[("class", "note")], |html| {
        html.text("Outside MPI the rank with most is ");
        document.write(html, "/spread/compute_imbalance", Unit::Percent);
        html.text(" above the mean.");
    });
    let shown = shown(contents);
    if !shown.is_empty() {
        html.within("figure", &[("class", "scroll")], |html| html.own(&bars(&shown)));
    }
    if report.ranks.len() > 1 {
        distributions(html, contents, document);
    }
    rows(html, &shown, document);
}

/// All of few ranks; of many those that stand apart, and the first of the others.
fn shown(contents: &Contents) -> Vec<(usize, &RankRow)> {
    let report = &contents.report;
    let rows = report.ranks.iter().enumerate();
    if report.ranks.len() <= MOST_BARS {
        return rows.collect();
    }
    let groups = report.alike.groups.iter().filter(|_| report.alike.verdict == Likeness::Groups);
    let firsts = groups.clone().filter_map(|group| group.ranks.first());
    let apart: BTreeSet<Rank> = firsts
        .chain(groups.skip(1).flat_map(|group| group.ranks.iter().take(8)))
        .copied()
        .collect();
    rows.filter(|(_, row)| apart.contains(&row.rank)).take(MOST_BARS).collect()
}

const PARTS: [Tone; 9] = [
    Tone::Series(1),
    Tone::Dim,
    Tone::Series(4),
    Tone::Series(3),
    Tone::Series(0),
    Tone::Series(2),
    Tone::Series(5),
    Tone::Dim,
    Tone::Ink,
];

/// Time in MPI by what it was for; what is left of the longest bar is outside MPI.
fn bars(rows: &[(usize, &RankRow)]) -> String {
    const LEFT: f64 = 120.0;
    const WIDTH: f64 = 500.0;
    let height: f64 = if rows.len() > 24 { 11.0 } else { 16.0 };
    let longest = rows.iter().map(|(_, row)| row.totals.run_ns.0).max().unwrap_or(0).max(1) as f64;
    let mut svg = Svg::default();
    let used: Vec<usize> = (0..PARTS.len())
        .filter(|&at| rows.iter().any(|(_, row)| split(&row.totals)[at].1 .0 > 0))
        .collect();
    let mut y = legend(&mut svg, &used);
    for (_, row) in rows {
        let font = Font::new(height.min(12.0) - 1.0);
        let label = font.cut(&format!("{} {}", row.rank, row.host), LEFT - 8.0);
        svg.text((LEFT - 6.0, y + height - 4.0), &label, font.at(Anchor::End));
        let mut left = LEFT;
        let mut bar = |ns: Nanos, tone: Tone, opacity: f64, what: &str| {
            let width = ns.0.max(0) as f64 / longest * WIDTH;
            let hover = format!("rank {}: {what} {}", row.rank, time(ns));
            let area = Area { left, top: y, width, height: height - 3.0 };
            if width > 0.0 {
                svg.bar(area, tone, opacity, &hover);
            }
            left += width;
        };
        for (at, (part, ns)) in split(&row.totals).into_iter().enumerate() {
            bar(ns, PARTS[at], 1.0, part.label);
        }
        bar(row.totals.run_ns - row.totals.mpi_ns, Tone::Grid, 1.0, "outside MPI");
        y += height;
    }
    let text = "A bar for each rank, as long as it ran, with parts for the time inside MPI.";
    svg.within_page(LEFT + WIDTH + 16.0, y + 8.0, "rank-bars", ["Time of ranks", text])
}

fn legend(svg: &mut Svg, used: &[usize]) -> f64 {
    let font = Font::new(12.0);
    let nothing = lapscope_measure::totals::Totals::default();
    let parts = split(&nothing);
    let named = used.iter().map(|&at| (parts[at].0.label, PARTS[at]));
    let (mut x, mut y) = (8.0, 8.0);
    for (label, tone) in named.chain([("outside MPI", Tone::Grid)]) {
        let width = 24.0 + font.width(label) + 10.0;
        if x + width > 628.0 {
            (x, y) = (8.0, y + 18.0);
        }
        svg.bar(Area { left: x, top: y, width: 18.0, height: 10.0 }, tone, 1.0, label);
        svg.text((x + 24.0, y + 10.0), label, font);
        x += width;
    }
    y + 24.0
}

fn unit(measure: alike::Measure) -> Unit {
    match measure.unit() {
        alike::MeasureUnit::Nanoseconds => Unit::Time,
        alike::MeasureUnit::Bytes => Unit::Bytes,
        alike::MeasureUnit::Requests => Unit::Count,
    }
}

fn distributions(html: &mut Html, contents: &Contents, document: Document<'_>) {
    html.element("h3", &[], "How each number is spread over ranks");
    html.within("div", &[("class", "scroll")], |html| {
        html.within("table", &[], |html| {
            html.within("thead", &[], |html| {
                html.within("tr", &[], |html| {
                    for name in [
                        "",
                        "least",
                        "25 %",
                        "median",
                        "75 %",
                        "most",
                        "ranks, least to most",
                        "at ranks",
                    ] {
                        html.element("th", &[("scope", "col")], name);
                    }
                });
            });
            html.within("tbody", &[], |html| {
                for (at, found) in contents.report.alike.distributions.iter().enumerate() {
                    html.within("tr", &[], |html| distribution(html, at, found, document));
                }
            });
        })
    });
}

fn distribution(html: &mut Html, at: usize, found: &Distribution, document: Document<'_>) {
    html.element("th", &[("scope", "row")], name(found.measure));
    for key in ["min", "quartile_1", "median", "quartile_3", "max"] {
        document.cell(html, &format!("/alike/distributions/{at}/{key}"), unit(found.measure));
    }
    html.within("td", &[], |html| {
        if !found.histogram.is_empty() {
            html.own(&histogram(found, at));
        }
    });
    let at_ranks = match found.min == found.max {
        true => "all".to_owned(),
        false => format!("{}, {}", found.min_rank, found.max_rank),
    };
    html.element("td", &[], &at_ranks);
}

/// Parts with a single rank can be seen.
fn histogram(found: &Distribution, at: usize) -> String {
    const HEIGHT: f64 = 26.0;
    const WIDTH: f64 = 12.0;
    let most = found.histogram.iter().copied().max().unwrap_or(1).max(1) as f64;
    let step = (found.max - found.min) as f64 / found.histogram.len() as f64;
    let unit = unit(found.measure);
    let mut svg = Svg::default();
    for (part, &ranks) in found.histogram.iter().enumerate().filter(|(_, ranks)| **ranks > 0) {
        let height = (ranks as f64 / most * HEIGHT).max(2.0);
        let (from, to) =
            (found.min as f64 + step * part as f64, found.min as f64 + step * (part + 1) as f64);
        let hover = format!("{ranks} ranks, {} to {}", unit.show(from), unit.show(to));
        let area = Area {
            left: WIDTH * part as f64 + 1.0,
            top: HEIGHT + 2.0 - height,
            width: WIDTH - 2.0,
            height,
        };
        svg.bar(area, Tone::Series(0), 1.0, &hover);
    }
    let width = WIDTH * found.histogram.len() as f64;
    let text = "Ranks in parts of equal width, from the least to the most.";
    svg.within_page(width, HEIGHT + 3.0, &format!("spread-{at}"), [name(found.measure), text])
}

fn rows(html: &mut Html, shown: &[(usize, &RankRow)], document: Document<'_>) {
    if shown.is_empty() {
        return;
    }
    html.within("details", &[], |html| {
        html.element("summary", &[], "Table of these ranks");
        html.within("div", &[("class", "scroll")], |html| {
            html.within("table", &[], |html| {
                html.within("thead", &[], |html| {
                    html.within("tr", &[], |html| {
                        for (_, name, _) in COLUMNS {
                            html.element("th", &[("scope", "col")], name);
                        }
                        html.element("th", &[("scope", "col")], "ended");
                    });
                });
                html.within("tbody", &[], |html| {
                    for (at, row) in shown {
                        html.within("tr", &[], |html| rank(html, *at, row, document));
                    }
                });
            })
        });
    });
}

const COLUMNS: [(&str, &str, Unit); 12] = [
    ("", "rank", Unit::Count),
    ("", "host", Unit::Count),
    ("run_ns", "run time", Unit::Time),
    ("mpi_ns", "in MPI", Unit::Time),
    ("exposed_ns", "completing", Unit::Time),
    ("posting_ns", "posting", Unit::Time),
    ("blocking_ns", "blocking", Unit::Time),
    ("collective_ns", "collectives", Unit::Time),
    ("other_ns", "other MPI", Unit::Time),
    ("requests", "requests", Unit::Count),
    ("sent_bytes", "sent", Unit::Bytes),
    ("received_bytes", "received", Unit::Bytes),
];

fn rank(html: &mut Html, at: usize, row: &RankRow, document: Document<'_>) {
    html.element("th", &[("scope", "row"), ("class", "n")], &row.rank.to_string());
    html.element("td", &[], &row.host);
    for (key, _, unit) in COLUMNS.iter().skip(2) {
        document.cell(html, &format!("/ranks/{at}/{key}"), *unit);
    }
    let ended = match row.ended {
        Ended::Finalize => "MPI_Finalize",
        Ended::Exit => "exit",
        Ended::Abort => "abort",
        Ended::Killed if row.is_of_job_record => "no MPI_Finalize",
        Ended::Killed => "killed",
    };
    html.element("td", &[], ended);
}
