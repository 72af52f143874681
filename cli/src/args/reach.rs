//! Arguments of the command that watches buffers.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{units, RanksArgs, ReadArgs, ReferenceArgs, RunArgs, WrapperArgs};
use lapscope_launch::run::environment::assignment;
use lapscope_measure::reach::network::Network;
use lapscope_predict::whatif::network::network;

/// How much earlier data could be sent, how much later received data are needed, and by which lines.
#[derive(Debug, Args)]
#[command(after_help = "\
The processor watches single words of the buffers of a share of the requests: the last write of a word before its send
shows how much earlier that could be posted, the first touch of a word after its receive was complete how much later that
could be waited for. Each access to a watched word costs the program some microseconds; a budget limits their sum. The
program needs no other build; with debug information (-g) the lines that write last and touch first are named.

With a launch line lapscope records a run as `lapscope run` does and prints its reach; the exit code is the program's.
`lapscope doctor` says whether words can be watched here.

Examples:
  lapscope reach -- mpirun -n 4 ./app input.dat
  lapscope reach                        the newest run in this directory
  lapscope reach --share 100 --budget 20 --dir runs/a -- srun -n 64 ./app
  lapscope reach --network 4us,950MB/s --network 1us,100Gbit/s
  lapscope reach --format json runs/a | jq .watching")]
pub struct ReachArgs {
    #[command(flatten)]
    pub read: ReadArgs,

    #[command(flatten)]
    pub ranks: RanksArgs,

    #[command(flatten)]
    pub times: ReferenceArgs,

    /// Execution time on a network of this latency and bandwidth, over that of the computation alone: without overlap, with
    /// posts and waits moved, with finer messages; may be given several times
    #[arg(long = "network", value_name = "LATENCY,BANDWIDTH", value_parser = network)]
    pub networks: Vec<Network>,

    #[command(flatten)]
    pub wrappers: WrapperArgs,

    /// Show so many posts and waits, 0 for all
    #[arg(long, alias = "sites", value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// Share of requests whose buffers are watched, in percent [default: 20]
    #[arg(long, value_name = "PERCENT", requires = "command",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub share: Option<u32>,

    /// Watch only buffers of at least so many bytes, as 65536 or 64k [default: 1024]
    #[arg(long, value_name = "BYTES", requires = "command", value_parser = units::reach_min_bytes)]
    pub min_bytes: Option<u64>,

    /// What watching may cost, in percent of the run time [default: 3]
    #[arg(long, value_name = "PERCENT", requires = "command",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub budget: Option<u32>,

    /// Run directory to write [default: lapscope-DATE-TIME-PROGRAM here]
    #[arg(long, value_name = "DIR", requires = "command")]
    pub dir: Option<PathBuf>,

    /// Set any option that `lapscope options` lists; LAPSCOPE_ in front may be left out
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "command", value_parser = assignment)]
    pub set: Vec<(String, String)>,

    /// The program or launch line of a run to record
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "run")]
    pub command: Vec<OsString>,
}

impl ReachArgs {
    /// As `lapscope run` has it.
    pub fn run_args(&self) -> RunArgs {
        let mut set = vec![("LAPSCOPE_REACH".to_owned(), "on".to_owned())];
        let mut option = |name: &str, value: Option<String>| {
            set.extend(value.map(|value| (name.to_owned(), value)));
        };
        option("LAPSCOPE_REACH_SHARE", self.share.map(|share| share.to_string()));
        option("LAPSCOPE_REACH_MIN_BYTES", self.min_bytes.map(|bytes| bytes.to_string()));
        option("LAPSCOPE_REACH_BUDGET", self.budget.map(|budget| budget.to_string()));
        set.extend(self.set.iter().cloned());
        let (dir, command) = (self.dir.clone(), self.command.clone());
        RunArgs { dir, set, command, ..RunArgs::default() }
    }
}
