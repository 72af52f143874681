//! What changed in all: the answers of both, times by kind of call and by cause, and overlap with its bounds.

use serde_json::Value;

use super::{signed, Compared};
use crate::html::markup::{Document, Html, Unit};
use crate::render::cause;
use crate::render::report::answers;
use lapscope_data::model::Nanos;
use lapscope_data::text::units::MeanOfRanks;
use lapscope_measure::overlap::sums::Cause;
use lapscope_report::diff::{Diff, TimePair};

/// Keys of `totals`, and whether they are sums over ranks.
const TOTALS: [(&str, &str, bool); 11] = [
    ("longest_run_ns", "MPI_Init to MPI_Finalize, longest rank", false),
    ("mpi_ns", "inside MPI", true),
    ("exposed_ns", "completing requests", true),
    ("overlapped_with_gpu_ns", "MPI beside a GPU", true),
    ("posting_ns", "posting requests", true),
    ("blocking_ns", "blocking point-to-point", true),
    ("collective_ns", "collectives", true),
    ("rma_ns", "one-sided", true),
    ("io_ns", "files", true),
    ("unsuccessful_test_ns", "unsuccessful tests", true),
    ("other_ns", "other MPI", true),
];

/// Label, and the keys of its lower and its upper bound in `overlap`.
const FRACTIONS: [(&str, &str, &str); 3] = [
    ("achieved", "achieved_low", "achieved_high"),
    ("possible", "possible_low", "possible"),
    ("lost", "lost_low", "lost_high"),
];

pub fn section(html: &mut Html, compared: &Compared, document: Document<'_>) {
    html.paragraph(&lead(compared));
    both_answers(html, compared);
    html.element("h3", &[], "Time, mean over ranks");
    html.within("div", &[("class", "scroll")], |html| {
        html.within("table", &[], |html| {
            heads(html, &["", "A", "B", "difference", "of A"]);
            html.within("tbody", &[], |html| {
                for (at, (key, label, is_sum)) in TOTALS.into_iter().enumerate() {
                    if at == 1 {
                        html.within("tr", &[], |html| {
                            html.element("th", &[("scope", "row")], "outside MPI");
                            derived(html, outside(compared));
                        });
                    }
                    let own = if is_sum { Some(compared) } else { None };
                    row(html, document, label, &format!("/totals/{key}"), own);
                }
                for (key, label) in
                    [("exposed_by_cause", "exposed"), ("blocked_by_cause", "blocked")]
                {
                    for cause in Cause::ALL {
                        let label = format!("{label}: {}", cause::name(cause));
                        let pointer = format!("/overlap/{key}/{}", key_of(cause));
                        row(html, document, &label, &pointer, Some(compared));
                    }
                }
            });
        });
    });
    overlap(html, document);
}

/// "B takes 12 ms longer (+8.1 %) …": the run time, and the parts of it that changed most.
fn lead(compared: &Compared) -> String {
    let total = |key: &str| compared.diff.totals.get(key).copied().unwrap_or_default();
    let run = total("longest_run_ns");
    let mut text = match run.difference_ns.0 {
        0 => "B takes as long as A".to_owned(),
        changed => {
            let word = if changed > 0 { "longer" } else { "less" };
            let size = Unit::Time.show(changed.abs() as f64);
            let share = match run.a_ns.0 {
                0 => String::new(),
                a => {
                    format!(" ({})", signed(changed as f64 / a as f64, |it| Unit::Percent.show(it)))
                }
            };
            format!("B takes {size} {word} than A{share}")
        }
    };
    let parts =
        TOTALS.into_iter().skip(2).map(|(key, label, _)| (label, compared.diff.mean(total(key))));
    let mut parts: Vec<(&str, TimePair)> =
        parts.chain([("outside MPI", outside(compared))]).collect();
    parts.retain(|(_, pair)| pair.difference_ns.0 != 0);
    parts.sort_by_key(|(_, pair)| std::cmp::Reverse(pair.difference_ns.0.abs()));
    let named = |(label, pair): &(&str, TimePair)| format!("{label} {}", difference(*pair));
    let named: Vec<String> = parts.iter().take(3).map(named).collect();
    if !named.is_empty() {
        text += &format!("; mean over ranks: {}", named.join(", "));
    }
    text + "."
}

/// As `CausePair` has it.
fn key_of(cause: Cause) -> &'static str {
    match cause {
        Cause::LatePartner => "late_partner",
        Cause::NoRemoteProgress => "no_remote_progress",
        Cause::NoLocalProgress => "no_local_progress",
        Cause::Transfer => "transfer",
        Cause::NoProcessor => "no_processor",
    }
}

pub fn heads(html: &mut Html, names: &[&str]) {
    html.within("thead", &[], |html| {
        html.within("tr", &[], |html| {
            names.iter().for_each(|name| html.element("th", &[("scope", "col")], name));
        });
    });
}

/// What each run is told on its own, question by question.
fn both_answers(html: &mut Html, compared: &Compared) {
    let [a, b] = compared.runs().map(|(_, run)| answers(&run.report));
    let mut labels: Vec<&str> = a.iter().map(|(label, _)| *label).collect();
    for (label, _) in &b {
        if !labels.contains(label) {
            labels.push(label);
        }
    }
    html.within("div", &[("class", "scroll")], |html| {
        html.within("table", &[("class", "both")], |html| {
            heads(html, &["", "A", "B"]);
            html.within("tbody", &[], |html| {
                for label in labels {
                    html.within("tr", &[], |html| {
                        html.element("th", &[("scope", "row")], label);
                        for answers in [&a, &b] {
                            let answer = answers.iter().find(|(own, _)| *own == label);
                            let text = answer.map_or("", |(_, text)| text);
                            html.within("td", &[], |html| html.whole_text(text));
                        }
                    });
                }
            });
        });
    });
}

