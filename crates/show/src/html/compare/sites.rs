//! What changed by call site: a table that the page's script sorts and filters; each row unfolds into what was waited for.

use super::times::{derived, difference, heads, means};
use super::Compared;
use crate::html::escape::cut_to;
use crate::html::markup::{Document, Html, Unit};
use crate::html::sites::{kind_name, KINDS};
use crate::render::cause;
use lapscope_data::model::Nanos;
use lapscope_measure::overlap::sums::Cause;
use lapscope_report::diff::{Presence, SitePair, TimePair};

const MOST_LETTERS: usize = 160;

const COLUMNS: [(&str, &str); 8] = [
    ("A", "In these calls, and in those that completed their requests"),
    ("B", "Likewise"),
    ("difference", "B minus A"),
    ("of A", "Difference as a share of A"),
    ("call site", ""),
    ("calls A", ""),
    ("calls B", ""),
    ("mostly", "The cause of exposed time that changed most"),
];

pub fn section(html: &mut Html, compared: &Compared, document: Document<'_>) {
    let diff = &compared.diff;
    if diff.sites.is_empty() {
        return html
            .missing("No MPI communication was recorded in either run, so there is no call site.");
    }
    let only = match (diff.only_in_a, diff.only_in_b) {
        (0, 0) => String::new(),
        (a, b) => format!(" {a} are in A only, {b} in B only."),
    };
    html.paragraph(&format!(
        "Time: mean over ranks, the largest differences first.{only} The same call in the same function is one site, by its line or, where the source was edited, by its order."
    ));
    controls(html, compared);
    html.within(
        "div",
        &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Call sites")],
        |html| {
            html.within("table", &[("class", "sites sortable"), ("id", "site-table")], |html| {
                table_head(html);
                let changed =
                    |site: &SitePair| compared.diff.mean(site.time).difference_ns.0.unsigned_abs();
                let most = listed(compared).iter().map(changed).max().unwrap_or(0);
                for (place, site) in listed(compared).iter().enumerate() {
                    SitePairRow { place, site, compared, most }.write(html, document);
                }
            });
        },
    );
    let others = diff.sites.len() - listed(compared).len();
    if others > 0 {
        let text =
            format!("{others} more call sites changed less: lapscope diff --top 0 has each.");
        html.element("p", &[("class", "note")], &text);
    }
}

fn listed(compared: &Compared) -> &[SitePair] {
    let sites = &compared.diff.sites;
    &sites[..sites.len().min(compared.top)]
}

fn controls(html: &mut Html, compared: &Compared) {
    let listed = listed(compared);
    html.within("div", &[("class", "controls")], |html| {
        html.element("label", &[("for", "site-filter")], "Filter");
        let filter =
            [("id", "site-filter"), ("type", "search"), ("placeholder", "call, function or file")];
        html.void("input", &filter);
        html.element("label", &[("for", "site-kind")], "Kind");
        html.within("select", &[("id", "site-kind")], |html| {
            html.element("option", &[("value", "")], "all");
            for (kind, name) in KINDS {
                if listed.iter().any(|site| site.kind == kind) {
                    html.element("option", &[("value", name)], name);
                }
            }
        });
        let unfold = [("type", "button"), ("id", "unfold-all"), ("aria-pressed", "false")];
        html.element("button", &unfold, "Unfold all");
        let all = compared.diff.site_count.to_string();
        let count = [("id", "site-count"), ("aria-live", "polite"), ("data-all", all.as_str())];
        html.element("output", &count, &format!("{} of {all} call sites", listed.len()));
    });
}

fn table_head(html: &mut Html) {
    html.within("thead", &[], |html| {
        html.within("tr", &[], |html| {
            html.within("th", &[("class", "fold")], |html| {
                html.element("span", &[("class", "hidden")], "Unfold")
            });
            for (name, title) in COLUMNS {
                html.within("th", &[("scope", "col"), ("aria-sort", "none")], |html| {
                    html.element("button", &[("type", "button"), ("title", title)], name);
                });
            }
        });
    });
}

struct SitePairRow<'a> {
    /// In the list of the document.
    place: usize,
    site: &'a SitePair,
    compared: &'a Compared,
    /// The largest difference of any, nanoseconds.
    most: u64,
}

