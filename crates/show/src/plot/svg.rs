//! A small writer of SVG: what is on paper in presentation attributes, what a dark page wants in a style sheet.

use std::fmt::{Display, Write};

use lapscope_data::text::style::Style;

use super::palette::{self, Dash, Marker, Tone};

const FONTS: &str = "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif";

/// Width of an average character in shares of the font's size; of a wide font, as nobody knows which one is there.
const CHARACTER: f64 = 0.56;

/// An image under construction. Units are CSS pixels.
#[derive(Debug, Default)]
pub struct Svg {
    body: String,
}

/// How text is set.
#[derive(Debug, Clone, Copy)]
pub struct Font {
    pub size: f64,
    pub bold: bool,
    pub tone: Tone,
    pub anchor: Anchor,
}

/// Which end of a text its place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Pen {
    pub tone: Tone,
    pub width: f64,
    pub dash: Dash,
}

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

impl Font {
    pub fn new(size: f64) -> Font {
        Font { size, bold: false, tone: Tone::Ink, anchor: Anchor::Start }
    }

    pub fn bold(self) -> Font {
        Font { bold: true, ..self }
    }

    pub fn dim(self) -> Font {
        Font { tone: Tone::Dim, ..self }
    }

    pub fn at(self, anchor: Anchor) -> Font {
        Font { anchor, ..self }
    }

    /// About how wide a text is.
    pub fn width(self, text: &str) -> f64 {
        text.chars().count() as f64 * self.size * CHARACTER
    }

    /// As much of a text as `width` has room for.
    pub fn cut(self, text: &str, width: f64) -> String {
        Style::cut(text, (width / self.width("x")).max(1.0) as usize)
    }

    /// Lines of at most `width`, broken at blanks.
    pub fn wrap(self, text: &str, width: f64) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        // no-break blanks are none of these
        for word in text.split([' ', '\n', '\t']).filter(|word| !word.is_empty()) {
            match lines.last_mut() {
                Some(line) if self.width(line) + self.width(word) + self.size <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines
    }
}

impl Pen {
    pub fn new(tone: Tone, width: f64) -> Pen {
        Pen { tone, width, dash: Dash::Solid }
    }

    pub fn dashed(self, dash: Dash) -> Pen {
        Pen { dash, ..self }
    }

    fn attributes(self) -> String {
        let tone = self.tone;
        let mut attributes = format!(
            r#"fill="none" class="l-{tone}" stroke="{}" stroke-width="{}" stroke-linejoin="round""#,
            tone.print(),
            number(self.width)
        );
        if let Some(pattern) = self.dash.pattern() {
            let _ = write!(attributes, r#" stroke-dasharray="{pattern}""#);
        }
        attributes
    }
}

impl Svg {
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), pen: Pen) {
        self.path(&[from, to], pen);
    }

