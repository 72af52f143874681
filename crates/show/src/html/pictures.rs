//! Pictures that the page's script draws: ranks over time, messages between ranks, one stretch in detail. Here is what stands
//! around each, and what is missing.

use super::markup::Html;
use super::Contents;
use crate::render::cause;
use lapscope_data::model::Nanos;
use lapscope_data::text::plural;
use lapscope_data::text::units::{bytes, count, percent, time};
use lapscope_measure::overlap::sums::Cause;
use lapscope_report::pictures::timeline::{Chosen, RanksChosen, Timeline};
use lapscope_report::pictures::{Pictures, RankBin};

const HINT: &str = "Arrow keys move the cursor, + and − zoom, Shift with arrows or dragging moves the picture, 0 shows all of it.";

/// [`Pictures::waited_at_ends`].
const WAITED: &str = "exposed, mean over ranks";

/// A canvas with its controls; `select` is the switch of what it shows: label and choices.
pub struct Figure<'a> {
    pub id: &'static str,
    pub says: &'a str,
    pub select: Option<(&'static str, Vec<String>)>,
}

impl Figure<'_> {
    pub fn write(&self, html: &mut Html) {
        html.within("figure", &[("class", "drawn"), ("id", &format!("{}-figure", self.id))], |html| {
            html.within("div", &[("class", "controls")], |html| self.controls(html));
            html.within("div", &[("class", "picture")], |html| {
                let attributes = [("tabindex", "0"), ("role", "img"), ("aria-label", self.says)];
                html.within("canvas", &attributes, |_| ());
                html.within("div", &[("class", "tip"), ("hidden", "hidden")], |_| ());
            });
            html.within("div", &[("class", "key")], |_| ());
            html.element("p", &[("class", "live"), ("aria-live", "polite")], HINT);
            html.within("noscript", &[], |html| {
                html.missing("This picture is drawn by the script in this file, which this browser does not run.");
            });
        });
    }

    fn controls(&self, html: &mut Html) {
        if let Some((label, choices)) = &self.select {
            let id = format!("{}-shows", self.id);
            html.element("label", &[("for", &id)], label);
            html.within("select", &[("id", &id), ("class", "shows")], |html| {
                for (at, choice) in choices.iter().enumerate() {
                    html.element("option", &[("value", &at.to_string())], choice);
                }
            });
        }
        for (class, label, sign) in
            [("in", "Zoom in", "+"), ("out", "Zoom out", "−"), ("all", "Show all of it", "All")]
        {
            html.element(
                "button",
                &[("type", "button"), ("class", class), ("aria-label", label), ("title", label)],
                sign,
            );
        }
    }
}

pub fn heat(html: &mut Html, contents: &Contents) {
    let pictures = &contents.pictures;
    let has_exposed = pictures.heat.exposed_ns.iter().flatten().any(|ns| ns.0 > 0);
    if !has_exposed {
        return html.missing(nothing_over_time(contents));
    }
    let says = heat_in_words(pictures);
    html.paragraph(&says);
    Figure { id: "heat", says: &says, select: Some(("Exposed by", exposed_choices())) }.write(html);
}

/// What a picture of ranks over time can show, in the order that the script knows.
pub fn exposed_choices() -> Vec<String> {
    let mut choices = vec!["all causes".to_owned(), "main cause".to_owned()];
    choices.extend(
        Cause::ALL.map(|cause| format!("{}: {}", cause::name(cause), cause::meaning(cause))),
    );
    choices
}

fn nothing_over_time(contents: &Contents) -> &'static str {
    let report = &contents.report;
    if report.totals.calls == 0 {
        "No MPI communication was recorded, so nothing was exposed."
    } else if report.ranks.iter().all(|rank| rank.summarized) {
        "Only sums were recorded of these ranks (LAPSCOPE_MAX_MB was reached): when their time was exposed is not known."
    } else {
        "No request or blocking call was recorded in detail that waited: there is nothing to draw over time."
    }
}

