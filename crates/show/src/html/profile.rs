//! Where the program computes, by its samples.

use super::markup::{Document, Html, Unit};
use super::Contents;
use crate::render::profile::{note, sentences};
use lapscope_advise::advice::line_in_words;

pub fn section(html: &mut Html, contents: &Contents, document: Document<'_>) {
    let report = &contents.report;
    let Some(profile) = &report.profile else {
        html.missing("Where the program computes is not known: lapscope run --sample records it.");
        return;
    };
    html.element("p", &[("class", "note")], &format!("These are {}.", note(profile)));
    html.within("div", &[("class", "scroll")], |html| {
        html.within("table", &[], |html| {
            html.within("thead", &[], |html| {
                html.within("tr", &[], |html| {
                    for (class, head) in [("n", "share"), ("n", "samples"), ("", "line")] {
                        html.element("th", &[("class", class), ("scope", "col")], head);
                    }
                });
            });
            html.within("tbody", &[], |html| {
                for (place, line) in profile.outside.lines.iter().enumerate() {
                    html.within("tr", &[], |html| {
                        let at = |key: &str| format!("/profile/outside/lines/{place}/{key}");
                        document.cell(html, &at("share"), Unit::Percent);
                        document.cell(html, &at("samples"), Unit::Count);
                        html.within("td", &[], |html| html.whole_text(&line_in_words(line)));
                    });
                }
            });
        });
    });
    sentences(profile, report.ranks.len()).iter().for_each(|line| html.paragraph(line));
}
