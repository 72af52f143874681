//! Arguments of the command that writes a page.

use std::path::PathBuf;

use clap::Args;

use super::{RanksArgs, ReferenceArgs, ResourceArgs, ScalingChoice, StretchArgs, WrapperArgs};
use lapscope_data::model::RankList;

/// Call sites that have a row of their own where nobody asks for more.
pub const LISTED_SITES: u16 = 200;

/// The report with pictures, as a page for the browser: one file that needs no network.
#[derive(Debug, Args)]
#[command(after_help = "\
The page is one file of a few hundred KB, whatever the run, with everything in it: copy it, mail it, open it where there is no
network. It asks nobody for anything. --step, --from, --to and --timeline-ranks choose what its timeline shows; all else is of the whole run.

Examples:
  lapscope html --open                  of the newest run, and shows it
  lapscope html --sources .             with the lines around each call, of sources in this directory
  lapscope html runs/a -o a.html
  lapscope html runs/a runs/b           what changed from a to b, and where
  lapscope html runs/p2 runs/p4 runs/p8 -o scaling.html
  lapscope run --html -- mpirun -n 4 ./app input.dat")]
pub struct HtmlArgs {
    /// Run directory or database [default: the newest lapscope-* here]
    pub run: Option<PathBuf>,

    /// Another run: the page is of what changed from the first to this one
    #[arg(conflicts_with_all = ["lists", "sources"])]
    pub run_b: Option<PathBuf>,

    /// Further runs: the page is of how the program scales with its ranks
    #[arg(value_name = "RUN", conflicts_with_all = ["lists", "sources"])]
    pub further: Vec<PathBuf>,

    /// With further runs: whether these share out the same work, or each rank has as much
    #[arg(long, value_enum, default_value_t, requires = "further")]
    pub scaling: ScalingChoice,

    /// File to write; one that is there is replaced if it is such a page [default: <name of the run directory>.html here, or both names]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Open it in the browser, where there is one
    #[arg(long)]
    pub open: bool,

    /// Call sites that have a row, at most 600; the others are summed up
    #[arg(long, value_name = "N", default_value_t = LISTED_SITES, value_parser = clap::value_parser!(u16).range(1..=600))]
    pub top: u16,

    #[command(flatten)]
    pub ranks: RanksArgs,

    /// Ranks of the timeline, as 0-15,64,2:0-3 [default: all of few; else the rank with most exposed time and its partners]
    #[arg(long = "timeline-ranks", value_name = "LIST")]
    pub shown_ranks: Option<RankList>,

    /// Show lines of the program's source, of files in this directory; may be given several times
    #[arg(long, value_name = "DIR")]
    pub sources: Vec<PathBuf>,

    #[command(flatten)]
    pub times: ReferenceArgs,

    #[command(flatten)]
    pub wrappers: WrapperArgs,

    #[command(flatten)]
    pub stretch: StretchArgs,

    #[command(flatten)]
    pub resources: ResourceArgs,
}
