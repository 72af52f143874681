//! `lapscope part`: some ranks' part of an analysis, for an engine that runs it on many machines.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::PartArgs;
use lapscope_report::parts::remote::{places_of, GivenTask};
use lapscope_report::parts::{wire, Partial};
use lapscope_show::output;

/// Answers a question, or puts answers together.
///
/// # Errors
/// Standard input holds no question, or no answers; the answer cannot be written.
pub fn run(args: &PartArgs) -> Result<ExitCode> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).context("standard input")?;
    let answer = match &args.ranks {
        Some(ranks) => answer(ranks, &input)?,
        None => merge(&input)?,
    };
    match &args.output {
        Some(path) => {
            let name = || path.display().to_string();
            let mut file = BufWriter::new(File::create(path).with_context(name)?);
            wire::write(&mut file, &answer)?;
            file.flush().with_context(name)?;
        }
        None => output::write_bytes(|out| wire::write(out, &answer))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(ranks: &str, input: &[u8]) -> Result<Partial> {
    let focus = places_of(ranks)?;
    let GivenTask { run, question } = GivenTask::read(input)?;
    let known = run.survey.places();
    if let Some(unknown) = focus.iter().find(|place| !known.contains(place)) {
        anyhow::bail!(
            "--ranks {ranks}: the run has {} ranks, and none at place {unknown}",
            known.end
        );
    }
    let answer = run.answer(&question, &focus);
    std::mem::forget((run, question)); // of many ranks, and the process is about to end
    Ok(answer)
}

fn merge(mut input: &[u8]) -> Result<Partial> {
    let mut merged: Option<Partial> = None;
    while !input.is_empty() {
        let partial: Partial = wire::read(&mut input, "a partial result")?;
        merged = Some(match merged {
            Some(known) => known.merge(partial)?,
            None => partial,
        });
    }
    merged.context("standard input holds no partial result")
}
