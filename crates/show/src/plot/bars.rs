//! Bars in groups, in panels that share an axis of time along each row.

use super::palette::Tone;
use super::scale::{Quantity, Scale};
use super::sheet::{self, Heading, LegendLine, LEAST_WIDTH, MARGIN};
use super::svg::{Anchor, Area, Font, Pen, Svg};

#[derive(Debug, Clone)]
pub struct BarChart {
    pub heading: Heading,
    pub legend: Vec<LegendLine>,
    pub panels: Vec<BarPanel>,
}

#[derive(Debug, Clone)]
pub struct BarPanel {
    pub row: usize,
    pub column: usize,
    pub title: String,
    pub groups: Vec<BarGroup>,
}

/// Bars beside each other with one label of at most two lines.
#[derive(Debug, Clone)]
pub struct BarGroup {
    pub label: [String; 2],
    pub bars: Vec<Bar>,
}

/// Microseconds.
#[derive(Debug, Clone)]
pub struct Bar {
    pub value: f64,
    pub spread: Option<(f64, f64)>,
    pub tone: Tone,
    pub opacity: f64,
    pub hover: String,
}

const LEFT: f64 = 62.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
const HEIGHT: f64 = 210.0;
const GROUP: f64 = 78.0;
const SMALL: f64 = 11.0;
/// Above the highest bar, in shares of the area: room for its value.
const HEADROOM: f64 = 0.10;

pub fn draw(chart: &BarChart) -> String {
    let columns = chart.panels.iter().map(|panel| panel.column + 1).max().unwrap_or(1);
    let rows = chart.panels.iter().map(|panel| panel.row + 1).max().unwrap_or(1);
    let groups = chart.panels.iter().map(|panel| panel.groups.len()).max().unwrap_or(1);
    let least = (LEAST_WIDTH - 2.0 * MARGIN) / columns as f64 - LEFT - RIGHT;
    let plot_width = least.max(GROUP * groups as f64);
    let (wide, high) = (LEFT + plot_width + RIGHT, TOP + HEIGHT + BOTTOM);
    let width = 2.0 * MARGIN + wide * columns as f64;
    let mut svg = Svg::default();
    let top = sheet::head(&mut svg, &chart.heading, &chart.legend, width);
    for panel in &chart.panels {
        let of_row = chart.panels.iter().filter(|other| other.row == panel.row);
        let scale = Scale::new(Quantity::Time, of_row.flat_map(highest));
        let area = Area {
            left: MARGIN + LEFT + wide * panel.column as f64,
            top: top + TOP + high * panel.row as f64,
            width: plot_width,
            height: HEIGHT,
        };
        draw_panel(&mut svg, panel, &scale, area);
    }
    let height = top + high * rows as f64 + MARGIN - 8.0;
    svg.document(width, height, &chart.heading.title, &describe(chart))
}

fn highest(panel: &BarPanel) -> impl Iterator<Item = f64> + '_ {
    let bars = panel.groups.iter().flat_map(|group| &group.bars);
    bars.flat_map(|bar| [bar.value, bar.spread.map_or(0.0, |(_, high)| high)])
}

fn describe(chart: &BarChart) -> String {
    let values = |panel: &BarPanel| {
        let bars = panel.groups.iter().flat_map(|group| &group.bars);
        let bars: Vec<&str> = bars.map(|bar| bar.hover.as_str()).collect();
        format!("{}: {}", panel.title, bars.join(", "))
    };
    let panels: Vec<String> = chart.panels.iter().map(values).collect();
    format!("{} {}. {}", chart.heading.subtitle, panels.join("; "), chart.heading.facts)
}

fn draw_panel(svg: &mut Svg, panel: &BarPanel, scale: &Scale, area: Area) {
    let y = |value: f64| area.bottom() - scale.place(value) * area.height * (1.0 - HEADROOM);
    svg.begin(&panel.title);
    let font = Font::new(13.0).bold();
    let title = font.cut(&panel.title, area.width + RIGHT);
    svg.text((area.left, area.top - 12.0), &title, font);
    for tick in scale.ticks(6) {
        let y = y(tick.value);
        svg.line((area.left, y), (area.right(), y), Pen::new(Tone::Grid, 1.0));
        let font = Font::new(SMALL).dim().at(Anchor::End);
        svg.text((area.left - 7.0, y + 4.0), &tick.label, font);
    }
    let wide = area.width / panel.groups.len().max(1) as f64;
    for (place, group) in panel.groups.iter().enumerate() {
        let left = area.left + wide * place as f64;
        draw_group(svg, group, (left, wide, area.bottom()), (scale, y));
    }
    let foot = [(area.left, area.bottom()), (area.right(), area.bottom())];
    svg.path(&foot, Pen::new(Tone::Dim, 1.0));
    svg.end();
}

fn draw_group(
    svg: &mut Svg,
    group: &BarGroup,
    (left, wide, foot): (f64, f64, f64),
    (scale, y): (&Scale, impl Fn(f64) -> f64),
) {
    let each = wide * 0.72 / group.bars.len().max(1) as f64;
    for (place, bar) in group.bars.iter().enumerate() {
        let left = left + wide * 0.14 + each * place as f64;
        let top = y(bar.value);
        let area = Area { left: left + 1.0, top, width: each - 2.0, height: foot - top };
        svg.bar(area, bar.tone, bar.opacity, &bar.hover);
        let middle = left + each / 2.0;
        let mut above = top;
        if let Some((low, high)) = bar.spread {
            draw_whisker(svg, middle, y(low), y(high));
            above = above.min(y(high));
        }
        let font = Font { size: 9.5, ..Font::new(SMALL) }.at(Anchor::Middle);
        svg.text((middle, above - 4.0), &scale.bare(bar.value), font);
    }
    let font = Font::new(SMALL).at(Anchor::Middle);
    for (line, label) in group.label.iter().enumerate() {
        if !label.is_empty() {
            svg.text((left + wide / 2.0, foot + 16.0 + 14.0 * line as f64), label, font);
        }
    }
}

fn draw_whisker(svg: &mut Svg, x: f64, low: f64, high: f64) {
    let pen = Pen::new(Tone::Ink, 1.2);
    svg.line((x, low), (x, high), pen);
    svg.line((x - 4.0, high), (x + 4.0, high), pen);
    svg.line((x - 4.0, low), (x + 4.0, low), pen);
}
