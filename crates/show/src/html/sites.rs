//! The table of call sites: sorted and filtered by the page's script; each row unfolds into call paths and source lines.

use super::escape::cut_to;
use super::head::meter;
use super::markup::{Document, Html, Unit};
use super::sources::Sources;
use super::Contents;
use crate::render::report::{mostly, place, site_label};
use lapscope_data::model::Nanos;
use lapscope_data::symbols::FrameName;
use lapscope_measure::sites::{Site, SiteKind};
use lapscope_trace::call_paths::CallPaths;

/// What unfolds may add to a page, bytes.
const MOST_DETAILS: usize = 400 << 10;
/// Frames of a call path that are shown.
const MOST_FRAMES: usize = 24;
const MOST_LETTERS: usize = 160;
const MOST_COMPLETING: usize = 20;

const COLUMNS: [(&str, &str); 10] = [
    ("share", "Of the run time of all ranks"),
    ("time", "Inside MPI, and in the calls that completed these requests"),
    ("call site", ""),
    ("calls", ""),
    ("bytes", ""),
    ("exposed", "In the calls that completed these requests, shared out equally"),
    ("window", "Overlap window: from the post to the completing call, a mean"),
    ("overlapped", "Of the reference time of its transfers"),
    ("possible", "Likewise, what computation in the windows could have overlapped"),
    ("mostly", "Main cause of exposed time"),
];

/// The identifier of the row of a call, where it has one.
pub fn target(contents: &Contents, call: &str, site: Option<&FrameName>) -> Option<String> {
    let report = &contents.report;
    let is_it = |other: &Site| other.call == call && other.site.as_ref() == site;
    let listed = contents.listed.iter().find(|&&place| is_it(&report.sites[place]));
    let completing = || {
        let shown = report.completing_sites.iter().take(MOST_COMPLETING);
        shown.enumerate().find(|(_, other)| is_it(other))
    };
    listed
        .map(|place| format!("site-{place}"))
        .or_else(|| completing().map(|(place, _)| format!("completing-{place}")))
}

pub fn section(html: &mut Html, contents: &mut Contents, document: Document<'_>) {
    if contents.report.sites.is_empty() {
        return html.missing("No MPI communication was recorded, so there is no call site.");
    }
    controls(html, contents);
    let listed = std::mem::take(&mut contents.listed);
    let mut sources = std::mem::take(&mut contents.sources);
    html.within(
        "div",
        &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Call sites")],
        |html| {
            html.within("table", &[("class", "sites sortable"), ("id", "site-table")], |html| {
                table_head(html);
                let begin = html.len();
                for (at, &site) in listed.iter().enumerate() {
                    let row = SiteLine {
                        place: site,
                        site: &contents.report.sites[site],
                        paths: &contents.paths[at],
                    };
                    let has_room = html.len() - begin < MOST_DETAILS;
                    row.write(html, document, has_room.then_some(&mut sources));
                }
                others(html, contents, &listed);
            });
        },
    );
    (contents.listed, contents.sources) = (listed, sources);
    completing(html, contents, document);
}

fn controls(html: &mut Html, contents: &Contents) {
    html.within("div", &[("class", "controls")], |html| {
        html.element("label", &[("for", "site-filter")], "Filter");
        html.void(
            "input",
            &[("id", "site-filter"), ("type", "search"), ("placeholder", "call, function or file")],
        );
        html.element("label", &[("for", "site-kind")], "Kind");
        html.within("select", &[("id", "site-kind")], |html| {
            html.element("option", &[("value", "")], "all");
            for (kind, name) in KINDS {
                if contents.listed.iter().any(|&site| contents.report.sites[site].kind == kind) {
                    html.element("option", &[("value", name)], name);
                }
            }
        });
        html.element(
            "button",
            &[("type", "button"), ("id", "unfold-all"), ("aria-pressed", "false")],
            "Unfold all",
        );
        let all = contents.report.sites.len();
        let shown = format!("{} of {all} call sites", contents.listed.len());
        html.element(
            "output",
            &[("id", "site-count"), ("aria-live", "polite"), ("data-all", &all.to_string())],
            &shown,
        );
    });
}

pub const KINDS: [(SiteKind, &str); 8] = [
    (SiteKind::Request, "requests"),
    (SiteKind::Blocking, "blocking"),
    (SiteKind::Collective, "collectives"),
    (SiteKind::Rma, "one-sided"),
    (SiteKind::Io, "files"),
    (SiteKind::Completing, "completing"),
    (SiteKind::UnsuccessfulTest, "unsuccessful tests"),
    (SiteKind::Other, "other MPI"),
];

