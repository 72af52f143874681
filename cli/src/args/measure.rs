//! Arguments of the commands that measure overlap and what limits it.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{
    units, ListedArgs, RanksArgs, ReadArgs, ReferenceArgs, ResourceArgs, StretchArgs, WrapperArgs,
};
use clap::Args;
use lapscope_show::format::Format;
use lapscope_show::render::overlap::OverlapBy;

/// From which size on sends wait for their receiver, and what MPI declares.
#[derive(Debug, Args)]
#[command(after_help = "\
A send did not wait when it was complete before its receive was posted. A send waited when it was not complete then,
although the sender was inside MPI for much longer than a transfer takes. So runs show most in which receivers compute
while messages of many sizes are on their way.

--probe finds out: lapscope launches an MPI program of its own that sends messages of many sizes to receivers who are
elsewhere, more and more closely around the limit. The launch line is that of your program without the program.

Examples:
  lapscope thresholds                   the newest run in this directory
  lapscope thresholds --rank 3 runs/a   what rank 3 sent
  lapscope thresholds --probe -- mpirun -n 2 --map-by node")]
pub struct ThresholdsArgs {
    #[command(flatten)]
    pub read: ReadArgs,

    #[command(flatten)]
    pub ranks: RanksArgs,

    /// Launch a program of lapscope's own that finds the limits
    #[arg(long, conflicts_with = "run")]
    pub probe: bool,

    /// With --probe: how long to look, for each locality
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = units::seconds, requires = "probe")]
    pub seconds: u32,

    /// With --probe: the MPI library [default: the one beside the launcher, else the loader's]
    #[arg(long, value_name = "FILE", requires = "probe")]
    pub mpi_library: Option<PathBuf>,

    /// With --probe: keep the recorded run in this directory
    #[arg(long, value_name = "DIR", requires = "probe")]
    pub dir: Option<PathBuf>,

    #[command(flatten)]
    pub times: ReferenceArgs,

    #[command(flatten)]
    pub stretch: StretchArgs,

    #[command(flatten)]
    pub resources: ResourceArgs,

    /// With --probe: the launch line, without a program
    #[arg(last = true, value_name = "COMMAND", requires = "probe")]
    pub command: Vec<OsString>,
}

/// Compare two runs: what changed in configuration, in times, and at which call sites.
#[derive(Debug, Args)]
#[command(after_help = "\
Differences are B minus A: negative is less time in B. A call site is the same when call, function and line are;
where lines have moved, when the function has as many of that call in both.

Examples:
  lapscope diff runs/before runs/after
  lapscope diff runs/a runs/b --top 0 --format csv > sites.csv")]
pub struct DiffArgs {
    /// Run directory or database
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// Run directory or database to compare it with
    #[arg(value_name = "B")]
    pub b: PathBuf,

    #[arg(long, value_parser = Format::any(), default_value_t)]
    pub format: Format,

    /// Call sites shown; 0 shows all [default: 15; all in JSON and CSV]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    #[command(flatten)]
    pub times: ReferenceArgs,

    #[command(flatten)]
    pub wrappers: WrapperArgs,

    #[command(flatten)]
    pub resources: ResourceArgs,
}

/// Overlap of communication and computation: achieved, possible, lost; and what was waited for.
#[derive(Debug, Args)]
#[command(after_help = "\
The reference time of a transfer is how long it takes undisturbed. Achieved overlap is the part of it that did not
show up as time inside MPI. Possible overlap is the part for which there was computation between post and wait. Lost
overlap is the difference, as far as the request itself cost time inside MPI. Where only an interval is known, an
interval is printed. Exposed time is counted once for each call. `lapscope help terms` explains all words.

Examples:
  lapscope overlap                      the newest run in this directory
  lapscope overlap --by size runs/a
  lapscope overlap --format json | jq .totals")]
pub struct OverlapArgs {
    #[command(flatten)]
    pub read: ReadArgs,

    /// One table only [default: a summary; csv: site]
    #[arg(long, value_enum)]
    pub by: Option<OverlapBy>,

    #[command(flatten)]
    pub times: ReferenceArgs,

    /// Call sites shown; 0 shows all [default: 10; all in JSON and CSV]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

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

/// Measure how long transfers take here when nothing disturbs them, for later reports to compare with.
#[derive(Debug, Args)]
#[command(after_help = "\
The launch line is that of your program without the program: lapscope launches one of its own, which takes about as many
seconds as --seconds says. Reports find the result by host, MPI and transport settings.

Examples:
  lapscope calibrate -- mpirun -n 2
  lapscope calibrate -- mpirun -n 4 --map-by node --mca btl tcp,self
  lapscope calibrate --mpi-library /opt/mpi/lib/libmpi.so.12 -- srun -N 2 -n 4")]
pub struct CalibrateArgs {
    /// How long to measure
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = units::seconds)]
    pub seconds: u32,

    /// The MPI library [default: the one beside the launcher, else the loader's]
    #[arg(long, value_name = "FILE")]
    pub mpi_library: Option<PathBuf>,

    /// File to write [default: in $LAPSCOPE_CALIBRATION_DIR, else ~/.local/share/lapscope/calibration, where reports look]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Keep the recorded run in this directory
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    #[arg(long, value_parser = Format::of_no_table(), default_value_t)]
    pub format: Format,

    /// The launch line, without a program
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
