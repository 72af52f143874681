//! Lanes of processes with a bar for each thing that they do.

use crate::results::Segment;

use super::super::panels;
use super::LanePanel;
use lapscope_show::plot::palette::Tone;
use lapscope_show::plot::scale::{self, Quantity, Scale};
use lapscope_show::plot::sheet::{self, Heading, LegendLine, Sample, MARGIN};
use lapscope_show::plot::svg::{Anchor, Area, Font, Pen, Svg};

pub const COMPUTE: &str = "compute";

const WIDTH: f64 = 920.0;
const LEFT: f64 = 92.0;
/// Room for the label behind the last bar.
const RIGHT: f64 = 96.0;
const BAR: f64 = 24.0;
/// Above a bar: T0, T3.
const MARKS: f64 = 17.0;
const CASE: f64 = 36.0 + 2.0 * (BAR + MARKS);
const SMALL: Font = Font { size: 11.0, bold: false, tone: Tone::Ink, anchor: Anchor::Start };

/// What a bar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BarKind {
    Compute,
    Post,
    Wait,
    Test,
    Other,
}

impl BarKind {
    const ALL: [BarKind; 5] =
        [BarKind::Compute, BarKind::Post, BarKind::Wait, BarKind::Test, BarKind::Other];

    fn from_name(what: &str) -> BarKind {
        match what.strip_prefix("MPI_").unwrap_or(what) {
            COMPUTE => BarKind::Compute,
            call if call.starts_with("Wait") => BarKind::Wait,
            call if call.starts_with("Test") => BarKind::Test,
            call if call.starts_with('I') => BarKind::Post,
            _ => BarKind::Other,
        }
    }

    fn words(self) -> &'static str {
        match self {
            BarKind::Compute => "computation",
            BarKind::Post => "post (Isend, Irecv)",
            BarKind::Wait => "wait",
            BarKind::Test => "test",
            BarKind::Other => "other MPI calls",
        }
    }

    fn look(self) -> (Tone, f64) {
        match self {
            BarKind::Compute => (Tone::Series(5), 0.14),
            BarKind::Post => (Tone::Series(0), 0.8),
            BarKind::Wait => (Tone::Series(1), 0.45),
            BarKind::Test => (Tone::Series(2), 0.8),
            BarKind::Other => (Tone::Series(3), 0.5),
        }
    }
}

/// The time axis in pixels.
struct Axis {
    scale: Scale,
    top: f64,
    bottom: f64,
}

impl Axis {
    fn x(&self, ns: i64) -> f64 {
        self.us(ns as f64 / 1e3)
    }

    fn us(&self, us: f64) -> f64 {
        MARGIN + LEFT + self.scale.place(us) * (WIDTH - 2.0 * MARGIN - LEFT - RIGHT)
    }
}

/// All cases below each other, on the same axis of time.
pub fn draw(heading: &Heading, cases: &[LanePanel]) -> String {
    let mut svg = Svg::default();
    let segments = || cases.iter().flat_map(|case| &case.segments);
    let legend = legend(segments().copied());
    let top = sheet::head(&mut svg, heading, &legend, WIDTH) + 4.0;
    let ends = segments().flat_map(|segment| [segment.begin_ns, segment.end_ns]);
    let scale = Scale::new(Quantity::Time, ends.map(|ns| ns as f64 / 1e3));
    let heights: Vec<f64> = cases.iter().map(height).collect();
    let bottom = top + heights.iter().sum::<f64>();
    let axis = Axis { scale, top, bottom };
    draw_axis(&mut svg, &axis);
    let mut y = top;
    for (case, height) in cases.iter().zip(&heights) {
        draw_case(&mut svg, case, &axis, y);
        y += height;
    }
    svg.document(WIDTH, bottom + 46.0, &heading.title, &describe(heading, cases))
}

fn ranks(case: &LanePanel) -> Vec<u32> {
    panels::distinct(case.segments.iter().map(|segment| segment.rank))
}

fn height(case: &LanePanel) -> f64 {
    CASE + (ranks(case).len() as f64 - 2.0) * (BAR + MARKS)
}

fn describe(heading: &Heading, cases: &[LanePanel]) -> String {
    let titles: Vec<&str> = cases.iter().map(|case| case.title.as_str()).collect();
    format!("{} {}. {}", heading.subtitle, titles.join("; "), heading.facts)
}

