//! What a reader sees first: what ran, what to know before believing it, and the answers.

use super::markup::{Document, Html, Unit};
use super::Contents;
use crate::render::report::{answers, facts, split};
use lapscope_advise::insight::Insight;
use lapscope_advise::problem::in_short;
use lapscope_data::model::Nanos;
use lapscope_measure::efficiency::EfficiencyLine;
use lapscope_measure::gpu_efficiency::WAITS_FOR_GPUS;

const MOST_COMMAND: usize = 2_000;

/// Title, circumstances in a line, problems.
pub fn title(html: &mut Html, contents: &Contents) {
    let report = &contents.report;
    html.within("h1", &[], |html| {
        html.text("lapscope ");
        html.element("span", &[("class", "run")], &report.run);
    });
    let command = super::escape::cut_to(&report.head.command, MOST_COMMAND);
    html.within("p", &[("class", "command")], |html| {
        html.within("code", &[], |html| html.whole_text(&command));
    });
    html.paragraph(&facts(report));
}

/// What to know before believing the numbers.
pub fn problems(html: &mut Html, contents: &Contents) {
    let sentences = in_short(&contents.report.problems);
    if sentences.is_empty() {
        return;
    }
    html.within("ul", &[("class", "problems"), ("aria-label", "What to know first")], |html| {
        for sentence in sentences {
            html.within("li", &[], |html| html.whole_text(&sentence));
        }
    });
}

/// The answers, and where the time went.
pub fn section(html: &mut Html, contents: &Contents, document: Document<'_>) {
    html.within("dl", &[("class", "answers")], |html| {
        for (label, text) in answers(&contents.report) {
            html.element("dt", &[], label);
            html.within("dd", &[], |html| html.whole_text(&text));
        }
    });
    time(html, contents, document);
    efficiencies(html, contents, document);
}

/// The five that centres speak of; what is known to within bounds has both.
fn efficiencies(html: &mut Html, contents: &Contents, document: Document<'_>) {
    if let Some(efficiency) = &contents.report.efficiency {
        html.element("h3", &[], "Efficiency, as POP defines it");
        efficiency_table(html, &efficiency.lines(), document, "efficiency");
        if contents.report.head.has_gpus() {
            html.element("p", &[("class", "note")], WAITS_FOR_GPUS);
        }
    }
    if let Some(gpus) = &contents.report.gpu_efficiency {
        html.element("h3", &[], "Efficiency of GPUs, as TALP defines it");
        efficiency_table(html, &gpus.lines(), document, "gpu_efficiency");
    }
}

fn efficiency_table(html: &mut Html, lines: &[EfficiencyLine], document: Document<'_>, key: &str) {
    html.within("table", &[("class", "bars")], |html| {
        html.within("tbody", &[], |html| {
            for line in lines {
                let pointer = format!("/{key}/{}", line.key);
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], line.label.trim_start());
                    html.within("td", &[("class", "n")], |html| match line.value {
                        None => html.text("not known"),
                        Some(_) if document.get(&pointer).is_some() => {
                            document.write(html, &pointer, Unit::Percent);
                        }
                        Some(_) => {
                            document.write(html, &format!("{pointer}/low"), Unit::Percent);
                            html.text(" to ");
                            document.write(html, &format!("{pointer}/high"), Unit::Percent);
                        }
                    });
                    html.element("td", &[], line.of_what);
                });
            }
        });
    });
}

/// A bar for each part of the run time.
fn time(html: &mut Html, contents: &Contents, document: Document<'_>) {
    let totals = &contents.report.totals;
    let run = totals.run_ns;
    if run.0 <= 0 {
        return html.missing("No time is recorded behind MPI_Init.");
    }
    html.element("h3", &[], "Where the time went, mean over ranks");
    html.within("table", &[("class", "bars")], |html| {
        html.within("tbody", &[], |html| {
            for (part, ns) in split(totals).into_iter().filter(|(_, ns)| ns.0 > 0) {
                let pointer = format!("/totals/{}", part.key);
                bar(html, part.label, ns.share_of(run), |html| {
                    document.write(html, &pointer, document.mean_time());
                });
            }
            let outside = Nanos((run - totals.mpi_ns).0.max(0));
            bar(html, "outside MPI", outside.share_of(run), |html| {
                html.text(&contents.report.mean().time(outside));
            });
        });
    });
    html.within("p", &[("class", "note")], |html| {
        html.text("Run time: ");
        document.write(html, "/totals/run_ns", document.mean_time());
        html.text(", in MPI ");
        document.write(html, "/totals/mpi_ns", document.mean_time());
        html.text(" (");
        document.write(html, "/totals/mpi_share", Unit::Percent);
        html.text("), ");
        document.write(html, "/totals/requests", Unit::Count);
        html.text(" requests in ");
        document.write(html, "/totals/calls", Unit::Count);
        html.text(" calls.");
    });
    let says_little = |insight: &&Insight| matches!(insight, Insight::LittleMpi { .. });
    if contents.report.insights.iter().any(|insight| says_little(&insight)) {
        html.paragraph(
            "Little of the run time is in MPI: overlap cannot make this run much faster.",
        );
    }
}

fn bar(html: &mut Html, label: &str, share: f64, time: impl FnOnce(&mut Html)) {
    html.within("tr", &[], |html| {
        html.element("th", &[("scope", "row")], label);
        html.element("td", &[("class", "n")], &Unit::Percent.show(share));
        html.within("td", &[("class", "n")], time);
        html.within("td", &[("class", "wide")], |html| meter(html, share));
    });
}

/// A bar of so much of its cell; the number stands beside it.
pub fn meter(html: &mut Html, share: f64) {
    let width = format!("width:{:.2}%", share.clamp(0.0, 1.0) * 100.0);
    html.within("span", &[("class", "meter"), ("style", &width), ("aria-hidden", "true")], |_| ());
}
