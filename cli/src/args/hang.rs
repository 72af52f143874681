//! Arguments of the diagnosis of a job that hangs.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{units, ListedArgs, RanksArgs};
use lapscope_show::format::Format;

/// What everybody is waiting for: who is where, who waits for whom, and whether it is a deadlock.
#[derive(Debug, Args)]
#[command(after_help = "\
It looks twice at a job that runs, and neither stops nor disturbs it (of a job that nobody records, threads on a processor are
stopped for a millisecond); at one that has ended it looks once, at what its ranks
were in when they were killed. `docs/hang.md` explains each verdict. What may be otherwise is said with a perhaps.

Examples:
  lapscope hang                         the newest run in this directory
  lapscope hang --interval 10 runs/a    with ten seconds between the two looks
  lapscope hang --html hang.html        with the circle drawn, as a page for the browser
  lapscope hang --launch 'ssh node7' --launch 'ssh node8'
                                        with what only these nodes can see
  lapscope hang --command heat          of a job that was started without lapscope: where each rank is
  lapscope hang --job 4711              the same of a job of Slurm, on all of its nodes
  lapscope hang --pending runs/a        of a run that hung or crashed: each request and call that had not ended
  lapscope hang --format json | jq -r .verdict.sentence")]
pub struct HangArgs {
    /// Run directory or database [default: the newest lapscope-* here]
    pub run: Option<PathBuf>,

    /// Processes of a job that nobody records, by number: their stacks are read from outside
    #[arg(long, value_name = "PID", value_delimiter = ',', num_args = 1..,
          conflicts_with_all = ["run", "pending", "launch"])]
    pub pid: Vec<i64>,

    /// The same for all ranks that run this program or script, on this machine or on --hosts
    #[arg(long, value_name = "NAME", conflicts_with_all = ["run", "pending", "pid"])]
    pub command: Option<String>,

    /// The same for those of a job of Slurm, on all of its nodes: by srun, or else by ssh
    #[arg(long, value_name = "JOB_ID", conflicts_with_all = ["run", "pending", "pid", "command"])]
    pub job: Option<String>,

    /// Look from these hosts, by ssh, with --command; with --job from these of its nodes
    #[arg(long, value_name = "HOST", value_parser = host_list, conflicts_with_all = ["run", "pending", "pid", "launch"])]
    pub hosts: Option<HostList>,

    /// What a node may take to answer, in seconds; then the others count
    #[arg(long, value_name = "S", default_value = "20", value_parser = units::seconds)]
    pub patience: u32,

    /// Between the two looks, in seconds
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = units::interval)]
    pub interval: Duration,

    /// csv and the like with --pending alone
    #[arg(long, value_parser = Format::any(), default_value_t)]
    pub format: Format,

    /// What had not ended when the processes did, or has not now, one by one: requests, and the calls that ranks are inside of
    #[arg(long, conflicts_with_all = ["html", "launch", "interval"])]
    pub pending: bool,

    /// With --pending: entries shown per rank; 0 shows all [default: 20; all in JSON and CSV]
    #[arg(long, value_name = "N", requires = "pending")]
    pub top: Option<usize>,

    #[command(flatten)]
    pub ranks: RanksArgs,

    /// Also write a page for the browser; one that is there is replaced if it is such a page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// What starts a command on other nodes, which then looks from there; may be given for each: 'ssh node7',
    /// 'srun --overlap --jobid 4711'
    #[arg(long, value_name = "LAUNCHER")]
    pub launch: Vec<String>,

    /// What is started on a node for --job, --hosts and --launch: prints what it sees for another lapscope; what it sees of a
    /// recorded run it writes into this directory of the run directory
    #[arg(long, value_name = "NAME", hide = true)]
    pub part: Option<String>,

    /// Where what --launch starts writes what it sees
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    pub gather: Option<PathBuf>,

    #[command(flatten)]
    pub ranked: ListedArgs,
}

/// Names of hosts, with commas or blanks between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostList(pub Vec<String>);

fn host_list(text: &str) -> Result<HostList, String> {
    let split = |letter: char| letter == ',' || letter.is_whitespace();
    let mut hosts: Vec<String> = Vec::new();
    for host in text.split(split).filter(|host| !host.is_empty()) {
        if host.starts_with('-') {
            return Err(format!("{host} is no name of a host"));
        }
        if !hosts.iter().any(|known| known == host) {
            hosts.push(host.to_owned());
        }
    }
    match hosts.is_empty() {
        true => Err("expected names of hosts, as node7,node8".to_owned()),
        false => Ok(HostList(hosts)),
    }
}
