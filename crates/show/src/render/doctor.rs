//! What the doctor found, as text.

use std::io::{self, Write};

use lapscope_data::text::style::Style;
use lapscope_launch::doctor::{Finding, Status};

/// What is worst first; within it, and of what is fine, in the order of the findings.
const STATES: [(Status, &str); 4] = [
    (Status::Missing, "Missing"),
    (Status::Warn, "Warnings"),
    (Status::Note, "Notes"),
    (Status::Ok, "Fine"),
];
/// Columns of the names.
const NAME: usize = 17;

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, findings: &[Finding], style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.bold(&summary(findings)))?;
    for (status, title) in STATES {
        let mut of_status = findings.iter().filter(|finding| finding.status == status).peekable();
        if of_status.peek().is_none() {
            continue;
        }
        writeln!(out)?;
        let title = if status >= Status::Warn { style.alert(title) } else { style.bold(title) };
        writeln!(out, "{title}")?;
        for finding in of_status {
            write_finding(out, finding, style)?;
        }
    }
    Ok(())
}

fn summary(findings: &[Finding]) -> String {
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let some = |count: usize, one: &str, many: &str| {
        (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
    };
    let parts = [
        some(count(Status::Missing), "missing", "missing"),
        some(count(Status::Warn), "warning", "warnings"),
        some(count(Status::Note), "note", "notes"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let verdict = match (count(Status::Missing), parts.is_empty()) {
        (0, true) => return "everything is fine".into(),
        (0, false) => "nothing is missing",
        _ => "something is missing",
    };
    format!("{verdict}: {}", parts.join(", "))
}

fn write_finding(out: &mut dyn Write, finding: &Finding, style: Style) -> io::Result<()> {
    let rest = " ".repeat(2 + NAME + 1);
    let name = &finding.name;
    // A name that has no room stands in front of what is said.
    let (first, says) = if name.chars().count() <= NAME {
        (format!("  {name:<NAME$} "), finding.says.clone())
    } else {
        ("  ".to_owned(), format!("{name}: {}", finding.says))
    };
    let follows = finding.follows.as_ref().map(|text| format!("; {text}")).unwrap_or_default();
    writeln!(out, "{}", style.wrap(&format!("{says}{follows}"), &first, &rest))?;
    if let Some(advice) = &finding.advice {
        writeln!(out, "{}", style.wrap(advice, &format!("{rest}-> "), &format!("{rest}   ")))?;
    }
    Ok(())
}
