//! `lapscope check` as text, as JUnit XML, and as a badge.

use std::io::{self, Write};

use super::table::{Align, Cell, Table};
use crate::format::rows::{text, ExportColumn};
use crate::html::escape::escape;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::time;
use lapscope_data::text::visible::visible;
use lapscope_report::check::{Check, CheckRow, Verdict};

/// Writes all of it.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, check: &Check, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.headed("lapscope check", &check.runs.join(", ")))?;
    if !check.against.is_empty() {
        writeln!(out, "{}", style.wrap(&check.against.join(", "), "against ", "  "))?;
    }
    for note in &check.notes {
        writeln!(out, "{}", style.warning(note))?;
    }
    writeln!(out)?;
    for row in &check.checks {
        let label = format!("{:<12}", word(row.verdict));
        writeln!(out, "{}", style.labelled(&label, &format!("{}.", row.sentence)))?;
    }
    if let Some(sites) = check.sites.as_ref().filter(|sites| !sites.is_empty()) {
        writeln!(
            out,
            "\n{}",
            style.headed("SITES", "where time inside MPI changed most; mean over ranks and runs")
        )?;
        let mut table = Table::new(&[
            ("difference", Align::Right),
            ("before", Align::Right),
            ("after", Align::Right),
            ("call site", Align::Left),
        ]);
        for site in sites {
            let of = |ns: Option<_>| ns.map_or_else(|| "-".to_owned(), time);
            let row =
                [time(site.difference_ns), of(site.before_ns), of(site.after_ns), site.place()];
            table.row(row.map(Cell::from).into(), None);
        }
        table.write(out, style)?;
    }
    if let Some(advice) = &check.advice {
        writeln!(out, "\n{}", style.bold("ADVICE"))?;
        writeln!(out, "{}", style.wrap(&advice.sentence, "  ", "  "))?;
    }
    writeln!(out, "\n{}", style.bold(answer(check.verdict)))
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::FallsShort => "FALLS SHORT",
        Verdict::NotJudged => "not judged",
    }
}

fn answer(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "All of it holds.",
        Verdict::FallsShort => "It falls short.",
        Verdict::NotJudged => "It cannot be judged.",
    }
}

/// Columns of what was checked.
pub fn columns() -> Vec<ExportColumn<CheckRow>> {
    vec![
        ExportColumn::new("verdict", |row: &CheckRow| text(row.verdict)),
        ExportColumn::new("what", |row: &CheckRow| text(&row.what)),
        ExportColumn::new("kind", |row: &CheckRow| text(row.kind)),
        ExportColumn::new("value", |row: &CheckRow| text(row.value)),
        ExportColumn::new("limit", |row: &CheckRow| text(row.limit)),
        ExportColumn::new("change", |row: &CheckRow| text(row.change.map(|it| it.estimate))),
        ExportColumn::new("change_low", |row: &CheckRow| text(row.change.map(|it| it.low))),
        ExportColumn::new("change_high", |row: &CheckRow| text(row.change.map(|it| it.high))),
        ExportColumn::new("sentence", |row: &CheckRow| text(&row.sentence)),
    ]
}

/// As systems for CI read results of tests: what falls short failed, what cannot be judged was skipped.
pub fn junit(check: &Check) -> String {
    let count = |verdict| check.checks.iter().filter(|row| row.verdict == verdict).count();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"lapscope check\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n",
        check.checks.len(),
        count(Verdict::FallsShort),
        count(Verdict::NotJudged)
    );
    for row in &check.checks {
        let why = xml_text(&row.sentence);
        let kind = xml_text(&text(row.kind));
        xml += &format!("  <testcase classname=\"{kind}\" name=\"{}\">", xml_text(&row.what));
        xml += &match row.verdict {
            Verdict::Holds => format!("<system-out>{why}</system-out>"),
            Verdict::FallsShort => format!("<failure type=\"falls short\" message=\"{why}\"/>"),
            Verdict::NotJudged => format!("<skipped message=\"{why}\"/>"),
        };
        xml += "</testcase>\n";
    }
    xml + "</testsuite>\n"
}

/// XML has no control characters at all, escaped or not.
fn xml_text(text: &str) -> String {
    escape(&visible(text))
}

/// A picture for a page about the program.
pub fn badge(verdict: Verdict) -> String {
    let (says, color) = match verdict {
        Verdict::Holds => ("holds", "#2e7d32"),
        Verdict::FallsShort => ("falls short", "#c62828"),
        Verdict::NotJudged => ("not judged", "#757575"),
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"142\" height=\"20\" role=\"img\" aria-label=\"overlap: {says}\">\
         <title>overlap: {says}</title><rect width=\"62\" height=\"20\" fill=\"#555\"/>\
         <rect x=\"62\" width=\"80\" height=\"20\" fill=\"{color}\"/>\
         <g fill=\"#fff\" text-anchor=\"middle\" font-family=\"Verdana,sans-serif\" font-size=\"11\">\
         <text x=\"31\" y=\"14\">overlap</text><text x=\"102\" y=\"14\">{says}</text></g></svg>\n"
    )
}
