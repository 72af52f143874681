//! What the user can type. Only shapes and help are here; each command's work is in `commands/`.

pub mod check;
mod doctor;
mod export;
mod hang;
mod help;
mod html;
mod jobs;
mod live;
mod manual;
mod measure;
mod parts;
mod ranks;
mod reach;
mod scaling;
mod sort;
mod stretch;
mod timelines;
mod tune;
mod units;
mod whatif;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::commands::bench::BenchArgs;
use clap::{Args, Parser, Subcommand};
use lapscope_data::model::{Kind, Rank, RequestEnded};
use lapscope_launch::run::environment::assignment;
use lapscope_launch::run::{Files, Injection, SAMPLES_A_SECOND};
use lapscope_show::format::Format;

pub use check::CheckArgs;
pub use doctor::{AskMpiArgs, DoctorArgs};
pub use export::{
    Between, ExportArgs, ExportGoalArgs, ExportLoggpsArgs, ExportParquetArgs, ExportSqliteArgs,
    ExportWhat, Simulator, TimeUnit,
};
pub use hang::HangArgs;
pub use help::{described, help_of, parse, unknown_topic, usage_error};
pub use html::{HtmlArgs, LISTED_SITES};
pub use jobs::JobsArgs;
pub use live::LiveArgs;
pub use manual::ManualArgs;
pub use measure::{CalibrateArgs, DiffArgs, OverlapArgs, ThresholdsArgs};
pub use parts::{PartArgs, ResourceArgs};
pub use ranks::{ListedArgs, RanksArgs};
pub use reach::ReachArgs;
pub use scaling::ScalingChoice;
pub use sort::{RequestOrder, SiteOrder};
pub use stretch::StretchArgs;
pub use timelines::TimelineArgs;
pub use tune::TuneArgs;
pub use whatif::WhatIfArgs;

/// Arguments of commands that read a run and answer in any format.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Run directory or database [default: the newest lapscope-* here]
    pub run: Option<PathBuf>,

    #[arg(long, value_parser = Format::any(), default_value_t)]
    pub format: Format,
}

/// Arguments of commands that name call sites.
#[derive(Debug, Args)]
pub struct WrapperArgs {
    /// Functions that only pass on to MPI, named by their callers: besides those that are found, NAME (`*` stands for any
    /// letters); none finds no others; may be given several times
    #[arg(long = "wrapper", value_name = "NAME")]
    pub names: Vec<String>,
}

/// Arguments of commands that compare with what transfers take undisturbed.
#[derive(Debug, Default, Args)]
pub struct ReferenceArgs {
    /// Where reference times are from: `run` (its own transfers), `calibration`, or a calibration file
    /// [default: a calibration where one fits, else the run]
    #[arg(long, value_name = "run|calibration|FILE")]
    pub reference: Option<String>,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    fine
  1    lapscope failed; standard error says why
  2    the command line was not understood
  3    `whatif`: a scenario deadlocks; `doctor`: something is missing

`run` and `reach` pass on the exit code of the program they launched: 128 + N when signal N killed it,
126 when it may not be executed, 127 when it was not found; `run --watchdog-kill` 124 when it ended the
job; `tune` that of a run that failed.";

const EXAMPLES: &str = "\
Examples:
  lapscope run -- mpirun -n 4 ./app input.dat    record a run; works on the unmodified program
  lapscope report                                read the newest run in this directory
  lapscope html --open                           the same with pictures, in the browser
  lapscope live                                  what a running job does now, in the terminal
  lapscope reach -- mpirun -n 4 ./app input.dat  how much earlier it could send, how much later wait
  lapscope whatif --bandwidth x2                 how long the recorded run would take with another network
  lapscope tune -- mpirun -n 4 ./app input.dat   whether it runs faster with injected tests, and what to set
  lapscope bench --quick                         what the MPIs of this machine overlap, and what not
  lapscope hang                                  what every rank of a job that hangs is waiting for
  lapscope doctor ./app                          what is missing on this machine, or about this program
  lapscope help terms                            what the words in reports mean";

/// How much MPI communication overlapped with computation, and why the rest did not.
#[derive(Debug, Parser)]
#[command(name = "lapscope", version, disable_help_subcommand = true, after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(RunArgs),
    Report(ReportArgs),
    Html(HtmlArgs),
    Sites(SitesArgs),
    Requests(RequestsArgs),
    #[command(hide = true)]
    Pending(PendingArgs),
    Live(LiveArgs),
    Hang(HangArgs),
    Thresholds(ThresholdsArgs),
    Diff(DiffArgs),
    Check(CheckArgs),
    Overlap(OverlapArgs),
    Reach(ReachArgs),
    Whatif(WhatIfArgs),
    Jobs(JobsArgs),
    Sql(SqlArgs),
    #[command(hide = true)]
    Merge(ExportSqliteArgs),
    Recover(RecoverArgs),
    Export(ExportArgs),
    Calibrate(CalibrateArgs),
    Tune(TuneArgs),
    Bench(BenchArgs),
    Options(OptionsArgs),
    Doctor(DoctorArgs),
    #[command(name = lapscope_launch::doctor::ASK_COMMAND, hide = true)]
    AskMpi(AskMpiArgs),
    #[command(hide = true)]
    Part(PartArgs),
    Help(HelpArgs),
    Manual(ManualArgs),
}

