//! `lapscope doctor`: what is here, what is missing, what follows, what to do about it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Context};
use serde::Serialize;

use crate::args::{AskMpiArgs, DoctorArgs};
use lapscope_data::text::style::Style;
use lapscope_launch::doctor::{self, Finding, Status};
use lapscope_launch::run::line::find_executable;
use lapscope_show::format::{self, Document};
use lapscope_show::output;
use lapscope_show::render;

/// Something is missing: the answer is no, and was given.
const MISSING: u8 = 3;

/// # Errors
/// The program that was named does not exist, or cannot be read.
pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    if args.progress {
        return super::progress::run(args);
    }
    if args.gpu {
        return super::gpu::compare(args)?.map_or_else(Ok, |findings| answer(findings, args));
    }
    let program = args.program.as_deref().map(place).transpose()?;
    let findings = doctor::look(program.as_deref());
    let findings = match &program {
        Some(path) => findings.with_context(|| path.display().to_string())?,
        None => findings?,
    };
    answer(findings, args)
}

fn answer(findings: Vec<Finding>, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let is_missing = findings.iter().any(|finding| finding.status == Status::Missing);
    format::print(&mut DoctorOutput { findings }, args.format)?;
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
        Ok(render::doctor::write(out, &self.findings, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        format::write_json(self, out)
    }
}
