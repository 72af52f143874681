//! `lapscope doctor`: what is here, what is missing, what to do about it.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{bail, Context};
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::export::{self, Document};
use lapscope_bench::doctor::{libraries, machine, mpi, subject, Finding, Status};
use lapscope_bench::launch::line::find_executable;
use lapscope_data::text::style::Style;

/// # Errors
/// The program that was named does not exist.
pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    if let Some(program) = &args.program {
        let path = if program.is_file() {
            program.clone()
        } else if let Some(path) = find_executable(program.as_os_str()) {
            path
        } else {
            bail!("{}: no such program", program.display());
        };
        findings.extend(subject::look(&path).with_context(|| path.display().to_string())?);
    }
    findings.extend(libraries::look());
    findings.extend(mpi::look());
    findings.extend(machine::look());
    export::print(&mut Answer { findings }, args.format)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Answer {
    findings: Vec<Finding>,
}

impl Document for Answer {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> anyhow::Result<()> {
        Ok(write(out, &self.findings, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        export::write_json(self, out)
    }
}

fn write(out: &mut dyn Write, findings: &[Finding], style: Style) -> io::Result<()> {
    let mut topic = "";
    for finding in findings {
        if finding.topic != topic {
            topic = finding.topic;
            writeln!(out, "{topic}")?;
        }
        let status = match finding.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Missing => "missing",
        };
        let text = format!("{}: {}", finding.name, finding.says);
        writeln!(out, "{}", style.wrap(&text, &format!("  {status:<8} "), "           "))?;
        if let Some(advice) = &finding.advice {
            writeln!(out, "{}", style.wrap(advice, "           -> ", "              "))?;
        }
    }
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    match (count(Status::Missing), count(Status::Warn)) {
        (0, 0) => writeln!(out, "everything is fine"),
        (missing, warnings) => writeln!(out, "{missing} missing, {warnings} warnings"),
    }
}
