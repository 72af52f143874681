//! Arguments of commands that can look at a run in parts.

use std::path::PathBuf;

use super::units;
use clap::Args;
use lapscope_report::pipeline::resources::Resources;

/// How much a command may use, and who works for it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Large runs")]
pub struct ResourceArgs {
    /// Memory to work in, with a unit (300M, 2G); a run that is larger is looked at in parts, with the same result [default: a
    /// quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = units::memory)]
    pub memory: Option<u64>,

    /// Look at the run in N parts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub parts: Option<u32>,

    /// Let Dask look at the parts: dask, a cluster on this machine, or dask://HOST:PORT of a scheduler
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<String>,
}

impl ResourceArgs {
    pub fn resources(&self) -> Resources {
        Resources {
            memory: self.memory,
            parts: self.parts.map(|parts| parts as usize),
            engine: self.engine.clone(),
        }
    }
}

/// What an engine runs on its workers: some ranks' part of an analysis. Question and answer are CBOR on standard input and
/// output.
#[derive(Debug, Args)]
#[command(after_help = "\
`lapscope report --engine dask` and others with that option run it; nobody has to type it. With --merge it reads any number of
answers to one question, one behind the other, and writes what they come to together. docs/parts.md describes the format.

Examples:
  lapscope part --ranks 0-15 < question > answer
  cat answer-* | lapscope part --merge > answer")]
pub struct PartArgs {
    /// Ranks to look at, as places in the order of the run: 0-15,17; again: another part, one after the other
    #[arg(long, value_name = "PLACES", required_unless_present = "merge")]
    pub ranks: Vec<String>,

    /// Put answers together
    #[arg(long, conflicts_with = "ranks")]
    pub merge: bool,

    /// Write the answer to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
