//! A circle of ranks, each with an arrow to the one it waits for.

use std::f64::consts::TAU;

use crate::plot::palette::Tone;
use crate::plot::svg::{Anchor, Area, Font, Pen, Svg};
use lapscope_data::symbols::{base_name, FrameName};
use lapscope_watch::hang::Edge;

/// A drawing of more ranks than these cannot be read.
const MOST: usize = 16;
const BOX: (f64, f64) = (170.0, 52.0);

/// `number`: which drawing of the page it is.
pub fn circle(edges: &[Edge], number: usize) -> String {
    let shown = &edges[..edges.len().min(MOST)];
    let count = shown.len();
    let (across, high) = (150.0 + 22.0 * count as f64, 60.0 + 26.0 * count as f64);
    let (width, height) = (2.0 * across + BOX.0 + 20.0, 2.0 * high + BOX.1 + 40.0);
    let center = (width / 2.0, height / 2.0);
    let place = |at: usize| {
        let angle = TAU * at as f64 / count as f64 - TAU / 4.0;
        (center.0 + across * angle.cos(), center.1 + high * angle.sin())
    };
    let mut svg = Svg::default();
    let cut = edges.len() > count;
    for at in 0..count {
        let is_gap = cut && at + 1 == count;
        arrow(&mut svg, place(at), place((at + 1) % count), center, is_gap);
    }
    for (at, edge) in shown.iter().enumerate() {
        draw_rank(&mut svg, place(at), edge);
    }
    if cut {
        let text = format!("and {} more ranks between the last and the first", edges.len() - count);
        svg.text((center.0, height - 6.0), &text, Font::new(12.0).dim().at(Anchor::Middle));
    }
    let ranks: Vec<String> = shown.iter().map(|edge| format!("rank {}", edge.from)).collect();
    let title = "Who waits for whom in a circle";
    svg.within_page(width, height, &format!("circle-{number}"), [title, &ranks.join(", then ")])
}

fn draw_rank(svg: &mut Svg, (x, y): (f64, f64), edge: &Edge) {
    let area = Area { left: x - BOX.0 / 2.0, top: y - BOX.1 / 2.0, width: BOX.0, height: BOX.1 };
    let rank = format!("rank {}", edge.from);
    let hover = format!("{rank} {}", edge.why);
    svg.bar(area, Tone::Paper, 1.0, &hover);
    svg.frame(area, Pen::new(Tone::Ink, 1.5));
    let room = BOX.0 - 12.0;
    let lines = [
        (rank, Font::new(13.0).bold()),
        (edge.call.clone(), Font::new(12.0)),
        (edge.site.as_ref().map(line).unwrap_or_default(), Font::new(11.0).dim()),
    ];
    for (at, (text, font)) in lines.iter().enumerate() {
        let font = font.at(Anchor::Middle);
        svg.text((x, area.top + 15.0 + 15.0 * at as f64), &font.cut(text, room), font);
    }
}

/// "halo.c:42", or what else is known.
fn line(site: &FrameName) -> String {
    match (&site.file, site.line) {
        (Some(file), Some(line)) => format!("{}:{line}", base_name(file)),
        _ => site.brief(),
    }
}

/// Bent outwards, so that two that wait for each other have two arrows.
fn arrow(svg: &mut Svg, from: (f64, f64), to: (f64, f64), center: (f64, f64), is_gap: bool) {
    const STEPS: usize = 24;
    let pen = Pen::new(if is_gap { Tone::Dim } else { Tone::Series(1) }, 2.0);
    if from == to {
        let (x, y) = (from.0 + BOX.0 / 2.0, from.1);
        let points = [(x, y - 10.0), (x + 26.0, y - 10.0), (x + 26.0, y + 10.0), (x, y + 10.0)];
        svg.path(&points, pen);
        return head(svg, (x + 12.0, y + 10.0), (x, y + 10.0), pen.tone);
    }
    let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
    let away = (middle.0 - center.0, middle.1 - center.1);
    let along = (to.0 - from.0, to.1 - from.1);
    let length = along.0.hypot(along.1).max(1.0);
    let side = (-along.1 / length * -40.0, along.0 / length * -40.0);
    let bend = if away.0.hypot(away.1) < 1.0 { side } else { (away.0 * 0.3, away.1 * 0.3) };
    let control = (middle.0 + bend.0, middle.1 + bend.1);
    let at = |t: f64| {
        let (a, b, c) = ((1.0 - t) * (1.0 - t), 2.0 * t * (1.0 - t), t * t);
        (a * from.0 + b * control.0 + c * to.0, a * from.1 + b * control.1 + c * to.1)
    };
    let is_outside = |point: &(f64, f64), of: (f64, f64)| {
        (point.0 - of.0).abs() > BOX.0 / 2.0 + 2.0 || (point.1 - of.1).abs() > BOX.1 / 2.0 + 2.0
    };
    let points: Vec<(f64, f64)> = (0..=STEPS * 4)
        .map(|step| at(step as f64 / (STEPS * 4) as f64))
        .filter(|point| is_outside(point, from) && is_outside(point, to))
        .collect();
    svg.path(&points, pen);
    if let [.., before, last] = &points[..] {
        head(svg, *before, *last, pen.tone);
    }
}

fn head(svg: &mut Svg, from: (f64, f64), tip: (f64, f64), tone: Tone) {
    let (x, y) = (tip.0 - from.0, tip.1 - from.1);
    let length = x.hypot(y).max(0.001);
    let (x, y) = (x / length * 10.0, y / length * 10.0);
    let left = (tip.0 - x - y * 0.5, tip.1 - y + x * 0.5);
    let right = (tip.0 - x + y * 0.5, tip.1 - y - x * 0.5);
    svg.polygon(&[tip, left, right], tone, 1.0);
}
