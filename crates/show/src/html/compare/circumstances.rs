//! What is not the same of the two runs: command, ranks, hosts, MPI, settings.

use super::times::heads;
use super::Compared;
use crate::html::escape::cut_to;
use crate::html::markup::{Document, Html};
use lapscope_report::diff::ChangeKind;

const MOST: usize = 300;
const MOST_LETTERS: usize = 400;

pub fn section(html: &mut Html, compared: &Compared, _: Document<'_>) {
    let changes = &compared.diff.configuration;
    if changes.is_empty() {
        return html.paragraph(
            "Nothing that was recorded: command, program, ranks, hosts, MPI, environment, control variables and options are the \
             same.",
        );
    }
    html.within("div", &[("class", "scroll")], |html| {
        html.within("table", &[("class", "settings")], |html| {
            heads(html, &["what", "", "A", "B"]);
            html.within("tbody", &[], |html| {
                for change in changes.iter().take(MOST) {
                    let kind = match change.kind {
                        ChangeKind::Run => "run",
                        ChangeKind::Environment => "environment",
                        ChangeKind::Cvar => "MPI variable",
                        ChangeKind::Option => "option of lapscope",
                    };
                    html.within("tr", &[], |html| {
                        let name = cut_to(&change.name, MOST_LETTERS);
                        html.element("th", &[("scope", "row")], &name);
                        html.element("td", &[], kind);
                        for value in [&change.a, &change.b] {
                            html.within("td", &[], |html| setting(html, value.as_deref()));
                        }
                    });
                }
            });
        });
    });
    if changes.len() > MOST {
        let text = format!("and {} more: lapscope diff has all.", changes.len() - MOST);
        html.element("p", &[("class", "note")], &text);
    }
}

fn setting(html: &mut Html, value: Option<&str>) {
    match value {
        None => html.element("span", &[("class", "note")], "not set"),
        Some("") => html.element("span", &[("class", "note")], "empty"),
        Some(value) => {
            html.within("code", &[], |html| html.text(&cut_to(value, MOST_LETTERS)));
        }
    }
}
