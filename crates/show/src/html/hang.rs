//! The page of a job that hangs: the verdict, the circle as a drawing, who is where.

mod drawing;

use super::markup::Html;
use super::page::{framed, navigation, sections};
use crate::render::hang::{kind_in_words, next, place_in_words};
use lapscope_data::text::plural;
use lapscope_data::text::units::{count, time};
use lapscope_watch::hang::{Diagnosis, ThreadWait, Verdict, VerdictKind};

pub(super) const SCRIPT: &str = concat!("\"use strict\";\n", include_str!("js/theme.js"));

/// Waits that have a row; the others are counted.
const MOST_WAITS: usize = 200;
const MOST_PLACES: usize = 200;

const SECTIONS: [(&str, &str); 4] =
    [("verdict", "Verdict"), ("places", "Who is where"), ("waits", "Waits"), ("next", "Next")];

/// The whole file.
pub fn page(run: &str, diagnosis: &Diagnosis) -> String {
    let mut html = Html::default();
    html.within("header", &[], |html| {
        html.element("a", &[("class", "skip"), ("href", "#verdict")], "To the contents");
        html.within("h1", &[], |html| {
            html.text("What everybody waits for ");
            html.element("span", &[("class", "run")], run);
        });
        let ranks = diagnosis.ranks.len() as u64;
        let looked = match diagnosis.observed_ns.0 {
            0 => "the job has ended".to_owned(),
            _ => format!("two looks {} apart", time(diagnosis.observed_ns)),
        };
        html.paragraph(&format!("{} rank{}; {looked}", count(ranks), plural(ranks)));
        write_notes(html, diagnosis);
    });
    navigation(&mut html, &SECTIONS);
    sections(&mut html, &SECTIONS, |html, at| match at {
        0 => write_verdicts(html, diagnosis),
        1 => write_places(html, diagnosis),
        2 => write_waits(html, &diagnosis.waits),
        _ => write_next(html, run, diagnosis),
    });
    framed(run, SCRIPT, "{}", &html.finish())
}

fn write_notes(html: &mut Html, diagnosis: &Diagnosis) {
    const MOST: usize = 20;
    let unseen = diagnosis.unseen.iter().map(|it| format!("{} {}", it.file, it.why));
    let notes: Vec<String> = diagnosis.notes.iter().cloned().chain(unseen).take(MOST).collect();
    if !notes.is_empty() {
        html.within("ul", &[("class", "problems")], |html| {
            notes.iter().for_each(|note| html.element("li", &[], note));
        });
    }
}

pub(super) fn write_verdicts(html: &mut Html, diagnosis: &Diagnosis) {
    for (at, verdict) in std::iter::once(&diagnosis.verdict).chain(&diagnosis.further).enumerate() {
        write_verdict(html, verdict, at);
    }
}

fn write_verdict(html: &mut Html, verdict: &Verdict, number: usize) {
    let perhaps =
        if verdict.certain || verdict.kind >= VerdictKind::Slow { "" } else { " (perhaps)" };
    let title = format!("{}{perhaps}", kind_in_words(verdict.kind));
    html.element("h3", &[], &title);
    let class = if number == 0 { [("class", "problem")] } else { [("class", "plain")] };
    html.within("p", &class, |html| html.whole_text(&verdict.sentence));
    for candidate in &verdict.candidates {
        html.paragraph(&format!("Near: {candidate}."));
    }
    if !verdict.cycle.is_empty() {
        html.within("figure", &[("class", "scroll")], |html| {
            html.own(&drawing::circle(&verdict.cycle, number));
            html.element(
                "figcaption",
                &[],
                "Each rank waits for the one that its arrow points to.",
            );
        });
        html.within("ol", &[], |html| {
            for edge in verdict.cycle.iter().take(MOST_WAITS) {
                html.element("li", &[], &format!("rank {} {}", edge.from, edge.why));
            }
        });
    }
}

fn write_places(html: &mut Html, diagnosis: &Diagnosis) {
    let of = diagnosis.ranks.len();
    html.within("div", &[("class", "scroll"), ("tabindex", "0")], |html| {
        html.within("table", &[], |html| {
            html.within("thead", &[], |html| row(html, "th", &["Ranks", "Where", "Call path"]));
            html.within("tbody", &[], |html| {
                for place in diagnosis.places.iter().take(MOST_PLACES) {
                    let frames: Vec<String> = place.frames.iter().map(|it| it.short()).collect();
                    let text = place_in_words(place, of);
                    let (who, what) = text.split_once(": ").unwrap_or((&text, ""));
                    row(html, "td", &[who, what, &frames.join(" ← ")]);
                }
            });
        });
    });
    if diagnosis.places.len() > MOST_PLACES {
        html.missing(&format!(
            "{} more places are in the JSON.",
            diagnosis.places.len() - MOST_PLACES
        ));
    }
}

pub(super) fn row(html: &mut Html, tag: &'static str, cells: &[&str]) {
    html.within("tr", &[], |html| cells.iter().for_each(|cell| html.element(tag, &[], cell)));
}

fn write_waits(html: &mut Html, waits: &[ThreadWait]) {
    let mut shown: Vec<&ThreadWait> = waits.iter().collect();
    shown.sort_by_key(|wait| !wait.stuck);
    html.within("ul", &[], |html| {
        for wait in shown.iter().take(MOST_WAITS) {
            for on in &wait.on {
                let doubt = if on.certain { "" } else { " (perhaps)" };
                html.element("li", &[], &format!("rank {} {}{doubt}", wait.from, on.why));
            }
        }
    });
    if waits.is_empty() {
        html.missing("Nobody is known to wait for anybody.");
    }
    if waits.len() > MOST_WAITS {
        html.missing(&format!(
            "{} more are in the JSON.",
            count((waits.len() - MOST_WAITS) as u64)
        ));
    }
}

fn write_next(html: &mut Html, run: &str, diagnosis: &Diagnosis) {
    html.within("ul", &[], |html| {
        for step in next(run, diagnosis) {
            html.within("li", &[], |html| html.element("code", &[], &step));
        }
    });
}
