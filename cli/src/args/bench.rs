//! Of `lapscope bench`.

use std::path::PathBuf;

use clap::Args;
use lapscope_bench::bench::program::Program;
use lapscope_bench::bench::results::Link;

use crate::export::Format;

/// Run the published experiments under the MPIs of this machine: a report card of overlap, progress and blocking.
#[derive(Debug, Args)]
#[command(after_help = "\
Each experiment is a small program (examples/ in the sources of lapscope) that measures itself. It is compiled with each MPI,
run recorded, and what lapscope saw from outside is held against what the program says: both are in the report card.

Without --mpi all MPIs in PATH are taken. The slow link is a network namespace in which loopback is held to 1600 Mbit/s: there
transfers take time while processors are free, and nothing outside of it changes.

The results are written to a SQLite file (schema/bench.sql) while they come in, so that those of an interrupted bench can be
read, too. A whole bench takes two to three minutes for each MPI and link, --quick half a minute.

Examples:
  lapscope bench --quick
  lapscope bench --mpi openmpi --mpi /opt/mpich --link shared --plot figures
  lapscope bench --read lapscope-bench.db --plot figures
  lapscope bench --only overlap,progress --format json | jq '.runs[].tables'")]
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
    pub only: Vec<Program>,

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

    #[arg(long, value_parser = Format::of_no_table(), default_value_t)]
    pub format: Format,
}
