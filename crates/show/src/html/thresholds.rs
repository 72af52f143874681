//! From which size on sends wait, and the messages that speak for it.

use super::markup::{Document, Html, Unit};
use super::Contents;
use crate::plot::palette::{Dash, Tone};
use crate::plot::svg::{Anchor, Area, Font, Pen, Svg};
use crate::render::thresholds::{put_together, size_range};
use lapscope_advise::thresholds_in_words::locality_words;
use lapscope_data::text::capitalized;
use lapscope_data::text::units::{bytes, count};
use lapscope_measure::thresholds::{
    progress_differs, CumulativeVerdict, LimitVerdict, LocalityThresholds, SizeCounts,
};

pub fn section(html: &mut Html, contents: &Contents, document: Document<'_>) {
    let localities = &contents.report.thresholds.localities;
    if localities.is_empty() {
        return html.missing(
            "Nothing shows from which size on sends wait: no message has both its ends recorded in detail, was sent in \
             standard mode, and met a receiver who was somewhere else. lapscope thresholds --probe -- mpirun -n 2, with your \
             launch line, finds out.",
        );
    }
    for (at, found) in localities.iter().enumerate() {
        html.element("h3", &[], &format!("Sends {}", locality_words(found.locality)));
        sentences(html, found, at, document);
        let mut rows = put_together(&found.sizes);
        rows.retain(|row| groups(row).iter().any(|messages| *messages > 0));
        if rows.is_empty() {
            html.missing("No message shows whether it waited, so there is no picture of them.");
        } else {
            html.within("figure", &[("class", "scroll")], |html| {
                html.own(&picture(found, &rows, at))
            });
        }
    }
}

fn sentences(html: &mut Html, found: &LocalityThresholds, at: usize, document: Document<'_>) {
    let mut items = vec![&found.rendezvous.sentence];
    if progress_differs(found) {
        items.push(&found.needs_receiver_progress.sentence);
    }
    if found.post.verdict != LimitVerdict::NoEvidence {
        items.push(&found.post.sentence);
    }
    if found.cumulative.verdict != CumulativeVerdict::NotEnough {
        items.push(&found.cumulative.sentence);
    }
    items.extend(&found.rendezvous.next);
    html.within("ul", &[], |html| {
        for sentence in items {
            html.within("li", &[], |html| html.whole_text(&said(sentence)));
        }
    });
    let counts = &found.rendezvous;
    if counts.eager + counts.waiting == 0 {
        return;
    }
    html.within("p", &[("class", "note")], |html| {
        let pointer = |key: &str| format!("/thresholds/localities/{at}/rendezvous/{key}");
        html.text("Rendezvous: ");
        document.write(html, &pointer("eager"), Unit::Count);
        html.text(" messages did not wait, ");
        document.write(html, &pointer("waiting"), Unit::Count);
        html.text(" did, ");
        document.write(html, &pointer("contradictions"), Unit::Count);
        html.text(" contradict the limit.");
        if let Some(declared) = &found.declared {
            html.text(" Declared: ");
            html.element("code", &[], &format!("{}={}", declared.name, declared.value));
            html.text(match declared.agrees {
                Some(true) => ", which agrees.",
                Some(false) => ", which does not agree.",
                None => ".",
            });
        }
    });
}

/// As a sentence; a command is typed as it is.
fn said(sentence: &str) -> String {
    match sentence.starts_with("lapscope ") {
        true => sentence.to_owned(),
        false => capitalized(sentence),
    }
}

const GROUPS: [(&str, Tone, f64); 3] = [
    ("did not wait", Tone::Series(2), 1.0),
    ("needed the receiver inside MPI", Tone::Series(4), 1.0),
    ("waited for the receive", Tone::Series(1), 1.0),
];

fn groups(row: &SizeCounts) -> [u64; 3] {
    [
        row.early + row.without_receiver_progress + row.eager,
        row.after_receiver_progress + row.unseen,
        row.waited_for_receiver + row.waited_for_receive,
    ]
}

const LEFT: f64 = 46.0;
const WIDTH: f64 = 560.0;
const TOP: f64 = 62.0;
const HEIGHT: f64 = 150.0;

