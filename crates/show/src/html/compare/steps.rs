//! Steps of both runs, and the regions that they mark: what an iteration takes tells more than how long the runs were.

use std::collections::BTreeMap;

use super::times::{derived, heads};
use super::Compared;
use crate::html::escape::cut_to;
use crate::html::markup::{Document, Html};
use crate::render::report::what_steps;
use lapscope_data::model::Nanos;
use lapscope_data::text::units::count;
use lapscope_measure::steps::Steps;
use lapscope_report::diff::TimePair;

const MOST_REGIONS: usize = 40;
const MOST_LETTERS: usize = 160;

type StepsValue = fn(&Steps) -> Nanos;

const ROWS: [(&str, StepsValue); 5] = [
    ("typical step", |steps| steps.duration.typical_ns),
    ("19 of 20 take at most", |steps| steps.duration.p95_ns),
    ("worst step", |steps| steps.duration.worst_ns),
    ("exposed in a typical step", |steps| steps.exposed.typical_ns),
    ("exposed in the worst of them", |steps| steps.exposed.worst_ns),
];

pub fn section(html: &mut Html, compared: &Compared, _: Document<'_>) {
    for (name, run) in compared.runs() {
        let text = match &run.report.steps {
            Some(steps) => {
                format!("{name}: {} steps, each {}.", count(steps.count), what_steps(&steps.what))
            }
            None => {
                let why = run.report.no_steps.as_deref().unwrap_or("they were not looked for");
                format!("{name}: no steps are reported: {why}.")
            }
        };
        html.paragraph(&text);
    }
    if let (Some(a), Some(b)) = (&compared.a.report.steps, &compared.b.report.steps) {
        let pair = |value: StepsValue| TimePair::new(value(a), value(b));
        table(html, "mean over ranks", ROWS.map(|(label, value)| (label.to_owned(), pair(value))));
    }
    let regions = regions(compared);
    if !regions.is_empty() {
        html.element("h3", &[], "Regions, marked by MPI_Pcontrol");
        table(html, "mean over ranks", regions);
    }
}

fn table(html: &mut Html, what: &str, rows: impl IntoIterator<Item = (String, TimePair)>) {
    html.within("div", &[("class", "scroll")], |html| {
        html.within("table", &[], |html| {
            heads(html, &[what, "A", "B", "difference", "of A"]);
            html.within("tbody", &[], |html| {
                for (label, pair) in rows {
                    html.within("tr", &[], |html| {
                        let label = cut_to(&label, MOST_LETTERS);
                        html.element("th", &[("scope", "row")], &label);
                        derived(html, pair);
                    });
                }
            });
        });
    });
}

/// Time in regions of each name, those that changed most first.
fn regions(compared: &Compared) -> Vec<(String, TimePair)> {
    let mut regions: BTreeMap<&str, [Nanos; 2]> = BTreeMap::new();
    for (at, (_, run)) in compared.runs().into_iter().enumerate() {
        for region in &run.report.regions {
            regions.entry(&region.name).or_default()[at] = region.time_ns;
        }
    }
    let pair = |(name, [a, b]): (&str, [Nanos; 2])| {
        (name.to_owned(), compared.diff.mean(TimePair::new(a, b)))
    };
    let mut regions: Vec<(String, TimePair)> = regions.into_iter().map(pair).collect();
    regions.sort_by_key(|(_, pair)| std::cmp::Reverse(pair.difference_ns.0.abs()));
    regions.truncate(MOST_REGIONS);
    regions
}
