//! Panels side by side: lines, points and bars over axes that they share.

use super::palette::Tone;
use super::scale::{Quantity, Scale};
use super::sheet::{self, Heading, LegendLine, Look, LEAST_WIDTH, MARGIN};
use super::svg::{Anchor, Area, Font, Pen, Svg};

/// A figure of panels.
#[derive(Debug, Clone)]
pub struct Chart {
    pub heading: Heading,
    pub legend: Vec<LegendLine>,
    pub x: Axis,
    pub y: Axis,
    /// Whether the y axis has room for all that the x axis has: values of both are compared.
    pub y_spans_x: bool,
    /// Size of the area in which a panel's lines are.
    pub size: (f64, f64),
    pub panels: Vec<Panel>,
}

#[derive(Debug, Clone)]
pub struct Axis {
    pub label: String,
    pub quantity: Quantity,
}

#[derive(Debug, Clone, Default)]
pub struct Panel {
    pub row: usize,
    pub column: usize,
    pub title: String,
    /// Instead of that of the chart.
    pub y_label: Option<String>,
    /// Likewise; then other panels do not share it.
    pub x: Option<Axis>,
    pub series: Vec<Series>,
    /// Drawn below the series, in part of the axes that these span.
    pub guides: Vec<Guide>,
}

#[derive(Debug, Clone)]
pub struct Series {
    pub label: String,
    pub look: Look,
    pub points: Vec<Point>,
}

pub type PlottedFunction = fn(f64) -> f64;

/// A line to read others against.
#[derive(Debug, Clone)]
pub struct Guide {
    pub look: Look,
    pub function: PlottedFunction,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// Quartiles.
    pub spread: Option<(f64, f64)>,
}

/// Between a panel's edges and its lines.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 46.0;
/// Points are that far from the frame.
const INSET: f64 = 8.0;
const TICK: Font = Font { size: 11.0, bold: false, tone: Tone::Dim, anchor: Anchor::Middle };

impl Axis {
    pub fn new(quantity: Quantity, label: &str) -> Axis {
        Axis { quantity, label: label.to_owned() }
    }
}

/// Scales of a panel in its area.
struct Plane {
    area: Area,
    x: Scale,
    y: Scale,
}

impl Plane {
    fn x(&self, value: f64) -> f64 {
        self.area.left + INSET + self.x.place(value) * (self.area.width - 2.0 * INSET)
    }

    fn y(&self, value: f64) -> f64 {
        self.area.bottom() - INSET - self.y.place(value) * (self.area.height - 2.0 * INSET)
    }

    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x(x), self.y(y))
    }

    fn takes(&self, point: &Point) -> bool {
        self.x.takes(point.x) && self.y.takes(point.y)
    }
}

/// The chart as a file.
pub fn draw(chart: &Chart) -> String {
    let (svg, width, height) = lay_out(chart);
    svg.document(width, height, &chart.heading.title, &describe(chart))
}

/// From left to right.
pub fn sort(points: &mut [Point]) {
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
}

/// A legend of all series, each once, in the order of their first panel.
pub fn legend(panels: &[Panel]) -> Vec<LegendLine> {
    let mut legend: Vec<LegendLine> = Vec::new();
    for series in panels.iter().flat_map(|panel| &panel.series) {
        let key = LegendLine::line(series.label.as_str(), series.look);
        if !legend.contains(&key) {
            legend.push(key);
        }
    }
    legend
}

/// The chart as a part of a page that has its title.
pub fn draw_within_page(chart: &Chart, id: &str) -> String {
    let heading = Heading::default();
    let (svg, width, height) = lay_out(&Chart { heading, ..chart.clone() });
    svg.within_page(width, height, id, [&chart.heading.title, &describe(chart)])
}

fn lay_out(chart: &Chart) -> (Svg, f64, f64) {
    let columns = chart.panels.iter().map(|panel| panel.column + 1).max().unwrap_or(1);
    let rows = chart.panels.iter().map(|panel| panel.row + 1).max().unwrap_or(1);
    let least = (LEAST_WIDTH - 2.0 * MARGIN) / columns as f64 - LEFT - RIGHT;
    let (plot_width, plot_height) = (chart.size.0.max(least), chart.size.1);
    let (wide, high) = (LEFT + plot_width + RIGHT, TOP + plot_height + BOTTOM);
    let width = 2.0 * MARGIN + wide * columns as f64;
    let mut svg = Svg::default();
    let top = sheet::head(&mut svg, &chart.heading, &chart.legend, width);
    let xs = chart.panels.iter().flat_map(Panel::xs);
    let x = Scale::new(chart.x.quantity, xs);
    for panel in &chart.panels {
        let of_row = chart.panels.iter().filter(|other| other.row == panel.row);
        let compared = chart.panels.iter().filter(|_| chart.y_spans_x).flat_map(Panel::xs);
        let compared = compared.filter(|x| *x > 0.0);
        let y = Scale::new(chart.y.quantity, of_row.flat_map(Panel::ys).chain(compared));
        let area = Area {
            left: MARGIN + LEFT + wide * panel.column as f64,
            top: top + TOP + high * panel.row as f64,
            width: plot_width,
            height: plot_height,
        };
        let own = panel.x.as_ref().map(|axis| Scale::new(axis.quantity, panel.xs()));
        let plane = Plane { area, x: own.unwrap_or_else(|| x.clone()), y };
        draw_panel(&mut svg, chart, panel, &plane);
    }
    (svg, width, top + high * rows as f64 + MARGIN - 8.0)
}

