//! `lapscope doctor`: what is here, what is missing, what follows, what to do about it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Context};
use serde::Serialize;

use crate::args::{AskMpiArgs, DoctorArgs};
use crate::export::{self, Document};
use crate::output;
use lapscope_bench::doctor::{self, Finding, Status};
use lapscope_bench::launch::line::find_executable;
use lapscope_data::text::style::Style;

/// Something is missing: the answer is no, and was given.
const MISSING: u8 = 3;

/// # Errors
/// The program that was named does not exist, or cannot be read.
pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    if args.progress {
        return super::progress::run(args);
    }
    let program = args.program.as_deref().map(place).transpose()?;
    let findings = doctor::look(program.as_deref());
    let findings = match &program {
        Some(path) => findings.with_context(|| path.display().to_string())?,
        None => findings?,
    };
    let is_missing = findings.iter().any(|finding| finding.status == Status::Missing);
    export::print(&mut DoctorOutput { findings }, args.format)?;
    Ok(if is_missing { ExitCode::from(MISSING) } else { ExitCode::SUCCESS })
}

fn place(program: &Path) -> anyhow::Result<PathBuf> {
    if program.is_dir() {
        bail!("{}: a directory; name the program in it", program.display());
    }
    if program.is_file() {
        return Ok(program.to_path_buf());
    }
    let found = find_executable(program.as_os_str());
    found.with_context(|| format!("{}: no such program", program.display()))
}

/// The process in which an MPI library is asked.
///
/// # Errors
/// It cannot be loaded.
pub fn ask_mpi(args: &AskMpiArgs) -> anyhow::Result<ExitCode> {
    // Whoever asks is gone, or listens: a failure to write changes nothing.
    let mut say = |text: &str| drop(output::print(|out| out.write_all(text.as_bytes())));
    doctor::answer_for_mpi(&args.library, &args.places, &mut say).map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct DoctorOutput {
    findings: Vec<Finding>,
}

impl Document for DoctorOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> anyhow::Result<()> {
        Ok(write(out, &self.findings, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        export::write_json(self, out)
    }
}

/// What is worst first; within it, and of what is fine, in the order of the findings.
const STATES: [(Status, &str); 4] = [
    (Status::Missing, "Missing"),
    (Status::Warn, "Warnings"),
    (Status::Note, "Notes"),
    (Status::Ok, "Fine"),
];
/// Columns of the names.
const NAME: usize = 17;

fn write(out: &mut dyn Write, findings: &[Finding], style: Style) -> io::Result<()> {
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