fn outside(compared: &Compared) -> TimePair {
    let total = |key: &str| compared.diff.totals.get(key).copied().unwrap_or_default();
    let (run, mpi) = (total("run_ns"), total("mpi_ns"));
    let outside = |run: Nanos, mpi: Nanos| Nanos((run - mpi).0.max(0));
    compared.diff.mean(TimePair::new(outside(run.a_ns, mpi.a_ns), outside(run.b_ns, mpi.b_ns)))
}

/// A pair of times of the document, unless both are 0; what is a sum is shown as a mean over ranks.
fn row(
    html: &mut Html,
    document: Document<'_>,
    label: &str,
    pointer: &str,
    sum_of: Option<&Compared>,
) {
    let ns = |key: &str| Nanos(document.get(&format!("{pointer}/{key}")).unwrap_or(0.0) as i64);
    let pair = TimePair::new(ns("a_ns"), ns("b_ns"));
    if (pair.a_ns, pair.b_ns) == (Nanos(0), Nanos(0)) {
        return;
    }
    html.within("tr", &[], |html| {
        html.element("th", &[("scope", "row")], label);
        match sum_of {
            Some(compared) => means(html, document, pointer, &compared.diff, pair),
            None => times(html, document, pointer, pair),
        }
    });
}

/// Cells of both times, their difference, and what that is of A.
fn times(html: &mut Html, document: Document<'_>, pointer: &str, pair: TimePair) {
    document.cell(html, &format!("{pointer}/a_ns"), Unit::Time);
    document.cell(html, &format!("{pointer}/b_ns"), Unit::Time);
    let pointer = format!("{pointer}/difference_ns");
    let exact = pair.difference_ns.0.to_string();
    html.within("td", &[("class", "n"), ("data-key", &exact)], |html| {
        let attributes =
            [("value", exact.as_str()), ("data-json", &pointer), ("data-value", &exact)];
        html.within("data", &attributes, |html| html.text(&difference(pair)));
    });
    of_a(html, pair);
}

/// The same of times that are summed over ranks, as means.
pub fn means(html: &mut Html, document: Document<'_>, pointer: &str, diff: &Diff, pair: TimePair) {
    for (key, ranks) in [("a_ns", diff.a.ranks), ("b_ns", diff.b.ranks)] {
        let unit = Unit::MeanTime(MeanOfRanks(ranks as u64));
        document.cell(html, &format!("{pointer}/{key}"), unit);
    }
    changed(html, diff.mean(pair));
}

/// The same of times that the document does not have so.
pub fn derived(html: &mut Html, pair: TimePair) {
    let cell = |html: &mut Html, ns: Nanos, shown: &str| {
        html.element("td", &[("class", "n"), ("data-key", &ns.0.to_string())], shown);
    };
    for ns in [pair.a_ns, pair.b_ns] {
        cell(html, ns, &Unit::Time.show(ns.0 as f64));
    }
    changed(html, pair);
}

/// Cells of a difference that the document does not have so, and of what it is of A.
fn changed(html: &mut Html, pair: TimePair) {
    let exact = pair.difference_ns.0.to_string();
    html.element("td", &[("class", "n"), ("data-key", &exact)], &difference(pair));
    of_a(html, pair);
}

pub fn difference(pair: TimePair) -> String {
    signed(pair.difference_ns.0 as f64, |value| Unit::Time.show(value))
}

fn of_a(html: &mut Html, pair: TimePair) {
    let share = (pair.a_ns.0 > 0).then(|| pair.difference_ns.0 as f64 / pair.a_ns.0 as f64);
    let key = share.map_or_else(String::new, |share| share.to_string());
    let shown = share.map_or_else(String::new, |share| signed(share, |it| Unit::Percent.show(it)));
    html.element("td", &[("class", "n"), ("data-key", &key)], &shown);
}

/// Achieved, possible and lost overlap, each between its bounds.
fn overlap(html: &mut Html, document: Document<'_>) {
    html.element("h3", &[], "Overlap, shares of the reference time");
    let is_known = |name: &str| document.get(&format!("/overlap/possible/{name}")).is_some();
    if !is_known("a") && !is_known("b") {
        return html.missing(
            "How long these transfers take undisturbed is not known of either run, so what was overlapped is not, either. \
             lapscope calibrate measures reference times.",
        );
    }
    html.within("table", &[], |html| {
        heads(html, &["", "A", "B"]);
        html.within("tbody", &[], |html| {
            for (label, low, high) in FRACTIONS {
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], label);
                    for run in ["a", "b"] {
                        bounds(
                            html,
                            document,
                            &format!("/overlap/{low}/{run}"),
                            &format!("/overlap/{high}/{run}"),
                        );
                    }
                });
            }
        });
    });
}

fn bounds(html: &mut Html, document: Document<'_>, low: &str, high: &str) {
    html.within("td", &[("class", "n")], |html| {
        let is_known = |pointer: &str| document.0.pointer(pointer).is_some_and(Value::is_number);
        match (is_known(low), is_known(high)) {
            (true, true) => {
                let shown = [low, high].map(|at| document.get(at).map(|it| Unit::Percent.show(it)));
                if shown[0] != shown[1] {
                    document.write(html, low, Unit::Percent);
                    html.text(" to ");
                }
                document.write(html, high, Unit::Percent);
            }
            (false, true) => {
                html.text("up to ");
                document.write(html, high, Unit::Percent);
            }
            _ => html.text("not known"),
        }
    });
}
