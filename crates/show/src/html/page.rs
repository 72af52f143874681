//! The frame of a page: what stands in its head, its sections in their order, and the script.

use anyhow::Result;
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use sha2::{Digest, Sha256};

use super::data::data;
use super::markup::{Document, Html};
use super::{
    advice, circumstances, head, injection, left_over, pictures, profile, ranks, sites, sizes,
    steps, style, thresholds, unexpected, Contents,
};

/// How every page begins, so that no other file is taken for one.
const BEGIN: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"generator\" content=\"lapscope\"/>\n";

const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("js/theme.js"),
    include_str!("js/sites.js"),
    include_str!("js/plane.js"),
    include_str!("js/heat.js"),
    include_str!("js/timeline.js"),
    include_str!("js/matrix.js")
);

/// Whether a file that begins so is a page that was written here.
pub fn is_page(begin: &[u8]) -> bool {
    begin.starts_with(BEGIN.as_bytes())
}

type Section = (&'static str, &'static str, fn(&mut Html, &mut Contents, Document<'_>));

const SECTIONS: [Section; 15] = [
    ("summary", "Summary", |html, contents, document| head::section(html, contents, document)),
    ("advice", "Advice", |html, contents, document| advice::section(html, contents, document)),
    ("heat", "Over time", |html, contents, _| pictures::heat(html, contents)),
    ("timeline", "In detail", |html, contents, _| pictures::timeline(html, contents)),
    ("matrix", "Who with whom", |html, contents, _| pictures::matrix(html, contents)),
    ("sizes", "Overlap by size", |html, contents, document| {
        sizes::section(html, contents, document)
    }),
    ("ranks", "Ranks", |html, contents, document| ranks::section(html, contents, document)),
    ("sites", "Call sites", sites::section),
    ("computation", "Computation", |html, contents, document| {
        profile::section(html, contents, document);
    }),
    ("thresholds", "Thresholds", |html, contents, document| {
        thresholds::section(html, contents, document);
    }),
    ("injection", "Injected tests", |html, contents, document| {
        injection::section(html, contents, document);
    }),
    ("steps", "Steps", |html, contents, document| steps::section(html, contents, document)),
    ("unexpected", "Unexpected messages", |html, contents, _| unexpected::section(html, contents)),
    ("left-over", "Left over", |html, contents, _| left_over::section(html, contents)),
    ("run", "The run", |html, contents, document| {
        circumstances::section(html, contents, document);
    }),
];

/// The whole file.
///
/// # Errors
/// The report cannot be a document: a program error.
pub fn page(contents: &mut Contents) -> Result<String> {
    let document = serde_json::to_value(&contents.report)?;
    let mut html = Html::default();
    html.within("header", &[], |html| {
        html.element("a", &[("class", "skip"), ("href", "#summary")], "To the contents");
        head::title(html, contents);
        head::problems(html, contents);
    });
    let names = SECTIONS.map(|(id, title, _)| (id, title));
    navigation(&mut html, &names);
    sections(&mut html, &names, |html, at| SECTIONS[at].2(html, contents, Document(&document)));
    html.within("footer", &[], |html| {
        html.text("Every number is that of lapscope report --top 0 --format json; a point at a number shows its exact value.");
    });
    Ok(framed(&contents.report.run, SCRIPT, &data(&contents.pictures), &html.finish()))
}

/// Links to sections, by their identifiers and titles.
pub fn navigation(html: &mut Html, names: &[(&str, &str)]) {
    html.within("nav", &[("aria-label", "Sections")], |html| {
        html.within("div", &[], |html| {
            for (id, title) in names {
                html.element("a", &[("href", &format!("#{id}"))], title);
            }
            html.element("button", &[("type", "button"), ("id", "theme")], "Dark");
        });
    });
}

/// Each section under its title; `write` fills that at a place in the list.
pub fn sections(html: &mut Html, names: &[(&str, &str)], mut write: impl FnMut(&mut Html, usize)) {
    html.within("main", &[], |html| {
        for (at, (id, title)) in names.iter().enumerate() {
            let label = format!("{id}-head");
            html.within("section", &[("id", id), ("aria-labelledby", &label)], |html| {
                html.element("h2", &[("id", &label)], title);
                write(html, at);
            });
        }
    });
}

/// Nothing is asked of anybody: the policy allows this style and this script, and no request at all.
pub fn framed(run: &str, script: &str, data: &str, body: &str) -> String {
    let mut head = Html::default();
    let hash = format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script)));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src {hash}; img-src data:; base-uri 'none'; form-action 'none'"
    );
    head.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)]);
    head.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    head.void("meta", &[("name", "referrer"), ("content", "no-referrer")]);
    head.element("title", &[], &format!("lapscope {run}"));
    let head = head.finish();
    let style = style::sheet();
    format!(
        "{BEGIN}{head}<style>\n{style}</style>\n</head>\n<body>\n{body}<script type=\"application/json\" id=\"data\">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    )
}
