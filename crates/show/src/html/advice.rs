//! What to do, each piece with the call sites that it is about.

use super::markup::{Document, Html};
use super::sites::target;
use super::Contents;
use crate::render::advice::{lists, without_buffering};
use lapscope_advise::advice::{Advice, CallSite};
use lapscope_advise::how::{self, Snippet};
use lapscope_data::text::units::percent;

const MOST: usize = 12;

/// Code that relies on no buffering, and two lists: what would help, and where nothing does.
pub fn section(html: &mut Html, contents: &Contents, document: Document<'_>) {
    let report = &contents.report;
    for (does, snippet) in without_buffering(report) {
        html.paragraph(&does);
        code(html, &snippet);
    }
    let lists = lists(&report.advice, report.summary.first);
    if lists.is_empty() {
        return html.missing(nothing(contents));
    }
    if lists.iter().all(|list| !list.helps) {
        html.missing("As the program stands, no overlap would make this run much faster.");
    }
    html.element("p", &[("class", "note")], "The time at stake is a mean over ranks.");
    for (place, found) in lists.iter().enumerate() {
        match found.helps {
            true if place > 0 => html.element("h3", &[], "By overlap"),
            true => {}
            false => html.element("h3", &[], "Not fixable by overlap as it stands"),
        }
        list(html, contents, document, &found.advice);
    }
}

fn nothing(contents: &Contents) -> &'static str {
    match contents.report.totals.calls {
        0 => "There is no advice: no MPI communication was recorded.",
        _ => "There is no advice: no single finding is worth a change.",
    }
}

fn list(html: &mut Html, contents: &Contents, document: Document<'_>, advice: &[(usize, &Advice)]) {
    html.within("ol", &[("class", "advice")], |html| {
        for (place, advice) in advice.iter().take(MOST) {
            html.within("li", &[], |html| item(html, contents, document, *place, advice));
        }
    });
    if advice.len() > MOST {
        let more = format!("{} more in lapscope report --format json.", advice.len() - MOST);
        html.element("p", &[("class", "note")], &more);
    }
}

fn item(
    html: &mut Html,
    contents: &Contents,
    document: Document<'_>,
    place: usize,
    advice: &Advice,
) {
    html.within("span", &[("class", "stake")], |html| {
        html.element("strong", &[], &percent(advice.share_at_most()));
        html.text(" ");
        let number = |html: &mut Html, key: &str| {
            document.write(html, &format!("/advice/{place}/{key}"), document.mean_time());
        };
        if advice.is_vague() {
            number(html, "time_low_ns");
            html.text(" to ");
            number(html, "time_high_ns");
        } else {
            number(html, "time_ns");
        }
    });
    html.within("p", &[], |html| {
        html.whole_text(&advice.sentence);
        for sentence in advice.further_sentences() {
            html.text(" ");
            html.whole_text(sentence);
        }
    });
    if let Some(snippet) = how::snippet(advice).filter(|_| advice.helps) {
        code(html, &snippet);
    }
    links(html, contents, advice);
}

/// What to write, folded away.
fn code(html: &mut Html, snippet: &Snippet) {
    html.within("details", &[], |html| {
        let says = format!("How it looks in {}", snippet.language.name());
        html.element("summary", &[], &says);
        for (heading, code) in [("Before", &snippet.before), ("After", &snippet.after)] {
            html.element("p", &[("class", "note")], heading);
            html.element("pre", &[], code);
        }
    });
}

/// To the rows of its call sites.
fn links(html: &mut Html, contents: &Contents, advice: &Advice) {
    let mut places: Vec<(String, &CallSite)> = Vec::new();
    for place in advice.change.iter().chain([&advice.waiting]) {
        match target(contents, &place.call, place.site.as_ref()) {
            Some(id) if places.iter().all(|(known, _)| *known != id) => places.push((id, place)),
            _ => {}
        }
    }
    if places.is_empty() {
        return;
    }
    html.within("p", &[("class", "links")], |html| {
        html.text("Call sites:");
        for (id, place) in places {
            let name = place.site.as_ref().map(|site| site.short()).unwrap_or_default();
            html.text(" ");
            html.element("a", &[("href", &format!("#{id}"))], &format!("{} {name}", place.call));
        }
    });
}
