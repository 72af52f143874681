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
    let answer = if args.merge { merge(&input)? } else { answer(&args.ranks, &input)? };
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

/// What parts answer, put together.
fn answer(parts: &[String], input: &[u8]) -> Result<Partial> {
    let parts = parts.iter().map(|ranks| Ok((ranks, places_of(ranks)?)));
    let parts: Vec<(&String, Vec<u32>)> = parts.collect::<Result<_>>()?;
    let GivenTask { run, question } = GivenTask::read(input)?;
    let known = run.survey.places();
    let part = |(ranks, focus): (&String, Vec<u32>)| {
        if let Some(unknown) = focus.iter().find(|place| !known.contains(place)) {
            anyhow::bail!(
                "--ranks {ranks}: the run has {} ranks, and none at place {unknown}",
                known.end
            );
        }
        Ok(run.answer(&question, &focus))
    };
    let answer = put_together(parts.into_iter().map(part))?;
    std::mem::forget((run, question)); // of many ranks, and the process is about to end
    answer.context("--ranks names no part")
}

fn merge(mut input: &[u8]) -> Result<Partial> {
    let next = || {
        let is_left = !input.is_empty();
        is_left.then(|| wire::read(&mut input, "a partial result"))
    };
    put_together(std::iter::from_fn(next))?.context("standard input holds no partial result")
}

fn put_together(mut partials: impl Iterator<Item = Result<Partial>>) -> Result<Option<Partial>> {
    let Some(first) = partials.next() else { return Ok(None) };
    partials.try_fold(first?, |known, partial| known.merge(partial?)).map(Some)
}