/// For those who hear it: what is drawn in which panels.
fn describe(chart: &Chart) -> String {
    let panels: Vec<&str> = chart.panels.iter().map(|panel| panel.title.as_str()).collect();
    let mut x_labels: Vec<&str> = chart.panels.iter().map(|panel| panel.x_label(chart)).collect();
    x_labels.dedup();
    let keys: Vec<&str> = chart.legend.iter().map(|key| key.label.as_str()).collect();
    format!(
        "{} {} against {}. Panels: {}. Lines: {}. {}",
        chart.heading.subtitle,
        chart.y.label,
        x_labels.join(", "),
        panels.join("; "),
        keys.join("; "),
        chart.heading.facts
    )
}

impl Panel {
    fn x_label<'a>(&'a self, chart: &'a Chart) -> &'a str {
        &self.x.as_ref().unwrap_or(&chart.x).label
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points)
    }

    fn xs(&self) -> impl Iterator<Item = f64> + '_ {
        self.points().map(|point| point.x)
    }

    fn ys(&self) -> impl Iterator<Item = f64> + '_ {
        self.points().map(|point| point.y)
    }
}

fn draw_panel(svg: &mut Svg, chart: &Chart, panel: &Panel, plane: &Plane) {
    let area = plane.area;
    svg.begin(&panel.title);
    let font = Font::new(13.0).bold();
    let title = font.cut(&panel.title, area.width + RIGHT);
    svg.text((area.left, area.top - 28.0), &title, font);
    let y_label = panel.y_label.as_ref().unwrap_or(&chart.y.label);
    svg.text((area.left, area.top - 9.0), y_label, Font::new(11.0).dim());
    let below = (area.left + area.width / 2.0, area.bottom() + 34.0);
    svg.text(below, panel.x_label(chart), TICK);
    draw_grid(svg, plane);
    for guide in &panel.guides {
        draw_guide(svg, guide, plane);
    }
    for series in &panel.series {
        draw_spread(svg, series, plane);
    }
    for series in &panel.series {
        draw_series(svg, series, plane);
    }
    svg.end();
}

fn draw_grid(svg: &mut Svg, plane: &Plane) {
    let area = plane.area;
    let grid = Pen::new(Tone::Grid, 1.0);
    for tick in plane.x.ticks((area.width / 52.0) as usize) {
        let x = plane.x(tick.value);
        svg.line((x, area.top), (x, area.bottom()), grid);
        svg.text((x, area.bottom() + 16.0), &tick.label, TICK);
    }
    for tick in plane.y.ticks((area.height / 30.0) as usize) {
        let y = plane.y(tick.value);
        svg.line((area.left, y), (area.right(), y), grid);
        svg.text((area.left - 7.0, y + 4.0), &tick.label, TICK.at(Anchor::End));
    }
    svg.frame(area, Pen::new(Tone::Dim, 1.0));
}

/// A function is followed in small steps, as it is no straight line on every axis.
fn draw_guide(svg: &mut Svg, guide: &Guide, plane: &Plane) {
    const STEPS: usize = 96;
    let value = |step: usize| plane.x.value(step as f64 / STEPS as f64);
    let points = (0..=STEPS).map(value).map(|x| (x, (guide.function)(x)));
    let points: Vec<_> = points.filter(|(_, y)| plane.y.contains(*y)).collect();
    let points: Vec<_> = points.into_iter().map(|(x, y)| plane.place(x, y)).collect();
    if points.len() > 1 {
        svg.path(&points, guide.look.pen());
    }
}

/// Quartiles: a band below the line, or whiskers where there is no line.
fn draw_spread(svg: &mut Svg, series: &Series, plane: &Plane) {
    let points = series.points.iter().filter(|point| plane.takes(point));
    let ends = points.filter_map(|point| point.spread.map(|(low, high)| (point.x, low, high)));
    let ends: Vec<_> = ends
        .filter(|(_, low, high)| plane.y.takes(*low) && plane.y.takes(*high))
        .map(|(x, low, high)| (plane.x(x), plane.y(low), plane.y(high)))
        .collect();
    if ends.len() > 1 && series.look.has_line {
        let above = ends.iter().map(|(x, _, high)| (*x, *high));
        let below = ends.iter().rev().map(|(x, low, _)| (*x, *low));
        svg.polygon(&above.chain(below).collect::<Vec<_>>(), series.look.tone, 0.14);
    } else {
        for (x, low, high) in ends {
            svg.line((x, low), (x, high), Pen::new(series.look.tone, 1.2));
        }
    }
}

fn draw_series(svg: &mut Svg, series: &Series, plane: &Plane) {
    let look = series.look;
    let points = series.points.iter().filter(|point| plane.takes(point));
    let places: Vec<_> = points.map(|point| plane.place(point.x, point.y)).collect();
    if look.has_line && places.len() > 1 {
        svg.path(&places, look.pen());
    }
    if let Some(marker) = look.marker {
        svg.markers(&places, marker, look.tone, look.is_open);
    }
}