pub fn kind_name(kind: SiteKind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name)
}

fn table_head(html: &mut Html) {
    html.within("thead", &[], |html| {
        html.within("tr", &[], |html| {
            html.within("th", &[("class", "fold")], |html| {
                html.element("span", &[("class", "hidden")], "Unfold")
            });
            for (at, (name, title)) in COLUMNS.iter().enumerate() {
                let sorted = if at == 1 { "descending" } else { "none" };
                html.within("th", &[("scope", "col"), ("aria-sort", sorted)], |html| {
                    html.element("button", &[("type", "button"), ("title", title)], name);
                });
            }
        });
    });
}

struct SiteLine<'a> {
    /// In the report's list.
    place: usize,
    site: &'a Site,
    paths: &'a CallPaths,
}

impl SiteLine<'_> {
    /// Without its details where there is no room for sources.
    fn write(&self, html: &mut Html, document: Document<'_>, sources: Option<&mut Sources>) {
        let (id, kind) = (format!("site-{}", self.place), kind_name(self.site.kind));
        html.within("tbody", &[("id", &id), ("data-kind", kind)], |html| {
            html.within("tr", &[], |html| self.cells(html, document, &id));
            html.within("tr", &[("class", "detail"), ("hidden", "hidden"), ("id", &format!("{id}-detail"))], |html| {
                html.within("td", &[], |_| ());
                html.within("td", &[("colspan", "10")], |html| match sources {
                    Some(sources) => self.detail(html, sources),
                    None => html.missing("Left out, as the page would get too large: lapscope sites --paths has all."),
                });
            });
        });
    }

    fn cells(&self, html: &mut Html, document: Document<'_>, id: &str) {
        let site = self.site;
        html.within("td", &[("class", "fold")], |html| {
            let label = format!("Call paths and source of {}", site.call);
            let controls = format!("{id}-detail");
            let attributes = [
                ("type", "button"),
                ("class", "unfold"),
                ("aria-expanded", "false"),
                ("aria-controls", &controls),
                ("aria-label", &label),
            ];
            html.element("button", &attributes, "▸");
        });
        let at = |key: &str| format!("/sites/{}/{key}", self.place);
        document.cell(html, &at("share"), Unit::Percent);
        document.cell(html, &at("time_ns"), document.mean_time());
        let name = site_label(site);
        let key = format!("{name} {}", place(site));
        html.within(
            "td",
            &[("class", "place"), ("data-key", &cut_to(&key, MOST_LETTERS))],
            |html| {
                html.element("b", &[], &name);
                html.text(" ");
                html.element("span", &[("class", "at")], &cut_to(&place(site), 2 * MOST_LETTERS));
            },
        );
        document.cell(html, &at("calls"), Unit::Count);
        document.cell(html, &at("bytes"), Unit::Bytes);
        if site.kind == SiteKind::Request {
            document.cell(html, &at("exposed_ns"), document.mean_time());
        } else {
            html.element("td", &[("class", "n")], "");
        }
        let numbers = &site.numbers;
        let window = numbers.overlap_window_ns.mean(numbers.ended_requests);
        number(
            html,
            window.filter(|_| site.kind == SiteKind::Request).map(|ns| ns.0 as f64),
            Unit::Time,
        );
        let part = site.overlap.filter(|part| part.measured > 0);
        range(
            html,
            part.map(|part| {
                [part.achieved_low_ns, part.achieved_high_ns]
                    .map(|ns| ns.share_of(part.reference_ns))
            }),
        );
        range(
            html,
            part.map(|part| {
                [part.possible_low_ns, part.possible_ns].map(|ns| ns.share_of(part.reference_ns))
            }),
        );
        let mostly = site.overlap.as_ref().and_then(mostly).unwrap_or_default();
        html.element("td", &[], &mostly.replace(" %", "\u{a0}%"));
    }

    fn detail(&self, html: &mut Html, sources: &mut Sources) {
        self.source(html, sources);
        html.element("h4", &[], "Call paths");
        if self.paths.shown.iter().all(|path| path.frames.is_empty()) {
            return html.missing("No call path was recorded: LAPSCOPE_CALLPATH was off, or this MPI was called from nowhere known.");
        }
        html.within("ul", &[("class", "paths")], |html| {
            for path in &self.paths.shown {
                html.within("li", &[], |html| {
                    let frames: Vec<String> =
                        path.frames.iter().take(MOST_FRAMES).map(FrameName::short).collect();
                    let mut text: String = frames
                        .iter()
                        .map(|name| cut_to(name, MOST_LETTERS))
                        .collect::<Vec<_>>()
                        .join(" ← ");
                    if path.truncated || path.frames.len() > MOST_FRAMES {
                        text += " ← …";
                    }
                    html.whole_text(&text);
                });
            }
        });
        if self.paths.others > 0 {
            let text = format!(
                "and {} more: lapscope sites --paths has all, with their times.",
                self.paths.others
            );
            html.element("p", &[("class", "note")], &text);
        }
    }

    fn source(&self, html: &mut Html, sources: &mut Sources) {
        let own = self.site.site.as_ref();
        let completed = self.site.completed_in.as_ref().and_then(|it| it.site.as_ref());
        for frame in [own, completed].into_iter().flatten() {
            let Some((file, line)) = frame.file.as_deref().zip(frame.line) else {
                if Some(frame) == own {
                    html.missing("No source line is known: the program has no debug information here (compile with -g).");
                }
                continue;
            };
            match sources.around(file, line) {
                Ok(lines) => listing(html, file, line, &lines),
                Err(why) => html.missing(&why),
            }
        }
    }
}