/// "Ranks 0 to 15, from top to bottom …".
fn heat_in_words(pictures: &Pictures) -> String {
    let heat = &pictures.heat;
    let length = Nanos(heat.slice_ns.0.saturating_mul(heat.slices as i64));
    let mut text = format!(
        "Each row is {}, each column {} of {}: the share of the run time that is exposed.",
        a_row(pictures),
        time(heat.slice_ns),
        time(length)
    );
    if let Some(worst) = &heat.worst {
        let begin = Nanos(heat.slice_ns.0.saturating_mul(worst.slice as i64));
        text += &format!(
            " Worst: {} on {} at {} after MPI_Init, mostly {}.",
            percent(worst.share),
            pictures.bins.get(worst.bin).map(in_words).unwrap_or_default(),
            time(begin),
            cause::name(worst.cause)
        );
    }
    text
}

fn a_row(pictures: &Pictures) -> String {
    let most = pictures.bins.iter().map(|bin| bin.ranks).max().unwrap_or(0);
    match most {
        0 | 1 => "a rank".to_owned(),
        most => format!("up to {most} ranks together"),
    }
}

/// "rank 3", "ranks 16 to 31".
fn in_words(bin: &RankBin) -> String {
    match bin.ranks {
        1 => format!("rank {}", bin.first),
        _ => format!("ranks {} to {}", bin.first, bin.last),
    }
}

pub fn matrix(html: &mut Html, contents: &Contents) {
    let pictures = &contents.pictures;
    let cells = &pictures.matrix.cells;
    if cells.is_empty() {
        return html.missing(match contents.report.ranks.len() {
            1 => "One rank was recorded: there is nobody that it could have sent to.",
            _ => "No message between ranks of this run was recorded in detail, so nobody knows who sent to whom.",
        });
    }
    let messages: u64 = cells.iter().map(|cell| cell.messages).sum();
    let all = cells.iter().fold(0u64, |all, cell| all.saturating_add(cell.bytes.0));
    let mut says = format!(
        "{} message{} with {} were sent; rows are senders, columns receivers, lines between them borders of nodes.",
        count(messages),
        plural(messages),
        bytes(all)
    );
    let busiest = cells.iter().max_by_key(|cell| pictures.waited_at_ends(cell));
    if let Some(cell) = busiest.filter(|cell| cell.exposed_ns.0 > 0) {
        let name = |bin: u32| pictures.bins.get(bin as usize).map(in_words).unwrap_or_default();
        says += &format!(
            " Longest waited for: from {} to {}, {}, mean over the ranks at both ends.",
            name(cell.from),
            name(cell.to),
            time(pictures.waited_at_ends(cell))
        );
    }
    html.paragraph(&says);
    if pictures.matrix.unknown_messages > 0 {
        let text = format!(
            "Of {} more messages the receiver is not known.",
            count(pictures.matrix.unknown_messages)
        );
        html.element("p", &[("class", "note")], &text);
    }
    let choices = ["bytes", "messages", WAITED].map(str::to_owned).to_vec();
    Figure { id: "matrix", says: &says, select: Some(("Shows", choices)) }.write(html);
    pairs(html, pictures);
}

