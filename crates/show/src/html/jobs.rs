//! Many jobs as a page: what would gain, by executable, user and MPI, and the jobs themselves.

use anyhow::Result;

use super::markup::{Document, Html, Unit};
use super::page::{framed, navigation, sections};
use crate::render::jobs::{about, cells, exposed, exposed_cell, sums_of, EXECUTABLES, HEADS};
use crate::render::table::Align;
use lapscope_data::text::units::{long_time, percent};
use lapscope_report::jobs::{JobSums, Jobs};

const SCRIPT: &str = concat!("\"use strict\";\n", include_str!("js/theme.js"));

/// Rows of a table of sums.
const MOST_GROUPS: usize = 50;

/// What the page shows: the answer itself, and sums by group.
pub struct JobsPage<'a> {
    pub jobs: &'a Jobs,
    pub users: &'a [JobSums],
    pub mpis: &'a [JobSums],
    pub executables: &'a [JobSums],
}

const SECTIONS: [(&str, &str); 5] = [
    ("summary", "What would gain most"),
    ("executables", "Executables"),
    ("users", "Users"),
    ("mpis", "MPIs"),
    ("jobs", "Jobs"),
];

/// The whole file.
///
/// # Errors
/// It cannot be a document: a program error.
pub fn page(contents: &JobsPage<'_>) -> Result<String> {
    let jobs = contents.jobs;
    let document = serde_json::to_value(jobs)?;
    let mut html = Html::default();
    html.within("header", &[], |html| {
        html.element("a", &[("class", "skip"), ("href", "#summary")], "To the contents");
        html.within("h1", &[], |html| {
            html.text("lapscope jobs ");
            html.element("span", &[("class", "run")], &about(&jobs.all));
        });
        html.paragraph(&format!("{}.", exposed(&jobs.all)));
    });
    navigation(&mut html, &SECTIONS);
    sections(&mut html, &SECTIONS, |html, at| match at {
        0 => advice(html, jobs, Document(&document)),
        1 => sums(html, contents.executables),
        2 => sums(html, contents.users),
        3 => sums(html, contents.mpis),
        _ => list(html, jobs, Document(&document)),
    });
    html.within("footer", &[], |html| {
        html.text("Numbers are those of lapscope jobs --format json; a point at a number shows its exact value.");
    });
    Ok(framed("jobs", SCRIPT, "{}", &html.finish()))
}

fn advice(html: &mut Html, jobs: &Jobs, document: Document<'_>) {
    if jobs.executables.is_empty() {
        return html.missing("Nothing is known that would make these jobs faster by a hundredth.");
    }
    html.element("p", &[("class", "note")], EXECUTABLES);
    html.within("ol", &[("class", "advice")], |html| {
        for (place, group) in jobs.executables.iter().enumerate() {
            html.within("li", &[], |html| {
                html.element("strong", &[], &group.name);
                html.paragraph(&format!("{}.", sums_of(group)));
                html.within("ul", &[], |html| {
                    for (at, cure) in group.cures.iter().enumerate() {
                        let (why, what) = cure.says();
                        html.within("li", &[], |html| {
                            let pointer = format!("/executables/{place}/cures/{at}/share");
                            document.write(html, &pointer, Unit::Percent);
                            html.whole_text(&format!(
                                " at most ({}): {why}: {what}",
                                long_time(cure.at_most_seconds)
                            ));
                        });
                    }
                });
            });
        }
    });
}

fn sums(html: &mut Html, groups: &[JobSums]) {
    if groups.is_empty() {
        return html.missing("There is no job.");
    }
    let heads = ["exposed", "share", "run time", "jobs", "users", ""];
    table(html, &heads.map(|head| (head, !head.is_empty())), |html| {
        for group in groups.iter().take(MOST_GROUPS) {
            html.within("tr", &[], |html| {
                let numbers = [
                    exposed_cell(group.exposed_seconds, group.upper_bound_jobs > 0),
                    percent(group.exposed_share),
                    long_time(group.run_seconds),
                    group.jobs.to_string(),
                    group.users.to_string(),
                ];
                numbers.iter().for_each(|cell| html.element("td", &[("class", "n")], cell));
                html.element("td", &[], &group.name);
            });
        }
    });
    if groups.len() > MOST_GROUPS {
        let more = format!("{} more in lapscope jobs --by.", groups.len() - MOST_GROUPS);
        html.element("p", &[("class", "note")], &more);
    }
}

fn list(html: &mut Html, jobs: &Jobs, document: Document<'_>) {
    if jobs.jobs.is_empty() {
        return html.missing("There is no job.");
    }
    let about = format!("{} of {}.", jobs.jobs.len(), jobs.all.jobs);
    html.element("p", &[("class", "note")], &about);
    table(html, &HEADS.map(|(head, align)| (head, align == Align::Right)), |html| {
        for (place, job) in jobs.jobs.iter().enumerate() {
            html.within("tr", &[], |html| {
                for ((head, align), cell) in HEADS.into_iter().zip(cells(job)) {
                    if head == "share" {
                        document.cell(html, &format!("/jobs/{place}/exposed_share"), Unit::Percent);
                    } else if align == Align::Right {
                        html.element("td", &[("class", "n")], &cell);
                    } else {
                        html.element("td", &[], &cell);
                    }
                }
            });
        }
    });
}

/// Heads, and whether their columns are numbers.
fn table(html: &mut Html, heads: &[(&str, bool)], rows: impl FnOnce(&mut Html)) {
    html.within("div", &[("class", "scroll")], |html| {
        html.within("table", &[], |html| {
            html.within("thead", &[], |html| {
                html.within("tr", &[], |html| {
                    for (head, is_number) in heads {
                        let class = if *is_number { "n" } else { "" };
                        html.element("th", &[("scope", "col"), ("class", class)], head);
                    }
                });
            });
            html.within("tbody", &[], rows);
        });
    });
}