fn listing(html: &mut Html, file: &str, hit: u32, lines: &[(u32, String)]) {
    html.within("figure", &[("class", "source")], |html| {
        html.within("figcaption", &[], |html| html.text(&format!("{file}:{hit}")));
        html.within("pre", &[], |html| {
            for (number, text) in lines {
                let class = if *number == hit { "line hit" } else { "line" };
                html.within(
                    "code",
                    &[("class", class), ("data-line", &number.to_string())],
                    |html| html.whole_text(text),
                );
            }
        });
    });
}

/// A number that the page derives.
fn number(html: &mut Html, value: Option<f64>, unit: Unit) {
    let key = value.map_or_else(String::new, |value| value.to_string());
    let shown = value.map_or_else(String::new, |value| unit.show(value));
    html.element("td", &[("class", "n"), ("data-key", &key)], &shown);
}

/// "12–41 %", sorted by its middle.
fn range(html: &mut Html, bounds: Option<[f64; 2]>) {
    let whole = |share: f64| format!("{:.0}", share * 100.0);
    let shown = bounds.map(|[low, high]| match (whole(low), whole(high)) {
        (low, high) if low == high => format!("{low} %"),
        (low, high) => format!("{low}–{high} %"),
    });
    let key = bounds.map_or_else(String::new, |[low, high]| (low + high).to_string());
    html.element("td", &[("class", "n"), ("data-key", &key)], &shown.unwrap_or_default());
}

/// A last row that sums up the others.
fn others(html: &mut Html, contents: &Contents, listed: &[usize]) {
    let report = &contents.report;
    let others = report.sites.len() - listed.len();
    if others == 0 {
        return;
    }
    let time = |site: &Site| site.numbers.time_ns;
    let all: Nanos = report.sites.iter().map(time).sum();
    let shown: Nanos = listed.iter().map(|&place| time(&report.sites[place])).sum();
    let rest = all - shown;
    html.within("tfoot", &[], |html| {
        html.within("tr", &[], |html| {
            html.element("td", &[], "");
            html.element(
                "td",
                &[("class", "n")],
                &Unit::Percent.show(rest.share_of(report.totals.run_ns)),
            );
            html.element("td", &[("class", "n")], &report.mean().time(rest));
            let text =
                format!("{others} more call sites, all together: lapscope sites --top 0 has each");
            html.element("td", &[("colspan", "8")], &text);
        });
    });
}

/// Where the program stands still: each completing call once, whatever it completed.
fn completing(html: &mut Html, contents: &Contents, document: Document<'_>) {
    let sites = &contents.report.completing_sites;
    if sites.is_empty() {
        return;
    }
    html.element("h3", &[], "Where requests complete");
    html.within("table", &[("class", "bars")], |html| {
        html.within("tbody", &[], |html| {
            for (at, site) in sites.iter().take(MOST_COMPLETING).enumerate() {
                html.within("tr", &[("id", &format!("completing-{at}"))], |html| {
                    let name = format!("{} {}", site.call, place(site));
                    html.element("th", &[("scope", "row")], &cut_to(&name, 2 * MOST_LETTERS));
                    let at = |key: &str| format!("/completing_sites/{at}/{key}");
                    document.cell(html, &at("share"), Unit::Percent);
                    document.cell(html, &at("inside_ns"), document.mean_time());
                    html.within("td", &[("class", "wide")], |html| meter(html, site.numbers.share));
                });
            }
        });
    });
    if sites.len() > MOST_COMPLETING {
        let text = format!(
            "and {} more in lapscope report --top 0 --format json.",
            sites.len() - MOST_COMPLETING
        );
        html.element("p", &[("class", "note")], &text);
    }
}