fn legend<'a>(segments: impl Iterator<Item = &'a Segment>) -> Vec<LegendLine> {
    let kinds = panels::distinct(segments.map(|segment| BarKind::from_name(&segment.what)));
    let key = |kind: BarKind| {
        let (tone, opacity) = kind.look();
        LegendLine { label: kind.words().to_owned(), sample: Sample::Bar(tone, opacity) }
    };
    BarKind::ALL.into_iter().filter(|kind| kinds.contains(kind)).map(key).collect()
}

fn draw_axis(svg: &mut Svg, axis: &Axis) {
    let font = SMALL.dim().at(Anchor::Middle);
    for tick in axis.scale.ticks(8) {
        let x = axis.us(tick.value);
        svg.line((x, axis.top), (x, axis.bottom), Pen::new(Tone::Grid, 1.0));
        svg.text((x, axis.bottom + 16.0), &tick.label, font);
    }
    let (left, right) = (MARGIN + LEFT, WIDTH - MARGIN - RIGHT);
    svg.line((left, axis.bottom), (right, axis.bottom), Pen::new(Tone::Dim, 1.0));
    let middle = (left + right) / 2.0;
    svg.text((middle, axis.bottom + 34.0), "time since the first post", font);
}

fn draw_case(svg: &mut Svg, case: &LanePanel, axis: &Axis, top: f64) {
    svg.begin(&case.title);
    svg.text((MARGIN, top + 16.0), &case.title, Font::new(13.0).bold());
    let mut y = top + 22.0;
    for rank in ranks(case) {
        let mut segments: Vec<&Segment> =
            case.segments.iter().filter(|segment| segment.rank == rank).copied().collect();
        segments.sort_by_key(|segment| (segment.begin_ns, segment.end_ns));
        let label = format!("process {rank}");
        svg.text((MARGIN, y + MARKS + BAR * 0.5 + 4.0), &label, SMALL.dim());
        draw_lane(svg, &segments, axis, y + MARKS);
        y += MARKS + BAR;
    }
    svg.end();
}

fn draw_lane(svg: &mut Svg, segments: &[&Segment], axis: &Axis, top: f64) {
    for (place, segment) in segments.iter().enumerate() {
        let (tone, opacity) = BarKind::from_name(&segment.what).look();
        let (left, right) = (axis.x(segment.begin_ns), axis.x(segment.end_ns));
        // short calls are seen all the same
        let area = Area { left, top, width: (right - left).max(1.5), height: BAR };
        svg.bar(area, tone, opacity, &words(segment));
        label(svg, segment, area, place + 1 == segments.len());
    }
    let in_mpi =
        || segments.iter().filter(|segment| BarKind::from_name(&segment.what) != BarKind::Compute);
    let first = in_mpi().find(|segment| BarKind::from_name(&segment.what) == BarKind::Post);
    // the last of several waits in a row is not when waiting began
    let waits = |segment: &&&Segment| BarKind::from_name(&segment.what) == BarKind::Wait;
    let computed = segments.iter().rposition(|segment| segment.what == COMPUTE);
    let last = segments[computed.map_or(0, |place| place + 1)..].iter().find(waits);
    for (name, segment) in [("T0", first), ("T3", last)] {
        if let Some(segment) = segment {
            mark(svg, axis.x(segment.begin_ns), top, name);
        }
    }
    if let Some(test) =
        segments.iter().find(|segment| BarKind::from_name(&segment.what) == BarKind::Test)
    {
        mark(svg, axis.x(test.begin_ns), top, short(&test.what));
    }
}

/// "Wait 2.1 ms".
fn words(segment: &Segment) -> String {
    let took = scale::time((segment.end_ns - segment.begin_ns) as f64 / 1e3);
    format!("{} {took}", short(&segment.what))
}

fn short(what: &str) -> &str {
    what.strip_prefix("MPI_").unwrap_or(what)
}

/// In its bar, or behind it when it is the last of its lane.
fn label(svg: &mut Svg, segment: &Segment, area: Area, is_last: bool) {
    let words = words(segment);
    let y = area.top + BAR / 2.0 + 4.0;
    if SMALL.width(&words) + 6.0 <= area.width {
        svg.text((area.left + area.width / 2.0, y), &words, SMALL.at(Anchor::Middle));
    } else if is_last && area.right() + 4.0 + SMALL.width(&words) <= WIDTH - MARGIN {
        svg.text((area.right() + 4.0, y), &words, SMALL);
    }
}

fn mark(svg: &mut Svg, x: f64, top: f64, name: &str) {
    svg.line((x, top - 4.0), (x, top), Pen::new(Tone::Ink, 1.2));
    let font = Font { size: 10.0, ..SMALL };
    svg.text((x, top - 5.0), name, font.at(Anchor::Middle));
}
