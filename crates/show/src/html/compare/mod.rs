//! Two runs as one page: what is not the same of them, what that changed, where, and when. Numbers are those of `lapscope diff`.
//!
//! Two heat maps beside each other are compared by eye, so a colour means the same share on both, and a width the same
//! time: the scales are those of both runs together. Call paths and source lines are left to the pages of each run: a
//! path has no counterpart in the other.

mod circumstances;
mod head;
mod pictures;
mod sites;
mod sizes;
mod steps;
mod times;

use anyhow::Result;

use super::data::pair;
use super::markup::{Document, Html};
use super::page::{framed, navigation, sections};
use lapscope_data::db::Configuration;
use lapscope_report::diff::{Diff, DiffSide};
use lapscope_report::pictures::Pictures;
use lapscope_report::pipeline::pictures::{build, Pictured, TimelineChoice};
use lapscope_report::pipeline::OpenRun;
use lapscope_report::report::{Report, ReportOptions};

const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("../js/theme.js"),
    include_str!("../js/sites.js"),
    include_str!("../js/plane.js"),
    include_str!("../js/heat.js"),
    include_str!("../js/pair.js")
);

/// One of the two.
pub struct ComparedRun {
    pub report: Report,
    pub pictures: Pictures,
    pub configuration: Configuration,
}

/// What a page of two runs is made of.
pub struct Compared {
    a: ComparedRun,
    b: ComparedRun,
    diff: Diff,
    /// Call sites that have a row.
    top: usize,
}

impl ComparedRun {
    /// Reads a run and has it analysed.
    ///
    /// # Errors
    /// No file of it can be read.
    pub fn read(open: &mut OpenRun, configuration: Configuration) -> Result<ComparedRun> {
        let options = ReportOptions::default();
        let Pictured { report, pictures, .. } =
            build(open, &[], options, &TimelineChoice::default())?;
        Ok(ComparedRun { report, pictures, configuration })
    }
}

impl Compared {
    pub fn new(a: ComparedRun, b: ComparedRun, top: usize) -> Compared {
        let side = |run: ComparedRun| {
            let ComparedRun { report, pictures, configuration } = run;
            (DiffSide { report, configuration }, pictures)
        };
        let ((a, pictures_a), (b, pictures_b)) = (side(a), side(b));
        let diff = Diff::new(&a, &b, 0);
        let run = |side: DiffSide, pictures: Pictures| {
            let DiffSide { report, configuration } = side;
            ComparedRun { report, pictures, configuration }
        };
        Compared { a: run(a, pictures_a), b: run(b, pictures_b), diff, top }
    }

    fn runs(&self) -> [(&'static str, &ComparedRun); 2] {
        [("A", &self.a), ("B", &self.b)]
    }
}

type CompareSection = (&'static str, &'static str, fn(&mut Html, &Compared, Document<'_>));

const SECTIONS: [CompareSection; 6] = [
    ("summary", "What changed", times::section),
    ("settings", "What is not the same", circumstances::section),
    ("steps", "Steps", steps::section),
    ("sites", "Call sites", sites::section),
    ("heat", "Over time", |html, compared, _| pictures::section(html, compared)),
    ("sizes", "Overlap by size", |html, compared, _| sizes::section(html, compared)),
];

/// The whole file.
///
/// # Errors
/// The comparison cannot be a document: a program error.
pub fn page(compared: &Compared) -> Result<String> {
    let document = serde_json::to_value(&compared.diff)?;
    let names = SECTIONS.map(|(id, title, _)| (id, title));
    let mut html = Html::default();
    html.within("header", &[], |html| {
        html.element("a", &[("class", "skip"), ("href", "#summary")], "To the contents");
        head::section(html, compared);
    });
    navigation(&mut html, &names);
    sections(&mut html, &names, |html, at| SECTIONS[at].2(html, compared, Document(&document)));
    html.within("footer", &[], |html| {
        html.text("Differences are B minus A. Two runs of the same program differ too: repeat both before believing small ones. ");
        html.text("Numbers are those of lapscope diff --top 0 --format json; a point at a number shows its exact value.");
    });
    let title = format!("{} and {}", compared.diff.a.run, compared.diff.b.run);
    let data = pair(&compared.a.pictures, &compared.b.pictures);
    Ok(framed(&title, SCRIPT, &data, &html.finish()))
}

/// "+3.20 ms", "−12 %": with the sign that shows the direction.
fn signed(value: f64, show: impl Fn(f64) -> String) -> String {
    let sign = match value {
        value if value > 0.0 => "+",
        value if value < 0.0 => "−",
        _ => "",
    };
    format!("{sign}{}", show(value.abs()))
}
