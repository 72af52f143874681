//! Arguments of `lapscope doctor`, and of the process in which it asks an MPI library.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use lapscope_show::format::Format;

/// Say which MPIs, recorders, clocks, counters and permissions are here, and what to do about what is missing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapscope doctor                       this machine, its MPIs, what they communicate by
  lapscope doctor ./app                 and whether this program can be profiled
  lapscope doctor --progress -- mpirun -n 2
                                        what this MPI moves while ranks compute, measured
  lapscope doctor --gpu -- mpirun -n 2  whether what is recorded of a GPU is what it did

The exit code is 3 when something is missing without which nothing, or not this program, can be
recorded, and when what is recorded of a GPU is not what it did.",
    group = ArgGroup::new("launched").args(["progress", "gpu"]))]
pub struct DoctorArgs {
    /// Program to look at
    pub program: Option<PathBuf>,

    /// Launch a program of lapscope's own, which measures what moves while ranks compute; reports use what it finds
    #[arg(long, conflicts_with = "program")]
    pub progress: bool,

    /// Launch a program of lapscope's own, whose kernels on an NVIDIA GPU last as long as it says; compares what is recorded
    #[arg(long, conflicts_with_all = ["program", "progress"])]
    pub gpu: bool,

    /// With --progress or --gpu: the MPI library [default: the one beside the launcher, else the loader's]
    #[arg(long, value_name = "FILE", requires = "launched")]
    pub mpi_library: Option<PathBuf>,

    /// With --progress: file to write [default: beside the calibrations, where reports look]
    #[arg(long, short, value_name = "FILE", requires = "progress")]
    pub output: Option<PathBuf>,

    #[arg(long, value_parser = Format::of_no_table(), default_value_t)]
    pub format: Format,

    /// With --progress or --gpu: the launch line, without a program
    #[arg(last = true, value_name = "COMMAND", requires = "launched")]
    pub command: Vec<OsString>,
}

/// The process in which `doctor` asks an MPI library what it is
#[derive(Debug, Args)]
pub struct AskMpiArgs {
    pub library: PathBuf,

    /// Libraries that its program loads
    pub places: Vec<PathBuf>,
}
