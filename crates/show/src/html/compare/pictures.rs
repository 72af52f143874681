//! Ranks over time of both runs, side by side in the same colours.

use super::{Compared, ComparedRun};
use crate::html::markup::Html;
use crate::html::pictures::{exposed_choices, Figure};
use lapscope_data::model::Nanos;
use lapscope_data::text::units::time;

pub fn section(html: &mut Html, compared: &Compared) {
    let is_drawn =
        |run: &ComparedRun| run.pictures.heat.exposed_ns.iter().flatten().any(|ns| ns.0 > 0);
    if !compared.runs().iter().any(|(_, run)| is_drawn(run)) {
        return html.missing("In neither run a call that waited was recorded in detail: there is nothing to draw over time.");
    }
    html.paragraph(
        "Each row is a rank, or several where there are many, each column a slice of time: the share of the run time that is \
         exposed. Colours and the scale of time are the same on both sides.",
    );
    html.within("div", &[("class", "controls")], |html| {
        html.element("label", &[("for", "pair-shows")], "Exposed by");
        html.within("select", &[("id", "pair-shows")], |html| {
            for (at, choice) in exposed_choices().iter().enumerate() {
                html.element("option", &[("value", &at.to_string())], choice);
            }
        });
    });
    html.within("div", &[("class", "pair")], |html| {
        for ((name, run), id) in compared.runs().into_iter().zip(["heat-a", "heat-b"]) {
            html.within("div", &[], |html| {
                html.element("h3", &[], &format!("{name}: {}", run.report.run));
                if is_drawn(run) {
                    return Figure { id, says: &in_words(name, run), select: None }.write(html);
                }
                html.missing("No call that waited was recorded in detail.");
            });
        }
    });
}

fn in_words(name: &str, run: &ComparedRun) -> String {
    let heat = &run.pictures.heat;
    let length = Nanos(heat.slice_ns.0.saturating_mul(heat.slices as i64));
    format!(
        "Run {name}: exposed shares of {} rows of ranks over {}, in columns of {}",
        run.pictures.bins.len(),
        time(length),
        time(heat.slice_ns)
    )
}
