//! What injected tests gained, by slots of one run with and without them.

use super::markup::{Document, Html, Unit};
use super::Contents;
use crate::plot::palette::{Marker, Tone};
use crate::plot::scale::{Quantity, Scale};
use crate::plot::svg::{Anchor, Font, Pen, Svg};
use crate::render::injection::{modes, problems, sentences, verdict};
use lapscope_data::text::{list_ranks, plural};
use lapscope_measure::injection::{Injection, SiteInjection};

const MOST_SITES: usize = 30;

pub fn section(html: &mut Html, contents: &Contents, document: Document<'_>) {
    let Some(injection) = &contents.report.injection else {
        return html.missing(
            "No tests were injected in this run. lapscope tune -- <launch line> finds out whether they help; \
             LAPSCOPE_INJECT with LAPSCOPE_INJECT_AB=1 compares within one run.",
        );
    };
    html.paragraph(&format!("Mode: {}.", modes(injection)));
    for (problem, ranks) in problems(injection) {
        let ranks = format!("rank{} {}: {problem}", plural(ranks.len() as u64), list_ranks(&ranks));
        html.element("p", &[("class", "problem")], &ranks);
    }
    for sentence in sentences(injection) {
        html.paragraph(&sentence);
    }
    if has_intervals(injection) {
        html.within("figure", &[("class", "scroll")], |html| html.own(&picture(injection)));
    }
    table(html, injection, document);
}

fn has_intervals(injection: &Injection) -> bool {
    injection.sites.iter().any(|site| interval(site).is_some())
}

/// Saved of a request: estimate and interval, microseconds.
fn interval(site: &SiteInjection) -> Option<(f64, f64, f64)> {
    let gain = site.gain.as_ref()?;
    let us = |ns: lapscope_data::model::Nanos| ns.0 as f64 / 1e3;
    Some((us(gain.low_ns?), us(gain.estimate_ns?), us(gain.high_ns?)))
}

fn name(site: &SiteInjection) -> String {
    let place = site.site.as_ref().map_or_else(|| "(no call path)".to_owned(), |site| site.short());
    format!("{} {place}", site.call)
}

/// A point with its interval for each site: right of 0 is gained.
fn picture(injection: &Injection) -> String {
    const LEFT: f64 = 250.0;
    const WIDTH: f64 = 360.0;
    const ROW: f64 = 22.0;
    let sites: Vec<(&SiteInjection, (f64, f64, f64))> = injection
        .sites
        .iter()
        .filter_map(|site| Some((site, interval(site)?)))
        .take(MOST_SITES)
        .collect();
    let values = sites.iter().flat_map(|(_, (low, _, high))| [*low, *high]).chain([0.0]);
    let scale = Scale::new(Quantity::Time, values);
    let mut svg = Svg::default();
    let x = |us: f64| LEFT + scale.place(us) * WIDTH;
    let bottom = 12.0 + ROW * sites.len() as f64;
    for tick in scale.ticks(5) {
        svg.line((x(tick.value), 8.0), (x(tick.value), bottom), Pen::new(Tone::Grid, 1.0));
        svg.text(
            (x(tick.value), bottom + 15.0),
            &tick.label,
            Font::new(11.0).dim().at(Anchor::Middle),
        );
    }
    svg.line((x(0.0), 8.0), (x(0.0), bottom), Pen::new(Tone::Ink, 1.4));
    for (row, (site, (low, estimate, high))) in sites.iter().enumerate() {
        let y = 12.0 + ROW * (row as f64 + 0.5);
        let font = Font::new(12.0);
        svg.text((LEFT - 10.0, y + 4.0), &font.cut(&name(site), LEFT - 20.0), font.at(Anchor::End));
        let tone = if *low > 0.0 {
            Tone::Series(2)
        } else if *high < 0.0 {
            Tone::Series(1)
        } else {
            Tone::Dim
        };
        svg.line((x(*low), y), (x(*high), y), Pen::new(tone, 2.4));
        svg.markers(&[(x(*estimate), y)], Marker::Circle, tone, false);
    }
    let title = "saved of a request, with the interval of 95 % confidence, its cost taken off";
    svg.text(
        ((LEFT + WIDTH + 40.0) / 2.0, bottom + 34.0),
        title,
        Font::new(12.0).at(Anchor::Middle),
    );
    svg.within_page(
        LEFT + WIDTH + 40.0,
        bottom + 46.0,
        "injection-gain",
        ["What injected tests save", title],
    )
}

fn table(html: &mut Html, injection: &Injection, document: Document<'_>) {
    if injection.sites.is_empty() {
        return;
    }
    html.within("div", &[("class", "scroll")], |html| {
        html.within("table", &[], |html| {
            html.within("thead", &[], |html| {
                html.within("tr", &[], |html| {
                    for name in [
                        "call site",
                        "requests",
                        "tests",
                        "found",
                        "saved",
                        "from",
                        "to",
                        "in all",
                        "",
                    ] {
                        html.element("th", &[("scope", "col")], name);
                    }
                });
            });
            html.within("tbody", &[], |html| {
                for (at, site) in injection.sites.iter().take(MOST_SITES).enumerate() {
                    html.within("tr", &[], |html| {
                        html.element("th", &[("scope", "row")], &name(site));
                        let cells = [
                            ("requests", Unit::Count),
                            ("tests", Unit::Count),
                            ("found", Unit::Count),
                            ("gain/estimate_ns", Unit::Time),
                            ("gain/low_ns", Unit::Time),
                            ("gain/high_ns", Unit::Time),
                            ("gain/run_estimate_ns", Unit::Time),
                        ];
                        for (key, unit) in cells {
                            document.cell(html, &format!("/injection/sites/{at}/{key}"), unit);
                        }
                        html.element(
                            "td",
                            &[],
                            &site.gain.as_ref().map(verdict).unwrap_or_default(),
                        );
                    });
                }
            });
        })
    });
}