/// The same as a table: those that exchanged most.
fn pairs(html: &mut Html, pictures: &Pictures) {
    const MOST: usize = 20;
    let mut cells: Vec<_> = pictures.matrix.cells.iter().collect();
    cells.sort_by_key(|cell| std::cmp::Reverse((pictures.waited_at_ends(cell), cell.bytes)));
    html.within("details", &[], |html| {
        html.element("summary", &[], "Table of what was waited for longest");
        html.within("table", &[], |html| {
            html.within("thead", &[], |html| {
                html.within("tr", &[], |html| {
                    for name in ["from", "to", "messages", "bytes", WAITED] {
                        html.element("th", &[("scope", "col")], name);
                    }
                });
            });
            html.within("tbody", &[], |html| {
                for cell in cells.into_iter().take(MOST) {
                    let name = |bin: u32| {
                        pictures.bins.get(bin as usize).map(in_words).unwrap_or_default()
                    };
                    let waited = time(pictures.waited_at_ends(cell));
                    let values = [count(cell.messages), bytes(cell.bytes.0), waited];
                    html.within("tr", &[], |html| {
                        html.element("td", &[], &name(cell.from));
                        html.element("td", &[], &name(cell.to));
                        values
                            .iter()
                            .for_each(|value| html.element("td", &[("class", "n")], value));
                    });
                }
            });
        });
    });
}

pub fn timeline(html: &mut Html, contents: &Contents) {
    let pictures = &contents.pictures;
    let Some(timeline) = &pictures.timeline else {
        let why = pictures.no_timeline.as_deref().unwrap_or("nothing was recorded in detail");
        return html.missing(&format!("There is no timeline: {why}."));
    };
    let spans: usize = timeline.tracks.iter().map(|track| track.spans.len()).sum();
    if spans == 0 {
        return html.missing(
            "In this stretch no MPI call was recorded in detail: only sums of these ranks are there, or nothing was called.",
        );
    }
    let says = timeline_in_words(timeline);
    html.paragraph(&says);
    for note in notes(timeline) {
        html.element("p", &[("class", "note")], &note);
    }
    Figure { id: "timeline", says: &says, select: None }.write(html);
}

fn timeline_in_words(timeline: &Timeline) -> String {
    let stretch = match (timeline.chosen, timeline.steps) {
        (Chosen::CostliestStep, Some((first, last))) if first == last => {
            format!("Step {first}, the costliest one")
        }
        (Chosen::CostliestStep, Some((first, last))) => {
            format!("Of steps {first} to {last}, which together cost most")
        }
        (_, Some((first, last))) if first == last => format!("Step {first}"),
        (_, Some((first, last))) => format!("Steps {first} to {last}"),
        (Chosen::Asked, None) => "The stretch that was asked for".to_owned(),
        (_, None) => "The stretch of the run with most exposed time".to_owned(),
    };
    let ranks = match timeline.ranks_chosen {
        RanksChosen::All => "on all ranks".to_owned(),
        RanksChosen::Asked => "on the ranks that were asked for".to_owned(),
        RanksChosen::Worst(rank) => {
            format!("on rank {rank}, which has most exposed time, and those that it exchanges most messages with")
        }
    };
    format!(
        "{stretch}: {} from {} after MPI_Init on, {ranks}. Bars are MPI calls, thin bars below them lives of requests, lines \
         messages from the begin of their send to the completion of their receive; what is empty is computation.",
        time(timeline.length_ns),
        time(timeline.begin_ns)
    )
}

fn notes(timeline: &Timeline) -> Vec<String> {
    let mut notes = Vec::new();
    if timeline.is_shortened {
        notes.push("The stretch held more calls than can be shown: this is its middle. --from and --to show another.".to_owned());
    }
    if timeline.other_ranks > 0 {
        let others = count(timeline.other_ranks as u64);
        notes.push(format!(
            "{others} more rank{} are not shown: --timeline-ranks LIST shows others.",
            plural(timeline.other_ranks as u64)
        ));
    }
    let left_out = [
        (timeline.left_out_requests, "requests with the shortest lives"),
        (timeline.left_out_messages, "messages with the fewest bytes"),
    ];
    for (number, what) in left_out.into_iter().filter(|(number, _)| *number > 0) {
        notes.push(format!("{} {what} are left out.", count(number)));
    }
    if timeline.resolution_ns.0 > 0 {
        notes.push(format!(
            "Calls closer than {} to each other are one bar.",
            time(timeline.resolution_ns)
        ));
    }
    notes
}
