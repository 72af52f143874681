//! What was compared, and what to know before believing it.

use super::Compared;
use crate::html::escape::cut_to;
use crate::html::markup::Html;
use crate::render::report::facts;

const MOST_COMMAND: usize = 2_000;

/// Each run, and its problems.
pub fn section(html: &mut Html, compared: &Compared) {
    html.within("h1", &[], |html| {
        html.text("lapscope ");
        html.element("span", &[("class", "run")], "two runs");
    });
    html.within("dl", &[("class", "runs")], |html| {
        for (name, run) in compared.runs() {
            html.element("dt", &[], name);
            html.within("dd", &[], |html| {
                html.element("b", &[], &run.report.run);
                let command = cut_to(&run.report.head.command, MOST_COMMAND);
                html.within("div", &[("class", "command")], |html| {
                    html.within("code", &[], |html| html.whole_text(&command));
                });
                html.within("div", &[], |html| html.whole_text(&facts(&run.report)));
            });
        }
    });
    problems(html, compared);
}

fn problems(html: &mut Html, compared: &Compared) {
    let diff = &compared.diff;
    if diff.a.problems.is_empty() && diff.b.problems.is_empty() {
        return;
    }
    html.within("ul", &[("class", "problems"), ("aria-label", "What to know first")], |html| {
        for (name, run) in [("A", &diff.a), ("B", &diff.b)] {
            for problem in &run.problems {
                html.within("li", &[], |html| html.whole_text(&format!("{name}: {problem}")));
            }
        }
    });
}
