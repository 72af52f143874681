//! Arguments of the commands that inject tests.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{units, WrapperArgs};
use lapscope_launch::run::environment::assignment;
use lapscope_launch::run::Mode;
use lapscope_launch::tune::variable::Variable;
use lapscope_show::format::Format;

/// Find out whether settings of the MPI or injected tests make a program faster, which, and by how much.
#[derive(Debug, Args)]
#[command(after_help = "\
The program is run several times: first without injection, to see whether there is anything to gain.

Then settings of the MPI itself are tried that can cure what was waited for, the most promising first, in pairs of whole
runs without lapscope, one as it is and one with the setting. The best is proved by at least five pairs of its own, which find a
gain where there is none in at most 5 of 100 searches.

Then tests are injected, with each
mode at the first interval, copies of sends (LAPSCOPE_BUFFER_SENDS) among them where the advice is to make some; then with the best mode at the others. While a run injects it does so only half of the
time, in slots that are the same on all ranks, so that each run shows by itself what injection gains. That chooses the
setting. What it gains is then measured by pairs of whole runs, one without lapscope and one with the setting, in turn.

Standard output gets the result: variables to set, and what was tried. What the program prints goes into files
beside its recorded runs, which are removed at the end without --keep or --dir. Standard input, when it is a file, is
read by every run from its beginning; else it is empty.

Examples:
  lapscope tune -- mpirun -n 4 ./app input.dat
  lapscope tune --modes timer --intervals 1000 --dir tuning -- srun -n 64 ./app
  lapscope tune --budget 10min --no-injection -- mpirun -n 4 ./app input.dat
  lapscope tune --from lapscope-4711 -- mpirun -n 4 ./app input.dat
  lapscope tune --set INJECT_CLOCK=cputime -- mpiexec -n 4 python3 script.py")]
pub struct TuneArgs {
    /// Modes to try
    #[arg(
        long,
        value_name = "MODE,...",
        value_enum,
        value_delimiter = ',',
        default_value = "timer,thread,calls"
    )]
    pub modes: Vec<Mode>,

    /// Times between tests to try, in microseconds or with a unit (1ms): the first with every mode, the others with the best
    #[arg(long, value_name = "US,...", value_delimiter = ',', default_value = "1000,300,3000",
          value_parser = units::interval_us)]
    pub intervals: Vec<u32>,

    /// Search with at most so many runs; those that confirm what was found come on top
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub runs: u32,

    /// Confirm what was found by so many pairs of whole runs, without lapscope and with the setting in turn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub pairs: u32,

    /// Start no run that would end later than so many minutes from now (10min): settings of the MPI have up to half of the
    /// time, pairs that confirm injection up to half of the rest
    #[arg(long, visible_alias = "minutes", value_name = "MINUTES", value_parser = units::minutes)]
    pub budget: Option<u32>,

    /// Try this variable, and the next one if given again, in the place of the settings of the MPI that lapscope knows
    #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = variable)]
    pub settings: Vec<Variable>,

    /// Do not try the MPI's own settings
    #[arg(long, conflicts_with = "settings")]
    pub no_settings: bool,

    /// Do not try injected tests and copied sends
    #[arg(long, conflicts_with = "no_settings")]
    pub no_injection: bool,

    /// Give every run a copy of the working directory, which is removed behind it: for programs that write files there
    #[arg(long)]
    pub cd_copy: bool,

    /// End a run that takes longer, in seconds [default: ten times as long as the first, and at least a minute more]
    #[arg(long, value_name = "S", value_parser = units::timeout)]
    pub timeout: Option<u64>,

    /// Inject only while a request of at least so many bytes is pending [default: 65536]
    #[arg(long, value_name = "BYTES", value_parser = units::min_bytes)]
    pub min_bytes: Option<u64>,

    /// Go on with what a search that was ended has kept in this directory; or begin with what a run directory of
    /// LAPSCOPE_INJECT=auto has: what was in force there first, what was worse than nothing last, and no tests at call sites
    /// where they found nothing
    #[arg(long = "from", value_name = "DIR")]
    pub earlier: Option<PathBuf>,

    /// Try it also when the first run shows nothing to gain
    #[arg(long)]
    pub anyway: bool,

    /// File to write, for LAPSCOPE_INJECT_POLICY: call sites at which to inject or not
    #[arg(long, value_name = "FILE", default_value = "lapscope-policy")]
    pub policy: PathBuf,

    /// Overwrite that file
    #[arg(long)]
    pub force: bool,

    /// Keep the recorded runs
    #[arg(long)]
    pub keep: bool,

    /// Keep them in this directory, which must not exist [default: lapscope-tune-DATE-TIME-PROGRAM here]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Set any option that `lapscope options` lists, in all runs; LAPSCOPE_ in front may be left out
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,

    #[command(flatten)]
    pub wrappers: WrapperArgs,

    #[arg(long, value_parser = Format::of_no_table(), default_value_t)]
    pub format: Format,

    /// The launch line, with the program
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn variable(text: &str) -> Result<Variable, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok(Variable::new(name, value.to_owned())),
        _ => Err("expected NAME=VALUE, as in OMPI_MCA_btl_tcp_progress_thread=1".to_owned()),
    }
}

impl TuneArgs {
    pub fn budget(&self) -> Option<Duration> {
        self.budget.map(|minutes| Duration::from_secs(60 * u64::from(minutes)))
    }
}
