//! What is above the panels of every figure: title, how to read it, where it is from, and the legend.

use super::palette::{Dash, Marker, Tone};
use super::svg::{Area, Font, Pen, Svg};

/// Around everything.
pub const MARGIN: f64 = 16.0;
/// No figure is narrower: titles need room.
pub const LEAST_WIDTH: f64 = 640.0;

const TITLE: f64 = 19.0;
const SUBTITLE: f64 = 13.0;
const SMALL: f64 = 11.0;
const SWATCH: f64 = 30.0;

#[derive(Debug, Clone, Default)]
pub struct Heading {
    pub title: String,
    /// What is drawn, and how to read it.
    pub subtitle: String,
    /// When, on which machine, after which publication.
    pub facts: String,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    pub tone: Tone,
    pub dash: Dash,
    pub marker: Option<Marker>,
    /// Markers are edges alone.
    pub is_open: bool,
    pub has_line: bool,
}

/// What a legend shows beside a label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sample {
    Line(Look),
    Bar(Tone, f64),
}

/// A line of the legend.
#[derive(Debug, Clone, PartialEq)]
pub struct LegendLine {
    pub label: String,
    pub sample: Sample,
}

impl Look {
    /// A line with markers, told from others by colour and marker.
    pub fn series(place: usize) -> Look {
        Look {
            tone: Tone::Series(place),
            dash: Dash::Solid,
            marker: Some(Marker::for_series(place)),
            is_open: false,
            has_line: true,
        }
    }

    /// A thin line to read others against.
    pub fn guide(dash: Dash) -> Look {
        Look { tone: Tone::Dim, dash, marker: None, is_open: false, has_line: true }
    }

    /// A line that stands for all of its dash.
    pub fn plain(dash: Dash) -> Look {
        Look { tone: Tone::Ink, ..Look::guide(dash) }
    }

    pub fn dashed(self, dash: Dash) -> Look {
        Look { dash, ..self }
    }

    pub fn open(self) -> Look {
        Look { is_open: true, ..self }
    }

    pub fn points(self) -> Look {
        Look { has_line: false, ..self }
    }

    pub fn pen(self) -> Pen {
        let width = if self.tone == Tone::Dim { 1.2 } else { 1.8 };
        Pen::new(self.tone, width).dashed(self.dash)
    }
}

impl LegendLine {
    pub fn line(label: impl Into<String>, look: Look) -> LegendLine {
        LegendLine { label: label.into(), sample: Sample::Line(look) }
    }
}

/// Draws all that; returns where panels may begin.
pub fn head(svg: &mut Svg, heading: &Heading, legend: &[LegendLine], width: f64) -> f64 {
    let room = width - 2.0 * MARGIN;
    let mut y = MARGIN;
    let parts = [
        (&heading.title, Font::new(TITLE).bold()),
        (&heading.subtitle, Font::new(SUBTITLE)),
        (&heading.facts, Font::new(SMALL).dim()),
    ];
    for (text, font) in parts {
        for line in font.wrap(text, room) {
            y += font.size * 1.3;
            svg.text((MARGIN, y - font.size * 0.3), &line, font);
        }
        y += 3.0;
    }
    draw_legend(svg, legend, y + 6.0, room)
}

fn draw_legend(svg: &mut Svg, legend: &[LegendLine], top: f64, room: f64) -> f64 {
    if legend.is_empty() {
        return top;
    }
    let font = Font::new(12.0);
    let (mut x, mut y) = (MARGIN, top + 10.0);
    for key in legend {
        let width = SWATCH + 6.0 + font.width(&key.label) + 12.0;
        if x > MARGIN && x + width > MARGIN + room {
            (x, y) = (MARGIN, y + 18.0);
        }
        draw_sample(svg, key.sample, (x, y));
        svg.text((x + SWATCH + 6.0, y + 4.0), &key.label, font);
        x += width;
    }
    y + 14.0
}

fn draw_sample(svg: &mut Svg, sample: Sample, (x, y): (f64, f64)) {
    match sample {
        Sample::Line(look) => {
            if look.has_line {
                svg.line((x, y), (x + SWATCH, y), look.pen());
            }
            if let Some(marker) = look.marker {
                svg.markers(&[(x + SWATCH / 2.0, y)], marker, look.tone, look.is_open);
            }
        }
        Sample::Bar(tone, opacity) => {
            let area = Area { left: x + 4.0, top: y - 6.0, width: SWATCH - 8.0, height: 12.0 };
            svg.bar(area, tone, opacity, "");
        }
    }
}
