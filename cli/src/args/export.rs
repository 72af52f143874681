//! Arguments of the command that hands a run, or what was calibrated, to other programs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::timelines::{ExportChromeArgs, ExportOtf2Args, ExportPerfettoArgs};
use super::{ReferenceArgs, ResourceArgs, WrapperArgs};

/// Hand a run, or what was calibrated, to another program.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapscope export perfetto                                a timeline for ui.perfetto.dev
  lapscope export otf2 -o a.otf2 runs/a                   one for Vampir, Scalasca, Pipit
  lapscope export loggps --for loggopsim                  flags for LogGOPSim
  lapscope export goal runs/a -o run.goal                 the run as a schedule for it
  lapscope export parquet tables runs/a                   the run as tables for DuckDB, Polars, Spark, pandas
  lapscope export loggps --for dimemas > network.cfg")]
pub struct ExportArgs {
    #[command(subcommand)]
    pub what: ExportWhat,
}

#[derive(Debug, Subcommand)]
pub enum ExportWhat {
    Chrome(ExportChromeArgs),
    Goal(ExportGoalArgs),
    Loggps(ExportLoggpsArgs),
    Otf2(ExportOtf2Args),
    Parquet(ExportParquetArgs),
    Perfetto(ExportPerfettoArgs),
    Sqlite(ExportSqliteArgs),
}

/// The databases of all ranks in one SQLite file of the same schema.
#[derive(Debug, Args)]
#[command(after_help = "\
Ids are made unique by adding, for each rank, what the ranks before it used; every row is kept. `lapscope sql` needs no such file.

Examples:
  lapscope export sqlite                the newest run, into <its name>.db
  lapscope export sqlite runs/a -o a.db && sqlite3 a.db")]
pub struct ExportSqliteArgs {
    /// Run directory, or several databases [default: the newest lapscope-* here]
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// File to write; it must not exist [default: <name of the run directory>.db]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The run as a GOAL schedule, the text that LogGOPSim's txt2bin reads.
#[derive(Debug, Args)]
#[command(after_help = "\
Computation is what was recorded between calls; time inside MPI is for the simulator to find out. A message is received by
the receive that received it, whatever tags the program used. Collectives become messages: all to all waits by
dissemination, rooted ones by binomial trees, scans by a chain. Messages whose other end was not recorded are left out, and
counted on standard error.

Examples:
  lapscope export goal -o run.goal                        the newest run in this directory
  txt2bin -i run.goal -o run.bin && LogGOPSim -f run.bin $(lapscope export loggps --for loggopsim)")]
pub struct ExportGoalArgs {
    /// Run directory or database [default: the newest lapscope-* here]
    pub run: Option<PathBuf>,

    /// File to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Time unit of the schedule; that of the parameters must be the same
    #[arg(long, value_enum, default_value_t)]
    pub unit: TimeUnit,
}

/// The run as tables in Parquet files: requests, calls, matched messages, ranks and call sites.
#[derive(Debug, Args)]
#[command(after_help = "\
Requests, calls and messages are partitioned by node, as Hive does it: DIR/requests/node=HOST/part-0.parquet. All timestamps are on
one clock, in nanoseconds. docs/parquet.md says what each column means, and has queries for DuckDB, Polars and Spark.

DIR appears when all of it is written; it must not be there before.

Examples:
  lapscope export parquet tables                          the newest run in this directory
  lapscope export parquet tables runs/a
  duckdb -c \"SELECT kind, count(*), sum(exposed_ns) FROM 'tables/requests/*/*.parquet' GROUP BY kind\"")]
pub struct ExportParquetArgs {
    /// Directory to make
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// Run directory or database [default: the newest lapscope-* here]
    pub run: Option<PathBuf>,

    #[command(flatten)]
    pub times: ReferenceArgs,

    #[command(flatten)]
    pub wrappers: WrapperArgs,

    #[command(flatten)]
    pub resources: ResourceArgs,
}

/// The LogGPS parameters that `lapscope calibrate` found, as a simulator takes them.
#[derive(Debug, Args)]
#[command(after_help = "\
Parameters are those of the calibration that fits the run, as for its reference times, or of a file. What a simulator
needs beside them, and what it cannot be told, is said on standard error.

Examples:
  LogGOPSim -f run.bin $(lapscope export loggps --for loggopsim)
  smpirun $(lapscope export loggps --for simgrid --calibration a.json) -platform cluster.xml ./app
  lapscope export loggps --for dimemas runs/a > network.cfg")]
pub struct ExportLoggpsArgs {
    /// Run directory or database [default: the newest lapscope-* here]
    #[arg(conflicts_with = "calibration")]
    pub run: Option<PathBuf>,

    #[arg(long = "for", value_name = "SIMULATOR", value_enum)]
    pub simulator: Simulator,

    /// A calibration file, in place of the one that fits the run
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    /// Between which processes, of simulators that know one network [default: of different nodes where that was measured]
    #[arg(long, value_name = "LOCALITY", value_enum)]
    pub between: Option<Between>,

    /// Time unit of LogGOPSim's parameters; that of the schedule must be the same
    #[arg(long, value_enum, default_value_t)]
    pub unit: TimeUnit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Simulator {
    /// Flags of LogGOPSim
    Loggopsim,
    /// Flags of SimGrid's smpirun
    Simgrid,
    /// A configuration file of Dimemas
    Dimemas,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Between {
    /// Ranks of one node
    Node,
    /// Ranks of different nodes
    Network,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TimeUnit {
    /// Picoseconds: LogGOPSim takes whole numbers, and a byte often takes less than a nanosecond
    #[default]
    Ps,
    /// Nanoseconds
    Ns,
}