    /// A line through all points.
    pub fn path(&mut self, points: &[(f64, f64)], pen: Pen) {
        self.element(format_args!(r#"<path d="{}" {}/>"#, path(points), pen.attributes()));
    }

    /// What points enclose.
    pub fn polygon(&mut self, points: &[(f64, f64)], tone: Tone, opacity: f64) {
        let fill = fill(tone, opacity);
        self.element(format_args!(r#"<path d="{}Z" {fill}/>"#, path(points)));
    }

    /// A filled rectangle; `hover` is what a pointer on it is told.
    pub fn bar(&mut self, area: Area, tone: Tone, opacity: f64, hover: &str) {
        let (fill, place) = (fill(tone, opacity), rectangle(area));
        let edge = format!(r#"stroke="{}" class="l-{tone} f-{tone}""#, tone.print());
        let fill = fill.replace(&format!(r#"class="f-{tone}""#), &edge);
        let title = escape(hover);
        self.element(format_args!("<rect {place} {fill}><title>{title}</title></rect>"));
    }

    /// The edge of a rectangle.
    pub fn frame(&mut self, area: Area, pen: Pen) {
        self.element(format_args!("<rect {} {}/>", rectangle(area), pen.attributes()));
    }

    pub fn text(&mut self, place: (f64, f64), text: &str, font: Font) {
        let anchor = match font.anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let weight = if font.bold { r#" font-weight="600""# } else { "" };
        let (x, y, size) = (number(place.0), number(place.1), number(font.size));
        let fill = fill(font.tone, 1.0);
        let text = escape(text);
        self.element(format_args!(
            r#"<text x="{x}" y="{y}" font-size="{size}"{anchor}{weight} {fill}>{text}</text>"#
        ));
    }

    /// Markers around places; open ones have an edge alone.
    pub fn markers(&mut self, places: &[(f64, f64)], marker: Marker, tone: Tone, open: bool) {
        let outline = marker.outline();
        let around = |place: &(f64, f64)| {
            let points: Vec<_> = outline.iter().map(|(x, y)| (place.0 + x, place.1 + y)).collect();
            path(&points) + "Z"
        };
        let all: String = places.iter().map(around).collect();
        let paint = if open { Pen::new(tone, 1.4).attributes() } else { fill(tone, 1.0) };
        self.element(format_args!(r#"<path d="{all}" {paint}/>"#));
    }

    /// Begins a part with a name of its own for those who hear the image.
    pub fn begin(&mut self, title: &str) {
        self.element(format_args!(r#"<g><title>{}</title>"#, escape(title)));
    }

    pub fn end(&mut self) {
        self.element("</g>");
    }

    /// The whole file.
    pub fn document(self, width: f64, height: f64, title: &str, description: &str) -> String {
        let (width, height) = (number(width), number(height));
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" "#,
                r#"height="{height}" role="img" aria-labelledby="title desc" font-family="{fonts}">"#,
                "\n<title id=\"title\">{title}</title>\n<desc id=\"desc\">{description}</desc>\n",
                "<style>{style}</style>\n",
                r#"<rect x="0" y="0" width="{width}" height="{height}" {paper}/>"#,
                "\n{body}</svg>\n"
            ),
            width = width,
            height = height,
            fonts = FONTS,
            title = escape(title),
            description = escape(description),
            style = palette::style_sheet(),
            paper = fill(Tone::Paper, 1.0),
            body = self.body
        )
    }

    /// As a part of a page, whose style sheet colours it: `id` is in front of the names that the page has for its elements.
    pub fn within_page(
        self,
        width: f64,
        height: f64,
        id: &str,
        [title, text]: [&str; 2],
    ) -> String {
        let (width, height) = (number(width), number(height));
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" "#,
                r#"role="img" aria-labelledby="{id}-title {id}-text">"#,
                "\n<title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-text\">{text}</desc>\n{body}</svg>\n"
            ),
            width = width,
            height = height,
            id = id,
            title = escape(title),
            text = escape(text),
            body = self.body
        )
    }

    fn element(&mut self, element: impl Display) {
        let _ = writeln!(self.body, "{element}");
    }
}

fn fill(tone: Tone, opacity: f64) -> String {
    let mut fill = format!(r#"class="f-{tone}" fill="{}""#, tone.print());
    if opacity < 1.0 {
        let _ = write!(fill, r#" fill-opacity="{}""#, number(opacity));
    }
    fill
}

fn rectangle(area: Area) -> String {
    let Area { left, top, width, height } = area;
    let [x, y, width, height] = [left, top, width, height].map(number);
    format!(r#"x="{x}" y="{y}" width="{width}" height="{height}""#)
}

fn path(points: &[(f64, f64)]) -> String {
    let place = |(x, y): &(f64, f64)| format!("{} {}", number(*x), number(*y));
    format!("M{}", points.iter().map(place).collect::<Vec<_>>().join("L"))
}

/// At most two decimals, as few as it takes.
fn number(value: f64) -> String {
    debug_assert!(value.is_finite(), "{value} is no place");
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

/// Text as XML has it. What XML cannot have at all is left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(0.126), "0.13");
        assert_eq!(number(-0.001), "0");
        assert_eq!(number(100.0), "100");
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("a<b> & \"c\"\u{1}\n"), "a&lt;b&gt; &amp; &quot;c&quot; ");
    }

    #[test]
    fn text_is_broken_at_blanks() {
        let font = Font::new(10.0);
        assert_eq!(font.wrap("one two three", 60.0), ["one two", "three"]);
        assert!(font.wrap("", 60.0).is_empty());
    }
}
