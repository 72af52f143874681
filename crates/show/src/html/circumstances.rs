//! Where and with what the run ran, so that somebody else can repeat it.

use super::escape::cut_to;
use super::markup::{Document, Html, Unit};
use super::Contents;
use lapscope_data::calendar;
use lapscope_data::text::hosts::list_hosts;
use lapscope_data::text::list_ranks;
use lapscope_report::settings::{Setting, Settings};

/// Values of one list that are shown.
const MOST: usize = 250;
const MOST_LETTERS: usize = 300;
const MOST_HOSTS: usize = 12;

pub fn section(html: &mut Html, contents: &Contents, document: Document<'_>) {
    let head = &contents.report.head;
    html.within("dl", &[("class", "facts")], |html| {
        let mut fact = |name: &str, text: &str| {
            if !text.is_empty() {
                html.element("dt", &[], name);
                html.element("dd", &[], text);
            }
        };
        fact("MPI", &format!("{} ({}, MPI {})", head.mpi_library, head.mpi_abi, head.mpi_standard));
        let levels = ["single", "funneled", "serialized", "multiple"];
        let level = usize::try_from(head.thread_level).ok().and_then(|level| levels.get(level));
        fact("threads", level.map_or("not known", |level| level));
        fact("program", &head.executable);
        fact("job", &head.job);
        fact("started", &format!("{} UTC", calendar::utc_of(head.started_unix_ns / 1_000_000_000)));
        fact("lapscope", &head.lapscope_version);
        fact("page made by", concat!("lapscope ", env!("CARGO_PKG_VERSION")));
        fact("run directory", &contents.report.run);
        html.element("dt", &[], "ranks");
        html.within("dd", &[], |html| {
            document.write(html, "/head/ranks", Unit::Count);
            html.text(" on ");
            html.text(&list_hosts(head.hosts.iter().map(|host| host.name.as_str())));
        });
    });
    hosts(html, contents);
    settings(html, &contents.settings);
}

fn hosts(html: &mut Html, contents: &Contents) {
    let hosts = &contents.report.head.hosts;
    if hosts.len() < 2 {
        return;
    }
    html.within("details", &[], |html| {
        html.element("summary", &[], &format!("{} hosts", hosts.len()));
        html.within("ul", &[], |html| {
            for host in hosts.iter().take(MOST_HOSTS) {
                html.element("li", &[], &format!("{}: {} ranks", host.name, host.ranks));
            }
            if hosts.len() > MOST_HOSTS {
                html.element("li", &[], &format!("and {} more", hosts.len() - MOST_HOSTS));
            }
        });
    });
}

fn settings(html: &mut Html, settings: &Settings) {
    let (asked, all) = settings.files;
    if asked < all {
        let text =
            format!("Settings are those of {} ranks in {asked} of {all} files.", settings.ranks);
        html.element("p", &[("class", "note")], &text);
    }
    list(html, "Options of lapscope that were set", &settings.options, settings.ranks);
    list(html, "Environment", &settings.environment, settings.ranks);
    list(html, "Control variables of the MPI", &settings.control_variables, settings.ranks);
}

fn list(html: &mut Html, title: &str, settings: &[Setting], ranks: usize) {
    if settings.is_empty() {
        return html.missing(&format!("{title}: none were recorded."));
    }
    html.within("details", &[], |html| {
        html.element("summary", &[], &format!("{title} ({})", settings.len()));
        html.within("div", &[("class", "scroll")], |html| {
            html.within("table", &[("class", "settings")], |html| {
                html.within("tbody", &[], |html| {
                    let values = settings
                        .iter()
                        .flat_map(|it| it.values.iter().map(move |value| (&it.name, value)));
                    for (name, (value, of)) in values.take(MOST) {
                        html.within("tr", &[], |html| {
                            html.within("th", &[("scope", "row")], |html| {
                                html.text(&cut_to(name, MOST_LETTERS))
                            });
                            html.within("td", &[], |html| {
                                html.within("code", &[], |html| {
                                    html.text(&cut_to(value, MOST_LETTERS))
                                });
                            });
                            let who = match of.len() >= ranks {
                                true => "all ranks".to_owned(),
                                false => {
                                    cut_to(&format!("ranks {}", list_ranks(of)), 60).into_owned()
                                }
                            };
                            html.element("td", &[], &who);
                        });
                    }
                });
            })
        });
        let all: usize = settings.iter().map(|setting| setting.values.len()).sum();
        if all > MOST {
            html.element(
                "p",
                &[("class", "note")],
                &format!("and {} more values: lapscope sql has all.", all - MOST),
            );
        }
    });
}