impl SitePairRow<'_> {
    fn write(&self, html: &mut Html, document: Document<'_>) {
        let (id, kind) = (format!("site-{}", self.place), kind_name(self.site.kind));
        let detail = format!("{id}-detail");
        html.within("tbody", &[("id", &id), ("data-kind", kind)], |html| {
            html.within("tr", &[], |html| self.cells(html, document, &detail));
            let attributes = [("class", "detail"), ("hidden", "hidden"), ("id", detail.as_str())];
            html.within("tr", &attributes, |html| {
                html.within("td", &[], |_| ());
                html.within("td", &[("colspan", "8")], |html| self.detail(html, document));
            });
        });
    }

    fn cells(&self, html: &mut Html, document: Document<'_>, detail: &str) {
        let site = self.site;
        html.within("td", &[("class", "fold")], |html| {
            let label = format!("What {} waited for in both runs", site.call);
            let attributes = [
                ("type", "button"),
                ("class", "unfold"),
                ("aria-expanded", "false"),
                ("aria-controls", detail),
                ("aria-label", label.as_str()),
            ];
            html.element("button", &attributes, "▸");
        });
        self.time(html, document, "time", site.time);
        let place = place(site);
        let key = format!("{} {place}", site.call);
        let key = cut_to(&key, MOST_LETTERS);
        html.within("td", &[("class", "place"), ("data-key", &key)], |html| {
            html.element("b", &[], &site.call);
            html.text(" ");
            html.element("span", &[("class", "at")], &cut_to(&place, 2 * MOST_LETTERS));
            self.bar(html);
        });
        for (key, missing) in [("calls_a", Presence::B), ("calls_b", Presence::A)] {
            if site.presence == missing {
                html.element("td", &[("class", "n"), ("data-key", "")], "–");
            } else {
                document.cell(html, &self.at(key), Unit::Count);
            }
        }
        html.element("td", &[], &self.mostly());
    }

    /// Its difference beside the largest one.
    fn bar(&self, html: &mut Html) {
        let changed = self.compared.diff.mean(self.site.time).difference_ns.0;
        let share = changed.unsigned_abs() as f64 / self.most.max(1) as f64;
        let class = if changed > 0 { "meter more" } else { "meter less" };
        let width = format!("width:{:.2}%", share.min(1.0) * 100.0);
        if changed != 0 {
            let attributes = [("class", class), ("style", width.as_str()), ("aria-hidden", "true")];
            html.within("span", &attributes, |_| ());
        }
    }

    fn at(&self, key: &str) -> String {
        format!("/sites/{}/{key}", self.place)
    }

    fn time(&self, html: &mut Html, document: Document<'_>, key: &str, pair: TimePair) {
        means(html, document, &self.at(key), &self.compared.diff, pair);
    }

    /// The cause whose time changed most, and by how much.
    fn mostly(&self) -> String {
        let pairs = Cause::ALL
            .map(|it| (it, self.compared.diff.mean(self.site.exposed_by_cause.by_cause(it))));
        let most = pairs.into_iter().max_by_key(|(_, pair)| pair.difference_ns.0.abs());
        most.filter(|(_, pair)| pair.difference_ns.0 != 0).map_or_else(String::new, |(it, pair)| {
            format!("{} {}", cause::name(it), difference(pair))
        })
    }

    fn detail(&self, html: &mut Html, document: Document<'_>) {
        let site = self.site;
        html.within("table", &[], |html| {
            heads(html, &["", "A", "B", "difference", "of A"]);
            html.within("tbody", &[], |html| {
                let lines =
                    [("in the calls", "inside", site.inside), ("exposed", "exposed", site.exposed)];
                for (label, key, pair) in lines {
                    self.line(html, label, pair, |html| self.time(html, document, key, pair));
                }
                for it in Cause::ALL {
                    let pair = site.exposed_by_cause.by_cause(it);
                    self.line(html, cause::name(it), pair, |html| {
                        derived(html, self.compared.diff.mean(pair))
                    });
                }
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], "bytes");
                    document.cell(html, &self.at("bytes_a"), Unit::Bytes);
                    document.cell(html, &self.at("bytes_b"), Unit::Bytes);
                    html.within("td", &[("colspan", "2")], |_| ());
                });
            });
        });
    }

    fn line(&self, html: &mut Html, label: &str, pair: TimePair, cells: impl FnOnce(&mut Html)) {
        if (pair.a_ns, pair.b_ns) == (Nanos(0), Nanos(0)) {
            return;
        }
        html.within("tr", &[], |html| {
            html.element("th", &[("scope", "row")], label);
            cells(html);
        });
    }
}

fn place(site: &SitePair) -> String {
    let names = [&site.site_a, &site.site_b].map(|site| site.as_ref().map(|frame| frame.short()));
    match names {
        [Some(a), Some(b)] if a != b => format!("{a}, in B {b}"),
        [Some(place), None] if site.presence == Presence::A => format!("{place}, in A only"),
        [None, Some(place)] if site.presence == Presence::B => format!("{place}, in B only"),
        [Some(place), _] | [None, Some(place)] => place,
        [None, None] => "(no call path)".to_owned(),
    }
}