/// A column for each size: the shares of its messages that did not wait, and that did.
fn picture(found: &LocalityThresholds, rows: &[SizeCounts], at: usize) -> String {
    let mut svg = Svg::default();
    let font = Font::new(12.0);
    let mut x = LEFT;
    for (name, tone, opacity) in GROUPS {
        svg.bar(Area { left: x, top: 8.0, width: 16.0, height: 11.0 }, tone, opacity, name);
        svg.text((x + 22.0, 18.0), name, font);
        x += 22.0 + font.width(name) + 8.0;
    }
    for share in [0.0, 0.5, 1.0] {
        let y = TOP + HEIGHT * (1.0 - share);
        svg.line((LEFT, y), (LEFT + WIDTH, y), Pen::new(Tone::Grid, 1.0));
        let small = Font::new(11.0).dim().at(Anchor::End);
        svg.text((LEFT - 6.0, y + 4.0), &format!("{:.0} %", share * 100.0), small);
    }
    let column = (WIDTH / rows.len() as f64).min(80.0);
    for (place, row) in rows.iter().enumerate() {
        draw_column(&mut svg, row, LEFT + column * place as f64, column);
    }
    draw_limit(&mut svg, found, rows, column);
    let text = "For each message size the share of messages that did not wait, that needed the receiver inside MPI, and that \
                waited for the receive; the limit lies where one gives way to the other.";
    svg.within_page(
        LEFT + WIDTH + 12.0,
        TOP + HEIGHT + 78.0,
        &format!("limit-{at}"),
        ["Messages by size", text],
    )
}

fn draw_column(svg: &mut Svg, row: &SizeCounts, left: f64, column: f64) {
    let groups = groups(row);
    let all = groups.iter().sum::<u64>();
    let mut top = TOP + HEIGHT;
    for ((name, tone, opacity), messages) in
        GROUPS.into_iter().zip(groups).filter(|(_, messages)| *messages > 0)
    {
        let height = messages as f64 / all as f64 * HEIGHT;
        top -= height;
        let hover = format!("{} B: {} messages {name}", size_range(row), count(messages));
        let gap = (column * 0.12).min(3.0);
        svg.bar(
            Area { left: left + gap, top, width: column - 2.0 * gap, height },
            tone,
            opacity,
            &hover,
        );
    }
    let middle = left + column / 2.0;
    let small = Font::new(10.0).dim().at(Anchor::Middle);
    let labels = [short(row), if all > 0 { count(all) } else { "–".to_owned() }];
    // where columns are narrow, labels take turns
    let turns = if column < 34.0 { 2.0 } else { 1.0 };
    let turn = (((left - LEFT) / column).round() % turns) * 13.0;
    svg.text((middle, TOP + HEIGHT + 14.0 + turn), &labels[0], small);
    svg.text((middle, TOP + HEIGHT + 28.0 + turn + (turns - 1.0) * 13.0), &labels[1], small);
}

/// "4 KiB", "1.2 MiB": where it begins.
fn short(row: &SizeCounts) -> String {
    let text = bytes(row.from_bytes);
    match text.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Between the largest size that did not wait and the smallest that did.
fn draw_limit(svg: &mut Svg, found: &LocalityThresholds, rows: &[SizeCounts], column: f64) {
    let found = &found.rendezvous;
    let Some(waiting) =
        found.smallest_waiting_bytes.filter(|_| found.largest_eager_bytes.is_some())
    else {
        return;
    };
    let behind = rows.iter().filter(|row| row.to_bytes < waiting).count();
    let x = LEFT + column * behind as f64;
    svg.line((x, TOP - 12.0), (x, TOP + HEIGHT), Pen::new(Tone::Ink, 1.6).dashed(Dash::Dashed));
    let anchor = if x > LEFT + WIDTH / 2.0 { Anchor::End } else { Anchor::Start };
    let text =
        format!("limit: {} to {}", bytes(found.largest_eager_bytes.unwrap_or(0)), bytes(waiting));
    svg.text((x, TOP - 18.0), &text, Font::new(12.0).bold().at(anchor));
}
