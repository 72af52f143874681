//! Arguments of `lapscope bench`.

use std::path::PathBuf;

use crate::program::ExampleProgram;
use crate::results::Link;
use clap::Args;
use lapscope_predict::replay::scenario::{time_ns, Bandwidth};

use lapscope_show::format::Format;

/// Run the published experiments under the MPIs of this machine: a report card of overlap, progress and blocking.
#[derive(Debug, Args)]
#[command(after_help = "\
Each experiment is a small program (examples/ in the sources of lapscope) that measures itself. It is compiled with each MPI,
run recorded, and what lapscope saw from outside is held against what the program says: both are in the report card.

Without --mpi all MPIs in PATH are taken. The slow link is a network namespace in which loopback is held to 1600 Mbit/s: there
transfers take time while processors are free, and nothing outside of it changes.

The results are written to a SQLite file (schema/bench.sql) while they come in, so that those of an interrupted bench can be
read, too. A whole bench takes two to three minutes for each MPI and link, --quick half a minute.

--simulated runs no program: it replays how much of a transfer three rendezvous protocols let a computation hide, with the
sender or the receiver first, on a link of stated latency and bandwidth; docs/experiments.md has measured figures beside.

Examples:
  lapscope bench --quick
  lapscope bench --mpi openmpi --mpi /opt/mpich --link shared --plot figures
  lapscope bench --read lapscope-bench.db --plot figures
  lapscope bench --only overlap,progress --format json | jq '.runs[].tables'
  lapscope bench --simulated --latency 5us --bandwidth 400MB/s")]
pub struct BenchArgs {
    /// MPI to use: openmpi, mpich, a directory in which one was installed, or its mpicc; may be given several times
    #[arg(long = "mpi", value_name = "MPI", conflicts_with = "read")]
    pub mpis: Vec<String>,

    /// How the ranks reach each other [default: both]
    #[arg(
        long = "link",
        value_name = "LINK",
        value_enum,
        value_delimiter = ',',
        conflicts_with = "read"
    )]
    pub links: Vec<Link>,

    /// Only these experiments
    #[arg(
        long,
        value_name = "NAME,...",
        value_enum,
        value_delimiter = ',',
        conflicts_with = "read"
    )]
    pub only: Vec<ExampleProgram>,

    /// Few sizes and repetitions, and no scenarios
    #[arg(long, conflicts_with = "read")]
    pub quick: bool,

    /// Draw the figures of the papers into this directory, as SVG
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,

    /// SQLite file to write, which must not exist [default: lapscope-bench-DATE-TIME.db here]
    #[arg(long, short, value_name = "FILE", conflicts_with = "read")]
    pub output: Option<PathBuf>,

    /// Run nothing: read the results from such a file
    #[arg(long, value_name = "FILE")]
    pub read: Option<PathBuf>,

    /// Keep programs and recorded runs in this directory, which must not exist
    #[arg(long, value_name = "DIR", conflicts_with = "read")]
    pub dir: Option<PathBuf>,

    /// Run nothing: replay the overlap of three rendezvous protocols, whoever is first
    #[arg(
        long,
        conflicts_with_all = ["mpis", "links", "only", "quick", "plot", "output", "read", "dir"]
    )]
    pub simulated: bool,

    /// One way of a small message, as 5us [default: 4us, of the published test bed]
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time_ns,
        requires = "simulated",
        conflicts_with = "calibration"
    )]
    pub latency: Option<f64>,

    /// What the link carries, as 400MB/s [default: 950MB/s, of the published test bed]
    #[arg(
        long,
        value_name = "RATE",
        value_parser = rate,
        requires = "simulated",
        conflicts_with = "calibration"
    )]
    pub bandwidth: Option<f64>,

    /// Take the link's LogGPS parameters from this calibration file
    #[arg(long, value_name = "FILE", requires = "simulated")]
    pub calibration: Option<PathBuf>,

    #[arg(long, value_parser = Format::of_no_table(), default_value_t)]
    pub format: Format,
}

/// Bytes a second.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(Bandwidth::BytesPerSecond(rate)) => Ok(rate),
        _ => Err("expected a bandwidth, as 400MB/s or 100Gbit/s".to_owned()),
    }
}
