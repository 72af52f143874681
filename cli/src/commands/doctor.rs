//! `lapscope doctor`: what is here, what is missing, what to do about it.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{bail, Context};

use crate::args::{DoctorArgs, TextOrJson};
use crate::doctor::{libraries, machine, mpi, subject, Finding, Status};
use crate::launch::line::find_executable;

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
    let mut out = io::stdout().lock();
    match args.format {
        TextOrJson::Json => {
            let answer = serde_json::json!({ "findings": findings });
            serde_json::to_writer_pretty(&mut out, &answer)?;
            writeln!(out)?;
        }
        TextOrJson::Text => print(&mut out, &findings)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(out: &mut impl Write, findings: &[Finding]) -> io::Result<()> {
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
        writeln!(out, "  {status:<8} {}: {}", finding.name, finding.says)?;
        if let Some(advice) = &finding.advice {
            writeln!(out, "           -> {advice}")?;
        }
    }
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    match (count(Status::Missing), count(Status::Warn)) {
        (0, 0) => writeln!(out, "everything is fine"),
        (missing, warnings) => writeln!(out, "{missing} missing, {warnings} warnings"),
    }
}