/// Run a program, or a launcher that starts many, and record its MPI communication.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Two forms:
  lapscope run -- mpirun -n 4 ./app      around the launcher: one summary at the end
  mpirun -n 4 lapscope run -- ./app      as every rank: lapscope replaces itself with the program

The exit code is the program's. Signals sent to lapscope reach the program.

Examples:
  lapscope run --report -- mpirun -n 4 ./app input.dat
  lapscope run --dir runs/a -- srun -n 64 ./app
  lapscope run --watchdog 600 -- srun -n 64 ./app
  lapscope run --set CPU_TIME=on -- mpiexec -n 4 python3 script.py")]
pub struct RunArgs {
    /// Run directory to write [default: lapscope-DATE-TIME-PROGRAM here]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Where spools lie during the run, when the run directory is on a slow parallel file system
    #[arg(long, value_name = "DIR")]
    pub spool_dir: Option<PathBuf>,

    /// A database for each rank, or one for each node, whose ranks then keep their spools on its own storage
    #[arg(long, value_name = "FILES", value_enum)]
    pub files: Option<Files>,

    /// Detail kept per rank, in MB or with a unit (2G); beyond it only summaries
    #[arg(long, value_name = "MB", value_parser = units::max_mb)]
    pub max_mb: Option<u64>,

    /// Make tests while requests are pending, so that transfers go on during computation; `auto` finds out how
    #[arg(long, value_name = "MODE", value_enum)]
    pub inject: Option<Injection>,

    /// Note RATE times a second where each thread computes: reports name the lines in which tests belong
    #[arg(long, value_name = "RATE", num_args = 0..=1, require_equals = true, default_missing_value = SAMPLES_A_SECOND,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sample: Option<u32>,

    /// Do not record call paths
    #[arg(long)]
    pub no_callpath: bool,

    /// Set any option that `lapscope options` lists; LAPSCOPE_ in front may be left out
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,

    /// Print the report when the program has ended
    #[arg(long)]
    pub report: bool,

    /// Write the report as a page for the browser when the program has ended: <name of the run directory>.html here
    #[arg(long)]
    pub html: bool,

    /// Say nothing at the end; warnings are still printed
    #[arg(long, short)]
    pub quiet: bool,

    /// When no MPI call of any rank has ended for so long, print who waits for whom, and why; the job goes on
    #[arg(long, value_name = "SECONDS", value_parser = units::timeout)]
    pub watchdog: Option<u64>,

    /// With --watchdog: then end the job
    #[arg(long, requires = "watchdog")]
    pub watchdog_kill: bool,

    /// Show what would be executed, and with which environment, and stop
    #[arg(long)]
    pub dry_run: bool,

    /// The program or launch line
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Call sites that a report shows where nobody asks for more.
pub const REPORTED_SITES: usize = 10;

/// Summary of a run: where the time went, overlap, thresholds, what to do, the worst call sites.
#[derive(Debug, Args)]
#[command(after_help = "\
Advice is ranked by the time at stake; no two pieces of it count the same time. Shares are of the
run time of all ranks, those of overlap are of the reference time of transfers. `lapscope help terms`
explains the words.

Examples:
  lapscope report                       the newest run in this directory
  lapscope report --ranks 0-15,64       of these ranks alone
  lapscope report runs/p2 runs/p4 runs/p8
                                        how the program scales, by POP's factors
  lapscope report --efficiency --format csv
  lapscope report --format json runs/a | jq '.advice[].sentence'")]
pub struct ReportArgs {
    #[command(flatten)]
    pub read: ReadArgs,

    /// Further runs, of other numbers of ranks: how the program scales
    #[arg(value_name = "RUN", conflicts_with_all = ["top", "sort", "how", "efficiency", "lists", "listed", "from", "to", "step"])]
    pub further: Vec<PathBuf>,

    /// With further runs: whether these share out the same work, or each rank has as much
    #[arg(long, value_enum, default_value_t, requires = "further")]
    pub scaling: ScalingChoice,

    /// Print the efficiencies alone: of the run, its steps, and its regions
    #[arg(long, conflicts_with_all = ["top", "sort", "how", "listed"])]
    pub efficiency: bool,

    #[command(flatten)]
    pub times: ReferenceArgs,

    /// Call sites shown; 0 shows all [default: 10; all in JSON and CSV]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    #[arg(long, value_enum, default_value_t)]
    pub sort: SiteOrder,

    /// Show advice as code, before and after, in the language of the file that it names
    #[arg(long)]
    pub how: bool,

    #[command(flatten)]
    pub ranks: RanksArgs,

