//! Arguments of the commands that write a run as a timeline for another program's viewer.

use std::path::PathBuf;

use clap::Args;
use lapscope_data::model::RankList;

use super::{ResourceArgs, StretchArgs, WrapperArgs};

/// What of which run, and where to.
#[derive(Debug, Args)]
pub struct TimelineArgs {
    /// Run directory or database [default: the newest lapscope-* here]
    pub run: Option<PathBuf>,

    /// What to write, in place of the run's name with the ending of the format, here
    #[arg(long, short, value_name = "PATH")]
    pub output: Option<PathBuf>,

    /// Only these ranks, as 0-15,64,2:0-3 [default: all]
    #[arg(long, value_name = "LIST")]
    pub ranks: Option<RankList>,

    #[command(flatten)]
    pub wrappers: WrapperArgs,

    #[command(flatten)]
    pub stretch: StretchArgs,

    #[command(flatten)]
    pub resources: ResourceArgs,
}

/// The run as a timeline for Perfetto (ui.perfetto.dev).
#[derive(Debug, Args)]
#[command(after_help = "\
A process for each node, a thread for each thread of a rank: MPI calls with file and line, below
them requests from post to completion and how many of them are pending, an arrow for each matched
message. All timestamps are on one clock. What touches a stretch is written whole, also what began
before it. docs/timelines.md has more, and queries for Perfetto's SQL.

Examples:
  lapscope export perfetto                                the newest run in this directory
  lapscope export perfetto runs/a -o a.perfetto-trace
  lapscope export perfetto --from 4.7 --to 4.8 runs/a     what touches a tenth of a second
  lapscope export perfetto --step 12 --ranks 0-15 runs/a  a step of some ranks of a large run")]
pub struct ExportPerfettoArgs {
    #[command(flatten)]
    pub timeline: TimelineArgs,
}

/// The run as Chrome trace events, which chrome://tracing, Speedscope and the Firefox profiler open.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON, an event a line: five times as large as for Perfetto, which should be taken where both can
be. docs/timelines.md says which viewer shows what.

Examples:
  lapscope export chrome                                  the newest run in this directory
  lapscope export chrome --ranks 0,1 runs/a -o a.json")]
pub struct ExportChromeArgs {
    #[command(flatten)]
    pub timeline: TimelineArgs,
}

/// The run as an OTF2 archive for Vampir, Scalasca, Pipit.
#[derive(Debug, Args)]
#[command(after_help = "\
Written by libotf2, which must be on this machine: on Debian and Ubuntu the package
libopen-trace-format2-10. A directory is made, which must not be there before; programs open
traces.otf2 in it.

Examples:
  lapscope export otf2                                    the newest run in this directory
  lapscope export otf2 runs/a -o a.otf2 && otf2-print a.otf2/traces.otf2")]
pub struct ExportOtf2Args {
    #[command(flatten)]
    pub timeline: TimelineArgs,
}
