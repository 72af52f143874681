//! Parts looked at by an engine that is not ours: Dask. A process of Python submits `lapscope part` to it, and tells here how far
//! that is; it is part of lapscope's Python package (`python/`), whose module `lapscope.engine` describes what both say.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};

use super::engine::Engine;
use super::load::Run;
use super::partial::{Partial, Question};
use super::wire;
use lapscope_data::files::cannot_write;
use lapscope_data::text::progress::Progress;

/// The interpreter that has the package; `python3` where it is not set.
pub const PYTHON_VARIABLE: &str = "LAPSCOPE_PYTHON";

/// An engine that runs elsewhere.
#[derive(Debug)]
pub struct Remote {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Questions and answers, as files.
    directory: tempfile::TempDir,
    asked: u64,
}

/// One stage.
#[derive(Serialize)]
struct StageRequest<'a> {
    /// Read by every part.
    question: &'a Path,
    /// Places of ranks, as `0-15,17`.
    parts: Vec<String>,
    /// To be written.
    answer: &'a Path,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum EngineReply {
    /// The engine is there.
    Ready,
    /// Parts of the stage that were done.
    Done(u64),
    Answered,
    Failed(String),
}

/// What every part of a stage is given.
#[derive(Serialize)]
struct Task<'a> {
    run: &'a Run,
    question: &'a Question,
}

/// As [`Task`], read.
#[derive(Deserialize)]
pub struct GivenTask {
    pub run: Run,
    pub question: Question,
}

impl GivenTask {
    /// # Errors
    /// It is none, or of another format.
    pub fn read(mut bytes: &[u8]) -> Result<GivenTask> {
        let mut task: GivenTask = wire::read(&mut bytes, "the question")?;
        std::sync::Arc::make_mut(&mut task.run.survey).number();
        Ok(task)
    }
}

impl Remote {
    /// `engine`: `dask`, a cluster on this machine, or `dask://HOST:PORT` of a scheduler. `root`: of the run.
    ///
    /// # Errors
    /// Python or the package is not there, or no scheduler answers.
    pub fn start(engine: &str, root: &Path) -> Result<Remote> {
        let scheduler = match engine.strip_prefix("dask") {
            Some("") => "local".to_owned(),
            Some(address) if address.starts_with("://") && address.len() > 3 => {
                format!("tcp{address}")
            }
            _ => bail!("--engine {engine}: there is dask, for a cluster on this machine, and dask://HOST:PORT"),
        };
        let python = std::env::var_os(PYTHON_VARIABLE).filter(|python| !python.is_empty());
        let python = python.map_or_else(|| PathBuf::from("python3"), PathBuf::from);
        let directory = tempfile::tempdir().context("no directory for the parts' questions")?;
        let own = std::env::current_exe().context("where this program is cannot be said")?;
        let mut child = Command::new(&python)
            .args(["-m", "lapscope.engine", "--scheduler", &scheduler, "--run"])
            .arg(root) // relative as the paths of its files are, which workers look for from the same directory
            .arg("--lapscope")
            .arg(own)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| {
                format!(
                    "--engine {engine}: {} cannot be run; {PYTHON_VARIABLE} names the Python that has lapscope's package",
                    python.display()
                )
            })?;
        let (requests, answers) = match (child.stdin.take(), child.stdout.take()) {
            (Some(requests), Some(answers)) => (requests, BufReader::new(answers)),
            _ => bail!("--engine {engine}: no pipes to Python"),
        };
        let mut remote = Remote { child, requests, answers, directory, asked: 0 };
        match remote.listen() {
            Ok(EngineReply::Ready) => Ok(remote),
            Ok(EngineReply::Failed(why)) => bail!("--engine {engine}: {why}"),
            Ok(_) => bail!("--engine {engine}: another version of lapscope's Python package answers"),
            Err(error) => Err(error.context(format!(
                "--engine {engine}: {} has no lapscope package with Dask; install it: pip install 'lapscope[dask]', or name the \
                 Python that has it in {PYTHON_VARIABLE}",
                python.display()
            ))),
        }
    }

    fn listen(&mut self) -> Result<EngineReply> {
        let mut line = String::new();
        if self.answers.read_line(&mut line).context("the engine cannot be heard")? == 0 {
            let status = self.child.wait().map(|status| status.to_string()).unwrap_or_default();
            bail!("the engine's Python process ended ({status})");
        }
        serde_json::from_str(&line).with_context(|| format!("the engine said {line:?}"))
    }
}