    #[command(flatten)]
    pub ranked: ListedArgs,

    #[command(flatten)]
    pub wrappers: WrapperArgs,

    #[command(flatten)]
    pub stretch: StretchArgs,

    #[command(flatten)]
    pub resources: ResourceArgs,
}

/// Every call site: calls, bytes, time in posting, exposed time, time in other MPI, and its call path.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapscope sites --sort exposed --top 5
  lapscope sites --call MPI_Isend --paths
  lapscope sites --source exchange.c --format csv")]
pub struct SitesArgs {
    #[command(flatten)]
    pub read: ReadArgs,

    /// Call sites shown; 0 shows all [default: 20; all in JSON and CSV]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    #[arg(long, value_enum, default_value_t)]
    pub sort: SiteOrder,

    #[command(flatten)]
    pub ranks: RanksArgs,

    /// Only this MPI call (MPI_Isend, or isend); may be given several times
    #[arg(long = "call", value_name = "NAME")]
    pub calls: Vec<String>,

    /// Only sites whose call path has this text in a function or file name
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,

    /// Show sites one by one with their whole call paths, in place of the tree
    #[arg(long, alias = "path")]
    pub paths: bool,

    #[command(flatten)]
    pub wrappers: WrapperArgs,

    #[command(flatten)]
    pub stretch: StretchArgs,
}

/// Single requests, the costliest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapscope requests --top 5
  lapscope requests --kind send --min-bytes 64k --sort post
  lapscope requests --ranks 0 --peer 1 --format csv > requests.csv")]
pub struct RequestsArgs {
    #[command(flatten)]
    pub read: ReadArgs,

    /// Requests shown; 0 shows all [default: 20; all in JSON and CSV]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    /// [default: completion; of all requests in JSON and CSV: stored]
    #[arg(long, value_enum)]
    pub sort: Option<RequestOrder>,

    #[command(flatten)]
    pub ranks: RanksArgs,

    /// Only this MPI call (MPI_Isend, or isend); may be given several times
    #[arg(long = "call", value_name = "NAME")]
    pub calls: Vec<String>,

    #[arg(long, value_enum)]
    pub kind: Option<Kind>,

    /// Only with this world rank at the other end
    #[arg(long, value_name = "RANK")]
    pub peer: Option<Rank>,

    /// Only with this tag
    #[arg(long, value_name = "TAG", allow_negative_numbers = true)]
    pub tag: Option<i64>,

    /// Only of at least so many bytes, as 65536 or 64k
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    pub min_bytes: Option<u64>,

    /// Only of at most so many bytes
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    pub max_bytes: Option<u64>,

    /// Only requests whose post's call path has this text in a function or file name
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,

    /// Only requests that ended in this way
    #[arg(long, value_enum)]
    pub ended: Option<RequestEnded>,

    #[command(flatten)]
    pub wrappers: WrapperArgs,
}

/// What had not ended when the processes did, or has not now: lapscope hang --pending
#[derive(Debug, Args)]
pub struct PendingArgs {
    #[command(flatten)]
    pub read: ReadArgs,

    /// Entries shown per rank; 0 shows all [default: 20; all in JSON and CSV]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    #[command(flatten)]
    pub ranks: RanksArgs,

    #[command(flatten)]
    pub ranked: ListedArgs,
}

/// Query the databases of all ranks as if they were one, without changing them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapscope sql                                     list the tables and views
  lapscope sql . 'SELECT rank, call, ns FROM time_by_call ORDER BY ns DESC LIMIT 10'
  lapscope sql runs/a 'SELECT * FROM requests WHERE bytes > 1e6' --format csv")]
pub struct SqlArgs {
    /// Run directory or database; `.` means the newest lapscope-* here
    pub run: Option<PathBuf>,

    /// One SQL statement [default: list the tables and views]
    pub query: Option<String>,

    #[arg(long, value_parser = Format::any(), default_value_t)]
    pub format: Format,
}

/// Turn the spools that killed ranks left into databases.
#[derive(Debug, Args)]
#[command(after_help = "\
`lapscope report` does this by itself. Ranks that are still running are left alone, and so are those that may still
run on other nodes, which cannot be seen from here.

Examples:
  lapscope recover                      the newest run in this directory
  lapscope recover runs/a
  lapscope recover --ended runs/a       of a job that has ended on all its nodes")]
pub struct RecoverArgs {
    /// Run directory [default: the newest lapscope-* here]
    pub run: Option<PathBuf>,

    /// The job has ended: also convert what it left on other nodes
    #[arg(long)]
    pub ended: bool,
}

/// Every LAPSCOPE_ variable: what it does, its default, its value now.
#[derive(Debug, Args)]
pub struct OptionsArgs {
    #[arg(long, value_parser = Format::of_no_table(), default_value_t)]
    pub format: Format,
}

/// What the words in reports mean (`lapscope help terms`), or the help of a command.
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// `terms`, `cures`, or the name of a command
    pub topic: Option<String>,
}
