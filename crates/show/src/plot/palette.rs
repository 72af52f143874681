//! Colours, markers and dashes. Series colours are after Okabe and Ito, who made them for colour-blind readers; on a dark page
//! they are lighter. None is alone: a marker or a dash says the same.

use std::fmt::{self, Display, Write};

/// What a colour is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Behind all: whoever shows the figure may have a page of the other brightness.
    Paper,
    /// Text.
    Ink,
    /// Text that is read last; axes.
    Dim,
    /// Lines that values are read against.
    Grid,
    Series(usize),
}

/// (print, dark page)
const SERIES: [(&str, &str); 6] = [
    ("#0072b2", "#56b4e9"),
    ("#c84b00", "#ff8a4c"),
    ("#00805c", "#3ddba8"),
    ("#a8478a", "#f0a0d0"),
    ("#a06a00", "#f0c040"),
    ("#5a5a5a", "#c0c0c0"),
];

impl Tone {
    /// On paper.
    pub fn print(self) -> &'static str {
        match self {
            Tone::Paper => "#ffffff",
            Tone::Ink => "#1a1a1a",
            Tone::Dim => "#5c5c5c",
            Tone::Grid => "#dcdcdc",
            Tone::Series(place) => SERIES[place % SERIES.len()].0,
        }
    }

    fn dark(self) -> &'static str {
        match self {
            Tone::Paper => "#0d1117",
            Tone::Ink => "#ededed",
            Tone::Dim => "#ababab",
            Tone::Grid => "#3c3c3c",
            Tone::Series(place) => SERIES[place % SERIES.len()].1,
        }
    }
}

/// The name of its class.
impl Display for Tone {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Tone::Paper => f.write_str("paper"),
            Tone::Ink => f.write_str("ink"),
            Tone::Dim => f.write_str("dim"),
            Tone::Grid => f.write_str("grid"),
            Tone::Series(place) => write!(f, "{}", place % SERIES.len()),
        }
    }
}

/// Every tone, and its colours on a light and on a dark page.
pub fn tones() -> Vec<(Tone, &'static str, &'static str)> {
    let tones = [Tone::Paper, Tone::Ink, Tone::Dim, Tone::Grid].into_iter();
    let tones = tones.chain((0..SERIES.len()).map(Tone::Series));
    tones.map(|tone| (tone, tone.print(), tone.dark())).collect()
}

/// Colours of a dark page, for fills (`f-`) and lines (`l-`).
pub fn style_sheet() -> String {
    let mut sheet = String::from("@media (prefers-color-scheme:dark){");
    for (tone, _, dark) in tones() {
        let _ = write!(sheet, ".f-{tone}{{fill:{dark}}}.l-{tone}{{stroke:{dark}}}");
    }
    sheet.push('}');
    sheet
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    Solid,
    Dashed,
    Dotted,
}

impl Dash {
    pub fn pattern(self) -> Option<&'static str> {
        match self {
            Dash::Solid => None,
            Dash::Dashed => Some("6 3"),
            Dash::Dotted => Some("2 2.5"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

impl Marker {
    /// For the series of that place.
    pub fn for_series(place: usize) -> Marker {
        use Marker::*;
        [Circle, Square, Triangle, Diamond, Cross][place % 5]
    }

    /// Around (0, 0).
    pub fn outline(self) -> Vec<(f64, f64)> {
        match self {
            Marker::Circle => (0..16).map(on_circle).collect(),
            Marker::Square => vec![(-2.9, -2.9), (2.9, -2.9), (2.9, 2.9), (-2.9, 2.9)],
            Marker::Triangle => vec![(0.0, -3.9), (3.8, 2.8), (-3.8, 2.8)],
            Marker::Diamond => vec![(0.0, -4.0), (3.6, 0.0), (0.0, 4.0), (-3.6, 0.0)],
            Marker::Cross => cross(),
        }
    }
}

fn on_circle(step: u32) -> (f64, f64) {
    let angle = f64::from(step) * std::f64::consts::TAU / 16.0;
    (3.2 * angle.cos(), 3.2 * angle.sin())
}

/// A plus sign that stands on two feet.
fn cross() -> Vec<(f64, f64)> {
    let quarter = [(0.0, -1.4), (2.3, -3.7), (3.7, -2.3)];
    let turn = |quarters: u32, (x, y): (f64, f64)| match quarters {
        0 => (x, y),
        1 => (-y, x),
        2 => (-x, -y),
        _ => (y, -x),
    };
    (0..4).flat_map(|quarters| quarter.map(|point| turn(quarters, point))).collect()
}
