//! Elements, each closed where it was opened. Names of elements and attributes are of this source, so that nothing else than
//! what was escaped comes from a run.

use serde_json::Value;

use super::escape::{cut, escape};
use lapscope_data::model::Nanos;
use lapscope_data::text::units::{self, MeanOfRanks};

pub type Attributes<'a> = &'a [(&'static str, &'a str)];

/// A line's end behind these would be seen as a blank.
const INLINE: [&str; 9] = ["data", "span", "a", "b", "strong", "code", "i", "pre", "canvas"];

/// A page under construction.
#[derive(Debug, Default)]
pub struct Html {
    out: String,
}

impl Html {
    /// An element, and what `fill` puts into it.
    pub fn within<R>(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        fill: impl FnOnce(&mut Html) -> R,
    ) -> R {
        self.open(tag, attributes, ">");
        let filled = fill(self);
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
        if !INLINE.contains(&tag) {
            self.out.push('\n');
        }
        filled
    }

    /// An element with text in it.
    pub fn element(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.within(tag, attributes, |html| html.text(text));
    }

    /// An element that can hold nothing.
    pub fn void(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.open(tag, attributes, "/>\n");
    }

    fn open(&mut self, tag: &'static str, attributes: Attributes<'_>, end: &str) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.out.push_str(&escape(value));
            self.out.push('"');
        }
        self.out.push_str(end);
    }

    /// Text, cut where it is very long.
    pub fn text(&mut self, text: &str) {
        self.out.push_str(&escape(&cut(text)));
    }

    /// Text of any length.
    pub fn whole_text(&mut self, text: &str) {
        self.out.push_str(&escape(text));
    }

    pub fn paragraph(&mut self, text: &str) {
        self.within("p", &[], |html| html.whole_text(text));
    }

    /// Says what a section cannot show, and why.
    pub fn missing(&mut self, why: &str) {
        self.within("p", &[("class", "missing")], |html| html.whole_text(why));
    }

    /// What this program has made or brings with it: drawings, whose writer escapes, style and script.
    pub fn own(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    pub fn len(&self) -> usize {
        self.out.len()
    }

    pub fn finish(self) -> String {
        self.out
    }
}

/// How a number is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Time,
    /// Of a time that is summed over ranks.
    MeanTime(MeanOfRanks),
    Bytes,
    Count,
    /// A fraction.
    Percent,
    /// So many times.
    Factor,
    Hertz,
}

impl Unit {
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Time => units::time(Nanos(value as i64)),
            Unit::MeanTime(mean) => mean.time(Nanos(value as i64)),
            Unit::Bytes => units::bytes(value.max(0.0) as u64),
            Unit::Count => units::count(value.max(0.0) as u64),
            Unit::Percent => units::percent(value),
            Unit::Factor => units::factor(value),
            Unit::Hertz => units::hertz(value),
        }
    }
}

/// The document whose numbers a page shows.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a>(pub &'a Value);

impl Document<'_> {
    /// How its times that are summed over ranks are shown.
    pub fn mean_time(&self) -> Unit {
        let ranks = self.0.get("ranks").and_then(Value::as_array).map_or(0, Vec::len);
        Unit::MeanTime(MeanOfRanks(ranks as u64))
    }

    /// A number of the document, where it has it.
    pub fn get(&self, pointer: &str) -> Option<f64> {
        self.0.pointer(pointer).and_then(Value::as_f64)
    }

    /// Writes a number with its place in the document and its exact value; nothing where there is none.
    pub fn write(&self, html: &mut Html, pointer: &str, unit: Unit) {
        let Some(number) = self.0.pointer(pointer).filter(|value| value.is_number()) else {
            return;
        };
        let shown = unit.show(number.as_f64().unwrap_or(0.0));
        let exact = number.to_string();
        let attributes = [("data-json", pointer), ("data-value", exact.as_str())];
        html.within("data", &[("value", &exact), attributes[0], attributes[1]], |html| {
            html.text(&shown);
        });
    }

    /// The same in a cell of a table, which is sorted by it.
    pub fn cell(&self, html: &mut Html, pointer: &str, unit: Unit) {
        let key = self.get(pointer).map_or_else(String::new, |value| value.to_string());
        html.within("td", &[("class", "n"), ("data-key", &key)], |html| {
            self.write(html, pointer, unit)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_say_where_they_are_from() {
        let value = serde_json::json!({ "a": { "b_ns": 3200, "c": null } });
        let (document, mut html) = (Document(&value), Html::default());
        document.write(&mut html, "/a/b_ns", Unit::Time);
        document.write(&mut html, "/a/c", Unit::Time);
        document.write(&mut html, "/a/d", Unit::Time);
        let expected =
            "<data value=\"3200\" data-json=\"/a/b_ns\" data-value=\"3200\">3.20 µs</data>";
        assert_eq!(html.finish(), expected);
    }

    #[test]
    fn what_is_within_is_text() {
        let mut html = Html::default();
        html.element("p", &[("title", "\"><b>")], "<i>");
        assert_eq!(html.finish(), "<p title=\"&quot;&gt;&lt;b&gt;\">&lt;i&gt;</p>\n");
    }
}