impl Engine for Remote {
    fn ask(&mut self, run: &Run, question: &Question, parts: &[Vec<u32>]) -> Result<Partial> {
        self.asked += 1;
        let path = |what: &str| self.directory.path().join(format!("{what}-{}", self.asked));
        let (asked, answered) = (path("question"), path("answer"));
        let mut bytes = Vec::new();
        wire::write(&mut bytes, &Task { run, question })?;
        std::fs::write(&asked, bytes).map_err(|error| cannot_write(&asked, error))?;
        let named = parts.iter().map(|part| places_text(part)).collect();
        let request = StageRequest { question: &asked, parts: named, answer: &answered };
        let line = serde_json::to_string(&request)?;
        writeln!(self.requests, "{line}").context("the engine's Python process has ended")?;
        self.requests.flush().context("the engine's Python process has ended")?;
        let progress = Progress::default();
        progress.expect(parts.len() as u64);
        loop {
            match self.listen()? {
                EngineReply::Ready => {}
                EngineReply::Done(parts) => progress.add(parts),
                EngineReply::Answered => break,
                EngineReply::Failed(why) => bail!("{why}"),
            }
        }
        let answer = std::fs::read(&answered).context("an answer cannot be read")?;
        let partial = wire::read(&mut &answer[..], "the parts' answer");
        for file in [asked, answered] {
            std::fs::remove_file(file).context("a question cannot be removed")?;
        }
        partial
    }
}

impl Drop for Remote {
    /// Python ends when nothing more can be asked.
    fn drop(&mut self) {
        let _ = writeln!(self.requests);
        let _ = self.child.wait();
    }
}

/// Places as `0-15,17`.
pub fn places_text(places: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &place in places {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == place => *last = place,
            _ => ranges.push((place, place)),
        }
    }
    let text = |(first, last): (u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(text).collect::<Vec<String>>().join(",")
}

/// Ranks of no run.
const MOST_PLACES: u32 = 1 << 24;

/// The other way around.
///
/// # Errors
/// It is no such list.
pub fn places_of(text: &str) -> Result<Vec<u32>> {
    let bad = || format!("{text:?} is no list of places, as 0-15,17");
    let mut places = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) =
            (first.parse().with_context(bad)?, last.parse().with_context(bad)?);
        if last < first || last - first > MOST_PLACES {
            bail!(bad());
        }
        places.extend(first..=last);
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../../docs/parts.md");

    /// Names of an enumeration's values, as reading none of them tells.
    fn names<T: serde::de::DeserializeOwned + std::fmt::Debug>() -> Vec<String> {
        let error = serde_json::from_value::<T>("none".into()).unwrap_err();
        let said = error.to_string();
        let (_, expected) = said.split_once("expected one of ").unwrap();
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_document_lists_stages_partial_results_and_the_format() {
        let rows = DOCUMENT
            .lines()
            .filter(|line| line.starts_with("| `") && line.matches('|').count() == 4);
        let stages: Vec<&str> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
        assert_eq!(names::<crate::parts::Stage>(), stages);
        let mut partials = names::<Partial>();
        assert_eq!(partials.pop().as_deref(), Some("Unreadable"));
        assert_eq!(partials, stages);
        assert!(DOCUMENT.contains(&format!("| `format` | {}. ", wire::FORMAT)));
    }

    #[test]
    fn places_are_named_as_ranges() {
        let places = [0, 1, 2, 5, 7, 8];
        assert_eq!(places_text(&places), "0-2,5,7-8");
        assert_eq!(places_of("0-2,5,7-8").unwrap(), places);
        assert!(["0-x", "5-3", "0-4294967295"].iter().all(|bad| places_of(bad).is_err()));
    }
}
